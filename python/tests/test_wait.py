"""Waiting for one, many, any, all and the first few."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import comes_back, descriptors

import procwright
from procwright import Process, wait, wait_procs

#: Only against hanging.
LONG = 100


def test_any(children):
    procs = children(3)
    procs[1].kill()
    done, pending = waited = wait(procs, "any", timeout=LONG)
    assert (done, pending) == ([procs[1]], [procs[0], procs[2]])
    assert waited.done is done
    assert waited.pending is pending
    assert isinstance(waited, procwright.Waited)


def test_all_in_the_order_of_their_ends(children, when_asleep):
    procs = children(3)

    def end():
        for at in (2, 0, 1):
            procs[at].kill()
            Process(procs[at]).wait(LONG)

    when_asleep(end)
    seen = []
    waited = wait(procs, callback=seen.append)
    assert waited.done == [procs[2], procs[0], procs[1]] == seen
    assert waited.pending == []


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("callback", [None, lambda one: None])
def test_the_first_few(children, count, callback):
    procs = children(4)
    for one in procs[1:]:
        one.kill()
    for one in procs[1:]:
        Process(one).wait(LONG)
    waited = wait(procs, count, callback=callback)
    assert len(waited.done) == count
    assert procs[0] in waited.pending
    assert len(wait(procs, 3).done) == 3
    procs[0].kill()
    assert len(wait(procs, 10**30).done) == 4
    assert wait(procs, 3, timeout=0).pending


def test_a_timeout_tells_who_has_ended(children):
    procs = children(3)
    procs[0].kill()
    Process(procs[0]).wait(LONG)
    begin = time.monotonic()
    waited = wait(procs, "all", timeout=0.2)
    assert time.monotonic() - begin >= 0.2
    assert waited == ([procs[0]], [procs[1], procs[2]])


def test_nothing_to_wait_for():
    for mode in ("any", "all", 3):
        assert wait([], mode) == ([], [])
    assert list(procwright.as_completed([])) == []
    assert wait(iter([])) == ([], [])


def test_who_ended_before_counts(children):
    procs = children(3)
    for one in procs[:2]:
        one.kill()
        Process(one).wait(LONG)
    procs[0].wait()
    assert wait(procs, timeout=0).done == procs[:2]
    assert wait(procs, timeout=-3, mode="all") == (procs[:2], procs[2:])


def test_what_is_given_twice_counts_once(children):
    one, two = children(2)
    process = Process(one)
    one.kill()
    given = [one, process, one, process, one.pid, one.pid, process.id, two]
    waited = wait(given, 4, timeout=LONG)
    assert sorted(map(str, waited.done)) == sorted(map(str, [one, process, one.pid, process.id]))
    assert waited.pending == [two]


@pytest.mark.parametrize("mode", [0, -1, True, False, "most", None, 1.5, "1"])
def test_bad_modes(mode):
    with pytest.raises(procwright.InvalidValue, match="mode is"):
        wait([], mode)


def test_bad_values(child, tmp_path):
    before = descriptors()
    with pytest.raises(procwright.InvalidValue, match=r"^timeout is nan: "):
        wait([os.getpid()], timeout=float("nan"))
    with pytest.raises(procwright.InvalidValue, match="event is 'ended'"):
        wait([os.getpid()], event="ended")
    with pytest.raises(TypeError, match=r"^procs is .*: pass \["):
        wait("123")
    with pytest.raises(TypeError, match=r"pass \["):
        wait(Process(os.getpid()))
    with pytest.raises(TypeError, match=r"^callback is 3: "):
        wait([os.getpid()], callback=3)
    with pytest.raises(TypeError, match="timeout is '3'"):
        wait([os.getpid()], timeout="3")
    for what in (True, 1.5, None, object()):
        with pytest.raises(TypeError):
            wait([what], timeout=0)
    for what in (0, -1, 2**31, 10**30, "", "12:", "+1", "1:x"):
        with pytest.raises(procwright.InvalidValue):
            wait([what], timeout=0)
    with (
        (tmp_path / "file").open("w") as file,
        pytest.raises(procwright.InvalidValue, match="disk"),
    ):
        wait([file], timeout=0)
    closed = socket.socket()
    closed.close()
    with pytest.raises(procwright.InvalidValue, match="is closed"):
        wait([closed], timeout=0)
    with pytest.raises(procwright.NoSuchProcess):
        wait([os.getpid(), 2**22 + 1], timeout=0)
    comes_back(before)


def test_other_things_than_processes(children):
    (proc,) = children(1)
    ours, theirs = socket.socketpair()
    cancel = procwright.Cancel()
    with ours, theirs:
        things = [proc, ours, cancel]
        assert wait(things, timeout=0.01).done == []
        theirs.send(b"x")
        assert wait(things, "any") == ([ours], [proc, cancel])
        cancel.cancel()
        assert wait([proc, cancel], "any").done == [cancel]
        assert wait(things, 2).pending == [proc]
        # It is a duplicate that was watched: what is there to read is there still.
        assert ours.recv(10) == b"x"


def test_a_cancel_ends_a_wait(children, when_asleep):
    procs = children(2)
    cancel = procwright.Cancel()
    when_asleep(cancel.cancel)
    assert wait([*procs, cancel], mode="any").done == [cancel]


def test_what_a_callback_raises(children):
    (one, two) = children(2)
    one.kill()
    before = descriptors()
    with pytest.raises(ZeroDivisionError):
        wait([one, two], "all", callback=lambda one: 1 / 0)
    comes_back(before)


def test_as_completed(children):
    procs = children(3)
    order = []
    procs[2].kill()
    for one in procwright.as_completed(procs, timeout=LONG):
        order.append(one)
        assert Process(one).returncode == -signal.SIGKILL
        for other in (procs[0], procs[1]):
            if other not in order:
                other.kill()
                break
    assert order == [procs[2], procs[0], procs[1]]


def test_as_completed_in_time(children):
    before = descriptors()
    procs = children(3)
    procs[1].kill()
    Process(procs[1]).wait(LONG)
    begin = time.monotonic()
    steps = procwright.as_completed(procs, timeout=0.2)
    assert next(steps) is procs[1]
    with pytest.raises(TimeoutError, match="2 of 3") as caught:
        next(steps)
    assert time.monotonic() - begin >= 0.2
    assert caught.value.pending == (procs[0], procs[2])
    procs[0].kill()
    Process(procs[0]).wait(LONG)
    with pytest.raises(TimeoutError, match="2 of 3"):
        next(steps)
    comes_back(before)
    with pytest.raises(TypeError):
        procwright.as_completed(3)
    with pytest.raises(procwright.InvalidValue):
        procwright.as_completed([], timeout=float("nan"))


@pytest.mark.parametrize("timeout", [0, 0.0, -0.0, 0.0009, 1e-300, -1, -(10**400), float("-inf")])
def test_timeouts_that_come(children, timeout):
    process = Process(children(1)[0])
    begin = time.monotonic()
    with pytest.raises(procwright.WaitTimeout) as caught:
        process.wait(timeout)
    assert time.monotonic() - begin >= min(timeout, 1)
    assert caught.value.timeout == timeout
    assert caught.value.pending == (process,)
    assert wait([process], timeout=timeout) == ([], [process])


@pytest.mark.parametrize("timeout", [None, float("inf"), 25 * 86400, 1e300, 10**400, 2**63])
def test_timeouts_that_do_not_come(children, when_asleep, timeout):
    (proc,) = children(1)
    when_asleep(proc.kill)
    assert Process(proc).wait(timeout).signal == signal.SIGKILL


def test_many(children):
    procs = children(300)
    before = descriptors()
    threads = len(os.listdir("/proc/self/task"))
    processes = [Process(one) for one in procs]
    procs[123].kill()
    assert wait(processes, "any", timeout=LONG).done == [processes[123]]
    assert wait(processes, timeout=0.01, mode="all").done == [processes[123]]
    for one in procs:
        one.kill()
    seen = []
    waited = wait(processes, "all", timeout=LONG, callback=seen.append)
    assert waited.pending == []
    assert waited.done == seen
    assert set(seen) == set(processes)
    assert {one.returncode for one in processes} == {-signal.SIGKILL}
    # Else the watchdog comes: those of earlier tests go by themselves.
    while len(os.listdir("/proc/self/task")) > threads:
        os.sched_yield()
    del processes, seen, waited
    comes_back(before)


def test_a_wait_sleeps(script, child):
    # Counted in a process of its own, where no other thread takes the lock.
    code = (
        "import resource, subprocess, sys, procwright\n"
        "child = subprocess.Popen([sys.argv[1], 'sleep-forever'])\n"
        "def count():\n"
        "    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw\n"
        "procwright.wait([child], timeout=0.01)\n"
        "for wait in (lambda: procwright.wait([child] * 3, 'all', timeout=3),\n"
        "             lambda: procwright.wait_procs([child], timeout=3)):\n"
        "    before = count()\n"
        "    wait()\n"
        "    print(count() - before)\n"
        "stats = procwright.wait_stats()\n"
        "print(stats['looks'], stats['served']['polling'])\n"
        "child.kill(); child.wait()\n"
    )
    out, err = script(code, child).communicate()
    assert err == ""
    *switches, looks, polled = map(int, out.split())
    # One to sleep and one for the end. A poll would have dozens.
    assert max(switches) <= 10
    assert (looks, polled) == (0, 0)


def test_stats(children):
    (proc,) = children(1)
    before = procwright.wait_stats()["served"]["pidfd"]
    proc.kill()
    wait([proc], timeout=LONG)
    stats = procwright.wait_stats()
    assert stats["served"]["pidfd"] >= before + 1
    assert stats["looks"] == 0


def test_threads_that_wait_for_the_same(children):
    procs = children(4)
    processes = [Process(one) for one in procs]
    ready = threading.Barrier(17)

    def one(number):
        ready.wait()
        if number % 2:
            return wait(processes, "all").done
        return [process for process in processes if process.wait()]

    with ThreadPoolExecutor(16) as pool:
        found = [pool.submit(one, number) for number in range(16)]
        ready.wait()
        for proc in procs:
            proc.kill()
        for future in found:
            assert set(future.result()) == set(processes)
    assert [proc.wait() for proc in procs] == [-signal.SIGKILL] * 4


def test_a_socket_closed_meanwhile(when_asleep):
    ours, theirs = socket.socketpair()
    when_asleep(lambda: [ours.close(), theirs.close()])
    # The duplicate sees the end of the stream.
    assert wait([ours]).done == [ours]


def test_no_descriptor_is_left(script, child):
    code = (
        "import os, resource, subprocess, sys, procwright\n"
        "child = subprocess.Popen([sys.argv[1], 'sleep-forever'])\n"
        "process = procwright.Process(child)\n"
        "procwright.wait([process], timeout=0)\n"
        "taken = []\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "try:\n"
        "    while True: taken.append(os.dup(0))\n"
        "except OSError: pass\n"
        "try: procwright.wait([process], timeout=0)\n"
        "except OSError as error: print(error.errno)\n"
        "child.kill()\n"
        "for fd in taken: os.close(fd)\n"
        "print(process.wait().signal, child.wait())\n"
    )
    out, err = script(code, child, stdin=subprocess.DEVNULL).communicate()
    assert (out, err) == ("24\n9 -9\n", "")


def test_errors_name_the_value(children):
    (child,) = children(1)
    process = Process(child)
    calls = (process.wait, lambda t: wait([child], timeout=t), lambda t: wait_procs([child], t))
    for call in calls:
        with pytest.raises(TypeError, match="timeout is '5'"):
            call("5")
    with pytest.raises(TypeError, match=r"^sig is 1\.5: "):
        process.send_signal(1.5)


@pytest.mark.parametrize("bad", ["bad", 2**31 - 1, object()])
def test_an_exception_keeps_no_descriptors(children, bad):
    procs = children(3)
    before = descriptors()
    for call in (wait, procwright.as_completed, procwright.wait_procs):
        try:
            call([*procs, bad])
        except (ValueError, TypeError, ProcessLookupError) as error:
            # Its traceback has the frames, and those the wait.
            kept = error
            assert kept.__traceback__ is not None
            comes_back(before)


def test_the_value_of_a_wait():
    waited = procwright.Waited([1], [2, 3])
    assert repr(waited) == "Waited(done=[1], pending=[2, 3])"
    again = pickle.loads(pickle.dumps(waited))
    assert type(again) is procwright.Waited
    assert again == waited == ([1], [2, 3])
    match waited:
        case procwright.Waited(done, pending=rest):
            assert (done, rest) == ([1], [2, 3])
