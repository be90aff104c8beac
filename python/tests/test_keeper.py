"""Children that nobody keeps, and those that are to live on."""

from __future__ import annotations

import contextlib
import gc
import os
import pathlib
import signal
import subprocess
import sys
import time
import warnings

import pytest
from conftest import is_alive

from procwright import DEVNULL, PIPE, InvalidValue, Process, Stop, WaitTimeout, _keeper, spawn

HERE = os.path.abspath(__file__)

#: Only against hanging.
LONG = 100


def told_of(process, told):
    """The warnings that are about it."""
    return [one for one in told if f"(pid {process.pid})" in str(one.message)]


def line():
    """The number of the line that calls."""
    return sys._getframe(1).f_lineno


def test_a_child_that_nobody_keeps_is_told_of_and_stopped(tmp_path):
    done = tmp_path / "done"
    script = (
        "trap 'echo bye; echo done > \"$0\"; exit' TERM; echo ready; while :; do sleep 0.01; done"
    )
    # Its last word may take its time.
    stop = Stop("TERM", grace=LONG)
    it, number = spawn(["sh", "-c", script, str(done)], stop=stop), line()
    assert it.stdout.readline() == b"ready\n"
    process = Process(it.pid)
    with pytest.warns(ResourceWarning) as told:
        del it
    # The line that has started it, and not the one where the last reference went.
    assert [(os.path.abspath(one.filename), one.lineno) for one in told] == [(HERE, number)]
    text = str(told[0].message)
    assert text.startswith("nobody keeps the child sh -c ")
    assert f"(pid {process.pid})" in text
    assert "detach=True" in text
    process.wait(event="reaped")
    # Its last word has killed it by no SIGPIPE.
    assert done.read_text() == "done\n"


PARTS = {
    "stdin": {"stdin": PIPE},
    "stdout": {},
    "stderr": {},
    "stdout as text": {"text": True},
    "merged": {"merged": True},
}


@pytest.mark.parametrize("part", PARTS)
def test_each_part_keeps_its_child(child, part):
    it = spawn([child, "sleep-forever"], **PARTS[part])
    kept = getattr(it, part.split()[0])
    process = Process(it.pid)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        del it
        gc.collect()
    assert told_of(process, told) == []
    assert process.is_alive()
    with pytest.warns(ResourceWarning, match="nobody keeps"):
        del kept
    process.wait(event="reaped")


def ended(child):
    it = spawn([child, "exit", "0"])
    it.process.wait()
    return it


def killed(child):
    it = spawn([child, "sleep-forever"])
    it.kill()
    return it


def read_to_its_end(child):
    it = spawn([child, "close-stdout-then-sleep", "100000", "--both"])
    assert it.stdout.read() == b""
    assert it.stderr.read() == b""
    return it


def test_who_has_closed_one_of_its_outputs_is_told_of_and_stopped(child):
    kept = [spawn([child, "close-stdout-then-sleep", "100000"])]
    assert kept[0].stdout.read() == b""
    process = kept[0].process
    with pytest.warns(ResourceWarning, match="nobody keeps the child"):
        kept.clear()
    process.wait()


def test_a_handler_that_raises_where_a_child_is_let_go_of_leaves_it_stopped(child, monkeypatch):
    raised = [True]

    def handler():
        # As one of a signal, in any line of the finaliser.
        if not raised:
            raised.append(True)
            raise KeyboardInterrupt

    monkeypatch.setattr(_keeper, "_let_go_of_ended", handler)
    kept = [spawn([child, "sleep-forever"])]
    raised.clear()
    process = kept[0].process
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    with pytest.warns(ResourceWarning, match="nobody keeps the child"):
        kept.clear()
    process.wait()
    assert KeyboardInterrupt in [one.exc_type for one in told]


@pytest.mark.parametrize("end", [ended, killed, read_to_its_end])
def test_a_child_that_ends_is_left_to_itself(child, end):
    it = end(child)
    process = it.process
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            del it
            gc.collect()
        assert told_of(process, told) == []
    finally:
        # One that was left to itself is nobody else's to end.
        with contextlib.suppress(ProcessLookupError):
            process.kill()


