"""What a call on an aio.Child raises whose program has gone: it says why."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from conftest import LOOPS

from procwright import PIPE, CalledProcessError, Stop, TimeoutExpired, queue

anyio = pytest.importorskip("anyio")

from procwright import aio  # noqa: E402

SOON = Stop(grace=0.02)
SHORT = 0.05
FAILS = ["sh", "-c", "echo 'the reason' >&2; exit 3"]


@pytest.fixture(params=LOOPS)
def run(request):
    pytest.importorskip(request.param)
    return lambda main: anyio.run(main, **LOOPS[request.param])


async def recv(one):
    receiver = await one.receiver()
    await receiver.recv()


async def recv_many(one):
    receiver = await one.receiver()
    await receiver.recv_many(2)


async def write(one):
    while True:
        await one.stdin.send("x" if one.stdin.__class__ is aio.TextWriter else b"x")


async def sender(one):
    await one.sender()


async def end(one):
    with pytest.raises(anyio.EndOfStream):
        await one.stdout.receive()


CALLS = [
    ({"channel": "from_child"}, recv),
    ({"channel": "from_child"}, recv_many),
    ({"channel": "to_child"}, sender),
    ({"stdin": PIPE}, write),
    ({"stdin": PIPE, "text": True}, write),
]


@pytest.mark.parametrize(("options", "call"), CALLS)
def test_of_one_that_its_timeout_has_stopped_a_call_raises_that(run, child, options, call):
    async def main():
        argv = [child, "sleep-forever"]
        with pytest.raises(TimeoutExpired) as caught:
            async with aio.spawn(argv, stop=SOON, timeout=SHORT, **options) as one:
                await call(one)
        assert isinstance(caught.value.__cause__, (queue.QueueError, BrokenPipeError))

    run(main)


@pytest.mark.parametrize(("options", "call"), CALLS)
def test_of_one_that_has_died_the_error_says_how(run, options, call):
    async def main():
        one = aio.spawn(FAILS, **options)
        with pytest.raises((queue.QueueError, BrokenPipeError), match="exited with code 3") as told:
            await call(one)
        assert isinstance(told.value.__cause__, CalledProcessError)
        assert "the reason" in str(told.value.__cause__)

    run(main)


@pytest.mark.parametrize("text", [False, True])
def test_an_end_of_stream_has_the_reason_and_the_block_raises_it(run, child, text):
    async def main():
        argv = [child, "sleep-forever"]
        one = aio.spawn(argv, stop=SOON, timeout=SHORT, text=text)
        with pytest.raises(anyio.EndOfStream, match="timed out after") as caught:
            await one.stdout.receive()
        assert isinstance(caught.value.__cause__, TimeoutExpired)
        with pytest.raises(TimeoutExpired):
            async with aio.spawn(argv, stop=SOON, timeout=SHORT, text=text) as held:
                await held.stdout.receive()
        with pytest.raises(anyio.EndOfStream) as caught:
            await aio.spawn(["true"], text=text).stdout.receive()
        assert (caught.value.args, caught.value.__cause__) == ((), None)

    run(main)


def test_an_iteration_ends_and_the_block_tells(run, child):
    async def main():
        argv = [child, "sleep-forever"]
        found = []

        async def iterate():
            async with aio.spawn(argv, channel="from_child", stop=SOON, timeout=SHORT) as one:
                found.append([line async for line in one.stdout])
                found.append([message async for message in await one.receiver()])

        with pytest.raises(TimeoutExpired):
            await iterate()
        assert found == [[], []]

    run(main)


def test_a_pipeline_tells_as_well(run, child):
    async def main():
        sleeps = [child, "sleep-forever"]
        with pytest.raises(TimeoutExpired):
            async with aio.spawn_pipeline(
                sleeps, sleeps, stdin=PIPE, stop=SOON, timeout=SHORT
            ) as one:
                await write(one)
        failed = aio.spawn_pipeline(FAILS, ["cat"], stdin=PIPE)
        await failed.wait()
        with pytest.raises(BrokenPipeError, match="stage 1 of 2 exited with code 3"):
            await write(failed)

    run(main)


@pytest.mark.parametrize("text", [False, True])
def test_who_catches_the_end_of_a_stream_takes_nothing_from_the_block(run, child, text):
    async def main():
        argv = [child, "sleep-forever"]
        with pytest.raises(TimeoutExpired):
            async with aio.spawn(argv, stop=SOON, timeout=SHORT, text=text) as one:
                await end(one)
        with pytest.raises(TimeoutExpired):
            async with aio.spawn_pipeline(argv, argv, stop=SOON, timeout=SHORT, text=text) as many:
                await end(many)

    run(main)


def test_a_task_that_is_told_takes_nothing_from_the_block(run, child):
    async def main():
        told = []

        async def feed(one):
            try:
                await write(one)
            except Exception as error:
                told.append(error)

        async def hold(block):
            async with block as one, anyio.create_task_group() as tasks:
                tasks.start_soon(feed, one)
                assert [line async for line in one.stdout] == []

        argv = [child, "sleep-forever"]
        options = {"stdin": PIPE, "stop": SOON, "timeout": SHORT}
        with pytest.raises(TimeoutExpired):
            await hold(aio.spawn(argv, **options))
        with pytest.raises(TimeoutExpired):
            await hold(aio.spawn_pipeline(argv, argv, **options))
        assert len(told) == 2

    run(main)


def test_what_a_function_has_raised_is_for_the_block(run, child):
    mine = ValueError("mine")

    def fails(lines):
        raise mine

    async def main():
        def block():
            argv = [child, "sleep-forever"]
            return aio.spawn_pipeline(argv, fails, ["cat"], stdin=PIPE, stop=SOON)

        caught_there = []

        async def broken(one):
            with pytest.raises(BrokenPipeError) as caught:
                await write(one)
            caught_there.append(caught.value.__cause__)

        for call in (write, broken):
            with pytest.raises(ValueError, match="mine") as caught:
                async with block() as one:
                    await call(one)
            assert caught.value is mine
        assert caught_there == [mine]
        with pytest.raises(ValueError, match="mine"):
            async with block() as one:
                await end(one)

    run(main)


def test_a_stop_of_a_pipeline_that_lasts_is_waited_for(run, child):
    async def main():
        # It ends with the grace; what reads it ends at once.
        lasts = ["sh", "-c", "trap '' TERM; exec <&-; sleep 1000 & wait; wait"]
        options = {"stdin": PIPE, "stop": Stop(grace=1.5), "timeout": SHORT}
        one = aio.spawn_pipeline(lasts, ["cat"], **options)
        with pytest.raises(TimeoutExpired) as caught:
            await write(one)
        assert isinstance(caught.value.__cause__, BrokenPipeError)
        one = aio.spawn_pipeline(lasts, [child, "sleep-forever"], **options)
        with pytest.raises(anyio.EndOfStream) as ended:
            await one.stdout.receive()
        assert isinstance(ended.value.__cause__, TimeoutExpired)

    run(main)


def test_a_block_of_a_pipeline_tells_of_a_stop_that_lasts(run, child):
    async def main():
        # It ends with the grace; what reads it ends at once.
        lasts = ["sh", "-c", "trap '' TERM; exec <&-; sleep 1000 & wait; wait"]
        options = {"stdin": PIPE, "stop": Stop(grace=2), "timeout": SHORT}
        with pytest.raises(TimeoutExpired) as caught:
            async with aio.spawn_pipeline(lasts, ["cat"], **options) as one:
                await write(one)
        assert isinstance(caught.value.__cause__, BrokenPipeError)
        with pytest.raises(TimeoutExpired) as caught:
            async with aio.spawn_pipeline(lasts, [child, "sleep-forever"], **options) as one:
                await one.stdout.receive()
        assert isinstance(caught.value.__cause__, anyio.EndOfStream)

    run(main)


def test_an_error_of_asking_changes_no_end(run):
    async def main():
        async def stalls(deadline):
            raise RuntimeError

        async with aio.spawn(["true"]) as one:
            yes = SimpleNamespace(is_ours=lambda: True, is_stopping=lambda: True)
            core, one._core = one._core, yes
            until_ended, one._until_ended = one._until_ended, stalls
            with pytest.raises(anyio.EndOfStream) as caught:
                await one.stdout.receive()
            assert caught.value.__cause__ is None
            one._core, one._until_ended = core, until_ended

    run(main)


def test_one_wait_for_the_reason_does_for_all_calls_and_keeps_to_their_time(run):
    program = (
        "from procwright.queue import Sender; import signal\n"
        "Sender.of_parent().close(); print('closed', flush=True)\n"
        "while True: signal.pause()"
    )

    async def main():
        for timeout in (SHORT, 0, None):
            argv = [sys.executable, "-c", program]
            one = aio.spawn(argv, channel="from_child", text=True)
            try:
                receiver = await one.receiver()
                # In one piece or several.
                assert await one.stdout.receive()
                waits = []
                until_ended = one._until_ended

                async def wait(deadline, until_ended=until_ended, waits=waits):
                    waits.append(deadline.left())
                    return await until_ended(deadline)

                one._until_ended = wait
                for _ in range(3):
                    with pytest.raises(queue.Closed):
                        await receiver.recv(timeout)
                assert len(waits) == (timeout != 0)
                assert all(0 <= left <= (timeout or 1) for left in waits)
            finally:
                one.process.kill()

    run(main)
