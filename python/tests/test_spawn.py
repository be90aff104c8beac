"""Children that are handed out: how they start, end, and are talked to."""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import subprocess
import threading
import weakref

import pytest
from conftest import comes_back, descriptors, is_alive

import procwright
from procwright import (
    DEVNULL,
    PIPE,
    STDOUT,
    InvalidValue,
    Overflow,
    Stop,
    StreamClosed,
    WaitTimeout,
    spawn,
)

#: Only against hanging.
LONG = 100


def test_codes_that_are_no_failure(child):
    with procwright.spawn([child, "exit", "1"], ok_codes=[1]) as good:
        assert good.wait() == 1
    result = good.result()
    assert (result.ok, result.returncode, result.ok_codes) == (True, 1, (1,))
    result.check_returncode()
    with pytest.raises(procwright.CalledProcessError):
        procwright.spawn([child, "exit", "2"], ok_codes=[1]).result().check_returncode()


def test_a_child(child):
    it = spawn([child, "echo", "hello"])
    assert it.args == [child, "echo", "hello"]
    assert it.stdin is None
    assert it.stdout.read() == b"hello\n"
    assert it.stderr.read() == b""
    assert it.wait() == 0
    assert it.returncode == 0
    assert it.poll() == 0
    assert it.status.code == 0
    assert it.wait(timeout=0) == 0
    assert repr(it).endswith("returncode 0>")
    assert it.process.returncode == 0


def test_what_it_is_while_it_lives(child):
    with spawn([child, "cat"], stdin=PIPE) as it:
        assert it.poll() is None
        assert it.returncode is None
        assert it.status is None
        assert is_alive(it.pid)
        assert it.process.pid == it.pid
        assert repr(it) == f"<procwright.Child {[child, 'cat']!r}, pid {it.pid}, alive>"
        with pytest.raises(WaitTimeout) as raised:
            it.wait(timeout=0.01)
        assert isinstance(raised.value, subprocess.TimeoutExpired)
    assert it.returncode == 0


def test_stdin_and_text(child):
    with spawn([child, "cat"], stdin=PIPE, text=True) as it:
        assert it.stdin.write("grüße\n") == 6
        assert it.stdout.readline() == "grüße\n"
        assert it.stdin.buffer.write(b"bytes\n") == 6
        assert it.stdout.buffer.readline() == b"bytes\n"


@pytest.mark.parametrize("overflow", ["spill", "block", "fail", Overflow(memory="64KiB", disk=0)])
def test_communicate(child, overflow):
    data = os.urandom(3 << 20)
    it = spawn([child, "cat"], stdin=PIPE, overflow=overflow)
    assert it.communicate(data) == (data, b"")
    assert it.returncode == 0
    assert it.stdin.closed
    assert it.stdout.closed
    assert it.communicate() == (b"", b"")


def test_communicate_with_text_and_what_was_read_before(child):
    it = spawn([child, "cat"], stdin=PIPE, text=True, stderr=DEVNULL)
    it.stdin.write("one\ntwo\nthr€")
    assert it.stdout.readline() == "one\n"
    assert it.communicate("e\n") == ("two\nthr€e\n", None)


def test_communicate_goes_on_after_a_timeout(child):
    it = spawn([child, "cat"], stdin=PIPE)
    data = b"x" * (1 << 20)
    other = spawn([child, "sleep-forever"], stdin=PIPE)
    with pytest.raises(WaitTimeout) as raised:
        other.communicate(data, timeout=0.02)
    assert raised.value.output == b""
    with pytest.raises(ValueError, match=r"^input is .*: it was given before; leave it out"):
        other.communicate(b"again")
    other.kill()
    assert other.communicate() == (b"", b"")
    assert other.returncode == -signal.SIGKILL
    assert it.communicate(data, timeout=LONG) == (data, b"")


def test_communicate_of_a_child_that_reads_nothing(child):
    it = spawn([child, "close-stdin-exit", "3"], stdin=PIPE)
    assert it.communicate(b"x" * (1 << 20)) == (b"", b"")
    assert it.returncode == 3


