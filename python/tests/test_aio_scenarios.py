"""What has gone wrong with programs on event loops elsewhere, on asyncio, asyncio with uvloop, and
trio: ends that nobody hears of, pipes that are full or held, signals, descriptors."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time

import pytest
from conftest import comes_back, descriptors, is_alive

import procwright
from procwright import DEVNULL, PIPE, STDOUT

anyio = pytest.importorskip("anyio")
from loops import LONG, CancelsAt, cancelled_once  # noqa: E402

from procwright import aio  # noqa: E402

#: A program that cannot be asked to end.
STUBBORN = "trap '' TERM; echo; while :; do sleep 0.01; done"


def test_a_wait_is_over_with_the_program_whoever_holds_its_output(on):
    async def main():
        child = aio.spawn("sleep 1000 & echo $!", shell=True)
        assert await child.wait() == 0
        pid = int(await child.stdout.readline())
        assert is_alive(pid)
        # The block is over with the program, too.
        async with child:
            pass
        os.kill(pid, signal.SIGKILL)
        assert await child.stdout.read() == b""

    on(main)


@pytest.mark.parametrize("overflow", ["spill", "block"])
def test_a_close_releases_who_writes_into_a_full_pipe(on, overflow):
    async def main():
        async with aio.spawn(["yes"], overflow=overflow) as child:
            await child.stdout.receive(1)
            await child.stdout.aclose()
            with pytest.raises(anyio.ClosedResourceError):
                await child.stdout.receive()
        assert child.returncode == -signal.SIGPIPE

    on(main)


def test_a_block_ends_a_program_that_writes_into_a_full_pipe(on):
    async def main():
        children = []

        async def block():
            async with aio.spawn(["yes"], overflow="block") as child:
                children.append(child)
                await child.stdout.receive(1)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await block()
        assert children[0].returncode == -signal.SIGTERM

    on(main)


def test_the_end_of_a_block_that_is_cancelled_leaves_nothing(on):
    async def main():
        said = []

        async def block():
            async with aio.spawn("sleep 1000 & echo $!; wait", shell=True) as child:
                said.append(child)
                said.append(int(await child.stdout.readline()))
            raise AssertionError

        async with cancelled_once(lambda: len(said) == 2) as scope:
            await block()
        assert scope.cancelled_caught
        child, pid = said
        assert child.returncode == -signal.SIGTERM
        assert not is_alive(pid)
        # What it had said can still be read, to an end that comes.
        assert await child.stdout.read() == b""

    on(main)


def test_who_ignores_the_request_is_killed_after_the_grace(on):
    stop = procwright.Stop("TERM", grace=0.1)

    async def main():
        async with aio.spawn(STUBBORN, shell=True, stop=stop) as child:
            await child.stdout.readline()
            assert await child.stop() == []
        assert child.returncode == -signal.SIGKILL
        said = []
        async with (
            cancelled_once(lambda: bool(said)),
            aio.spawn(STUBBORN, shell=True, stop=stop) as child,
        ):
            said.append(await child.stdout.readline())
            await child.wait()
        assert child.returncode == -signal.SIGKILL

    on(main)


def test_signals_interrupt_nothing(on):
    """A handler that returns, hundreds of times a second."""
    calls = []
    before = signal.signal(signal.SIGALRM, lambda *_: calls.append(None))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)

    async def main():
        data = os.urandom(300_000)
        while len(calls) < 100:
            async with aio.spawn(["cat"], stdin=PIPE) as child:
                assert (await child.communicate(data))[0] == data
            async with aio.spawn(["sleep", "0.02"]) as child:
                assert await child.wait() == 0
            assert (await aio.run(["sh", "-c", "sleep 0.02; exit 3"])).returncode == 3

    try:
        on(main)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("way", ["wait", "communicate", "result"])
def test_who_is_over_holds_no_descriptor(on, way):
    async def over():
        # Whoever reads or waits has to sleep.
        child = await aio.spawn(["sh", "-c", "sleep 0.03; exit 3"])
        await getattr(child, way)()
        return child

    async def main():
        first = await over()
        before = descriptors()
        kept = [await over() for _ in range(5)]
        comes_back(before)
        for child in [first, *kept]:
            assert await child.wait() == 3
            assert child.process is child.process
            assert child.process.returncode == 3
            assert (await child.process.wait()).returncode == 3
            await anyio.wait_readable(child.readiness_fd())

    on(main)


def test_no_descriptor_is_left(on, tmp_path):
    no_program = tmp_path / "no program"
    no_program.write_text("")

    async def main():
        await aio.run(["true"])
        gc.collect()
        before = descriptors()
        await aio.run(["true"], input=b"x")
        with pytest.raises(procwright.CalledProcessError):
            await aio.run(["false"], check=True)
        for name in (no_program, tmp_path / "none"):
            for start in (aio.run, aio.spawn):
                with pytest.raises(procwright.SpawnError):
                    await start([name])
        async with aio.spawn(["cat"], stdin=PIPE) as child:
            pass
        del child
        with anyio.CancelScope() as scope:
            await CancelsAt(aio.run(["sleep", "1000"]), scope.cancel, 2)
        assert scope.cancelled_caught
        comes_back(before)

    on(main)


@pytest.mark.parametrize("size", [1, 200_000])
def test_a_program_that_reads_nothing_breaks_the_pipe_and_no_run(on, size):
    async def main():
        result = await aio.run("exec <&-; echo said", shell=True, input=b"x" * size)
        assert (result.stdout, result.returncode) == (b"said\n", 0)
        assert (await aio.run(["true"], input=b"x" * size)).returncode == 0
        async with aio.spawn(["true"], stdin=PIPE) as child:
            assert (await child.communicate(b"x" * size)) == (b"", b"")

    on(main)


def test_a_program_that_closes_its_stdin_and_goes_on(on):
    async def main():
        async with aio.spawn("exec <&-; echo closed; sleep 1000", shell=True, stdin=PIPE) as child:
            await child.stdout.readline()
            for _ in range(2):
                with pytest.raises(anyio.BrokenResourceError) as raised:
                    await child.stdin.send(b"x")
                assert isinstance(raised.value, BrokenPipeError)
            # It is the pipe that is broken, and not the program.
            assert child.returncode is None
            await child.stdin.aclose()
            with pytest.raises(anyio.ClosedResourceError):
                await child.stdin.send(b"x")
            await child.stop()

    on(main)


def test_a_send_that_waits_hears_of_the_end_of_who_reads(on):
    async def main():
        async with (
            aio.spawn(["sleep", "1000"], stdin=PIPE) as child,
            anyio.create_task_group() as tasks,
        ):

            async def sends():
                with pytest.raises(anyio.BrokenResourceError):
                    await child.stdin.send(bytes(1_000_000))

            tasks.start_soon(sends)
            await anyio.wait_all_tasks_blocked()
            child.kill()

    on(main)


def test_who_waits_hears_of_an_end_that_another_task_saw_first(on):
    async def main():
        async with aio.spawn(["sleep", "1000"]) as child, anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(child.wait)
            await anyio.wait_all_tasks_blocked()
            child.kill()
            # Without a turn for those who wait.
            while child.poll() is None:
                time.sleep(0.001)

    on(main)


def test_waits_that_are_cancelled_leave_the_others_be(on):
    async def main():
        async with aio.spawn(["sleep", "1000"]) as child:
            over = []

            async def waits():
                over.append(await child.wait())

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(waits)
                async with anyio.create_task_group() as cancelled:
                    for _ in range(3):
                        cancelled.start_soon(child.wait)
                    await anyio.wait_all_tasks_blocked()
                    cancelled.cancel_scope.cancel()
                assert over == []
                child.kill()
            assert over == [-signal.SIGKILL]

    on(main)


def test_where_nobody_is_told_of_children(on):
    """With SIGCHLD ignored the system keeps no status; whoever waits is told of the end."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    async def main():
        async with aio.spawn(["sleep", "1000"]) as child, anyio.create_task_group() as tasks:
            tasks.start_soon(child.wait)
            await anyio.wait_all_tasks_blocked()
            child.kill()
        assert child.status is not None
        assert (await aio.run(["echo", "said"])).stdout == b"said\n"

    try:
        on(main)
    finally:
        signal.signal(signal.SIGCHLD, before)


