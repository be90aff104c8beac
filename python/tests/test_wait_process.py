"""`Process`: who it is, how it ended, and that it reaps nobody."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import multiprocessing.connection
import os
import pickle
import platform
import signal
import socket
import subprocess
import sys
import time

import pytest

import procwright
from procwright import NoSuchProcess, Process, wait

#: Only against hanging.
LONG = 100

LINUX = tuple(int(part) for part in platform.release().split(".")[:2])


def told(status, code):
    """Whether that is the status of a stranger that was reaped before we asked."""
    if LINUX >= (6, 15):
        return status.returncode == code
    return status.kind == "unknown" and status.why == "not_told"


def test_a_child(children):
    (child,) = children(1, "term-exit", "7")
    process = Process(child)
    assert process.pid == child.pid
    assert process.id.split(":")[0] == str(child.pid)
    assert process.is_alive()
    assert (process.exit, process.returncode) == (None, None)
    assert "alive" in repr(process)
    assert process.id in repr(process)
    assert process.name() == "test-child"
    assert process.exe().endswith("/test-child")
    assert abs(process.start_time() - time.time()) < 86400
    assert os.readlink(f"/proc/self/fd/{process.readiness_fd()}").startswith(
        ("anon_inode:[pidfd]", "pidfd:")
    )
    process.terminate()
    status = process.wait(LONG)
    assert isinstance(status, procwright.Status)
    assert (status.kind, status.code, status.returncode) == ("exited", 7, 7)
    assert (process.exit, process.returncode) == (status, 7)
    assert not process.is_alive()
    assert "returncode 7" in repr(process)
    for call in (process.kill, process.terminate, process.stop, lambda: process.send_signal(9)):
        with pytest.raises(NoSuchProcess):
            call()
    assert child.wait() == 7
    assert process.returncode == 7
    with pytest.raises(NoSuchProcess):
        process.name()


def test_signals(children):
    child, other = children(2)
    process = Process(child)
    process.send_signal("STOP")
    process.send_signal(signal.SIGCONT)
    assert process.is_alive()
    for bad in ("NOSUCH", 0, -1, 1000):
        with pytest.raises(procwright.InvalidValue):
            process.send_signal(bad)
    process.send_signal(signal.SIGUSR1)
    status = process.wait(LONG)
    assert (status.kind, status.name, status.core) == ("signaled", "SIGUSR1", False)
    assert process.returncode == -signal.SIGUSR1
    Process(other).kill()
    assert Process(other).wait(LONG).signal == signal.SIGKILL


def test_stop(children):
    (child,) = children(1, "ignore-term")
    process = Process(child)
    assert process.stop(procwright.Stop(grace=0.05, scope="process")) == []
    assert process.wait(LONG).signal == signal.SIGKILL
    (child,) = children(1)
    assert Process(child).stop() == []
    assert child.wait() == -signal.SIGTERM


def test_the_same(children):
    child, other = children(2)
    process = Process(child)
    same = [Process(child.pid), Process(process.id), Process(process), Process(child)]
    assert {process, *same} == {process}
    assert process != Process(other)
    assert process != child.pid
    with pytest.raises(TypeError, match="pass its id"):
        pickle.dumps(process)


def test_by_pidfd(children):
    (child,) = children(1)
    fd = os.pidfd_open(child.pid)
    process = Process.from_pidfd(fd)
    assert process == Process(child)
    os.close(fd)
    child.kill()
    assert process.wait(LONG).signal == signal.SIGKILL
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(procwright.InvalidValue, match="pidfd"):
        Process.from_pidfd(ours.fileno())
    with pytest.raises(procwright.InvalidValue, match=r"^fd is -1: "):
        Process.from_pidfd(-1)
    with pytest.raises(OSError, match="pidfd 99999"):
        Process.from_pidfd(99999)


def test_nobody(children):
    (child,) = children(1)
    process = Process(child)
    pid, inode = process.id.split(":")
    with pytest.raises(NoSuchProcess) as caught:
        Process(f"{pid}:{int(inode) + 1}")
    assert caught.value.pid == child.pid
    assert caught.value.id == f"{pid}:{int(inode) + 1}"
    assert isinstance(caught.value, ProcessLookupError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.pid, again.id) == (str(caught.value), child.pid, caught.value.id)
    child.kill()
    child.wait()
    with pytest.raises(NoSuchProcess, match="has ended and was reaped"):
        Process(child)
    with pytest.raises(NoSuchProcess):
        Process(child.pid)
    with pytest.raises(NoSuchProcess):
        Process(process.id)
    # Its handle is good still, and an object that has ended has ended.
    assert process.returncode == -signal.SIGKILL
    assert wait([child], "all", "reaped") == ([child], [])
    for bad in (None, 3.5, True, b"12", [1]):
        with pytest.raises(TypeError, match=r"^process is .*: pass its number"):
            Process(bad)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another")
def test_somebody_elses(children, script):
    (child,) = children(1)
    code = (
        "import os, sys, procwright\n"
        "process = procwright.Process(int(sys.argv[1]))\n"
        "os.setuid(65534)\n"
        "for call in (process.kill, process.stop):\n"
        "    try: call()\n"
        "    except PermissionError as error: print(error.errno)\n"
    )
    assert script(code, str(child.pid)).communicate() == ("1\n1\n", "")
    assert child.poll() is None


def test_the_timeout_exception(children):
    process = Process(children(1)[0])
    with pytest.raises(procwright.WaitTimeout) as caught:
        process.wait(0.01)
    error = caught.value
    assert isinstance(error, subprocess.TimeoutExpired)
    assert isinstance(error, TimeoutError)
    assert str(error) == f"process {process.id} did not end within 0.01 s"
    assert (error.cmd, error.timeout) == (f"process {process.id}", 0.01)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(("how", "code"), [("TERM", 7), ("KILL", -9)])
def test_a_strangers_status(child, stranger, how, code):
    theirs = stranger(child, "term-exit", "7")
    process = Process(theirs.pid)
    process.send_signal(how)
    # It is reaped, and nobody of us has looked before.
    assert theirs.reap() == code
    assert told(process.wait(LONG, event="reaped"), code)
    assert told(process.wait(0), code)


def test_exited_is_not_reaped(child, stranger, when_asleep):
    theirs = stranger(child, "term-exit", "7")
    process = Process(theirs.pid)
    process.terminate()
    assert process.wait(LONG).kind in ("exited", "unknown")
    assert not process.is_alive()
    # A zombie, until its parent is told to reap it.
    begin = time.monotonic()
    with pytest.raises(procwright.WaitTimeout):
        process.wait(0.05, event="reaped")
    assert time.monotonic() - begin >= 0.05
    assert wait([theirs.pid], event="reaped", timeout=0).done == []
    assert process.name() == "test-child"
    when_asleep(theirs.reap)
    assert wait([process], event="reaped") == ([process], [])
    assert told(process.exit, 7) or process.returncode == 7
    with pytest.raises(NoSuchProcess):
        process.name()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another")
@pytest.mark.parametrize("how", ["process.wait()", "loop.run_until_complete(process.wait_async())"])
def test_a_status_that_is_told_later(child, stranger, script, how):
    code = (
        "import asyncio, os, sys, procwright, procwright._async, procwright._wait\n"
        "loop = asyncio.new_event_loop()\n"
        "process = procwright.Process(int(sys.argv[1]))\n"
        "os.setuid(65534)\n"
        "print('ready', flush=True)\n"
        f"status = {how}\n"
        "print(status.kind, status.why, process.returncode, flush=True)\n"
        "process.wait(event='reaped')\n"
        "print(process.returncode)\n"
        "loop.close()\n"
    )
    theirs = stranger(child, "term-exit", "7")
    waiter = script(code, str(theirs.pid))
    assert waiter.stdout.readline() == "ready\n"
    os.kill(theirs.pid, signal.SIGTERM)
    # It may not look into the zombie of another, and says so.
    assert waiter.stdout.readline() == "unknown not_reaped None\n"
    assert theirs.reap() == 7
    assert waiter.communicate() == ("7\n" if LINUX >= (6, 15) else "None\n", "")


def test_an_own_child_is_reaped_by_nobody_else(children):
    (child,) = children(1)
    child.kill()
    process = Process(child)
    assert process.wait(LONG).signal == signal.SIGKILL
    assert wait([child], event="reaped", timeout=0.05).pending == [child]
    assert child.wait() == -signal.SIGKILL
    assert process.wait(LONG, event="reaped").signal == signal.SIGKILL


def exit_with(connection, code):
    connection.recv()
    sys.exit(code)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method):
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    worker = context.Process(target=exit_with, args=(theirs, 5))
    with pytest.raises(procwright.InvalidValue, match="not been started"):
        Process(worker)
    worker.start()
    process = Process(worker)
    assert wait([worker, ours], timeout=0.01).done == []
    ours.send("go")
    assert wait([worker]).done == [worker]
    process.wait(LONG)
    worker.join()
    assert worker.exitcode == 5
    assert wait([worker], timeout=0).done == [worker]
    with pytest.raises(NoSuchProcess):
        Process(worker)


def test_a_number_that_the_forkserver_gave_back():
    context = multiprocessing.get_context("forkserver")
    worker = context.Process(target=int)
    worker.start()
    assert multiprocessing.connection.wait([worker.sentinel], LONG)
    # Reaped by the server, as nobody here has asked yet; the number is another's.
    worker._popen.pid = os.getpid()
    try:
        with pytest.raises(procwright.NoSuchProcess):
            Process(worker)
        assert procwright.wait([worker], timeout=LONG).done == [worker]
    finally:
        worker.join()


def test_subprocess_keeps_its_status(child):
    with subprocess.Popen([child, "exit", "7"]) as popen:
        assert wait([popen]).done == [popen]
        assert Process(popen).returncode == 7
        assert popen.returncode is None
        assert popen.wait() == 7


def test_asyncio_keeps_its_status(child):
    async def main():
        theirs = await asyncio.create_subprocess_exec(child, "exit", "7")
        if theirs.returncode is None:
            # Before Python 3.12 a thread of asyncio's reaps it, at any moment.
            with contextlib.suppress(NoSuchProcess):
                assert (await procwright.wait_async([theirs])).done == [theirs]
        assert await theirs.wait() == 7
        assert wait([theirs], timeout=0).done == [theirs]

    asyncio.run(main())


def use_of_it(process, steps):
    assert process.is_alive()
    assert wait([process], timeout=0.01).pending == [process]
    with pytest.raises(OSError, match="fork"):
        next(steps)
    assert Process(os.getpid()).is_alive()
    child = subprocess.Popen([sys.executable, "-S", "-c", "raise SystemExit(4)"])
    assert Process(child).wait(LONG).code == 4
    assert child.wait() == 4


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_while_a_wait_is_under_way(children, when_asleep):
    (child,) = children(1)
    process = Process(child)
    steps = procwright.as_completed([process])

    def fork():
        worker = multiprocessing.get_context("fork").Process(
            target=use_of_it, args=(process, steps)
        )
        worker.start()
        worker.join()
        codes.append(worker.exitcode)
        child.kill()

    codes = []
    when_asleep(fork)
    assert wait([process]).done == [process]
    assert codes == [0]
    assert next(steps) is process
