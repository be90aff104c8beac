"""Waiting on asyncio and trio."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest
from conftest import comes_back, descriptors

import procwright
from procwright import Process, wait_async

#: Only against hanging.
LONG = 100


class OnAsyncio:
    run = staticmethod(asyncio.run)

    @staticmethod
    async def both(one, two):
        await asyncio.gather(one(), two())

    @staticmethod
    async def cancelled(call):
        """Begins `call` and cancels it once it sleeps."""
        task = asyncio.ensure_future(call())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    @staticmethod
    def readers():
        return len(asyncio.get_running_loop()._selector.get_map())


class OnTrio:
    @staticmethod
    def run(coroutine):
        trio = pytest.importorskip("trio")

        async def main():
            return await coroutine

        return trio.run(main)

    @staticmethod
    async def both(one, two):
        import trio

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one)
            nursery.start_soon(two)

    @staticmethod
    async def cancelled(call):
        import trio

        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(call)
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
        assert scope.cancelled_caught

    @staticmethod
    def readers():
        return 0  # trio refuses a second reader by itself


@pytest.fixture(params=[OnAsyncio, OnTrio])
def on(request):
    if request.param is OnTrio:
        pytest.importorskip("trio.testing")
    return request.param


def test_one(on, children):
    async def main():
        (child,) = children(1, "term-exit", "7")
        process = Process(child)
        with pytest.raises(procwright.WaitTimeout):
            await process.wait_async(0.01)

        async def end():
            process.terminate()

        async def waits():
            assert (await process.wait_async()).code == 7

        await on.both(waits, end)
        assert (await process.wait_async(0)).code == 7
        assert child.wait() == 7

    on.run(main())


def test_any_all_and_the_first_few(on, children):
    async def main():
        procs = children(4)
        assert await wait_async([], "all") == ([], [])
        procs[1].kill()
        assert await wait_async(procs, "any") == ([procs[1]], [procs[0], procs[2], procs[3]])

        async def end():
            procs[2].kill()

        async def waits():
            waited = await wait_async(procs, 2, timeout=LONG)
            assert waited.done == [procs[1], procs[2]]

        await on.both(waits, end)
        begin = time.monotonic()
        assert (await wait_async(procs, "all", timeout=0.2)).pending == [procs[0], procs[3]]
        assert time.monotonic() - begin >= 0.2
        assert len((await wait_async(procs, 1)).done) == 1
        procs[0].kill()
        procs[3].kill()
        assert (await wait_async(procs)).pending == []
        with pytest.raises(procwright.InvalidValue):
            await wait_async(procs, 0)
        with pytest.raises(procwright.InvalidValue):
            await wait_async(procs, timeout=float("nan"))

    on.run(main())


@pytest.mark.parametrize("timeout", [None, float("inf"), 25 * 86400, 10**400])
def test_timeouts_that_do_not_come(on, children, timeout):
    async def main():
        (child,) = children(1)

        async def end():
            child.kill()

        async def waits():
            assert (await wait_async([child], timeout=timeout)).done == [child]

        await on.both(waits, end)

    on.run(main())


@pytest.mark.parametrize("timeout", [0, 0.0009, -1, float("-inf")])
def test_timeouts_that_come(on, children, timeout):
    async def main():
        (child,) = children(1)
        assert (await wait_async([child], timeout=timeout)).pending == [child]

    on.run(main())


def test_exited_is_not_reaped(on, child, stranger):
    async def main():
        theirs = stranger(child, "term-exit", "7")
        process = Process(theirs.pid)
        process.terminate()
        await process.wait_async()
        assert (await wait_async([process], event="reaped", timeout=0.01)).done == []

        async def reap():
            assert theirs.reap() == 7

        async def waits():
            await process.wait_async(event="reaped")

        await on.both(waits, reap)

    on.run(main())


def test_as_completed(on, children):
    async def main():
        before = descriptors()
        procs = children(3)
        procs[2].kill()
        order = []
        async for one in procwright.as_completed_async(procs, timeout=LONG):
            order.append(one)
            if one is procs[2]:
                procs[0].kill()
            elif one is procs[0]:
                procs[1].kill()
        assert order == [procs[2], procs[0], procs[1]]
        # Left before its end.
        async for _ in procwright.as_completed_async([*procs, 1]):
            break
        steps = procwright.as_completed_async([1, procs[0]], timeout=0.01)
        assert await steps.__anext__() is procs[0]
        with pytest.raises(TimeoutError, match="1 of 2"):
            await steps.__anext__()
        del steps
        comes_back(before)

    on.run(main())


def test_cancelling_leaves_nothing(on, children):
    async def main():
        (child,) = children(1)
        process = Process(child)
        # What the loop itself needs is there.
        await wait_async([process], timeout=0.001)
        before, readers = descriptors(), on.readers()

        async def steps():
            async for _ in procwright.as_completed_async([process, 1], timeout=LONG):
                pass

        for call in (
            process.wait_async,
            lambda: process.wait_async(LONG, event="reaped"),
            lambda: wait_async([process, 1], "all", timeout=LONG),
            steps,
        ):
            for _ in range(3):
                await on.cancelled(call)
                comes_back(before)
                assert on.readers() == readers
        child.kill()
        assert (await process.wait_async()).signal == signal.SIGKILL
        comes_back(before)
        assert on.readers() == readers

    on.run(main())


def test_many_at_once(on, children):
    async def main():
        procs = children(100)
        processes = [Process(one) for one in procs]

        async def all_of_them():
            waited = await wait_async(processes, "all", timeout=LONG)
            assert waited.pending == []

        async def one_by_one():
            seen = []
            for proc in procs:
                proc.kill()
            async for one in procwright.as_completed_async(processes):
                seen.append(one)
            assert set(seen) == set(processes)

        before = descriptors()
        await on.both(all_of_them, one_by_one)
        comes_back(before)

    on.run(main())


def test_ctrl_c(on, children, when_asleep):
    (child,) = children(1)
    process = Process(child)

    async def main():
        when_asleep(lambda: os.kill(os.getpid(), signal.SIGINT))
        await wait_async([process, 1], "all")

    before = descriptors()
    with pytest.raises(KeyboardInterrupt):
        on.run(main())
    comes_back(before)


def test_without_a_loop(children):
    process = Process(children(1)[0])
    coroutine = process.wait_async()
    before = descriptors()
    with pytest.raises(RuntimeError, match="no event loop"):
        coroutine.send(None)
    comes_back(before)


def test_neither_is_imported(script):
    code = (
        "import sys, procwright\n"
        "procwright.wait, procwright.Process, procwright.wait_async\n"
        "import procwright._async\n"
        "print('asyncio' in sys.modules, 'trio' in sys.modules)\n"
    )
    assert script(code).communicate() == ("False False\n", "")
