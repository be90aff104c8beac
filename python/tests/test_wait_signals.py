"""Signals while a wait is under way."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from conftest import comes_back, descriptors

import procwright
from procwright import Process, wait

#: Only against hanging.
LONG = 100


@pytest.fixture
def handler():
    """Sets handlers for the time of the test."""
    before = {}

    def install(number, call):
        before[number] = signal.signal(number, call)

    yield install
    for number, call in before.items():
        signal.signal(number, call)


WAITS = {
    "Process.wait": lambda process: process.wait(),
    "any": lambda process: wait([process], "any"),
    "all": lambda process: wait([process]),
    "with a callback": lambda process: wait([process, 1], "all", callback=print),
    "with a timeout": lambda process: wait([process], timeout=LONG),
    "as_completed": lambda process: next(procwright.as_completed([process])),
    "wait_procs": lambda process: procwright.wait_procs([process]),
    "reaped": lambda process: process.wait(event="reaped"),
}


@pytest.mark.parametrize("what", WAITS)
def test_ctrl_c(children, when_asleep, what):
    (child,) = children(1)
    process = Process(child)
    # What tests before this one have left would go in the middle of it.
    gc.collect()
    before = descriptors()
    when_asleep(lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        WAITS[what](process)
    comes_back(before)
    assert signal.set_wakeup_fd(-1) == -1
    # And it can be waited for again.
    child.kill()
    assert process.wait().signal == signal.SIGKILL


def test_ctrl_c_ends_the_grace_of_a_stop(child, when_asleep):
    stubborn = subprocess.Popen(
        [child, "ignore-term", "--print-ready"], stdout=subprocess.PIPE, text=True
    )
    with stubborn:
        assert stubborn.stdout.readline().startswith("ready")
        before = descriptors()
        when_asleep(lambda: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            Process(stubborn).stop(procwright.Stop(grace=float("inf")))
        assert stubborn.wait() == -signal.SIGKILL
        assert signal.set_wakeup_fd(-1) == -1
        del before[stubborn.stdout.fileno()]
        stubborn.stdout.close()
    comes_back(before)


def test_a_handler_that_returns(children, when_asleep, handler):
    child, other = children(2)
    calls = []

    def handle(number, frame):
        calls.append(number)
        # A wait within a wait.
        assert wait([other], timeout=0.01).pending == [other]
        child.kill()

    handler(signal.SIGUSR1, handle)
    when_asleep(lambda: os.kill(os.getpid(), signal.SIGUSR1))
    assert wait([child, other], "any").done == [child]
    assert calls == [signal.SIGUSR1]


def test_a_handler_that_returns_does_not_end_the_wait(children, when_asleep, handler):
    process = Process(children(1)[0])
    calls = []
    handler(signal.SIGUSR1, lambda *_: calls.append(1))
    when_asleep(lambda: os.kill(os.getpid(), signal.SIGUSR1))
    # The signal may need longer than a wait.
    while not calls:
        begin = time.monotonic()
        with pytest.raises(procwright.WaitTimeout):
            process.wait(0.3)
        assert time.monotonic() - begin >= 0.3
    assert calls == [1]


def test_a_storm_of_signals_moves_no_deadline(children, handler):
    procs = children(2)
    calls = []
    handler(signal.SIGALRM, lambda *_: calls.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        for call in (wait, procwright.wait_procs):
            begin = time.monotonic()
            # A deadline that began anew with every signal would never come.
            done, pending = call(procs, timeout=0.3)
            assert time.monotonic() - begin >= 0.3
            assert (done, pending) == ([], procs)
        procs[0].kill()
        assert wait(procs, "any").done == [procs[0]]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert len(calls) > 1


def test_a_signal_that_nobody_handles(children, script, child):
    code = (
        "import signal, sys, procwright\n"
        "print('ready', flush=True)\n"
        "procwright.Process(int(sys.argv[1])).wait()\n"
    )
    (theirs,) = children(1)
    waiter = script(code, str(theirs.pid))
    assert waiter.stdout.readline() == "ready\n"
    waiter.terminate()
    assert waiter.wait() == -signal.SIGTERM


def test_the_wakeup_descriptor_of_others(children, when_asleep, handler):
    (child,) = children(1)
    handler(signal.SIGUSR1, lambda *_: child.kill())
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        signal.set_wakeup_fd(theirs.fileno())
        try:
            when_asleep(lambda: os.kill(os.getpid(), signal.SIGUSR1))
            assert wait([child]).done == [child]
        finally:
            assert signal.set_wakeup_fd(-1) == theirs.fileno()
        assert ours.recv(10) == bytes([signal.SIGUSR1])


def test_a_wakeup_descriptor_that_was_closed_meanwhile(children, when_asleep, handler):
    (child,) = children(1)
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)

    def handle(number, frame):
        theirs.close()
        child.kill()

    handler(signal.SIGUSR1, handle)
    signal.set_wakeup_fd(theirs.fileno())
    try:
        when_asleep(lambda: os.kill(os.getpid(), signal.SIGUSR1))
        assert wait([child]).done == [child]
    finally:
        assert signal.set_wakeup_fd(-1) == -1
        ours.close()


def test_a_handler_that_takes_the_wakeup_descriptor(children, when_asleep, handler):
    (child,) = children(1)

    def handle(number, frame):
        # As the closing of an event loop with signal handlers does.
        signal.set_wakeup_fd(-1)
        when_asleep(lambda: os.kill(os.getpid(), signal.SIGUSR2))

    handler(signal.SIGUSR1, handle)
    handler(signal.SIGUSR2, lambda *_: child.kill())
    when_asleep(lambda: os.kill(os.getpid(), signal.SIGUSR1))
    assert wait([child], timeout=LONG).done == [child]
    assert signal.set_wakeup_fd(-1) == -1


def test_ctrl_c_at_the_moment_of_an_end(children):
    procs = children(2)
    steps = procwright.as_completed(procs, timeout=LONG)
    procs[0].kill()

    def interrupt(frame, event, called):
        # Where a signal is handled that came while the wait was ending.
        if event == "c_return" and called.__name__ == "wait":
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            next(steps)
    finally:
        sys.setprofile(None)
    procs[1].kill()
    assert list(steps) == procs


def test_on_another_thread(children, when_asleep, handler):
    (child,) = children(1)
    calls = []
    handler(signal.SIGUSR1, lambda *_: calls.append(threading.current_thread()))
    found = []
    thread = threading.Thread(target=lambda: found.append(wait([child], timeout=LONG).done))
    thread.start()
    woken = threading.Event()

    def disturb():
        signal.pthread_kill(thread.ident, signal.SIGUSR1)
        woken.set()

    when_asleep(disturb, thread.native_id)
    woken.wait()
    while not calls:
        os.sched_yield()
    assert calls == [threading.main_thread()]
    child.kill()
    thread.join()
    assert found == [[child]]


def test_a_handler_may_not_step_the_iterator_that_waits(children, when_asleep, handler):
    (child,) = children(1)
    steps = procwright.as_completed([child])
    handler(signal.SIGUSR1, lambda *_: next(steps))
    when_asleep(lambda: os.kill(os.getpid(), signal.SIGUSR1))
    with pytest.raises(RuntimeError, match="waits for this already"):
        next(steps)
    child.kill()
    assert next(steps) is child
