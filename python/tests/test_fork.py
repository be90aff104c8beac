"""Forks of a process in which the core's threads call Python."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from procwright import Overflow, run, spawn

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
