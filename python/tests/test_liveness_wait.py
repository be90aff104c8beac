"""Waiting for peers: with signals, on other threads, beside others, on event loops."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time

import pytest
from conftest import comes_back, descriptors
from test_wait_async import on  # noqa: F401 - a fixture

import procwright
from procwright import LivenessMonitor, LivenessToken, Process, WaitTimeout, wait

#: Only against hanging.
LONG = 100


@pytest.fixture(params=["token", "process"])
def watched(request, peers):
    """A peer, and a monitor of its token or of its process."""
    (peer,) = peers()
    if request.param == "process":
        peer.monitor = LivenessMonitor(peer.process)
    # Threads and descriptors that are there for all are there from the first on, and
    # what tests before this one have left would go in the middle of it.
    gc.collect()
    assert wait([peer.monitor], timeout=0).done == []
    return peer


@pytest.fixture
def handler():
    """Sets handlers for the time of the test."""
    before = {}

    def install(number, call):
        before[number] = signal.signal(number, call)

    yield install
    for number, call in before.items():
        signal.signal(number, call)


@pytest.mark.parametrize("timeout", [0, -1, 0.05])
def test_a_timeout(watched, timeout):
    begin = time.monotonic()
    with pytest.raises(WaitTimeout) as caught:
        watched.monitor.wait(timeout)
    assert time.monotonic() - begin >= timeout
    assert caught.value.timeout == timeout
    assert caught.value.pending == (watched.monitor,)
    assert str(watched.process.pid) in str(caught.value)
    assert isinstance(caught.value, TimeoutError)
    with pytest.raises(WaitTimeout) as caught:
        watched.monitor.wait_gone(timeout)
    assert caught.value.pending == (watched.monitor,)
    watched.process.kill()
    assert watched.monitor.wait(float("inf")) == "died"
    # What is over is over, however late one comes.
    assert watched.monitor.wait(timeout) == "died"


def test_who_is_gone_is_not_alive(children):
    # The thread that writes down the end of a process may be later than we are.
    for child in children(50):
        monitor = LivenessMonitor(child)
        child.kill()
        monitor.wait_gone(LONG)
        assert not monitor.alive()


def test_what_is_no_timeout(watched):
    with pytest.raises(procwright.InvalidValue):
        watched.monitor.wait(float("nan"))
    with pytest.raises(TypeError):
        watched.monitor.wait("1")


@pytest.mark.parametrize("how", ["wait", "with a timeout", "wait_gone", "any", "as_completed"])
def test_ctrl_c(watched, when_asleep, how):
    monitor = watched.monitor
    calls = {
        "wait": lambda: monitor.wait(),
        "with a timeout": lambda: monitor.wait(LONG),
        "wait_gone": lambda: monitor.wait_gone(),
        "any": lambda: wait([monitor]),
        "as_completed": lambda: next(procwright.as_completed([monitor])),
    }
    # A wait within reach of handlers keeps what rings it for the next.
    with pytest.raises(WaitTimeout):
        monitor.wait(0.001)
    gc.collect()
    before = descriptors()
    when_asleep(lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        calls[how]()
    comes_back(before)
    assert signal.set_wakeup_fd(-1) == -1
    # And it can be waited for again.
    watched.process.kill()
    assert monitor.wait() == "died"


def test_a_handler_that_returns_ends_no_wait(watched, when_asleep, handler):
    calls = []

    def handle(number, frame):
        calls.append(number)
        # A wait within the wait.
        with pytest.raises(WaitTimeout):
            watched.monitor.wait(0.01)

    handler(signal.SIGUSR1, handle)
    when_asleep(lambda: os.kill(os.getpid(), signal.SIGUSR1))
    # The signal may need longer than a wait.
    while not calls:
        begin = time.monotonic()
        with pytest.raises(WaitTimeout):
            watched.monitor.wait(0.3)
        assert time.monotonic() - begin >= 0.3
    assert calls == [signal.SIGUSR1]


def test_a_storm_of_signals_moves_no_deadline(watched, handler):
    calls = []
    handler(signal.SIGALRM, lambda *_: calls.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        begin = time.monotonic()
        # A deadline that began anew with every signal would never come.
        with pytest.raises(WaitTimeout):
            watched.monitor.wait(0.3)
        assert time.monotonic() - begin >= 0.3
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert calls


def test_handlers_run_while_another_thread_waits(watched, handler):
    said = []
    waiter = threading.Thread(target=lambda: said.append(watched.monitor.wait()))
    handler(signal.SIGUSR1, lambda *_: watched.process.kill())
    waiter.start()
    os.kill(os.getpid(), signal.SIGUSR1)
    # That this thread runs, and ends the peer, is what the waiter waits for: were the
    # interpreter lock held meanwhile, nobody would ever get further.
    waiter.join()
    assert said == ["died"]


@pytest.mark.parametrize("release", [True, False])
def test_many_threads_wait(peers, release):
    (peer,) = peers()
    said = []
    waiters = [
        threading.Thread(target=lambda: said.append(peer.monitor.wait(LONG))) for _ in range(16)
    ]
    for waiter in waiters:
        waiter.start()
    if release:
        peer.do("token.release()")
    else:
        peer.process.kill()
    assert peer.monitor.wait() == ("released" if release else "died")
    for waiter in waiters:
        waiter.join()
    assert set(said) == {"released" if release else "died"}
    assert len(said) == 16


def test_our_own_token_while_we_wait(when_asleep):
    token = LivenessToken()
    monitor = LivenessMonitor(token.invite())
    when_asleep(token.release)
    assert monitor.wait() == "released"


def test_beside_others(peers, children):
    released, killed, alive = peers(3)
    (child,) = children(1)
    cancel = procwright.Cancel()
    monitors = [peer.monitor for peer in (released, killed, alive)]
    everybody = [*monitors, Process(child), child.pid, cancel, LivenessMonitor(child)]
    assert wait(everybody, timeout=0).pending == everybody
    released.do("token.release()")
    assert wait(everybody, "any").done == [released.monitor]
    killed.process.kill()
    assert wait(everybody[1:], "any").done == [killed.monitor]
    steps = procwright.as_completed([*everybody[1:], killed.monitor])
    assert next(steps) is killed.monitor
    cancel.cancel()
    assert next(steps) is cancel
    child.kill()
    assert {next(steps) for _ in range(3)} == {Process(child), child.pid, everybody[-1]}
    with pytest.raises(WaitTimeout) as caught:
        next(procwright.as_completed([alive.monitor], timeout=0))
    assert caught.value.pending == (alive.monitor,)
    called = []
    alive.process.kill()
    done, pending = wait(everybody, "all", callback=called.append)
    assert (set(called), pending) == (set(everybody), [])
    assert done == called
    assert wait(monitors, 2, timeout=0).done == monitors


def test_a_descriptor_for_event_loops(watched):
    import select

    monitor = watched.monitor
    poll = select.poll()
    poll.register(monitor.readiness_fd(), select.POLLIN)
    assert monitor.readiness_fd() == monitor.readiness_fd()
    assert not os.get_inheritable(monitor.readiness_fd())
    assert poll.poll(10) == []
    watched.process.kill()
    # For good: however often it is asked.
    for _ in range(3):
        assert poll.poll() == [(monitor.readiness_fd(), select.POLLIN)]
    # Of a process the descriptor may tell of the end before the word does.
    assert (monitor.confirm(), monitor.alive()) == ("died", False)


def test_the_descriptor_of_one_that_is_gone(peers):
    import select

    (peer,) = peers()
    peer.do("token.release()")
    late = LivenessMonitor(peer.invitation)
    assert select.select([late.readiness_fd()], [], [])[0]


def test_async(on, watched):  # noqa: F811
    monitor = watched.monitor
    before = descriptors()

    async def main():
        before = on.readers()
        with pytest.raises(WaitTimeout):
            await monitor.wait_async(0.01)
        await on.cancelled(monitor.wait_async)
        assert on.readers() == before

        async def waits():
            assert await monitor.wait_async() == "died"
            assert await monitor.wait_async(0) == "died"

        async def kills():
            watched.process.kill()

        await on.both(waits, kills)
        assert on.readers() == before
        async for one in procwright.as_completed_async([monitor]):
            assert one is monitor
        assert (await procwright.wait_async([monitor])).done == [monitor]

    on.run(main())
    comes_back(before)


def test_many_tasks_wait_for_one(on, peers):  # noqa: F811
    (peer,) = peers()
    said = []

    async def waits():
        said.append(await peer.monitor.wait_async(LONG))

    async def all_of_them():
        await on.both(waits, waits)

    async def kills():
        peer.process.kill()

    async def main():
        await on.both(all_of_them, kills)

    on.run(main())
    assert said == ["died"] * 2
