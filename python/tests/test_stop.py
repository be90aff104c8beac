"""Timeouts, cancel, Ctrl-C: the run ends, and nothing of it stays."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import cancelled_once_up, is_alive, with_time

import procwright

run = procwright.run
KILL = procwright.Stop("KILL")


@pytest.mark.parametrize("timeout", [0, -1, -0.0, float("-inf"), -(10**400)])
def test_expired_timeouts(child, timeout):
    with pytest.raises(procwright.TimeoutExpired) as caught:
        run([child, "sleep-forever"], timeout=timeout)
    assert caught.value.timeout == timeout
    assert caught.value.result.reason == "timeout"
    assert not is_alive(caught.value.result.pid)


@pytest.mark.parametrize("timeout", [None, float("inf"), 1e10, 1e300, 10**400, 60])
def test_timeouts_that_do_not_come(child, timeout):
    assert run([child, "exit", "0"], timeout=timeout, idle_timeout=timeout).ok


def test_timeout(child):
    def check(seconds):
        with pytest.raises(subprocess.TimeoutExpired) as caught:
            run("echo out; echo err >&2; sleep 1000", shell=True, timeout=seconds, text=True)
        error = caught.value
        assert isinstance(error, (procwright.TimeoutExpired, procwright.RunError))
        assert type(error).__name__ == "TimeoutExpired"
        assert error.timeout == seconds
        assert (error.stdout, error.output, error.stderr) == ("out\n", "out\n", "err\n")
        result = error.result
        assert result.duration_s >= seconds
        assert not result.ok
        assert not is_alive(result.pid)
        assert "sleep" in str(error)
        assert {holder.name for holder in result.stdout_info.held_by} >= {"sleep"}
        assert not result.stdout_info.complete

    with_time(check)
    again = run([child, "sleep-forever"], timeout=0.1, on_timeout="return")
    assert again.reason == "timeout"
    assert again.returncode == -signal.SIGTERM
    with pytest.raises(procwright.CalledProcessError):
        run([child, "sleep-forever"], timeout=0.1, on_timeout="return", check=True)


def test_idle_timeout(child):
    def check(seconds):
        with pytest.raises(procwright.IdleTimeout) as caught:
            run([child, "sleep-forever", "--print-ready"], idle_timeout=seconds)
        assert isinstance(caught.value, subprocess.TimeoutExpired)
        assert caught.value.result.reason == "idle_timeout"
        assert caught.value.timeout == seconds
        assert caught.value.result.stdout.startswith(b"ready")

    with_time(check)
    assert run([child, "sleep-forever"], idle_timeout=0.1, on_timeout="return").reason == (
        "idle_timeout"
    )


def test_who_ignores_the_signal_is_killed(child):
    def check(seconds):
        stop = procwright.Stop("TERM", grace=0.2)
        result = run(
            [child, "ignore-term", "--print-ready"],
            idle_timeout=seconds,
            stop=stop,
            on_timeout="return",
        )
        assert result.returncode == -signal.SIGKILL
        assert result.duration_s >= seconds + 0.2
        assert result.survivors == []

    with_time(check)


def test_cancel_from_another_thread(child, tmp_path):
    assert not procwright.Cancel().cancelled
    up = cancelled_once_up(tmp_path)
    with up as (cancel, line), pytest.raises(procwright.Cancelled) as caught:
        run(line, shell=True, cancel=cancel)
    assert cancel.cancelled
    assert caught.value.result.reason == "cancelled"
    assert not is_alive(caught.value.result.pid)
    with pytest.raises(procwright.Cancelled):
        run([child, "sleep-forever"], cancel=cancel)


def test_until_exit_and_held_by(child):
    result = run([child, "fork-holder", "0", "--say", "bye"], until="exit")
    assert result.returncode == 0
    assert b"bye" in result.stdout
    info = result.stdout_info
    assert info.complete
    [holder] = info.held_by
    assert holder.name == "test-child"
    assert repr(holder) == f"Holder(pid={holder.pid}, name='test-child')"
    process = holder.process()
    assert process == pickle.loads(pickle.dumps(holder)).process()
    assert process == procwright.Process(holder.pid)
    process.kill()
    process.wait()
    with pytest.raises(procwright.NoSuchProcess):
        holder.process()


def test_a_holder_is_no_later_process_of_its_number(child):
    result = run([child, "fork-holder", "0"], until="exit")
    [holder] = result.stdout_info.held_by
    try:
        start, inode = holder._identity
        # One that had the number before, by its start where there are no inodes.
        for earlier in ((start - 1, inode and inode - 1), (start - 1, None)):
            former = procwright.Holder(holder.pid, holder.name, earlier)
            with pytest.raises(procwright.NoSuchProcess) as caught:
                former.process()
            assert caught.value.pid == holder.pid
        with pytest.raises(procwright.NoSuchProcess, match="later process of its number"):
            procwright.Holder(holder.pid, holder.name).process()
        assert holder.process().is_alive()
    finally:
        holder.process().kill()


def test_until_silent(child):
    result = run([child, "fork-holder", "0", "--say", "bye"], until="silent:0.3s")
    assert result.reason == "finished"
    assert result.duration_s >= 0.3
    assert b"bye" in result.stdout
    info = result.stdout_info
    assert info.complete
    assert [holder.name for holder in info.held_by] == ["test-child"]
    os.kill(info.held_by[0].pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("until", "said"),
    [
        ("silent:x", "which is no end of a run: use eof, exit, or silent: and a time"),
        ("silent:0s", "which is a silence of no time: say exit"),
        ("silent", 'use "eof" or "exit", or "silent:" and a time'),
    ],
)
def test_a_silence_that_cannot_be_is_refused(until, said):
    with pytest.raises(ValueError, match="until is '") as caught:
        run(["true"], until=until)
    assert said in str(caught.value)


def test_the_timeout_of_a_run_that_was_held_open_names_the_way_out(child):
    def check(seconds):
        with pytest.raises(procwright.TimeoutExpired) as caught:
            run([child, "fork-holder", "0"], timeout=seconds)
        hint = 'hint: the program had exited; until="exit" does not wait'
        assert hint in str(caught.value)

    with_time(check)
    # Here it is not the others that the run waits for.
    with pytest.raises(procwright.TimeoutExpired) as caught:
        run([child, "sleep-forever"], timeout=0.3)
    assert "until" not in str(caught.value)


def test_events(child, caplog):
    events = []
    cancel = procwright.Cancel()

    def note(event):
        events.append(event)
        cancel.cancel()

    class Cancels(logging.Handler):
        def emit(self, record):
            logged.cancel()

    logged = procwright.Cancel()
    logger = logging.getLogger("procwright")
    handler = Cancels()
    holds = [child, "fork-holder", "0"]
    with caplog.at_level(logging.WARNING):
        with pytest.raises(procwright.Cancelled):
            run(holds, cancel=cancel, on_event=note)
        assert not caplog.records
        logger.addHandler(handler)
        with pytest.raises(procwright.Cancelled):
            run(holds, cancel=logged)
        logger.removeHandler(handler)
    (event,) = events
    assert event.kind == "held"
    assert event.streams == "stdout and stderr"
    assert [holder.name for holder in event.holders] == ["test-child"]
    assert "test-child" in str(event)
    (record,) = caplog.records
    assert record.name == "procwright"
    assert "held open by test-child" in record.getMessage()
    error = KeyError("mine")

    def hook(event):
        raise error

    with pytest.raises(KeyError) as caught:
        run([child, "fork-holder", "0"], on_event=hook)
    assert caught.value is error


INTERRUPTED = """
import os, sys, threading, time
import procwright

