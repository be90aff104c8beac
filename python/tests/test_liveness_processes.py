"""Liveness across forks, through multiprocessing, and between parent and child."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import warnings
from concurrent.futures import ProcessPoolExecutor

import pytest

import procwright
from procwright import LivenessError, LivenessMonitor, LivenessToken, Process, spawn, wait

#: Only against hanging.
LONG = 100

METHODS = ["fork", "spawn", "forkserver"]

a_fork_with_threads = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def watch_each_other(invitation, connection):
    """A worker: watches who has started it, and lets itself be watched."""
    monitor = LivenessMonitor(invitation)
    with LivenessToken() as token:
        connection.send(token.invite())
        assert connection.recv() == "accepted"
        connection.send((os.getpid(), monitor.process.pid, monitor.state()))
        connection.send(monitor.wait())
        connection.recv()


@a_fork_with_threads
@pytest.mark.parametrize("method", METHODS)
def test_as_an_argument_and_through_a_connection(method):
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    token = LivenessToken()
    args = (token.invite(), theirs)
    worker = context.Process(target=watch_each_other, args=args)
    worker.start()
    monitor = LivenessMonitor(ours.recv())
    ours.send("accepted")
    pid, parent, state = ours.recv()
    assert (pid, parent, state) == (worker.pid, os.getpid(), "alive")
    assert monitor.process.pid == pid
    assert monitor.alive()
    token.release()
    assert ours.recv() == "released"
    worker.kill()
    assert monitor.wait(LONG) == "died"
    assert wait([worker, monitor], "all").pending == []
    worker.join()


def hand_back(invitation, connection):
    invitation.send(connection)
    connection.recv()


@a_fork_with_threads
@pytest.mark.parametrize("method", METHODS)
def test_over_the_socket_of_a_connection(method):
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    with LivenessToken() as token:
        worker = context.Process(target=hand_back, args=(token.invite(), theirs))
        worker.start()
        monitor = LivenessMonitor(procwright.LivenessInvitation.receive(ours))
        assert monitor.process == Process(os.getpid())
        ours.send("done")
        worker.join()
        assert worker.exitcode == 0
        # However many have had the invitation and are gone.
        assert monitor.alive()


def look(invitation):
    return LivenessMonitor(invitation).state(), os.getpid()


def invite():
    global _kept
    _kept = LivenessToken()
    return _kept.invite()


@a_fork_with_threads
@pytest.mark.parametrize("method", METHODS)
def test_in_a_pool(method):
    context = multiprocessing.get_context(method)
    with LivenessToken() as token, ProcessPoolExecutor(2, context) as pool:
        invitation = token.invite()
        seen = list(pool.map(look, [invitation] * 8))
        assert {state for state, _ in seen} == {"alive"}
        # And the other way, by a thread of multiprocessing's in the worker.
        workers = [LivenessMonitor(pool.submit(invite).result()) for _ in range(2)]
        assert all(worker.process.pid != os.getpid() for worker in workers)
    assert LivenessMonitor(invitation).state() == "released"


def watch_by_identity(monitor, connection):
    connection.send(monitor.state())
    connection.send(monitor.wait())


@a_fork_with_threads
@pytest.mark.parametrize("method", METHODS)
def test_a_monitor_of_a_process_as_an_argument(method, children):
    (child,) = children(1)
    monitor = LivenessMonitor(child)
    if ":" not in monitor.process.id and method != "fork":
        pytest.skip("processes have no inodes here")
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    worker = context.Process(target=watch_by_identity, args=(monitor, theirs))
    worker.start()
    assert ours.recv() == "alive"
    child.kill()
    assert ours.recv() == "died"
    worker.join()


def in_a_fork(do):
    """Runs it in a fork, and gives back how that ended."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            # Against hanging: it ends the fork.
            signal.alarm(LONG)
            do()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


@a_fork_with_threads
@pytest.mark.parametrize("holder", ["process", "thread"])
@pytest.mark.parametrize("who", ["the main thread", "another"])
def test_a_fork_has_no_part_in_a_token(holder, who):
    token = LivenessToken(holder)
    other = LivenessToken(holder)
    monitor = LivenessMonitor(token.invite())

    def do():
        nonlocal other
        assert monitor.alive()
        with pytest.raises(LivenessError) as caught:
            token.invite()
        assert caught.value.reason == "forked"
        token.release()
        del other
        assert monitor.alive()
        # It may have one of its own.
        for kind in ("process", "thread"):
            with LivenessToken(kind) as own:
                of_own = LivenessMonitor(own.invite())
                assert of_own.alive()
                assert of_own.process == Process(os.getpid())
            assert of_own.state() == "released"

    of_other = LivenessMonitor(other.invite())
    codes = []
    if who == "another":
        # In the fork it is the main thread, and none that has tokens already.
        forker = threading.Thread(target=lambda: codes.append(in_a_fork(do)))
        forker.start()
        forker.join()
    else:
        codes.append(in_a_fork(do))
    assert codes == [0]
    assert monitor.alive()
    assert of_other.alive()
    token.release()
    assert monitor.state() == "released"


@a_fork_with_threads
def test_a_fork_that_outlives_says_nothing_of_its_parent(peers):
    (peer,) = peers()
    peer.do("import signal")
    peer.do("os.fork() or signal.pause()")
    (fork,) = children_of(peer.process.pid)
    of_fork = LivenessMonitor(fork)
    peer.process.kill()
    assert peer.monitor.wait(LONG) == "died"
    assert of_fork.alive()
    os.kill(fork, signal.SIGKILL)
    assert of_fork.wait(LONG) == "died"


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(pid) for pid in file.read().split()]


