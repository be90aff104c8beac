"""Liveness on asyncio, asyncio with uvloop, and trio."""

from __future__ import annotations

import gc
import os
import pickle
import threading

import pytest
from conftest import LOOPS, comes_back, descriptors

import procwright
from procwright import WaitTimeout

anyio = pytest.importorskip("anyio")
from loops import LONG, CancelsAt, awaited, without_a_loop  # noqa: E402

from procwright import aio  # noqa: E402


@pytest.fixture(params=["blocking", *LOOPS])
def watches(request):
    """Runs a function with a class of monitors whose waits are awaited: those that block by
    themselves, and those of each event loop."""
    if request.param == "blocking":

        def watch(peer):
            return awaited(procwright.LivenessMonitor(peer), "wait", "wait_gone", "claim")

        return lambda main: without_a_loop(main(watch))
    pytest.importorskip(request.param)
    return lambda main: anyio.run(main, aio.LivenessMonitor, **LOOPS[request.param])


@pytest.mark.parametrize("of", ["token", "process"])
def test_a_peer_that_dies(watches, peers, of):
    (peer,) = peers()

    async def main(watch):
        monitor = watch(peer.invitation if of == "token" else peer.process)
        assert monitor.alive()
        assert monitor.state() == monitor.confirm() == "alive"
        assert monitor.process.pid == peer.process.pid
        for timeout in (0, -1, 0.01):
            for wait in (monitor.wait, monitor.wait_gone):
                with pytest.raises(WaitTimeout) as raised:
                    await wait(timeout)
                assert raised.value.timeout == timeout
                (pending,) = raised.value.pending
                assert type(pending).__name__ == "LivenessMonitor"
        with pytest.raises(procwright.InvalidValue):
            await monitor.wait(float("nan"))
        peer.process.kill()
        assert await monitor.wait() == "died"
        await monitor.wait_gone(LONG)
        assert await monitor.wait(0) == "died"
        assert not monitor.alive()

    watches(main)


def test_a_token_that_is_released(watches, peers):
    (peer,) = peers()

    async def main(watch):
        monitor = watch(peer.invitation)
        peer.do("token.release()")
        assert await monitor.wait(LONG) == "released"
        assert (await monitor.claim()).kind == "released"
        # Its process goes on.
        with pytest.raises(WaitTimeout):
            await monitor.wait_gone(0.01)

    watches(main)


def test_the_right_to_clean_up(watches, peers):
    (peer,) = peers()

    async def main(watch):
        one, other = watch(peer.invitation), watch(peer.invitation)
        assert (await one.claim()).kind == "alive"
        peer.process.kill()
        await one.wait()
        with await one.claim() as claim:
            assert claim
            assert (await other.claim()).kind == "theirs"
            assert (await other.claim(0.01)).kind == "theirs"
        assert (await other.claim(LONG)).kind == "done"

    watches(main)


def test_it_is_waited_for_with_others(on, peers):
    stays, lets_go = peers(2)

    async def main():
        monitors = [aio.LivenessMonitor(peer.invitation) for peer in (stays, lets_go)]
        lets_go.tell("token.release()")
        # It is the token that is waited for: the process lives on.
        assert (await aio.wait(monitors, "any")).done == [monitors[1]]
        assert lets_go.process.poll() is None

    on(main)


def test_wherever_one_comes_from(on):
    async def main():
        async with aio.spawn(["sleep", "1000"]) as child:
            monitor = child.monitor()
            assert isinstance(monitor, aio.LivenessMonitor)
            assert aio.LivenessMonitor(monitor.monitor).alive()
            copy = pickle.loads(pickle.dumps(monitor))
            assert copy.process == monitor.process == child.process
            assert "procwright.aio.LivenessMonitor of process" in repr(monitor)
            assert monitor.guarantee().names == "process"
            child.kill()
            assert await copy.wait(LONG) == "died"
        with pytest.raises(procwright.LivenessError):
            aio.LivenessMonitor.of_parent()

    on(main)


def test_a_cancelled_wait_changes_nothing(on, peers):
    (peer,) = peers()
    monitor = aio.LivenessMonitor(peer.invitation)

    async def waits():
        # What has no timeout of its own is suspended at least once, however slow the machine.
        for wait in (monitor.wait, monitor.wait_gone):
            with anyio.move_on_after(0.01):
                await wait()

    def cancelled_at_every_suspension(waits):
        async def at(n):
            with anyio.CancelScope() as scope:
                await CancelsAt(waits(), scope.cancel, n)
            return scope.cancel_called

        on(at, 0)
        gc.collect()
        before, threads = descriptors(), threading.active_count()
        n = 1
        while on(at, n):
            n += 1
            assert n < 1000
        assert n > 1
        comes_back(before)
        while threading.active_count() > threads:
            os.sched_yield()

    cancelled_at_every_suspension(waits)
    assert monitor.alive()
    peer.process.kill()
    assert monitor.monitor.wait() == "died"

    async def asks():
        with anyio.move_on_after(0.01):
            await monitor.claim(None)

    with procwright.LivenessMonitor(peer.invitation).claim() as claim:
        assert claim
        cancelled_at_every_suspension(asks)


def test_a_right_that_came_with_a_cancellation_is_given_back(on, peers):
    (peer,) = peers()
    peer.process.kill()
    first = procwright.LivenessMonitor(peer.invitation)
    assert first.wait() == "died"

    async def main():
        monitor = aio.LivenessMonitor(peer.invitation)
        claim = first.claim()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(monitor.claim, None)
            await anyio.wait_all_tasks_blocked()
            claim.give_back()
            tasks.cancel_scope.cancel()
        assert (await monitor.claim(LONG)).kind == "ours"

    on(main)