child, role, *more = sys.argv[1:]

def pid_of(text):
    return int(text.split()[1])

lines = []
def ready(line):
    lines.append(line)
    print("ready", flush=True)

if role == "busy":
    # Someone else holds the interpreter lock most of the time.
    def burn():
        while True:
            pass
    threading.Thread(target=burn, daemon=True).start()
program = [child, "sleep-forever", "--print-ready"]
if role == "twice":
    # It says when it has got the signal, and goes on.
    line = "trap 'touch $0' TERM; echo ready $$; while :; do sleep 0.01; done"
    program = ["sh", "-c", line, *more]
grace = 1000 if role == "twice" else 5
before = time.monotonic()
try:
    procwright.run(program, on_stdout_line=ready, text=True, start_new_session=True,
                   stop=procwright.Stop(grace=grace))
except KeyboardInterrupt:
    pid = pid_of(lines[0])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        print("gone", flush=True)
    else:
        print("still there", flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("role", ["idle", "busy", "twice"])
def test_ctrl_c(script, child, role, tmp_path):
    told = tmp_path / "told"
    process = script(INTERRUPTED, child, role, str(told))
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    if role == "twice":
        while not told.exists():
            time.sleep(0.01)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (out, err) == ("gone\n", "")


def test_ctrl_c_in_a_flood(script, child):
    code = (
        "import sys, procwright\n"
        "try:\n"
        "    procwright.run([sys.argv[1], 'flood-forever'], limit=1000, start_new_session=True,\n"
        "                   on_event=print)\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    process = script(code, child)
    path = f"/proc/{process.pid}/task/{process.pid}/children"
    while not Path(path).read_text():
        time.sleep(0.01)
    # The longer it floods, the better.
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (out, err) == ("interrupted\n", "")


def test_handlers_run_while_a_run_waits(script, child):
    code = (
        "import os, signal, socket, sys, threading, time, procwright\n"
        "a, b = socket.socketpair()\n"
        "for s in (a, b): s.setblocking(False)\n"
        "signal.set_wakeup_fd(b.fileno())\n"
        "cancel = procwright.Cancel()\n"
        "def handler(*_):\n"
        "    print('handled', flush=True); cancel.cancel()\n"
        "signal.signal(signal.SIGUSR1, handler)\n"
        "main = threading.get_ident()\n"
        "def later():\n"
        "    time.sleep(0.2); os.kill(os.getpid(), signal.SIGUSR1)\n"
        "threading.Thread(target=later).start()\n"
        "try: procwright.run([sys.argv[1], 'sleep-forever'], cancel=cancel)\n"
        "except procwright.Cancelled: print('cancelled')\n"
        "print(a.recv(10) == bytes([signal.SIGUSR1]))\n"
        "print(signal.set_wakeup_fd(-1) == b.fileno())\n"
    )
    process = script(code, child)
    assert process.communicate() == ("handled\ncancelled\nTrue\nTrue\n", "")


def test_nothing_is_lost_when_a_handler_raises_at_once(script, child):
    code = (
        "import os, signal, sys, procwright\n"
        "def handler(*_): raise SystemExit(7)\n"
        "signal.signal(signal.SIGALRM, handler)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.2)\n"
        "procwright.run([sys.argv[1], 'sleep-forever'])\n"
    )
    process = script(code, child)
    process.communicate()
    assert process.returncode == 7


def test_one_name_catches_every_timeout(child):
    for idle in (False, True):
        name = "idle_timeout" if idle else "timeout"
        with pytest.raises(TimeoutError) as caught:
            run([child, "sleep-forever"], stop=KILL, **{name: 0.1})
        error = caught.value
        assert isinstance(error, (procwright.TimeoutExpired, procwright.RunError))
        assert isinstance(error, procwright.IdleTimeout) is idle
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert (str(again), again.timeout) == (str(error), 0.1)
        assert again.result.to_dict() == error.result.to_dict()
    with procwright.spawn([child, "sleep-forever"]) as one:
        for call in (one.wait, one.communicate, one.result, one.process.wait):
            with pytest.raises(procwright.TimeoutExpired) as caught:
                call(timeout=0.1)
            assert caught.value.result is None
            assert not isinstance(caught.value, procwright.RunError)
        one.stop(KILL)


def test_an_idle_timeout_says_what_was_not_watched(child, tmp_path):
    for options, is_told in (({"stdout": tmp_path / "out"}, True), ({}, False)):
        with pytest.raises(procwright.IdleTimeout) as caught:
            run([child, "sleep-forever"], idle_timeout=0.1, stop=KILL, **options)
        assert ("stderr alone was watched" in str(caught.value)) is is_told
