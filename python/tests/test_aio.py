"""`procwright.aio` on asyncio, asyncio with uvloop, and trio."""

from __future__ import annotations

import codecs
import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import comes_back, descriptors, is_alive

import procwright
from procwright import PIPE, STDOUT

anyio = pytest.importorskip("anyio")
from procwright import aio  # noqa: E402

#: Only against hanging.
LONG = 100

LOOPS = {
    "asyncio": {"backend": "asyncio"},
    "uvloop": {"backend": "asyncio", "backend_options": {"use_uvloop": True}},
    "trio": {"backend": "trio"},
}


@pytest.fixture(params=LOOPS)
def on(request):
    """Runs a function on an event loop."""
    pytest.importorskip(request.param)
    return lambda main, *args: anyio.run(main, *args, **LOOPS[request.param])


def is_over(pid: int) -> None:
    """Returns once the process is gone or a zombie. Else the watchdog comes."""
    while is_alive(pid):
        os.sched_yield()


# --- run


def test_run(on):
    async def main():
        result = await aio.run(["sh", "-c", "cat; echo err >&2; exit 3"], input=b"in")
        assert (result.stdout, result.stderr, result.returncode) == (b"in", b"err\n", 3)
        assert result.reason == "finished"
        assert result.stdout_info.complete

    on(main)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"timeout": -1}, procwright.TimeoutExpired),
        ({"timeout": 0.05}, procwright.TimeoutExpired),
        ({"idle_timeout": 0.05}, procwright.IdleTimeout),
        ({"timeout": "x"}, procwright.InvalidValue),
        ({"no_such": 1}, TypeError),
        ({"overflow": "spill"}, TypeError),
        ({"cwd": "/no/such"}, FileNotFoundError),
        ({"stdin": "fails"}, ZeroDivisionError),
        ({"tee": True, "stdout": None, "stderr": None}, procwright.InvalidValue),
    ],
    ids=lambda value: None if isinstance(value, type) else ",".join(value),
)
def test_errors_are_those_of_run(on, options, error, child):
    def told(raised):
        text = str(raised.value).split("\n")[0]
        return raised.type, text if raised.type is procwright.InvalidValue else text[:20]

    def given():
        return {**options, "stdin": (1 / 0 for _ in "x")} if "stdin" in options else options

    with pytest.raises(error) as expected:
        procwright.run([child, "sleep-forever"], **given())

    async def main():
        with pytest.raises(error) as raised:
            await aio.run([child, "sleep-forever"], **given())
        assert told(raised) == told(expected)

    on(main)


def test_check_and_text(on):
    async def main():
        with pytest.raises(procwright.CalledProcessError) as raised:
            await aio.run("echo ü; exit 4", shell=True, text=True, check=True)
        assert raised.value.result.stdout == "ü\n"
        result = await aio.run(["sleep", "1000"], timeout=0.01, on_timeout="return")
        assert result.reason == "timeout"

    on(main)


def test_what_has_a_thread(on, tmp_path):
    async def main():
        lines = []
        result = await aio.run(
            ["sh", "-c", "echo 1; echo 2 >&2"],
            text=True,
            on_line=lines.append,
            keep_full=tmp_path / "all",
            merged=True,
            limit=100,
        )
        assert sorted(lines) == ["1\n", "2\n"]
        assert (tmp_path / "all").read_text() == "1\n"
        pieces = sorted((one.stream, one.data) for one in result.merged)
        assert pieces == [("stderr", "2\n"), ("stdout", "1\n")]
        assert (await aio.run(["seq", "100000"], limit=10)).stdout == b"1\n2\n30000\n"

    on(main)


def test_a_cancel_of_procwright(on, child):
    async def runs(options):
        with pytest.raises(procwright.Cancelled):
            await aio.run([child, "sleep-forever"], **options)

    async def main():
        for more in ({}, {"on_line": print}):
            cancel = procwright.Cancel()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(runs, {"cancel": cancel, **more})
                await anyio.sleep(0.05)
                cancel.cancel()
            await runs({"cancel": cancel, **more})

    on(main)


