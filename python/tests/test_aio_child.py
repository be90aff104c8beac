"""`aio.spawn`, its child, and waits, on asyncio, asyncio with uvloop, and trio."""

from __future__ import annotations

import contextlib
import gc
import os
import pathlib
import signal
import sys
import threading
import time

import pytest

import procwright
from procwright import INHERIT, PIPE, STDOUT

anyio = pytest.importorskip("anyio")
from loops import LONG, NoDescriptors, has_read, is_over  # noqa: E402

from procwright import _aio_held, _held, aio  # noqa: E402


def test_a_coroutine_that_computes_holds_up_no_child(on):
    async def main():
        async with aio.spawn(["sh", "-c", "seq 300000; exit 7"]) as child:
            while child.returncode is None:
                time.sleep(0.01)
            assert child.returncode == 7
            assert len(await child.stdout.read()) == 1_988_895

    on(main)


def test_await_gives_the_child(on):
    async def main():
        child = await aio.spawn(["true"])
        async with child as same:
            assert same is child
        assert child.returncode == 0
        assert "procwright.aio.Child" in repr(child)

    on(main)


@pytest.mark.parametrize("call", ["communicate", "result"])
def test_who_holds_the_outputs_of_a_killed_program_is_told(on, call):
    told = []

    def on_event(event):
        told.append(event)
        for holder in event.holders:
            os.kill(holder.pid, signal.SIGKILL)

    async def main():
        # The shell has started it before it says so.
        line = "sleep 1000 & echo half; wait"
        child = aio.spawn(line, shell=True, text=True, on_event=on_event)
        await child.wait_for("half")
        child.kill()
        # Without the event it would wait for the sleep.
        await getattr(child, call)()

    on(main)
    [event] = told
    assert (event.kind, event.streams) == ("held", "stdout and stderr")
    assert [holder.name for holder in event.holders] == ["sleep"]


@pytest.mark.parametrize("ends", ["its time", "a cancellation"])
def test_nothing_is_told_of_holders_once_communicate_is_over(on, ends, monkeypatch):
    monkeypatch.setattr(_held, "HELD_AFTER_S", 0.01)
    looks, told, silenced = threading.Event(), [], threading.Event()
    real = _aio_held.Held._begins

    def begins(self):
        # Behind the look, and before anybody is told.
        looks.set()
        assert silenced.wait(LONG)
        return real(self)

    monkeypatch.setattr(_aio_held.Held, "_begins", begins)

    async def main():
        child = aio.spawn("sleep 1000 &", shell=True, on_event=told.append)
        if ends == "its time":
            while not looks.is_set():
                with contextlib.suppress(procwright.WaitTimeout):
                    await child.communicate(timeout=0.1)
        else:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(child.communicate)
                    while not looks.is_set():
                        await anyio.sleep(0.01)
                    scope.cancel()
        silenced.set()
        await child.stop()

    on(main)
    assert told == []


def test_communicate(on, tmp_path):
    go = tmp_path / "go"

    async def main():
        data = b"x" * 300_000
        async with aio.spawn("cat; cat /dev/null >&2", shell=True, stdin=PIPE) as child:
            assert await child.communicate(data) == (data, b"")
        line = f"echo a; until test -e {go}; do sleep 0.01; done; echo b"
        async with aio.spawn(line, shell=True, text=True) as child:
            await has_read(child.stdout, 2)
            with pytest.raises(procwright.WaitTimeout) as raised:
                await child.communicate(timeout=0.05)
            assert raised.value.output == "a\n"
            with anyio.move_on_after(0.02) as scope:
                await child.communicate()
            assert scope.cancelled_caught
            go.touch()
            assert await child.communicate() == ("a\nb\n", "")
        async with aio.spawn(["true"]) as child:
            with pytest.raises(procwright.InvalidValue):
                await child.communicate(b"x")
        async with aio.spawn(["true"], merged=True) as child:
            with pytest.raises(procwright.InvalidValue):
                await child.communicate()

    on(main)


def test_result_and_limits(on):
    async def main():
        async with aio.spawn(["sh", "-c", "echo a; exit 5"], stderr=STDOUT) as child:
            result = await child.result()
        assert (result.stdout, result.returncode) == (b"a\n", 5)
        child = aio.spawn(["sleep", "1000"], timeout=0.05)
        with pytest.raises(procwright.TimeoutExpired):
            await child.wait()
        with pytest.raises(procwright.TimeoutExpired):
            await child.result()

    on(main)


