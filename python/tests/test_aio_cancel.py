"""Cancellations of `procwright.aio` on asyncio, asyncio with uvloop, and trio."""

from __future__ import annotations

import contextlib
import gc
import inspect
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pytest
from conftest import comes_back, descriptors, is_alive

import procwright
from procwright import PIPE, queue

anyio = pytest.importorskip("anyio")
from loops import LONG, CancelsAt, cancelled_once, descendants, interrupt  # noqa: E402

from procwright import aio  # noqa: E402


@pytest.mark.parametrize("more", [{}, {"on_line": lambda line: None}], ids=["loop", "thread"])
def test_a_cancelled_run_is_stopped_with_its_tree(on, more, tmp_path):
    pids = tmp_path / "pids"
    line = f"echo said; setsid sleep 1000 & echo $! > {pids}.new; mv {pids}.new {pids}; wait"
    begun = time.monotonic()

    async def main():
        caught = []
        async with cancelled_once(pids.exists) as scope:
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


@pytest.fixture
def for_all():
    """A folder that any user may write to."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield pathlib.Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start what it then cannot end")
@pytest.mark.parametrize("more", [{}, {"on_line": lambda line: None}], ids=["loop", "thread"])
def test_a_cancel_is_bounded_where_a_process_cannot_be_killed(on, more, for_all):
    begun = time.monotonic()

    async def cancelled(name, once_up):
        pid = for_all / name
        line = f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1000"

        def is_up():
            return pid.exists() and once_up() is None

        stop = procwright.Stop("TERM", grace=0.1)
        async with cancelled_once(is_up) as scope:
            await aio.run(line, shell=True, user=65_534, stop=stop, **more)
        assert scope.cancelled_caught
        return int(pid.read_text())

    async def main():
        # Who is somebody else may not import what is loaded late.
        assert not is_alive(await cancelled("first", lambda: None))
        pid = await cancelled("second", lambda: os.seteuid(65_533))
        # It came back all the same. What goes on to try may end it once it may.
        assert is_alive(pid)
        os.seteuid(0)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    try:
        on(main)
    finally:
        os.seteuid(0)
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


async def whole_run():
    await aio.run(["sh", "-c", "sleep 1000 & echo a; sleep 0.02; kill $!"])


async def run_that_waits_for_ever():
    with anyio.move_on_after(0.2):
        await aio.run(["sh", "-c", "sleep 1000 & echo a; wait"])


async def run_on_a_thread():
    await aio.run(["sh", "-c", "sleep 1000 & echo a; sleep 0.02; kill $!"], on_line=str)


async def child_that_is_talked_to():
    async with await aio.spawn(["cat"], stdin=PIPE) as child:
        await child.stdin.send(b"x" * 200_000)
        assert await child.stdout.receive(100)
        await child.stdin.writelines([b"\n", b"line\n"])
        await child.stdout.readline()
        assert await child.stdout.readline() == b"line\n"
        await child.stdin.write(b"a\nb\nc\nd\n")
        assert await child.stdout.read(2) == b"a\n"
        assert await anext(child.stdout) == b"b\n"
        assert await anext(child.stdout.lines()) == b"c"
        await child.stdin.aclose()
        assert await child.stdout.readlines() == [b"d\n"]
        await child.stdout.aclose()


async def child_that_is_talked_to_in_text():
    async with aio.spawn(["cat"], stdin=PIPE, text=True) as child:
        await child.stdin.send("x" * 200_000)
        assert await child.stdout.receive()
        await child.stdin.writelines(["\n", "line\n"])
        await child.stdout.readline()
        assert await child.stdout.readline() == "line\n"
        await child.stdin.write("b\nc\nd\n")
        assert await anext(child.stdout) == "b\n"
        assert await anext(child.stdout.lines()) == "c"
        await child.stdin.aclose()
        assert await child.stdout.readlines() == ["d\n"]
        assert await child.stdout.read() == ""
        await child.stdout.aclose()


async def child_whose_outputs_are_merged():
    line = "echo a; sleep 0.02; echo b >&2"
    async with aio.spawn(line, shell=True, merged=True, text=True) as child:
        assert [one.line async for one in child.merged.lines()] == ["a", "b"]
        await child.merged.aclose()


async def child_at_a_terminal():
    line = "stty -echo; printf 'Word: '; read word; echo got $word"
    async with aio.spawn(line, shell=True, stdin=PIPE, pty=True, text=True) as child:
        await child.wait_for("Word: ")
        await child.stdin.send("secret\n")
        await child.wait_for("got secret")


async def child_that_is_communicated_with():
    async with aio.spawn(["cat"], stdin=PIPE) as child:
        out, _ = await child.communicate(b"x" * 200_000)
        assert len(out) == 200_000
        assert (await child.result()).returncode == 0


async def child_with_callbacks():
    lines = []
    async with aio.spawn("seq 3; sleep 0.02", shell=True, on_stdout_line=lines.append) as child:
        await child.communicate()
    assert len(lines) == 3


async def child_that_is_waited_for():
    async with aio.spawn(["sh", "-c", "echo ready; sleep 0.02; exit 3"]) as child:
        await child.wait_for(b"ready")
        await aio.wait([child])
        async for one in aio.as_completed([child]):
            assert one is child
        assert (await child.process.wait()).code == 3
        await child.monitor().wait()
        await child.monitor().wait_gone()
        assert await child.wait() == 3


async def child_that_is_looked_at():
    async with aio.spawn(["cat"], stdin=PIPE) as child:
        with contextlib.suppress(procwright.WaitTimeout):
            await child.wait(0.05)
        assert await child.waiting_for()
        await child.explain()


async def child_that_is_stopped():
    async with aio.spawn("trap '' TERM; echo; sleep 0.05", shell=True) as child:
        await child.stdout.readline()
        await child.stop(procwright.Stop("TERM", grace=0.02))
    async with aio.spawn(["sleep", "1000"]) as child:
        await child.process.stop()


async def child_that_gets_messages():
    program = "from procwright import queue; print(*queue.Receiver.of_parent())"
    async with aio.spawn([sys.executable, "-c", program], channel="to_child") as child:
        async with await child.sender() as sender:
            await sender.send(b"said")
            await sender.aclose()
        assert await child.stdout.read() == b"b'said'\n"


async def child_that_sends_messages():
    program = "from procwright import queue; queue.Sender.of_parent().send(b'said')"
    async with (
        aio.spawn([sys.executable, "-c", program], channel="from_child") as child,
        await child.receiver() as receiver,
    ):
        assert await receiver.recv() == b"said"
        assert [message async for message in receiver] == []
        await receiver.aclose()


async def queue_that_is_full():
    async with (
        aio.Receiver(queue.Receiver(limit=4096)) as receiver,
        anyio.create_task_group() as tasks,
        receiver.sender() as sender,
    ):
        tasks.start_soon(received, receiver)
        for _ in range(3):
            await sender.send(b"x" * 3000)


async def received(receiver):
    with contextlib.suppress(EOFError):
        async for _ in receiver:
            await receiver.recv_many(1)


async def commands():
    async with aio.map([["true"], ["false"], ["sleep", "1000"]], parallel=2) as running:
        await anext(running)
        await anext(running)
        await running.aclose()
    async with aio.map([["true"]] * 3) as running:
        assert (await running.wait()).succeeded == 3


async def programs_in_a_row():
    await aio.pipeline(["sh", "-c", "echo a; sleep 0.02"], ["cat"])


OPERATIONS = [
    whole_run,
    run_that_waits_for_ever,
    run_on_a_thread,
    child_that_is_talked_to,
    child_that_is_talked_to_in_text,
    child_whose_outputs_are_merged,
    child_at_a_terminal,
    child_that_is_communicated_with,
    child_with_callbacks,
    child_that_is_waited_for,
    child_that_is_looked_at,
    child_that_is_stopped,
    child_that_gets_messages,
    child_that_sends_messages,
    queue_that_is_full,
    commands,
    programs_in_a_row,
]


def test_every_operation_is_among_them():
    """All that is awaited in `aio`: a new one has to be cancelled here, too."""
    named = {name for one in [*OPERATIONS, received] for name in names_of(one.__code__)}
    awaited = {name for name in aio.__all__ if inspect.iscoroutinefunction(getattr(aio, name))}
    for kind in (getattr(aio, name) for name in aio.__all__):
        if isinstance(kind, type):
            own = {name for name in dir(kind) if inspect.iscoroutinefunction(getattr(kind, name))}
            # Blocks and iterations are those of each of them.
            awaited |= {name for name in own if not name.startswith("_")}
    assert awaited > {"run", "pipeline", "wait", "recv", "receive", "claim"}
    # A claim needs two who watch a peer: test_aio_liveness.py cancels it.
    assert awaited - named == {"claim"}


def names_of(code):
    """The names that a function uses, with those of the comprehensions in it."""
    inner = [name for one in code.co_consts if hasattr(one, "co_names") for name in names_of(one)]
    return {*code.co_names, *inner}


@pytest.mark.parametrize("by", ["cancel", "interrupt"])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.__name__)
def test_cancelled_at_every_suspension(on, operation, by, monkeypatch):
    """By its scope, and by Ctrl-C, which ends the loop: by that at every fourth one, unless
    STRESS=1 is set, as each takes a loop and processes of its own."""
    step = 1 if by == "cancel" or os.environ.get("STRESS") == "1" else 4
    monkeypatch.setenv("PROCWRIGHT_TEST_OF", str(os.getpid()))

    async def at(n):
        with anyio.CancelScope() as scope:
            cancel = scope.cancel if by == "cancel" else interrupt
            cancels = CancelsAt(operation(), cancel, n)
            await cancels
        return cancels.left <= 0

    def is_reached(n):
        reached = True
        try:
            reached = on(at, n)
        except* KeyboardInterrupt:
            pass
        return reached

    on(at, 0)
    gc.collect()
    before, threads = descriptors(), threading.active_count()
    n = 1
    while is_reached(n):
        n += step
        assert n < 1000
    assert n > 2
    gc.collect()
    comes_back(before)
    while threading.active_count() > threads or descendants():
        os.sched_yield()


async def pieces(child, got):
    got.append(await child.stdout.receive(7))


async def some(child, got):
    got.append(await child.stdout.read(5))


async def one_line(child, got):
    got.append(await child.stdout.readline())


async def a_part_of_a_line(child, got):
    got.append(await child.stdout.readline(3))


async def by_iteration(child, got):
    got.append(await anext(child.stdout))


async def by_lines(child, got):
    got.append(await anext(child.stdout.lines(keep_ends=True)))


async def all_lines(child, got):
    got.extend(await child.stdout.readlines())


async def the_rest(child, got):
    got.append(await child.stdout.read())


async def all_that_was_said(child, got):
    got.append((await child.communicate())[0])


async def what_came_of_it(child, got):
    got.append((await child.result()).stdout)


TAKES = [
    pieces,
    some,
    one_line,
    a_part_of_a_line,
    by_iteration,
    by_lines,
    all_lines,
    the_rest,
    all_that_was_said,
    what_came_of_it,
]


@pytest.mark.parametrize("text", [False, True], ids=["bytes", "text"])
@pytest.mark.parametrize("take", TAKES, ids=lambda one: one.__name__)
def test_what_was_read_is_kept_at_every_suspension(on, take, text):
    if text and take in (pieces, some, a_part_of_a_line):
        pytest.skip("text has no such sizes")
    line = "for n in 1 2 3 4; do echo line $n; sleep 0.005; done; printf end"
    said = "".join(f"line {n}\n" for n in range(1, 5)) + "end"

    async def main():
        n, reached = 1, True
        while reached:
            got = []
            async with aio.spawn(line, shell=True, text=text) as child:
                with anyio.CancelScope() as scope:
                    cancels = CancelsAt(take(child, got), scope.cancel, n)
                    await cancels
                reached = cancels.left <= 0
                # What was not given is there for whoever reads next.
                if take in (all_that_was_said, what_came_of_it):
                    last = [] if got else [(await child.communicate())[0]]
                else:
                    last = [await child.stdout.read()]
            empty = "" if text else b""
            assert empty.join(got + last) == (said if text else said.encode()), n
            n += 1

    on(main)


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
        """Starts it, and holds up the loop until it has said something and the time is over."""
        started = was(*arguments)
        while not said.exists() or time.monotonic() < until:
            time.sleep(0.01)
        return started

    async def in_block(run, seconds):
        async with asyncio.timeout(seconds):
            await run

    until = 0
    was = _aio_run.start
    monkeypatch.setattr(_aio_run, "start", start)
    line = f"echo said; touch {said}; sleep 1000"

    async def main():
        nonlocal until
        for waits in (in_block, asyncio.wait_for):
            said.unlink(missing_ok=True)
            until = time.monotonic() + 1
            with pytest.raises(TimeoutError) as raised:
                await waits(aio.run(line, shell=True), 1)
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
        async with cancelled_once(ready.exists) as scope:
            stop = procwright.Stop("TERM", grace=LONG)
            await aio.run(line, shell=True, stdin=pieces(), stop=stop)
        assert scope.cancelled_caught

    on(main)


@pytest.mark.skipif(os.environ.get("STRESS") != "1", reason="ten minutes, with STRESS=1")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_load_under_which_cleanups_hang(backend):
    pytest.importorskip(backend)
    load = pathlib.Path(__file__).parent / "aio_load.py"
    done = subprocess.run(
        [sys.executable, str(load), "--backend", backend], stdout=subprocess.PIPE, text=True
    )
    print(done.stdout)
    assert done.returncode == 0