def test_it_returns_at_the_exit_though_the_output_is_held(on):
    async def main():
        result = await aio.run(["sh", "-c", "sleep 1000 & echo hi"], until="exit")
        assert result.stdout == b"hi\n"
        (holder,) = result.stdout_info.held_by
        os.kill(holder.pid, signal.SIGKILL)

    on(main)


def test_many_at_once(on):
    async def main():
        limiter = anyio.CapacityLimiter(20)
        codes = []

        async def one(number):
            async with limiter:
                result = await aio.run(["sh", "-c", f"echo {number}; exit {number % 3}"])
                assert result.stdout == b"%d\n" % number
                codes.append(result.returncode)

        async with anyio.create_task_group() as tasks:
            for number in range(60):
                tasks.start_soon(one, number)
        assert sorted(codes) == sorted(number % 3 for number in range(60))

    on(main)


# --- cancellation


@pytest.mark.parametrize("more", [{}, {"on_line": lambda line: None}], ids=["loop", "thread"])
def test_a_cancelled_run_is_stopped_with_its_tree(on, more, tmp_path):
    pids = tmp_path / "pids"
    line = f"echo said; setsid sleep 1000 & echo $! > {pids}.new; mv {pids}.new {pids}; wait"
    begun = time.monotonic()

    async def main():
        caught = []
        with anyio.CancelScope() as scope:

            async def when_begun():
                while not pids.exists():
                    await anyio.sleep(0.01)
                scope.cancel()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(when_begun)
                try:
                    await aio.run(line, shell=True, text=True, **more)
                except anyio.get_cancelled_exc_class() as error:
                    caught.append(error)
                    raise
        assert scope.cancelled_caught
        assert not is_alive(int(pids.read_text()))
        if hasattr(caught[0], "result"):
            result = caught[0].result
            assert result.stdout == "said\n"
            assert result.reason == "cancelled"
            assert "was cancelled" in result.explanation
        else:
            assert "trio" in type(caught[0]).__module__

    on(main)
    assert time.monotonic() - begun < LONG


def test_a_cancelled_scope_starts_nothing(on, tmp_path):
    async def main():
        with anyio.CancelScope() as scope:
            scope.cancel()
            await aio.run(["touch", tmp_path / "made"])
        assert scope.cancelled_caught
        assert not (tmp_path / "made").exists()

    on(main)


def test_timeouts_of_the_loop(on):
    async def main():
        with pytest.raises(TimeoutError), anyio.fail_after(0.05):
            await aio.run(["sleep", "1000"])
        child, seconds = None, 0.05
        # Its time may be over before there is a child.
        while child is None:
            with anyio.move_on_after(seconds) as scope:
                async with aio.spawn(["sleep", "1000"]) as child:
                    await child.wait()
            assert scope.cancelled_caught
            seconds *= 2
        assert child.returncode == -signal.SIGTERM

    on(main)


def test_a_cancelled_wait_changes_nothing(on):
    async def main():
        async with aio.spawn(["sleep", "1000"]) as child:
            for call in (child.wait, child.communicate, child.result, child.stdout.readline):
                with anyio.move_on_after(0.02) as scope:
                    await call()
                assert scope.cancelled_caught
                assert child.returncode is None
            with pytest.raises(procwright.WaitTimeout):
                await child.wait(0.01)
            child.kill()
            assert await child.wait() == -signal.SIGKILL

    on(main)


class CancelsAt:
    """Awaits a coroutine, and cancels the scope at its n-th suspension."""

    def __init__(self, coroutine, scope, n):
        self.coroutine, self.scope, self.left = coroutine, scope, n

    def __await__(self):
        steps = self.coroutine.__await__()
        step, value = steps.send, None
        while True:
            try:
                yielded = step(value)
            except StopIteration as over:
                return over.value
            self.left -= 1
            if self.left == 0:
                self.scope.cancel()
            try:
                step, value = steps.send, (yield yielded)
            except BaseException as error:
                step, value = steps.throw, error


async def whole_run():
    await aio.run(["sh", "-c", "sleep 1000 & echo a; sleep 0.02; kill $!"])


