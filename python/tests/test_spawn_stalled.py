"""What a child that is handed out tells: stalls, events, its result, its input."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import threading
import time

import pytest
from conftest import comes_back, descriptors

import procwright
from procwright import PIPE, Overflow, Stalled, Stop, WaitTimeout, spawn

#: Only against hanging.
LONG = 100

TINY = Overflow("spill", memory=4096, disk=0)


@pytest.mark.parametrize("overflow", [TINY, "block"])
def test_stalled(child, overflow):
    it = spawn([child, "flood", "--out", "1M"], overflow=overflow, stall_after=0.05)
    for _ in range(2):
        with pytest.raises(Stalled) as raised:
            it.wait(LONG)
    error = raised.value
    assert isinstance(error, subprocess.SubprocessError)
    assert error.streams == ["stdout"]
    assert error.after_s >= 0.05
    assert not error.writing
    assert "nobody has read it" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert len(it.stdout.read()) == 1 << 20
    assert it.wait() == 0


def test_a_write_that_stalls(child):
    it = spawn([child, "cat"], stdin=PIPE, overflow=TINY, stall_after=0.05)
    with pytest.raises(Stalled, match="reads no input") as raised:
        it.stdin.write(b"x" * (1 << 20))
    assert raised.value.writing
    assert it.stdin.bytes_written < 1 << 20
    it.stop()


def test_communicate_tells_of_a_callback_that_holds_the_child_up(child):
    may_go_on = threading.Event()
    it = spawn(
        [child, "cat"],
        stdin=PIPE,
        overflow=TINY,
        stall_after=0.05,
        on_stdout_line=lambda _: may_go_on.wait(LONG),
    )
    with pytest.raises(Stalled, match="reads no input") as raised:
        it.communicate(b"line\n" * (1 << 18))
    # A program that has not begun to read is told of, too.
    while not raised.value.streams:
        with pytest.raises(Stalled) as raised:
            it.communicate()
    assert raised.value.streams == ["stdout"]
    may_go_on.set()
    while True:
        try:
            assert it.communicate() == (None, b"")
        except Stalled:
            # The callbacks of a loaded machine may take their time.
            continue
        break
    assert it.returncode == 0


def test_no_stall_is_told_where_that_is_off(child):
    it = spawn([child, "flood", "--out", "1M"], overflow=TINY, stall_after=None)
    with pytest.raises(WaitTimeout):
        it.wait(0.1)
    it.stop()


def test_result(child):
    it = spawn([child, "flood", "--out", "100", "--err", "50"])
    result = it.result(timeout=LONG)
    assert isinstance(result, procwright.Result)
    assert (len(result.stdout), len(result.stderr)) == (100, 50)
    assert result.ok
    assert result.args == it.args
    assert result.pid == it.pid
    assert result.stdout_info.bytes == 100
    assert result.duration_s > 0
    assert it.result() is result
    assert result.to_dict()["reason"] == "finished"


def test_result_with_text_after_some_was_read(child):
    it = spawn([child, "cat"], input="one\nzwö\n", text=True)
    assert it.stdin is None
    assert it.stdout.readline() == "one\n"
    result = it.result()
    assert result.stdout == "zwö\n"
    assert result.stdout_info.bytes == len("one\nzwö\n".encode())


def test_result_in_time(child):
    it = spawn([child, "sleep-forever"])
    with pytest.raises(WaitTimeout):
        it.result(timeout=0.02)
    it.kill()
    result = it.result()
    assert result.returncode == -signal.SIGKILL
    with pytest.raises(procwright.CalledProcessError):
        result.check_returncode()


def test_result_after_a_stop(child):
    it = spawn([child, "sleep-forever"])
    it.stop(Stop("INT", grace=LONG, scope="process"))
    assert it.result().reason == "cancelled"
    assert it.returncode == -signal.SIGINT


def test_input(child, tmp_path):
    assert spawn([child, "cat"], input=b"data").communicate() == (b"data", b"")
    pieces = (b"%d\n" % i for i in range(1000))
    it = spawn([child, "cat"], stdin=pieces)
    assert it.stdout.read() == b"".join(b"%d\n" % i for i in range(1000))
    assert it.wait() == 0
    with open(tmp_path / "file", "w+b") as file:
        file.write(b"from a file")
        file.seek(0)
        assert spawn([child, "cat"], stdin=file).stdout.read() == b"from a file"
    with pytest.raises(procwright.InvalidValue, match="both"):
        spawn([child, "cat"], stdin=PIPE, input=b"")


def test_an_input_that_fails(child):
    def pieces():
        yield b"one"
        raise ZeroDivisionError

    it = spawn([child, "cat"], stdin=pieces())
    with pytest.raises(ZeroDivisionError):
        it.wait()
    assert it.wait() != 0


def test_a_child_of_a_child_is_fed(child):
    first = spawn([child, "flood", "--out", "3M"])
    second = spawn([child, "cat"], stdin=first.stdout)
    assert len(second.stdout.read()) == 3 << 20


def test_events(child):
    events, told = [], threading.Event()

    def on_event(event):
        events.append((event, threading.current_thread()))
        told.set()

    it = spawn([child, "flood", "--out", "1M"], overflow=Overflow(memory=65536), on_event=on_event)
    assert it.wait() == 0
    assert told.wait(LONG)
    (event, thread) = events[0]
    assert event.kind == "spilling"
    assert event.streams == "stdout"
    assert child in event.command
    assert "nobody reads" in str(event)
    assert thread is not threading.main_thread()


@pytest.mark.parametrize(
    ("policy", "kind"),
    [("drop_oldest", "dropping"), ("drop_newest", "dropping"), ("fail", "overflowed")],
)
def test_events_of_policies(child, policy, kind):
    kinds, told = [], threading.Event()

    def on_event(event):
        kinds.append(event.kind)
        told.set()

    overflow = Overflow(policy, memory=4096)
    it = spawn([child, "flood", "--out", "1M"], overflow=overflow, on_event=on_event)
    assert told.wait(LONG)
    assert kinds == [kind]
    it.stop()


def test_without_a_listener_it_is_logged(child, caplog):
    it = spawn([child, "flood", "--out", "1M"], overflow=Overflow(memory=65536))
    assert it.wait() == 0
    # Else the watchdog comes.
    while "goes to files" not in caplog.text:
        os.sched_yield()


def test_result_with_text_that_was_decoded_already(child):
    it = spawn([child, "cat"], input="one\ntwo\n", encoding="gbk")
    assert it.stdout.readline() == "one\n"
    assert it.result(LONG).stdout == "two\n"


def test_a_listener_in_a_circle_with_its_child_is_collected(child):
    class Owner:
        def __init__(self):
            self.child = spawn([child, "sleep-forever"], stdin=PIPE, on_event=self.told)

        def told(self, event):
            pass

    Owner().child.stop()
    gc.collect()
    before = descriptors()
    for _ in range(10):
        Owner().child.stop()
    gc.collect()
    comes_back(before)


@pytest.mark.filterwarnings("ignore:nobody keeps:ResourceWarning")
def test_a_listener_is_not_freed_by_who_empties_the_pipes(child):
    """Its finaliser may use any stream, which that thread would wait for."""
    freed = []

    class Listener:
        def __call__(self, event):
            pass

        def __del__(self):
            freed.append(threading.current_thread())

    count = 20
    for _ in range(count):
        reads, writes = os.pipe()
        it = spawn([child, "cat"], stdin=reads, on_event=Listener())
        os.close(reads)
        # Either lets go of it last: this thread now, or the one with the pipes.
        del it
        os.close(writes)
    until = time.monotonic() + LONG
    while len(freed) < count and time.monotonic() < until:
        # Whoever uses the package next frees it.
        spawn([child, "exit", "0"]).wait()
    assert freed == [threading.main_thread()] * count