def test_at_the_end_of_the_interpreter_nobody_keeps_a_child(script, child):
    code = (
        "import sys, procwright\n"
        "it = procwright.spawn([sys.argv[1], 'sleep-forever', '--print-ready'])\n"
        "print(it.stdout.readline().split()[1].decode())\n"
    )
    host = script("import warnings\nwarnings.simplefilter('always')\n" + code, child)
    out, err = host.communicate()
    assert host.returncode == 0
    assert ".py:4: ResourceWarning: nobody keeps the child" in err
    assert not is_alive(int(out))


def test_the_end_of_the_interpreter_waits_for_a_stop(script, child):
    code = (
        "import sys, procwright\n"
        "stop = procwright.Stop('TERM', grace=0.1)\n"
        "it = procwright.spawn([sys.argv[1], 'ignore-term', '--print-ready'], stop=stop)\n"
        "print(it.stdout.readline().split()[1].decode())\n"
    )
    out, err = script(code, child).communicate()
    # The thread that would have sent SIGKILL ends with the interpreter.
    assert not is_alive(int(out)), err


def test_a_fork_neither_tells_of_nor_stops_its_parents_child(script, child):
    code = (
        "import os, sys, warnings, procwright\n"
        "warnings.simplefilter('error')\n"
        "it = procwright.spawn([sys.argv[1], 'cat'], stdin=procwright.PIPE)\n"
        "with warnings.catch_warnings():\n"
        "    warnings.simplefilter('ignore')\n"
        "    fork = os.fork()\n"
        "if fork == 0:\n"
        "    sys.exit()\n"
        "assert os.waitpid(fork, 0)[1] == 0\n"
        "assert it.poll() is None\n"
        "it.stdin.write(b'x')\n"
        "it.stdin.close()\n"
        "assert it.stdout.read() == b'x' and it.wait() == 0\n"
    )
    out, err = script(code, child).communicate()
    assert (out, err) == ("", "")


def test_who_is_detached_lives_on(script, child, tmp_path):
    code = (
        "import os, sys, warnings, procwright\n"
        "warnings.simplefilter('error')\n"
        "options = {'stdout': sys.argv[2], 'stderr': procwright.STDOUT, 'detach': True}\n"
        "with procwright.spawn([sys.argv[1], 'sleep-forever', '--print-ready'], **options) as it:\n"
        "    pass\n"
        "assert it.returncode is None\n"
        "assert os.getsid(it.pid) == it.pid\n"
        "print(it.pid)\n"
        "del it\n"
    )
    out, err = script(code, child, str(tmp_path / "out")).communicate()
    assert err == ""
    process = Process(int(out))
    try:
        assert process.is_alive()
    finally:
        process.kill()