def test_communicate_is_interrupted_and_goes_on(child, when_asleep):
    it = spawn([child, "cat"], stdin=PIPE)
    it.stdin.write(b"before")
    assert it.stdout.peek() == b"before"
    hold = os.dup(it.stdin.fileno())
    when_asleep(lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        it.communicate(b" and")
    os.write(hold, b" after")
    os.close(hold)
    assert it.communicate() == (b"before and after", b"")


def test_input_needs_a_pipe(child):
    it = spawn([child, "echo"])
    with pytest.raises(InvalidValue, match="stdin=PIPE"):
        it.communicate(b"data")
    it = spawn([child, "cat"], stdin=PIPE)
    with pytest.raises(TypeError, match="text=True"):
        it.communicate("data")
    it.kill()


def test_signals(child):
    it = spawn([child, "sleep-forever", "--print-ready"])
    it.stdout.readline()
    it.send_signal(signal.SIGINT)
    assert it.wait() == -signal.SIGINT
    it.send_signal("TERM")
    it.terminate()
    it.kill()
    other = spawn([child, "sleep-forever", "--print-ready"])
    other.terminate()
    assert other.wait() == -signal.SIGTERM


def test_stop(child):
    it = spawn([child, "ignore-term", "--print-ready"], stop=Stop(grace=0.01, scope="process"))
    it.stdout.readline()
    assert it.stop() == []
    assert it.returncode == -signal.SIGKILL
    assert it.stop() == []


def test_leaving_by_an_exception_stops(child):
    it = spawn([child, "sleep-forever", "--print-ready"])
    it.stdout.readline()
    with pytest.raises(ZeroDivisionError), it:
        raise ZeroDivisionError
    assert it.returncode == -signal.SIGTERM


def test_leaving_is_interrupted_and_stops(child, when_asleep):
    it = spawn([child, "sleep-forever", "--print-ready"])
    it.stdout.readline()
    when_asleep(lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt), it:
        pass
    assert it.returncode == -signal.SIGTERM


def test_streams_elsewhere(child, tmp_path):
    it = spawn([child, "echo", "--stderr", "x"], stderr=STDOUT)
    assert it.stderr is None
    assert it.stdout.read() == b"x\n"
    it = spawn([child, "echo", "x"], stdout=tmp_path / "out", stderr=DEVNULL)
    assert it.stdout is None
    assert it.wait() == 0
    assert (tmp_path / "out").read_bytes() == b"x\n"
    it = spawn([child, "cat"], stdin=tmp_path / "out")
    assert it.stdin is None
    assert it.stdout.read() == b"x\n"


def test_the_other_options(child, tmp_path):
    it = spawn(
        [child, "show"], cwd=tmp_path, umask=0o27, extra_env={"A": "b"}, start_new_session=True
    )
    shown = it.stdout.read()
    assert str(tmp_path).encode() in shown
    assert spawn("exit 7", shell=True).wait() == 7


def test_refused(child):
    with pytest.raises(FileNotFoundError):
        spawn(["/does/not/exist"])
    with pytest.raises(TypeError, match=r"spawn\(\['echo', 'x'\]\)"):
        spawn("echo x")
    with pytest.raises(InvalidValue, match="overflow"):
        spawn([child, "echo"], overflow="splil")
    with pytest.raises(TypeError, match="overflow"):
        spawn([child, "echo"], overflow=3)
    with spawn([child, "echo"]) as it, pytest.raises(TypeError, match="pickled"):
        pickle.dumps(it)


def test_overflow():
    assert Overflow() == Overflow("spill", memory=16 << 20)
    assert Overflow("drop_oldest", memory="1.5 MiB").memory == 3 << 19
    assert Overflow("spill", memory=1, disk="2GiB").disk == 2 << 30
    assert "drop_newest" in repr(Overflow("drop_newest"))
    for bad in ("12 parsecs", "-1", "", "MiB"):
        with pytest.raises(InvalidValue, match="memory"):
            Overflow(memory=bad)
    with pytest.raises(InvalidValue, match="memory"):
        Overflow(memory=-1)
    with pytest.raises(TypeError, match="memory"):
        Overflow(memory=1.5)
    with pytest.raises(InvalidValue, match="disk"):
        Overflow("fail", disk=1)
    with pytest.raises(InvalidValue, match="block"):
        Overflow("block", memory=1)


def test_a_child_that_a_stream_keeps_leaves_no_zombie(child):
    before = descriptors()
    it = spawn([child, "ignore-term", "--print-ready"])
    stdout = it.stdout
    stdout.readline()
    process = it.process
    gone = weakref.ref(it)
    del it
    gc.collect()
    assert gone() is None
    assert process.is_alive()
    process.kill()
    assert stdout.read() == b""
    del stdout
    # Reaped by nobody but the background.
    process.wait(timeout=LONG, event="reaped")
    del process
    gc.collect()
    assert len(descriptors()) <= len(before) + 8, "pump and reaper, and none of the child's"


def test_nothing_is_left(child):
    def one():
        with spawn([child, "cat"], stdin=PIPE) as it:
            it.stdin.write(b"x")
            it.stdin.readiness_fd()
            it.stdout.readiness_fd()
            assert it.stdout.read1() == b"x"

    one()
    gc.collect()
    before, threads = descriptors(), threading.active_count()
    for _ in range(50):
        one()
    gc.collect()
    comes_back(before)
    # Those of others may go meanwhile.
    while threading.active_count() > threads:
        os.sched_yield()


def test_wait_for_children_and_streams(child):
    quick = spawn([child, "echo", "x"])
    slow = spawn([child, "cat"], stdin=PIPE)
    assert procwright.wait([slow, quick], "any").done == [quick]
    assert procwright.wait([slow.stdout], timeout=0).done == []
    slow.stdin.write(b"a\nb\n")
    assert procwright.wait([slow.stdout], timeout=LONG).done == [slow.stdout]
    assert slow.stdout.readline() == b"a\n"
    # What is here already counts.
    assert procwright.wait([slow.stdout], timeout=LONG).done == [slow.stdout]
    assert slow.stdout.readline() == b"b\n"
    assert procwright.wait([slow.stdout], timeout=0).done == []
    closer = threading.Thread(target=slow.stdout.close)
    closer.start()
    assert procwright.wait([slow.stdout], timeout=LONG).done == [slow.stdout]
    closer.join()
    slow.stop()


def test_wait_for_children_on_a_loop(child):
    import asyncio

    async def main():
        it = spawn([child, "echo", "x"])
        waited = await procwright.wait_async([it], timeout=LONG)
        return waited.done == [it] and it.returncode

    assert asyncio.run(main()) == 0


@pytest.mark.parametrize("way", ["wait", "communicate", "result", "stop", "read"])
def test_who_is_over_holds_no_descriptor(way):
    def over():
        # Whoever reads or waits has to sleep.
        it = spawn(["sh", "-c", "sleep 0.03; exit 3"])
        if way == "read":
            it.stdout.read()
            it.stderr.read()
            it.wait()
        else:
            getattr(it, way)()
        return it

    # What the first use leaves for the next.
    first = over()
    first.wait()
    before = descriptors()
    kept = [over() for _ in range(5)]
    comes_back(before)
    for it in kept:
        it.send_signal("TERM")
        assert not it.monitor().alive()
        assert list(procwright.wait([it]).done) == [it]
        assert it.process is it.process
        assert (it.process.returncode, it.process.pid) == (it.returncode, it.pid)
        with pytest.raises(ProcessLookupError):
            it.process.terminate()
        assert select.select([it.readiness_fd()], [], [], 0)[0]


def test_a_process_that_was_asked_for_keeps_its_descriptor(child):
    it = spawn([child, "exit", "3"])
    number = it.readiness_fd()
    assert it.wait() == 3
    assert it.readiness_fd() == number
    assert os.readlink(f"/proc/self/fd/{number}") in ("anon_inode:[pidfd]", "pidfd:")


def test_readiness_of_a_child(child):
    import select

    it = spawn([child, "echo", "x"])
    assert select.select([it.readiness_fd()], [], [], LONG)[0]
    assert it.wait() == 0


def test_ctrl_c_ends_a_wait(child, when_asleep):
    it = spawn([child, "sleep-forever"])
    when_asleep(lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        it.wait()
    it.kill()
    assert it.wait() == -signal.SIGKILL


def test_a_host_that_waits_for_any_child(child):
    it = spawn([child, "exit", "3"])
    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    assert it.wait() == 3


def test_the_interpreter_goes_down_beside_children(script, child):
    process = script(
        f"""
import procwright, threading
kept = procwright.spawn([{child!r}, "sleep-forever"], stdin=procwright.PIPE)
threading.Thread(target=kept.stdout.read, daemon=True).start()
threading.Thread(target=lambda: list(kept.stderr), daemon=True).start()
print(kept.pid)
"""
    )
    out, err = process.communicate(timeout=LONG)
    assert (process.returncode, err) == (0, "")
    # Nobody is left who could keep it.
    assert not is_alive(int(out))


def test_input_is_never_dropped_silently(child):
    it = spawn([child, "cat"], stdin=PIPE)
    it.stdin.close()
    with pytest.raises(StreamClosed):
        it.communicate(b"data", LONG)
    assert it.communicate(b"", LONG) == (b"", b"")


def test_communicate_closes_also_what_it_cannot_decode(child):
    it = spawn([child, "cat"], input=b"a\xffb", text=True, errors="strict")
    with pytest.raises(UnicodeDecodeError):
        it.communicate(timeout=LONG)
    assert it.stdout.closed
    assert it.stderr.closed


@pytest.mark.parametrize(
    ("encoding", "errors", "wrote", "came"),
    [
        ("utf-8", None, "€".encode() + b"\xe2\x82", "€"),
        ("utf-8", "strict", b"a\xffb\xe2", "a\ufffdb"),
        ("utf-8", "ignore", b"a\xffb\xe2", "ab"),
        # One that only Python can decode.
        ("utf-16", None, b"\xff\xfea\x00b", "a"),
    ],
)
def test_a_timeout_has_text_where_that_was_asked_for(child, encoding, errors, wrote, came):
    it = spawn([child, "cat"], stdin=PIPE, encoding=encoding, errors=errors)
    it.stdin.buffer.write(wrote)
    assert it.stdout.buffer.peek() == wrote
    # It would end with its stdin.
    it.send_signal("STOP")
    for _ in range(2):
        with pytest.raises(WaitTimeout) as caught:
            it.communicate(timeout=0)
        assert caught.value.output == caught.value.stdout == came
        assert caught.value.stderr == ""
    it.stop("KILL")


def test_a_timeout_has_the_text_behind_what_was_read(child):
    it = spawn([child, "cat"], stdin=PIPE, encoding="utf-16-le")
    it.stdin.write("one\ntwo\nthr")
    assert it.stdout.readline() == "one\n"
    it.stdin.buffer.write("€".encode("utf-16-le")[:1])
    it.send_signal("STOP")
    with pytest.raises(WaitTimeout) as caught:
        it.communicate(timeout=0)
    assert caught.value.output == "two\nthr"
    it.stop("KILL")


def test_a_timeout_is_pickled_with_what_was_read(child):
    # Not a cat, which may have ended before the time is looked at.
    it = spawn([child, "sleep-forever", "--print-ready"])
    it.stdout.peek()
    with pytest.raises(WaitTimeout) as caught:
        it.communicate(timeout=0)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.output, again.stderr) == (caught.value.output, caught.value.stderr)
    assert again.output.startswith(b"ready")
    it.stop()