async def run_that_waits_for_ever():
    with anyio.move_on_after(0.2):
        await aio.run(["sh", "-c", "sleep 1000 & echo a; wait"])


async def run_on_a_thread():
    await aio.run(["sh", "-c", "sleep 1000 & echo a; sleep 0.02; kill $!"], on_line=str)


async def child_that_is_talked_to():
    async with aio.spawn(["cat"], stdin=PIPE) as child:
        await child.stdin.send(b"x" * 200_000)
        assert await child.stdout.receive(100)
        await child.stdin.send(b"\nline\n")
        await child.stdout.readline()
        assert await child.stdout.readline() == b"line\n"


async def child_that_is_communicated_with():
    async with aio.spawn(["cat"], stdin=PIPE) as child:
        out, _ = await child.communicate(b"x" * 200_000)
        assert len(out) == 200_000


async def child_that_is_waited_for():
    async with aio.spawn(["sh", "-c", "echo ready; sleep 0.02; exit 3"]) as child:
        await child.wait_for(b"ready")
        await aio.wait([child])
        async for one in aio.as_completed([child]):
            assert one is child
        assert (await child.process.wait()).code == 3
        assert await child.wait() == 3


async def child_that_is_stopped():
    async with aio.spawn("trap '' TERM; echo; sleep 0.05", shell=True) as child:
        await child.stdout.readline()
        await child.stop(procwright.Stop("TERM", grace=0.02))


OPERATIONS = [
    whole_run,
    run_that_waits_for_ever,
    run_on_a_thread,
    child_that_is_talked_to,
    child_that_is_communicated_with,
    child_that_is_waited_for,
    child_that_is_stopped,
]


def descendants() -> set[int]:
    """The processes that this one has started, and theirs, also those of other sessions."""
    mark = f"PROCWRIGHT_TEST_OF={os.getpid()}".encode()
    found = set()
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if mark in file.read().split(b"\0") and is_alive(int(name)):
                        found.add(int(name))
            except OSError:
                continue
    return found


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.__name__)
def test_cancelled_at_every_suspension(on, operation, monkeypatch):
    monkeypatch.setenv("PROCWRIGHT_TEST_OF", str(os.getpid()))
    suspensions = []

    async def at(n):
        with anyio.CancelScope() as scope:
            cancels = CancelsAt(operation(), scope, n)
            await cancels
        if scope.cancel_called:
            suspensions.append(n)
        return scope.cancel_called

    on(at, 0)
    gc.collect()
    before, threads = descriptors(), threading.active_count()
    n = 1
    while on(at, n):
        n += 1
        assert n < 1000
    assert n > 2
    gc.collect()
    comes_back(before)
    while threading.active_count() > threads or descendants():
        os.sched_yield()


@pytest.mark.parametrize("seconds", [0, 0.01])
def test_cancels_of_asyncio_own_again_and_again(tmp_path, seconds):
    import asyncio

    pid = tmp_path / "pid"

    async def main():
        line = f"trap '' TERM; echo $$ > {pid}.new; mv {pid}.new {pid}; while :; do sleep 1; done"
        run = aio.run(line, shell=True, stop=procwright.Stop("TERM", grace=0.3))
        task = asyncio.create_task(run)
        while not pid.exists():
            await asyncio.sleep(0.01)
        while not task.done():
            task.cancel()
            await asyncio.sleep(seconds)
        with pytest.raises(asyncio.CancelledError) as raised:
            await task
        assert raised.value.result.status.signal == signal.SIGKILL

    asyncio.run(main())
    assert not is_alive(int(pid.read_text()))