REFUSED = {
    "stdout": ({}, "stdout is PIPE, which ends with us, and with detach=True the program lives on"),
    "stderr": ({"stdout": DEVNULL}, "stderr is PIPE, which ends with us"),
    "stdin": ({"stdin": PIPE}, "stdin is PIPE, which ends with us"),
    "input": ({"input": b"x"}, "input is b'x', which ends with us"),
    "iterable": ({"stdin": iter([b"x"])}, "stdin is .*, which ends with us"),
    "pty": ({"pty": True}, "stdout is PIPE"),
    "die_with_parent": ({"die_with_parent": True}, "die_with_parent is True, which ends with us"),
    "channel": ({"channel": "from_child"}, "channel is 'from_child', which ends with us"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_end_with_us_is_refused(child, tmp_path, name):
    options, text = REFUSED[name]
    places = {} if name in ("stdout", "stderr") else {"stdout": DEVNULL, "stderr": DEVNULL}
    places = {} if name == "pty" else places
    started = pathlib.Path(tmp_path / "started")
    with pytest.raises(InvalidValue, match=text):
        spawn(["touch", started], detach=True, **places, **options)
    assert not started.exists()


DEFIANT = """
import os, signal, sys, threading, time, procwright
def start(grace=0.3):
    stop = procwright.Stop('TERM', grace=grace)
    it = procwright.spawn([sys.argv[1], 'ignore-term', '--print-ready'], stop=stop)
    it.stdout.readline()
    print(it.pid, flush=True)
    return it
"""


def left_by(host):
    """The children that a script has left running, and what it said."""
    out, err = host.communicate()
    pids = [int(one) for one in out.split()]
    assert pids, err
    left = [pid for pid in pids if is_alive(pid) and not ends(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return left, err


def ends(pid):
    """Whether a process ends that nothing is sent any more."""
    try:
        # One that was sent SIGKILL may take its time.
        Process(pid).wait(LONG)
    except ProcessLookupError:
        pass
    except WaitTimeout:
        return False
    return True


def test_the_end_waits_for_those_that_were_dropped_before(script, child):
    left, err = left_by(
        script(DEFIANT + "kept = [start() for _ in range(3)]\nkept.clear()\n", child)
    )
    assert left == [], err


def test_a_warning_that_is_an_error_keeps_no_child_from_its_end(script, child):
    code = "import warnings\nwarnings.simplefilter('error')\n" + DEFIANT
    left, err = left_by(script(code + "kept = [start() for _ in range(3)]\n", child))
    assert left == [], err
    assert err.count("ResourceWarning: nobody keeps") == 3


def test_an_interrupt_of_the_end_kills_all(script, child):
    # The grace has no end: only the interrupt ends them.
    code = DEFIANT + (
        "kept = [start(600) for _ in range(3)]\n"
        "from procwright import _keeper\n"
        "waits = _keeper._wait_for\n"
        "def interrupted(*its):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    waits(*its)\n"
        "_keeper._wait_for = interrupted\n"
    )
    left, err = left_by(script(code, child))
    assert left == [], err
    assert "KeyboardInterrupt" in err


@pytest.mark.parametrize("end", ["stdout", "stdin"])
def test_a_pipe_that_was_handed_on_leaves_the_child_to_itself(child, end):
    it = spawn([child, "sleep-forever"], stdin=PIPE, stdout=PIPE, stderr=DEVNULL, overflow="block")
    process = Process(it.pid)
    stream = getattr(it, end)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        other = subprocess.Popen(
            [child, "sleep-forever"], **{{"stdout": "stdin", "stdin": "stdout"}[end]: stream}
        )
        del it, stream
        gc.collect()
    try:
        assert told_of(process, told) == []
    finally:
        other.kill()
        other.wait()
        process.kill()


class Raised(Exception):
    """What a handler raises."""


def test_a_child_whose_making_was_ended_is_stopped(child, monkeypatch):
    from procwright import _spawn

    pids = []

    def making(args, core, *_):
        pids.append(core.process().pid)
        raise Raised

    monkeypatch.setattr(_spawn, "Child", making)
    with pytest.raises(Raised):
        spawn([child, "sleep-forever"])
    while is_alive(pids[0]):
        time.sleep(0.005)


def test_a_keeper_whose_making_was_ended_goes_without_an_error():
    from procwright._keeper import Keeper

    Keeper.__new__(Keeper).__del__()


def test_a_child_that_is_started_at_the_very_end_is_stopped(script, child):
    code = (
        "import atexit\n@atexit.register\ndef late():\n    global kept\n    kept = start()\n"
    ) + DEFIANT
    left, err = left_by(script(code, child))
    assert (left, err) == ([], "")


def test_one_whose_first_wait_comes_at_the_very_end_is_stopped(script, child, tmp_path):
    """Nothing can be imported any more when the last modules go."""
    code = """
import atexit
@atexit.register
def late():
    global kept
    stop = procwright.Stop('TERM', grace=0.3)
    command = [sys.argv[1], 'ignore-term', '--print-ready']
    kept = procwright.spawn(command, stop=stop, stdout=sys.argv[2])
    while not os.path.exists(sys.argv[2]) or not os.path.getsize(sys.argv[2]):
        time.sleep(0.005)
    print(kept.pid, flush=True)
import os, sys, time, procwright
"""
    left, err = left_by(script(code, child, str(tmp_path / "out")))
    assert (left, err) == ([], "")