@a_fork_with_threads
@pytest.mark.parametrize("kind", ["token", "process"])
@pytest.mark.parametrize("used", [True, False])
def test_a_fork_uses_the_monitors_that_it_inherits(peers, kind, used):
    (peer,) = peers()
    monitor = peer.monitor if kind == "token" else LivenessMonitor(peer.process)
    if used:
        # Whoever watches for event loops runs, and has a descriptor, before the fork.
        assert wait([monitor], timeout=0.001).pending == [monitor]

    def do():
        assert (monitor.alive(), monitor.confirm()) == (True, "alive")
        if used and kind == "token":
            with pytest.raises(OSError, match="accept an invitation in the fork"):
                wait([monitor], timeout=0)
        else:
            assert wait([monitor], timeout=0).pending == [monitor]
        # On the main thread, where signals are heard, and on another.
        for timeout in (0, 0.01):
            with pytest.raises(procwright.WaitTimeout):
                monitor.wait(timeout)
        said = []
        waiter = threading.Thread(target=lambda: said.append(monitor.wait()))
        waiter.start()
        os.kill(peer.process.pid, signal.SIGKILL)
        assert monitor.wait() == "died"
        waiter.join()
        assert said == ["died"]
        assert not monitor.alive()

    assert in_a_fork(do) == 0
    assert monitor.wait() == "died"


@a_fork_with_threads
def test_forks_while_others_make_tokens():
    done = threading.Event()

    def make():
        while not done.is_set():
            with LivenessToken() as token:
                assert LivenessMonitor(token.invite()).alive()

    def do():
        with LivenessToken() as token:
            monitor = LivenessMonitor(token.invite())
            assert monitor.alive()
        assert monitor.wait() == "released"

    makers = [threading.Thread(target=make) for _ in range(2)]
    for maker in makers:
        maker.start()
    try:
        assert [in_a_fork(do) for _ in range(30)] == [0] * 30
    finally:
        done.set()
        for maker in makers:
            maker.join()


FORKS = """
import os, warnings
import procwright
def fork():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    print(*[warning.message for warning in caught])
fork()
held = procwright.LivenessToken(holder="thread")
fork()
token = procwright.LivenessToken()
fork()
"""


def test_python_warns_of_forks_once_there_is_a_token(script):
    out, err = script(FORKS).communicate()
    without, with_one_of_the_thread, with_one = out.splitlines()
    assert (without, with_one_of_the_thread) == ("", "")
    # What the documents say of it, no more and no less.
    assert ("multi-threaded" in with_one) == (sys.version_info >= (3, 12)), (out, err)


OF_PARENT = """
import os, procwright
monitor = procwright.LivenessMonitor.of_parent()
again = procwright.LivenessMonitor.of_parent()
print(monitor.process.pid, monitor.state(), again.alive(), *monitor.guarantee(), flush=True)
print(monitor.wait(), flush=True)
"""


def test_a_child_watches_its_parent(script):
    parent = script(
        "import sys, procwright\n"
        "from procwright import INHERIT\n"
        "argv = [sys.executable, '-c', sys.argv[1]]\n"
        "child = procwright.spawn(argv, liveness=True, stdout=INHERIT, stderr=INHERIT)\n"
        "print(child.pid, child.monitor().state(), flush=True)\n"
        "child.wait()\n",
        OF_PARENT,
    )
    lines = sorted(parent.stdout.readline().split() for _ in range(2))
    mine = [line for line in lines if len(line) == 5]
    theirs = [line for line in lines if len(line) == 2]
    assert mine == [[str(parent.pid), "alive", "True", "image", "robust_word"]]
    ((pid, state),) = theirs
    assert state == "alive"
    child = LivenessMonitor(int(pid))
    parent.kill()
    assert parent.stdout.readline() == "died\n"
    assert child.wait(LONG) == "died"


def test_run_lets_the_program_watch_us(child):
    argv = [sys.executable, "-c", OF_PARENT.replace("monitor.wait()", "'done'")]
    result = procwright.run(argv, liveness=True, text=True, check=True)
    assert result.stdout == f"{os.getpid()} alive True image robust_word\ndone\n"


NO_PARENT = """
import procwright
try:
    procwright.LivenessMonitor.of_parent()
except procwright.LivenessError as error:
    print(error.reason, error)
"""


def test_who_was_not_spawned_so_has_no_parent_to_watch():
    for how in (
        [sys.executable, "-c", NO_PARENT],
        # Its parent has one, and it inherits the variable.
        [
            sys.executable,
            "-c",
            "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])",
            NO_PARENT,
        ],
    ):
        liveness = len(how) > 3
        result = procwright.run(how, liveness=liveness, text=True, check=True)
        assert result.stdout.startswith("no_parent ")
        assert "liveness=True" in result.stdout


@a_fork_with_threads
def test_children_of_a_fork_watch_the_fork():
    argv = [sys.executable, "-c", OF_PARENT.replace("monitor.wait()", "'done'")]
    procwright.run(argv, liveness=True)

    def do():
        result = procwright.run(argv, liveness=True, text=True, check=True)
        assert result.stdout.startswith(f"{os.getpid()} alive True image")

    assert in_a_fork(do) == 0


def test_the_other_thread_of_a_peer_says_nothing(peers):
    (peer,) = peers()
    peer.do("thread = threading.Thread(target=lambda: None); thread.start(); thread.join()")
    assert peer.monitor.alive()


def test_no_warning_where_nothing_forks():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with LivenessToken() as token, spawn([sys.executable, "-c", ""]) as started:
            assert LivenessMonitor(token.invite()).alive()
            started.wait()