def test_wait_for_of_asyncio_keeps_the_result(tmp_path, monkeypatch):
    import asyncio

    from procwright import _aio_run

    said = tmp_path / "said"

    def start(*arguments):
        """Starts it, and holds up the loop until it has said something."""
        started = was(*arguments)
        while not said.exists():
            time.sleep(0.01)
        return started

    was = _aio_run.start
    monkeypatch.setattr(_aio_run, "start", start)
    line = f"echo said; touch {said}; sleep 1000"

    async def main():
        with pytest.raises(TimeoutError) as raised:
            async with asyncio.timeout(0.1):
                await aio.run(line, shell=True)
        assert raised.value.__cause__.result.stdout == b"said\n"
        with pytest.raises(TimeoutError) as raised:
            await asyncio.wait_for(aio.run(line, shell=True), 0.1)
        assert raised.value.__cause__.result.stdout == b"said\n"

    asyncio.run(main())


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_ctrl_c(backend, script):
    pytest.importorskip(backend)
    process = script(
        """
import sys, anyio
from procwright import aio
async def main():
    print("begun", flush=True)
    await aio.run("sleep 1000 & echo $! >&2; wait", shell=True, stderr=None)
anyio.run(main, backend=sys.argv[1])
""",
        backend,
    )
    assert process.stdout.readline() == "begun\n"
    pid = int(process.stderr.readline())
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert "KeyboardInterrupt" in err
    assert not is_alive(pid)


# --- streams


def test_streams_are_those_of_anyio(on):
    from anyio.streams.buffered import BufferedByteReceiveStream
    from anyio.streams.text import TextReceiveStream, TextSendStream

    async def main():
        async with aio.spawn(["cat"], stdin=PIPE) as child:
            assert isinstance(child.stdin, anyio.abc.ByteSendStream)
            assert isinstance(child.stdout, anyio.abc.ByteReceiveStream)
            await TextSendStream(child.stdin).send("grün\nrest")
            assert await TextReceiveStream(child.stdout).receive() == "grün\nrest"
            await child.stdin.send(b"to;there")
            buffered = BufferedByteReceiveStream(child.stdout)
            assert await buffered.receive_until(b";", 100) == b"to"
            assert await buffered.receive_exactly(5) == b"there"
            await child.stdin.aclose()
            with pytest.raises(anyio.EndOfStream):
                await child.stdout.receive()
            with pytest.raises(anyio.EndOfStream):
                await child.stdout.receive()

    on(main)


def test_the_errors_of_anyio(on):
    async def main():
        async with aio.spawn(["cat"], stdin=PIPE) as child:
            async with anyio.create_task_group() as tasks:

                async def is_closed_under():
                    with pytest.raises(anyio.ClosedResourceError) as raised:
                        await child.stdout.receive()
                    assert isinstance(raised.value, procwright.StreamClosed)

                tasks.start_soon(is_closed_under)
                await anyio.wait_all_tasks_blocked()
                with pytest.raises(anyio.BusyResourceError):
                    await child.stdout.receive()
                with pytest.raises(anyio.BusyResourceError):
                    await child.wait_for(b"x")
                await child.stdout.aclose()
            with pytest.raises(anyio.ClosedResourceError):
                await child.stdout.readline()
            with pytest.raises(ValueError, match="max_bytes"):
                await child.stderr.receive(0)
            await child.stdin.aclose()
            with pytest.raises(anyio.ClosedResourceError):
                await child.stdin.send(b"x")
        async with aio.spawn("exec <&-; echo; exec sleep 1000", shell=True, stdin=PIPE) as child:
            await child.stdout.readline()
            with pytest.raises(anyio.BrokenResourceError) as raised:
                await child.stdin.send(b"x")
            assert isinstance(raised.value, BrokenPipeError)
            child.kill()

    on(main)


def test_a_full_pipe(on):
    async def main():
        async with aio.spawn(["sleep", "1000"], stdin=PIPE) as child:
            # Its time may be over before the first byte.
            while not child.stdin.bytes_written:
                with anyio.move_on_after(0.05) as scope:
                    await child.stdin.send(bytes(1 << 20))
                assert scope.cancelled_caught
            assert 0 < child.stdin.bytes_written < 1 << 20
            async with anyio.create_task_group() as tasks:

                async def is_closed_under():
                    with pytest.raises(anyio.ClosedResourceError):
                        await child.stdin.send(bytes(1 << 20))

                tasks.start_soon(is_closed_under)
                await anyio.wait_all_tasks_blocked()
                with pytest.raises(anyio.BusyResourceError):
                    await child.stdin.send(b"x")
                await child.stdin.aclose()
            await child.stop()

    on(main)