def test_wait_for(on):
    async def main():
        async with aio.spawn("echo no; printf 'ready 7?'; sleep 1000", shell=True, text=True) as it:
            assert (await it.wait_for(r"ready (\d)"))[1] == "7"
            # What is behind the match stays.
            assert (await it.wait_for(r".+", timeout=60))[0] == "?"
            with pytest.raises(procwright.MatchTimeout):
                await it.wait_for("more", timeout=0.05)
            assert it.before == ""
            await it.stop()
        async with aio.spawn(["sh", "-c", "echo bad; exit 3"], text=True) as it:
            with pytest.raises(procwright.EndedBeforeMatch) as raised:
                await it.wait_for("good")
            assert raised.value.returncode == 3
            assert it.before == "bad\n"
        async with aio.spawn("echo one; exec sleep 1000", shell=True, text=True) as it:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(it.wait_for, "never")
                while it.stdout.figures.bytes_out < len("one\n"):
                    await anyio.sleep(0)
                tasks.cancel_scope.cancel()
            assert it.before == "one\n"
            await it.stop()

    on(main)


@pytest.mark.parametrize("errors", ["replace", "backslashreplace"])
def test_what_is_behind_the_match_stays(on, errors):
    async def main():
        line = "printf 'one two\nthree four'"
        async with aio.spawn(line, shell=True, text=True, errors=errors) as it:
            assert await it.wait_for("one", timeout=100)
            assert await it.stdout.readline() == " two\n"
            assert await it.wait_for("three", timeout=100)
            assert await it.stdout.read() == " four"

    on(main)


def test_stalled(on):
    async def main():
        options = {"overflow": "block", "stall_after": 0.05}
        async with aio.spawn(["yes"], **options) as child:
            with pytest.raises(procwright.Stalled):
                await child.wait()
            await child.stop()
        async with aio.spawn("yes; cat", shell=True, stdin=PIPE, **options) as child:
            with pytest.raises(procwright.Stalled):
                await child.stdin.send(bytes(1 << 20))
            await child.stop()

    on(main)


def test_callbacks(on):
    async def main():
        lines = []
        async with aio.spawn(["seq", "3"], text=True, on_stdout_line=lines.append) as child:
            assert await child.communicate() == (None, "")
        assert lines == ["1\n", "2\n", "3\n"]
        with pytest.raises(ZeroDivisionError):
            async with aio.spawn(["seq", "3"], on_stdout_line=lambda line: 1 / 0):
                pass

    on(main)


def test_the_end_of_a_block(on):
    async def main():
        async with aio.spawn(["cat"], stdin=PIPE) as child:
            pass
        assert child.returncode == 0
        with pytest.raises(ZeroDivisionError):
            async with aio.spawn(["sleep", "1000"]) as child:
                raise ZeroDivisionError
        assert child.returncode == -signal.SIGTERM

    on(main)


def test_copies(on, tmp_path):
    async def main():
        kept = tmp_path / "all"
        async with aio.spawn(["seq", "1000"], keep_full=kept) as child:
            assert await child.wait() == 0
            assert len(kept.read_bytes()) == 3893
            assert len(await child.stdout.read()) == 3893
        async with aio.spawn(["seq", "1000"], keep_full=kept) as child:
            assert len((await child.communicate())[0]) == 3893

    on(main)


def test_detached(on):
    async def main():
        async with aio.spawn(["sleep", "1000"], detach=True, stdout=None, stderr=None) as child:
            pass
        assert child.returncode is None
        await child.stop("KILL")

    on(main)


def test_pty(on):
    async def main():
        line = "stty -echo; printf 'Word: '; read word; echo; echo got $word; stty size"
        async with aio.spawn(line, shell=True, stdin=PIPE, pty=(30, 90), text=True) as child:
            await child.wait_for("Word: ")
            await child.stdin.send("secret\n")
            assert (await child.wait_for("got .*"))[0] == "got secret"
            assert (await child.wait_for(r"\d+ \d+"))[0] == "30 90"

    on(main)


def test_wait_and_as_completed(on, children):
    async def main():
        procs = children(3)
        called = []
        procs[1].kill()
        waited = await aio.wait(procs, "any", callback=called.append)
        assert waited.done == called == [procs[1]]
        async with aio.spawn(["true"]) as child:
            done, _ = await aio.wait([child, procs[0]], "any", timeout=LONG)
            assert done == [child]
            assert procwright.wait([child, child.process]).pending == []
        completed = aio.as_completed(procs, timeout=0.05)
        assert await anext(completed) is procs[1]
        with pytest.raises(procwright.WaitTimeout):
            await anext(completed)
        process = aio.Process(procs[0])
        assert process == procwright.Process(process)
        with pytest.raises(procwright.WaitTimeout):
            await process.wait(0.01)
        assert await process.stop() == []
        assert (await process.wait()).signal == signal.SIGTERM

    on(main)


