"""Forks of a process in which the core's threads call Python."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from procwright import PIPE, Overflow, run, spawn

STORM = Path(__file__).with_name("fork_storm.py")


def test_no_fork_hangs_while_callbacks_run():
    stress = os.environ.get("STRESS") == "1"
    forks = ["100000"] if stress else ["100", "30"]
    storm = subprocess.run([sys.executable, STORM, *forks], stdout=subprocess.PIPE, check=False)
    print(storm.stdout.decode())
    assert storm.returncode == 0


class Counted:
    """Counts its calls, by what lasts as long as the thread is known to Python."""

    def __init__(self):
        self.of_thread = threading.local()
        self.counts: list[int] = []

    def __call__(self, *_):
        self.of_thread.count = getattr(self.of_thread, "count", 0) + 1
        self.counts.append(self.of_thread.count)


@pytest.mark.parametrize("how", ["on_line", "on_stdout_line"])
def test_a_callback_is_called_in_one_thread_state(child, how):
    counted = Counted()
    run([child, "echo", "1\n2\n3"], **{how: counted})
    assert counted.counts == [1, 2, 3]


def test_an_iterator_for_stdin_is_asked_in_one_thread_state(child):
    def pieces():
        for _ in range(5):
            counted()
            yield b"x"

    counted = Counted()
    run([child, "cat"], stdin=pieces())
    assert counted.counts == [1, 2, 3, 4, 5]
    with spawn([child, "cat"], stdin=pieces()) as it:
        assert it.stdout.read() == b"xxxxx"
    assert counted.counts == [1, 2, 3, 4, 5] * 2


def test_input_is_let_go_of_without_another_call(child):
    data = bytes(300_000)
    before = sys.getrefcount(data)
    read_end, write_end = os.pipe()
    it = spawn([child, "cat"], input=data, stdout=write_end)
    os.close(write_end)
    with open(read_end, "rb") as output:
        assert len(output.read()) == len(data)
    # The watchdog ends this: no call of the package does it for the thread that wrote it.
    while sys.getrefcount(data) > before:
        pass
    it.wait()


def test_a_hook_is_let_go_of_with_its_child(child):
    class Hook:
        def __call__(self, event):
            pass

    hook = Hook()
    before = sys.getrefcount(hook)
    it = spawn([child, "echo", "x"], overflow=Overflow("spill"), on_event=hook)
    it.wait()
    it.stdout.read()
    del it
    # The core's thread may be the last that has it: then it goes with the next call.
    while sys.getrefcount(hook) > before:
        spawn([child, "echo"]).wait()


FORKED_IN_A_HANDLER = """
import os, signal, sys, threading
import procwright

how, end = sys.argv[1:]
parent = os.getpid()
# The program goes on until the fork has ended.
over, ended = os.pipe()
PROGRAM = f"echo up; read line <&{over}; echo $line"


def handler(*_):
    pid = os.fork()
    if pid == 0:
        if end == "raise":
            raise KeyError("of the fork")
        if end == "exit":
            sys.exit(7)
        return

    def reap():
        print("fork", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
        os.write(ended, b"over\\n")

    threading.Thread(target=reap).start()


signal.signal(signal.SIGUSR1, handler)


def signal_us(line):
    if line == b"up\\n":
        os.kill(parent, signal.SIGUSR1)


options = {"shell": True, "pass_fds": [over]}
try:
    if how == "run":
        result = procwright.run(PROGRAM, on_line=lambda line, _=None: signal_us(line), **options)
        told = result.stdout
    else:
        child = procwright.spawn(PROGRAM, **options)
        told = child.stdout.readline()
        threading.Thread(target=signal_us, args=(told,)).start()
        told += child.stdout.read()
    print("parent", told)
except Exception as error:
    if os.getpid() == parent:
        raise
    print(type(error).__name__, error, flush=True)
    os._exit(5)
"""


@pytest.mark.parametrize("how", ["run", "read"])
@pytest.mark.parametrize("end", ["return", "raise", "exit"])
def test_a_call_ends_in_a_fork_that_a_signal_handler_makes(script, how, end):
    forks = script(FORKED_IN_A_HANDLER, how, end)
    told, errors = forks.communicate()
    assert forks.returncode == 0, errors
    error, code = {
        ("run", "return"): ("ChildProcessError", 5),
        ("read", "return"): ("StreamForked", 5),
    }.get((how, end), ("KeyError", 5) if end == "raise" else (None, 7))
    lines = told.splitlines()
    assert lines[-2:] == [f"fork {code}", r"parent b'up\nover\n'"]
    assert [line.split()[0] for line in lines[:-2]] == ([error] if error else [])


FORK_OF_A_HOOK = """
import os
import signal

nested = None


def hook():
    global nested
    if nested is None:
        nested = 0
        nested = os.fork()


os.register_at_fork(before=hook)
import procwright

forked = os.fork()
called = []
procwright.run(["echo", f"{nested == 0} {forked == 0}"], on_line=called.append)
os.write(1, called[0])
for pid in (forked, nested if forked else 0):
    if pid:
        assert os.waitpid(pid, 0)[1] == 0
"""

IMPORT_IN_A_HOOK = """
import os
import signal


def hook():
    import procwright


os.register_at_fork(before=hook)
forked = os.fork()
import procwright

called = []
procwright.run(["echo", str(forked == 0)], on_line=called.append)
os.write(1, called[0])
if forked:
    assert os.waitpid(forked, 0)[1] == 0
"""


@pytest.mark.parametrize(
    ("code", "processes"), [(FORK_OF_A_HOOK, 4), (IMPORT_IN_A_HOOK, 2)], ids=["fork", "import"]
)
def test_a_hook_of_a_fork_may_fork_and_import(script, code, processes):
    forks = script(code)
    told, errors = forks.communicate()
    assert forks.returncode == 0, errors
    lines = told.splitlines()
    assert len(lines) == len(set(lines)) == processes


SUB_INTERPRETER = """
import sys

if sys.version_info >= (3, 13):
    import _interpreters as interpreters

    make = lambda: interpreters.create("legacy")
else:
    import _xxsubinterpreters as interpreters

    make = lambda: interpreters.create(isolated=False)
if sys.argv[1] == "before":
    import procwright
interpreters.run_string(make(), '''
try:
    import procwright
except ImportError as error:
    print(error, flush=True)
''')
import procwright

called = []
procwright.run(["echo", "in the main one"], on_line=called.append)
print(called)
"""


@pytest.mark.parametrize("main", ["before", "after"])
def test_a_sub_interpreter_is_refused(script, main):
    told, errors = script(SUB_INTERPRETER, main).communicate()
    refusal, called = told.splitlines()
    assert "main interpreter" in refusal, errors
    assert called == r"[b'in the main one\n']"


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_that_leaves_the_block_of_a_child_waits_for_nobody(child):
    with spawn([child, "cat"], stdin=PIPE) as it:
        pid = os.fork()
        if pid == 0:
            # The fork would wait for the child, which waits for its input's end, and that
            # for the fork.
            signal.alarm(100)
            try:
                it.__exit__(None, None, None)
                it.__exit__(KeyError, KeyError(), None)
            except BaseException:
                os._exit(1)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert it.poll() is None
    assert it.returncode == 0