def test_lines(on):
    async def main():
        async with aio.spawn(["seq", "3000"]) as child:
            lines = [line async for line in child.stdout]
        assert b"".join(lines) == subprocess.check_output(["seq", "3000"])
        assert len(lines) == 3000
        async with aio.spawn(["printf", r"a\r\nb\nlonger"], text=True) as child:
            found = [one async for one in child.stdout.lines(max_length=4)]
        assert found == ["a", "b", "long", "er"]
        async with aio.spawn("printf 'a;bb;c'", shell=True) as child:
            assert [one async for one in child.stdout.lines(b";")] == [b"a", b"bb", b"c"]
            assert await child.stdout.readline() == b""
        async with aio.spawn("printf 'abc\ndef'", shell=True) as child:
            read = [await child.stdout.readline(2) for _ in range(5)]
            assert read == [b"ab", b"c\n", b"de", b"f", b""]

    on(main)


def test_read(on):
    async def main():
        async with aio.spawn(["seq", "100000"]) as child:
            assert await child.stdout.read(4) == b"1\n2\n"
            rest = await child.stdout.read()
            assert len(rest) == 588_895 - 4
            assert await child.stdout.read() == b""
        options = {"shell": True, "stdin": PIPE}
        async with aio.spawn("printf a; cat; printf b", **options) as child:
            with anyio.move_on_after(0.1) as scope:
                await child.stdout.read()
            assert scope.cancelled_caught
            child.stdin.close()
            assert await child.stdout.read() == b"ab"
        async with aio.spawn("printf ä; cat; printf b", text=True, **options) as child:
            with anyio.move_on_after(0.1) as scope:
                await child.stdout.read()
            assert scope.cancelled_caught
            child.stdin.close()
            assert await child.stdout.read() == "äb"

    on(main)


@pytest.mark.parametrize("method", ["receive", "readline", "read"])
@pytest.mark.parametrize("text", [False, True], ids=["bytes", "text"])
def test_cancelled_reads_lose_nothing(on, method, text):
    async def main():
        pieces, cancelled = [], 0
        async with aio.spawn("seq 5000; sleep 0.05; seq 5000", shell=True, text=text) as child:
            while True:
                with anyio.CancelScope() as scope:
                    try:
                        reading = getattr(child.stdout, method)()
                        piece = await CancelsAt(reading, scope, 1 if cancelled < 50 else 0)
                    except anyio.EndOfStream:
                        break
                if scope.cancelled_caught:
                    cancelled += 1
                elif piece:
                    pieces.append(piece)
                else:
                    break
        expected = subprocess.check_output(["seq", "5000"], text=text) * 2
        assert type(expected)().join(pieces) == expected
        assert cancelled > 0

    on(main)


def test_a_line_that_does_not_come(on):
    async def main():
        async with aio.spawn("printf half; sleep 1000", shell=True, text=True) as child:
            with pytest.raises(procwright.WaitTimeout, match="no line from stdout"):
                await child.stdout.readline(timeout=0.05)
            assert await child.stdout.receive() == "half"
            await child.stop()

    on(main)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
def test_text(on, encoding, child):
    async def main():
        options = {"encoding": encoding, "stdin": PIPE}
        async with aio.spawn(["cat"], **options) as cat:
            assert codecs.lookup(cat.stdout.encoding) == codecs.lookup(encoding)
            await cat.stdin.write("grün\nzwei\n")
            assert await cat.stdout.readline() == "grün\n"
            assert await cat.stdout.receive() == "zwei\n"
            with pytest.raises(procwright.InvalidValue):
                await cat.stdin.send(b"bytes")
            await cat.stdin.writelines(["a\n", "b\n"])
            await cat.stdin.aclose()
            assert [line async for line in cat.stdout] == ["a\n", "b\n"]
            with pytest.raises(anyio.EndOfStream):
                await cat.stdout.receive()

    on(main)


