"""The right to clean up after a dead peer, which one survivor has at a time."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time

import pytest

import procwright
from procwright import LivenessError, LivenessMonitor, LivenessToken

#: Only against hanging.
LONG = 100


@pytest.fixture
def dead(peers):
    """A peer that was killed."""
    (peer,) = peers()
    peer.process.kill()
    assert peer.monitor.wait(LONG) == "died"
    return peer


def test_there_is_nothing_to_clean_up_after_who_has_not_died(peers):
    (peer,) = peers()
    with peer.monitor.claim() as claim:
        assert not claim
        assert claim.kind == "alive"
        for call in (claim.done, claim.give_back):
            with pytest.raises(ValueError, match="not ours"):
                call()
    peer.do("token.release()")
    assert peer.monitor.claim(LONG).kind == "released"
    assert "released" in repr(peer.monitor.claim())


def test_one_has_it_until_it_is_done(dead):
    other = LivenessMonitor(dead.invitation)
    with dead.monitor.claim() as claim:
        assert claim
        assert claim.kind == "ours"
        for asks in (dead.monitor, other):
            assert asks.claim().kind == "theirs"
            assert asks.claim(0.01).kind == "theirs"
            assert asks.claim(-1).kind == "theirs"
    for asks in (dead.monitor, other, LivenessMonitor(dead.invitation)):
        assert asks.claim(LONG).kind == "done"
        assert not asks.claim()
    with pytest.raises(ValueError, match="given back, or used"):
        claim.done()


def test_given_back(dead):
    claim = dead.monitor.claim()
    claim.give_back()
    # By an exception out of the block.
    claim = dead.monitor.claim()
    assert claim
    with pytest.raises(ZeroDivisionError), claim:
        raise ZeroDivisionError
    # It says what it is, and what it was.
    assert not claim
    assert claim.kind == "ours"
    assert "ours, over" in repr(claim)
    # By nobody having it any more.
    claim = dead.monitor.claim()
    assert claim
    del claim
    claim = dead.monitor.claim()
    assert claim
    claim.done()
    assert dead.monitor.claim().kind == "done"


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("main", [True, False])
def test_waiting_for_somebody_else(dead, done, main):
    claim = dead.monitor.claim()
    asked = threading.Event()

    def end():
        asked.wait()
        (claim.done if done else claim.give_back)()

    kinds = []

    def ask():
        asked.set()
        kinds.append(LivenessMonitor(dead.invitation).claim(None).kind)

    jobs = [ask, end] if main else [end, ask]
    thread = threading.Thread(target=jobs[1])
    thread.start()
    jobs[0]()
    thread.join()
    assert kinds == ["done" if done else "ours"]


def asleep():
    """Whether somebody asks for the main thread."""
    named = [one for one in threading.enumerate() if one.name == "procwright-asleep"]
    return any(one.is_alive() for one in named)


def sleeps_on_a_futex(task):
    with open(f"/proc/self/task/{task}/syscall") as file:
        return file.read().split()[0] in ("202", "98")  # x86-64, aarch64


def test_ctrl_c(dead):
    claim = dead.monitor.claim()
    thread, task = threading.get_ident(), threading.get_native_id()
    heard = threading.Event()

    def raise_once(number, frame):
        if not heard.is_set():
            heard.set()
            raise KeyboardInterrupt

    def interrupt():
        while not asleep() or not sleeps_on_a_futex(task):
            os.sched_yield()
        # A signal that comes right before the sleep of a join is heard by the next one: the
        # interpreter looks for signals, and sleeps then. It may sleep for its lock as well.
        while not heard.is_set():
            signal.pthread_kill(thread, signal.SIGINT)
            heard.wait(0.1)

    before = signal.signal(signal.SIGINT, raise_once)
    helper = threading.Thread(target=interrupt)
    helper.start()
    with pytest.raises(KeyboardInterrupt):
        dead.monitor.claim(None)
    helper.join()
    signal.signal(signal.SIGINT, before)
    claim.give_back()
    # What that thread got it has given back, so that it is to be had.
    last = dead.monitor.claim(None)
    assert last
    last.done()
    while asleep():
        os.sched_yield()


def claims(invitation, connection):
    """A worker: asks, says what it got, and goes on as it is told to."""
    monitor = LivenessMonitor(invitation)
    while connection.recv() == "ask":
        claim = monitor.claim(None)
        connection.send(claim.kind)
        if claim and connection.recv() == "done":
            claim.done()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_who_dies_with_it_leaves_it_to_exactly_one_other(dead):
    context = multiprocessing.get_context("fork")
    workers = []
    for _ in range(6):
        ours, theirs = context.Pipe()
        worker = context.Process(target=claims, args=(dead.invitation, theirs))
        worker.start()
        theirs.close()
        workers.append((worker, ours))
    for _, connection in workers:
        connection.send("ask")
    for left in range(6, 0, -1):
        ready = multiprocessing.connection.wait([connection for _, connection in workers])
        assert len(ready) == 1
        (winner,) = [one for one in workers if one[1] is ready[0]]
        assert winner[1].recv() == "ours"
        workers.remove(winner)
        if left > 2:
            winner[0].kill()
        else:
            winner[1].send("done")
            break
        winner[0].join()
    assert [connection.recv() for _, connection in workers] == ["done"] * len(workers)
    for worker, connection in [*workers, winner]:
        connection.send("enough")
        worker.join()
        assert worker.exitcode == 0


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_has_no_part_in_a_right(dead):
    claim = dead.monitor.claim()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(LONG)
            claim.done()
            assert dead.monitor.claim().kind == "theirs"
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert dead.monitor.claim().kind == "theirs"
    claim.done()
    assert dead.monitor.claim().kind == "done"


def test_who_watches_a_process_has_nobody_to_agree_with(children):
    (child,) = children(1)
    with pytest.raises(LivenessError) as caught:
        LivenessMonitor(child).claim()
    assert caught.value.reason == "unsupported"
    assert "of a process" in str(caught.value)
    # That is what it is.
    assert "monitor the process instead" not in str(caught.value)
    with LivenessToken() as token:
        monitor = LivenessMonitor(token.invite())
        with pytest.raises(procwright.InvalidValue):
            monitor.claim(float("nan"))


def is_procwright(frame):
    return os.path.dirname(frame.f_code.co_filename) == os.path.dirname(procwright.__file__)


def interrupted(call):
    """Calls, and has the signal handler of a timer raise in the call.

    Not in a finaliser that runs meanwhile, where it would be lost.
    """

    def ring(number, frame):
        ours = {__file__, threading.__file__}
        while frame.f_code.co_filename in ours or is_procwright(frame):
            if frame.f_code is interrupted.__code__:
                raise KeyboardInterrupt
            frame = frame.f_back

    before = signal.signal(signal.SIGALRM, ring)
    try:
        # Again after a second, should the first be lost: sooner it could ring behind the call.
        signal.setitimer(signal.ITIMER_REAL, 0.002, 1.0)
        with pytest.raises(KeyboardInterrupt):
            call()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)


def until(happened):
    while not happened():
        time.sleep(0.001)


def test_who_was_interrupted_takes_no_right(dead):
    """Nobody is left asleep behind the call, and takes the right later."""
    other = LivenessMonitor(dead.invitation)
    claim = dead.monitor.claim()
    before = len(os.listdir("/proc/self/task"))
    for _ in range(30):
        interrupted(lambda: other.claim(None))
    # Before the right is free, which would wake those that are asleep.
    until(lambda: len(os.listdir("/proc/self/task")) <= before)
    claim.give_back()
    for _ in range(5):
        claim = dead.monitor.claim()
        assert claim.kind == "ours"
        claim.give_back()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_who_was_interrupted_in_a_fork_leaves_no_thread(peers):
    (peer,) = peers()
    peer.monitor.readiness_fd()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            before = len(os.listdir("/proc/self/task"))
            for _ in range(20):
                interrupted(peer.monitor.wait)
            # The watchdog is no thread of the fork.
            signal.alarm(100)
            # A fork has one thread for all of them, which watches the process.
            until(lambda: len(os.listdir("/proc/self/task")) <= before + 1)
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