def test_streams_are_waited_for(on):
    async def main():
        async with aio.spawn(["cat"], stdin=PIPE) as child, aio.spawn(["cat"], stdin=PIPE) as other:
            assert (await aio.wait([child.stdout, other.stdin], "any")).done == [other.stdin]
            await other.stdin.send(b"one\ntwo\n")
            outputs = [child.stdout, other.stdout]
            assert (await aio.wait(outputs, "any")).done == [other.stdout]
            assert await other.stdout.readline() == b"one\n"
            # What was read already no descriptor tells of.
            assert (await aio.wait(outputs, "any")).done == [other.stdout]

    on(main)


def test_several_wait_for_one(on):
    async def main():
        async with aio.spawn(["sleep", "0.1"]) as child, anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(child.wait)

    on(main)


def test_no_thread_a_child(on):
    async def main():
        await aio.run(["true"])
        before = os.listdir("/proc/self/task")
        children = [aio.spawn(["cat"], stdin=PIPE) for _ in range(20)]
        async with anyio.create_task_group() as tasks:
            for child in children:
                tasks.start_soon(child.wait)
            tasks.start_soon(aio.run, ["sleep", "0.3"])
            await anyio.wait_all_tasks_blocked()
            # Those that there are once for all come and go.
            assert len(os.listdir("/proc/self/task")) <= len(before) + 5
            for child in children:
                child.stdin.close()

    on(main)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_children_that_are_idle_wake_nobody(backend, script):
    pytest.importorskip(backend)
    process = script(
        """
import sys, anyio
from functools import partial
from procwright import PIPE, aio
async def idle(child):
    async with child, anyio.create_task_group() as tasks:
        for call in (child.wait, child.stdout.read, child.stderr.readline):
            tasks.start_soon(call)
async def main():
    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            child = aio.spawn(["cat"], stdin=PIPE, die_with_parent=True)
            tasks.start_soon(idle, child)
            sleeps = partial(aio.run, ["sleep", "1000"], die_with_parent=True)
            tasks.start_soon(sleeps)
        await anyio.wait_all_tasks_blocked()
        print("idle", flush=True)
anyio.run(main, backend=sys.argv[1])
""",
        backend,
    )
    assert process.stdout.readline() == "idle\n"

    def wakes():
        tasks = list(pathlib.Path(f"/proc/{process.pid}/task").iterdir())
        lines = []
        for task in tasks:
            # A thread that has helped with a start may end.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                lines += (task / "status").read_text().splitlines()
        return [int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt")]

    # What has begun may still come to its rest; what polls never would. Else the watchdog comes.
    before = None
    while before != (now := wakes()):
        before = now
        time.sleep(1)
    process.send_signal(signal.SIGINT)
    process.communicate()


def test_a_block_without_descriptors_stops_its_child(on):
    async def main():
        child = aio.spawn(["sh", "-c", "echo; exec sleep 1000"])

        async def fails():
            async with child:
                await child.stdout.readline()
                none.take()
                raise ZeroDivisionError

        with NoDescriptors() as none, pytest.raises(ZeroDivisionError):
            await fails()
        assert child.returncode == -signal.SIGTERM

    on(main)


def test_one_communicates_at_a_time(on):
    async def main():
        async with aio.spawn(["cat"], stdin=PIPE) as child:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(child.stdout.receive)
                await anyio.wait_all_tasks_blocked()
                for call in (child.communicate, child.result):
                    with pytest.raises(anyio.BusyResourceError):
                        await call()
                await child.stdin.send(b"x")
            assert not child.stdin.closed
        async with aio.spawn("cat >&2; sleep 1000", shell=True, stdin=PIPE) as child:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(child.communicate, b"said")
                await anyio.wait_all_tasks_blocked()
                with pytest.raises(anyio.BusyResourceError):
                    await child.stdout.receive()
                for call in (child.communicate, child.result):
                    with pytest.raises(anyio.BusyResourceError, match="call again when it has"):
                        await call()
                with pytest.raises(anyio.BusyResourceError):
                    await child.stdin.send(b"more")
                while child.stderr.figures.bytes_in < len(b"said"):
                    await anyio.sleep(0.001)
                tasks.cancel_scope.cancel()
            await child.stop()
            assert await child.communicate() == (b"", b"said")

    on(main)


def test_one_communicates_at_a_time_also_without_a_pipe(on):
    async def main():
        child = aio.spawn(["sleep", "1000"], stdout=INHERIT, stderr=INHERIT)
        many = aio.spawn_pipeline(*[["sleep", "1000"]] * 2, stdout=INHERIT, stderr=INHERIT)
        for one in (child, many):
            results = []

            async def communicates(one=one, results=results):
                results.append(await one.communicate())

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(communicates)
                await anyio.wait_all_tasks_blocked()
                for call in (one.communicate, one.result):
                    with pytest.raises(anyio.BusyResourceError, match="share that result"):
                        await call()
                await one.stop()
            assert results == [(None, None)]

    on(main)


def test_a_cancelled_sender_is_had_by_the_next_call(on):
    program = """
import sys
from procwright import queue
sys.stdin.read()
for message in queue.Receiver.of_parent():
    print(message)
"""

    async def main():
        options = {"channel": "to_child", "stdin": PIPE, "text": True}
        async with aio.spawn([sys.executable, "-c", program], **options) as child:
            with anyio.move_on_after(0.05) as scope:
                await child.sender()
            assert scope.cancelled_caught
            with pytest.raises(procwright.queue.TimedOut):
                await child.sender(0.01)
            threads = threading.active_count()
            for _ in range(3):
                with anyio.move_on_after(0.01):
                    await child.sender()
            assert threading.active_count() <= threads
            await child.stdin.aclose()
            senders = []

            async def sender():
                senders.append(await child.sender())

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(sender)
                tasks.start_soon(sender)
            assert senders[0] is senders[1]
            await senders[0].send(b"said")
            senders[0].close()
            assert await child.stdout.read() == "b'said'\n"

    on(main)


def test_a_cancelled_sender_keeps_no_child(on):
    async def cancelled():
        child = aio.spawn(["sleep", "1000"], channel="to_child")
        with anyio.move_on_after(0.05) as scope:
            await child.sender()
        assert scope.cancelled_caught
        return child.pid

    async def main():
        pid = await cancelled()
        await anyio.sleep(0)
        gc.collect()
        is_over(pid)

    with pytest.warns(ResourceWarning, match="nobody keeps"):
        on(main)


class Gate:
    """A file, and a callback for lines, that take nothing before the gate is open."""

    def __init__(self):
        self.is_open = threading.Event()
        self.taken = []

    def write(self, data):
        self.is_open.wait()
        self.taken.append(data)

    def flush(self):
        pass


def of_aio():
    """The threads that aio has made."""
    return {one for one in threading.enumerate() if one.name.startswith("procwright-")}


@pytest.mark.parametrize("name", ["tee", "on_stdout_line"])
@pytest.mark.parametrize("call", ["communicate", "wait", "result"])
def test_a_cancelled_wait_for_copies_and_callbacks_leaves_no_thread(on, name, call):
    gate = Gate()

    async def main():
        options = {"text": True, name: gate if name == "tee" else gate.write}
        child = aio.spawn(["echo", "said"], **options)
        await child.process.wait()
        before = of_aio()
        for _ in range(3):
            with anyio.move_on_after(0.02) as scope:
                await getattr(child, call)()
            # A wait for a child with callbacks is for the program alone.
            assert scope.cancelled_caught or (name, call) == ("on_stdout_line", "wait")
        assert of_aio() <= before
        gate.is_open.set()
        async with child:
            await getattr(child, call)()
        assert gate.taken in (["said\n"], [b"said\n"])

    on(main)


def test_a_wait_that_comes_to_its_time_holds_up_no_loop(on, monkeypatch):
    looked_by = []

    def explanation(self, *arguments):
        explain = explanation_of(self, *arguments)
        return lambda: looked_by.append(threading.current_thread()) or explain()

    explanation_of = procwright.Child._explanation
    monkeypatch.setattr(procwright.Child, "_explanation", explanation)

    async def main():
        async with aio.spawn(["sleep", "1000"]) as child:
            for call in (child.wait, child.communicate, child.result):
                with pytest.raises(procwright.WaitTimeout, match="did not end within"):
                    await call(timeout=0.1)
            await child.stop()
        assert len(looked_by) == 3
        assert threading.current_thread() not in looked_by

    on(main)