def test_merged(on):
    async def main():
        line = "echo a; sleep 0.05; echo b >&2; sleep 0.05; echo c"
        async with aio.spawn(line, shell=True, merged=True, text=True) as child:
            found = [(one.stream, one.line) async for one in child.merged]
        assert found == [("stdout", "a\n"), ("stderr", "b\n"), ("stdout", "c\n")]
        async with aio.spawn(line, shell=True, merged=True) as child:
            found = [(one.stream, one.line) async for one in child.merged.lines()]
        assert found == [("stdout", b"a"), ("stderr", b"b"), ("stdout", b"c")]

    on(main)


class Turns:
    """Counts the turns that others of the loop have."""

    def __init__(self, tasks):
        self.number = 0
        tasks.start_soon(self._count)

    async def _count(self):
        while True:
            self.number += 1
            await anyio.lowlevel.checkpoint()


async def has_read(stream, size):
    """Returns once so much has been taken from the child: what comes then waits for nothing."""
    while stream.figures.lag_bytes < size:
        await anyio.sleep(0.01)


def test_nobody_holds_up_the_loop(on):
    async def main():
        size = 2_000_000
        line = f"head -c {size} /dev/zero | tr '\\0' '\\n'; cat"
        async with aio.spawn(line, shell=True, stdin=PIPE) as child:
            await has_read(child.stdout, size)
            async with anyio.create_task_group() as tasks:
                turns = Turns(tasks)
                for _ in range(3000):
                    await child.stdout.readline()
                assert turns.number >= 3
                turns.number = 0
                received = 0
                while received < 1_500_000:
                    received += len(await child.stdout.receive())
                assert turns.number >= 3
                tasks.cancel_scope.cancel()

    on(main)


@pytest.mark.parametrize("is_text", [False, True], ids=["bytes", "text"])
@pytest.mark.parametrize("is_merged", [False, True], ids=["lines", "merged"])
def test_long_lines_hold_up_nobody(on, is_merged, is_text):
    async def main():
        line = "for i in 1 2 3 4 5 6 7 8 9; do head -c 200000 /dev/zero; echo; done; cat"
        options = {"shell": True, "stdin": PIPE, "merged": is_merged, "text": is_text}
        async with aio.spawn(line, **options) as child:
            stream = child.merged if is_merged else child.stdout
            await has_read(stream, 9 * 200_001)
            async with anyio.create_task_group() as tasks:
                lines = stream.lines()
                turns = Turns(tasks)
                for _ in range(9):
                    await anext(lines)
                assert turns.number >= 3
                tasks.cancel_scope.cancel()

    on(main)


def test_a_coroutine_that_computes_holds_up_no_child(on):
    async def main():
        async with aio.spawn(["sh", "-c", "seq 300000; exit 7"]) as child:
            while child.returncode is None:
                time.sleep(0.01)
            assert child.returncode == 7
            assert len(await child.stdout.read()) == 1_988_895

    on(main)


# --- a child


def test_await_gives_the_child(on):
    async def main():
        child = await aio.spawn(["true"])
        async with child as same:
            assert same is child
        assert child.returncode == 0
        assert "procwright.aio.Child" in repr(child)

    on(main)


def test_communicate(on):
    async def main():
        data = b"x" * 300_000
        async with aio.spawn("cat; cat /dev/null >&2", shell=True, stdin=PIPE) as child:
            assert await child.communicate(data) == (data, b"")
        async with aio.spawn("echo a; sleep 0.2; echo b", shell=True, text=True) as child:
            with pytest.raises(procwright.WaitTimeout) as raised:
                await child.communicate(timeout=0.05)
            assert raised.value.output == b"a\n"
            with anyio.move_on_after(0.02) as scope:
                await child.communicate()
            assert scope.cancelled_caught
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
            with pytest.raises(procwright.MatchTimeout):
                await it.wait_for("more", timeout=0.05)
            await it.stop()
        async with aio.spawn(["sh", "-c", "echo bad; exit 3"], text=True) as it:
            with pytest.raises(procwright.EndedBeforeMatch) as raised:
                await it.wait_for("good")
            assert raised.value.returncode == 3

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


# --- waiting


