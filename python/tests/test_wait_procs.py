"""`wait_procs`, beside psutil's."""

from __future__ import annotations

import enum
import os
import pickle
import signal
import subprocess
import time

import pytest
from test_wait_process import told

import procwright
from procwright import Process, wait_procs

psutil = pytest.importorskip("psutil")


@pytest.fixture(params=[psutil.wait_procs, wait_procs], ids=["psutil", "procwright"])
def both(request):
    """What holds for either."""
    return request.param


def test_gone_and_alive(both, children):
    procs = [psutil.Process(one.pid) for one in children(3)]
    procs[0].kill()
    procs[2].terminate()
    for one in procs[::2]:
        Process(one).wait()
    called = []
    gone, alive = both(procs, timeout=0.3, callback=called.append)
    assert isinstance(gone, list)
    assert isinstance(alive, list)
    assert set(gone) == {procs[0], procs[2]} == set(called)
    assert alive == [procs[1]]
    assert procs[0].returncode == -signal.SIGKILL
    assert procs[2].returncode == -signal.SIGTERM
    assert not hasattr(procs[1], "returncode")
    # An int that shows itself as the signal, and stays that when it is pickled.
    assert repr(procs[0].returncode) == "<Negsignal.SIGKILL: -9>"
    assert isinstance(procs[2].returncode, enum.IntEnum)
    assert pickle.loads(pickle.dumps(procs[2].returncode)) is procs[2].returncode
    procs[1].kill()
    gone, alive = both(alive)
    assert (gone, alive) == ([procs[1]], [])


def test_a_signal_without_a_name_is_a_number(both, child):
    process = subprocess.Popen([child, "sleep-forever"])
    proc = psutil.Process(process.pid)
    process.send_signal(signal.SIGRTMIN + 3)
    gone, alive = both([proc])
    assert (gone, alive) == ([proc], [])
    assert type(proc.returncode) is int
    assert proc.returncode == -(signal.SIGRTMIN + 3)
    process.wait()


def test_zero_is_a_look(both, children):
    procs = [psutil.Process(one.pid) for one in children(2)]
    procs[0].kill()
    Process(procs[0]).wait()
    assert both(procs, timeout=0) == ([procs[0]], [procs[1]])
    assert both([], timeout=0) == ([], [])
    assert both(procs[1:] * 2, 0) == ([], procs[1:])


def test_whom_psutil_has_reaped_before(both, child):
    child = subprocess.Popen([child, "exit", "3"])
    proc = psutil.Process(child.pid)
    assert proc.wait() == 3
    assert both([proc], timeout=1) == ([proc], [])
    assert proc.returncode == 3
    child.wait()


def test_who_was_gone_before(both, children):
    (child,) = children(1)
    proc = psutil.Process(child.pid)
    child.kill()
    child.wait()
    gone, alive = both([proc], timeout=1)
    assert (gone, alive) == ([proc], [])
    assert proc.returncode is None


@pytest.mark.parametrize("timeout", [-1, -0.1, float("nan"), float("-inf")])
def test_bad_values(both, timeout):
    with pytest.raises(ValueError, match="timeout"):
        both([], timeout=timeout)
    with pytest.raises(TypeError, match="call"):
        both([], callback=3)


def test_the_timeout(both, children):
    procs = [psutil.Process(one.pid) for one in children(2)]
    begin = time.monotonic()
    assert set(both(procs, timeout=0.3)[1]) == set(procs)
    assert time.monotonic() - begin >= 0.3


def test_a_callback_that_raises(both, children):
    (child,) = children(1)
    proc = psutil.Process(child.pid)
    proc.kill()

    def callback(one):
        assert one.returncode == -signal.SIGKILL
        raise KeyError("mine")

    with pytest.raises(KeyError):
        both([proc], callback=callback)


def test_popen_of_psutil(both, child):
    proc = psutil.Popen([child, "exit", "3"])
    assert both([proc], timeout=100) == ([proc], [])
    assert proc.returncode == 3
    assert proc.wait() == 3


def test_popen_of_the_standard_library(both, child):
    with subprocess.Popen([child, "exit", "3"]) as proc:
        if both is psutil.wait_procs:
            proc.is_running = lambda: False  # which it needs
        assert both([proc], timeout=100) == ([proc], [])
        assert proc.returncode == 3


def test_ours_reaps_nobody(children):
    (child,) = children(1)
    proc = psutil.Process(child.pid)
    child.kill()
    assert wait_procs([proc]) == ([proc], [])
    assert proc.returncode == -signal.SIGKILL
    assert child.wait() == -signal.SIGKILL


def test_ours_knows_how_strangers_ended(child, stranger):
    theirs = stranger(child, "term-exit", "7")
    proc = psutil.Process(theirs.pid)
    process = Process(proc)
    proc.terminate()
    # A zombie is gone, whoever is to reap it.
    assert wait_procs([proc]) == ([proc], [])
    if os.geteuid() == 0:
        assert proc.returncode == 7
    theirs.reap()
    assert told(process.exit, 7) or process.returncode == 7
    with pytest.raises(procwright.NoSuchProcess):
        Process(proc)


def test_ours_keeps_the_order(children):
    procs = [psutil.Process(one.pid) for one in children(4)]
    for at in (3, 1):
        procs[at].kill()
        Process(procs[at]).wait()
    gone, alive = wait_procs(procs, timeout=0)
    assert sorted(gone, key=procs.index) == [procs[1], procs[3]]
    assert alive == [procs[0], procs[2]]