@pytest.mark.parametrize("given", [None, b"", b"given"])
def test_the_stdin_of_this_program_is_never_a_programs_by_itself(given, script):
    process = script(
        """
import sys, anyio
from procwright import aio
async def main():
    given = eval(sys.argv[1])
    print((await aio.run(["cat"], input=given)).stdout)
    async with aio.spawn(["cat"]) as child:
        print(await child.stdout.read())
anyio.run(main)
""",
        repr(given),
        stdin=PIPE,
    )
    out, err = process.communicate("of this program")
    assert (out, err) == (f"{given or b''!r}\nb''\n", "")


def test_both_outputs_in_one_pipe(on, tmp_path):
    async def main():
        line = "echo out; echo err >&2"
        result = await aio.run(line, shell=True, stderr=STDOUT)
        assert (result.stdout, result.stderr) == (b"out\nerr\n", None)
        # Also where that is not ours.
        with (tmp_path / "both").open("wb") as file:
            await aio.run(line, shell=True, stdout=file, stderr=STDOUT)
        assert (tmp_path / "both").read_bytes() == b"out\nerr\n"
        assert (await aio.run(line, shell=True, stdout=DEVNULL, stderr=STDOUT)).returncode == 0

    on(main)


def test_a_callback_that_computes_is_not_on_the_loop(on):
    async def main():
        turns = 0
        lines = []

        def slow(line):
            # Only against hanging where it has the loop.
            before = turns
            until = time.monotonic() + LONG
            while turns < before + 3:
                assert time.monotonic() < until, "nobody else has had a turn"
                time.sleep(0.001)
            lines.append(line)

        async def counts():
            nonlocal turns
            while True:
                turns += 1
                await anyio.sleep(0)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(counts)
            await aio.run(["seq", "3"], on_stdout_line=slow)
            tasks.cancel_scope.cancel()
        assert len(lines) == 3

    on(main)


def test_a_program_that_starts_nothing_is_told_of_at_once(on):
    async def main():
        for name in ("no-such-program-anywhere", "/dev/null"):
            with pytest.raises(procwright.SpawnError):
                await aio.run([name])
            with pytest.raises(procwright.SpawnError):
                aio.spawn([name])

    on(main)


def test_it_is_its_own_program_that_is_signalled(on):
    """Any signal, also one that the program takes."""
    program = "import signal, sys; signal.sigwait({signal.SIGUSR1}); sys.exit(2)"
    program = program.replace("signal.sigwait", "print(flush=True) or signal.sigwait", 1)
    block = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1}); "

    async def main():
        async with aio.spawn([sys.executable, "-c", block + program]) as child:
            await child.stdout.readline()
            child.send_signal("USR1")
            assert await child.wait() == 2
        for send, number in (("terminate", signal.SIGTERM), ("kill", signal.SIGKILL)):
            async with aio.spawn(["sleep", "1000"]) as child:
                getattr(child, send)()
                assert await child.wait() == -number
                getattr(child, send)()  # nothing, now that it has ended

    on(main)