def test_wait_and_as_completed(on, children):
    async def main():
        procs = children(3)
        called = []
        procs[1].kill()
        waited = await aio.wait(procs, callback=called.append)
        assert waited.done == called == [procs[1]]
        async with aio.spawn(["true"]) as child:
            done, _ = await aio.wait([child, procs[0]], timeout=LONG)
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


def test_several_wait_for_one(on):
    async def main():
        async with aio.spawn(["sleep", "0.1"]) as child, anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(child.wait)

    on(main)


def test_several_loops():
    def loop(backend):
        async def main():
            for _ in range(5):
                assert (await aio.run(["echo", "x"])).stdout == b"x\n"

        anyio.run(main, backend=backend)

    threads = [threading.Thread(target=loop, args=("asyncio",)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


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


def test_names():
    assert set(aio.__all__) <= {*procwright.__all__}
    assert procwright.aio is aio


# --- what must not happen


def test_a_busy_stream_locks_no_other(on):
    async def main():
        line = "echo out; cat; echo out2; sleep 1000"
        async with aio.spawn(line, shell=True, stdin=PIPE, text=True) as child:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(child.stderr.readline)
                await anyio.wait_all_tasks_blocked()
                with pytest.raises(anyio.BusyResourceError):
                    await child.wait_for("out")
                assert await child.stdout.readline() == "out\n"
                tasks.cancel_scope.cancel()
            await child.stdin.aclose()
            assert (await child.wait_for("out2"))[0] == "out2"
            await child.stop()

    on(main)


class Wrapped:
    """A source with an attribute of the name that our own streams have had."""

    def __init__(self, stream):
        self._stream = stream
        self._left = [b"whole", b""]

    def read(self, size):
        return self._left.pop(0)


def test_a_wrapper_is_read_itself(on, tmp_path):
    hidden = tmp_path / "hidden"
    hidden.write_bytes(b"wrong")

    async def main():
        with hidden.open("rb") as file:
            assert procwright.run(["cat"], stdin=Wrapped(file)).stdout == b"whole"
            assert (await aio.run(["cat"], stdin=Wrapped(file))).stdout == b"whole"
        async with aio.spawn(["echo", "said"]) as first:
            assert (await aio.run(["cat"], stdin=first.stdout)).stdout == b"said\n"

    on(main)


class NoDescriptors:
    """Has this process use up its descriptors, until the end of the block."""

    def __init__(self):
        self.taken = []

    def take(self):
        import resource

        self.limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        highest = max(int(name) for name in os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, self.limits[1]))
        with contextlib.suppress(OSError):
            while True:
                self.taken.append(os.dup(0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        import resource

        for fd in self.taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, self.limits)


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


def test_a_run_without_descriptors_is_stopped(on, monkeypatch):
    monkeypatch.setenv("PROCWRIGHT_TEST_OF", str(os.getpid()))

    async def main():
        with NoDescriptors() as none, anyio.CancelScope() as scope:

            async def cancels():
                while not descendants():
                    await anyio.sleep(0.01)
                none.take()
                scope.cancel()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(cancels)
                await aio.run(["sleep", "1000"])
        assert scope.cancelled_caught
        assert not descendants()

    on(main)


def test_nothing_takes_the_place_of_a_cancellation(on, tmp_path):
    ready, stops, goes = (tmp_path / name for name in ("ready", "stops", "goes"))
    line = (
        f"trap ': > {stops}; while ! test -e {goes}; do sleep 0.01; done; sleep 0.3; exit' TERM\n"
        f"touch {ready}; while :; do sleep 0.01; done"
    )

    def pieces():
        yield b"x"
        while not stops.exists():
            time.sleep(0.01)
        goes.touch()
        raise ZeroDivisionError

    async def main():
        with anyio.CancelScope() as scope:

            async def cancels():
                while not ready.exists():
                    await anyio.sleep(0.01)
                scope.cancel()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(cancels)
                stop = procwright.Stop("TERM", grace=LONG)
                await aio.run(line, shell=True, stdin=pieces(), stop=stop)
        assert scope.cancelled_caught

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
                for call in (child.communicate, child.result, child.stdout.receive):
                    with pytest.raises(anyio.BusyResourceError):
                        await call()
                with pytest.raises(anyio.BusyResourceError):
                    await child.stdin.send(b"more")
                while child.stderr.figures.bytes_in < len(b"said"):
                    await anyio.sleep(0.001)
                tasks.cancel_scope.cancel()
            await child.stop()
            assert await child.communicate() == (b"", b"said")

    on(main)


def test_each_error_of_a_closed_stream_is_one_of_anyio(on):
    async def main():
        async with aio.spawn(["cat"], stdin=PIPE, text=True) as child:
            await child.stdin.aclose()
            await child.stdout.aclose()
            for call in (
                lambda: child.stdin.send("x"),
                lambda: child.stdin.buffer.send(b"x"),
                lambda: child.stdout.buffer.readline(0),
                lambda: child.stdout.read(),
                lambda: child.stdout.buffer.read(),
                lambda: child.wait_for("x", stream="stdout"),
                lambda: child.communicate("x"),
                lambda: anext(child.stdout.lines()),
            ):
                with pytest.raises(anyio.ClosedResourceError) as raised:
                    await call()
                assert isinstance(raised.value, procwright.StreamClosed)

    on(main)


@pytest.mark.parametrize("kind", [bytearray, lambda data: memoryview(bytearray(data))])
def test_what_is_sent_is_what_was_given(on, kind):
    async def main():
        async with aio.spawn("read go; cat", shell=True, stdin=PIPE) as child:
            await child.stdin.send(b"\n")
            given = kind(b"a" * 3_000_000)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(child.stdin.send, given)
                while child.stdin.bytes_written <= 1:
                    await anyio.lowlevel.checkpoint()
                given[:] = b"b" * len(given)
            await child.stdin.aclose()
            assert await child.stdout.read() == b"a" * 3_000_000

    on(main)


def test_a_send_that_sent_nothing_has_begun_nothing(on):
    async def main():
        async with aio.spawn(["cat"], stdin=PIPE, encoding="utf-16") as child:
            with anyio.CancelScope() as scope:
                child.stdin.buffer._turns._left = -1
                await CancelsAt(child.stdin.send("lost"), scope, 1)
            assert scope.cancelled_caught
            assert child.stdin.buffer.bytes_written == 0
            await child.stdin.send("grün")
            await child.stdin.aclose()
            assert await child.stdout.buffer.read() == "grün".encode("utf-16")

    on(main)


@pytest.mark.parametrize("is_text", [False, True], ids=["bytes", "text"])
def test_what_a_line_was_looked_for_in_is_read(on, is_text):
    async def main():
        size = 2_000_000
        line = f"head -c {size} /dev/zero; cat"
        calls = [lambda child: child.communicate(), lambda child: child.result()]
        if is_text:
            calls.append(lambda child: child.stdout.read())
        for call in calls:
            async with aio.spawn(line, shell=True, stdin=PIPE, text=is_text) as child:
                await has_read(child.stdout, size)
                with pytest.raises(procwright.WaitTimeout):
                    await child.stdout.readline(timeout=0.2)
                child.stdin.close()
                found = await call(child)
            text = getattr(found, "stdout", found)
            text = text[0] if isinstance(text, tuple) else text
            assert len(text) == size

    on(main)


@pytest.mark.parametrize("more", ["{}", "{'on_line': print}"], ids=["loop", "thread"])
def test_the_end_of_the_interpreter_stops_a_run(more, script, tmp_path):
    pid = tmp_path / "pid"
    process = script(
        """
import asyncio, os, sys
from procwright import Stop, aio
pid, more = sys.argv[1:]
line = f"trap '' TERM; echo $$ > {pid}.new; mv {pid}.new {pid}; while :; do sleep 0.1; done"
async def begun():
    while not os.path.exists(pid):
        await asyncio.sleep(0.01)
loop = asyncio.new_event_loop()
run = loop.create_task(aio.run(line, shell=True, stop=Stop("TERM", grace=0.3), **eval(more)))
loop.run_until_complete(begun())
""",
        str(pid),
        more,
    )
    process.communicate()
    assert not is_alive(int(pid.read_text()))


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
            senders[0].send(b"said")
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
