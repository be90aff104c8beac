"""PROCWRIGHT_TRACE, which the core reads whatever the front end is."""

from __future__ import annotations

import os
import re
import subprocess
import sys

CODE = """
import sys
from procwright import Stop, run, spawn
child = sys.argv[1]
run([child, "exit", "3"])
with spawn([child, "sleep-forever"]) as it:
    it.stop(Stop("KILL"))
"""


def trace(child: str, value: str) -> str:
    environ = dict(os.environ, PROCWRIGHT_TRACE=value)
    done = subprocess.run(
        [sys.executable, "-c", CODE, child], env=environ, check=True, text=True, capture_output=True
    )
    assert done.stdout == ""
    return done.stderr


def test_a_run_and_a_child(child, tmp_path):
    file = tmp_path / "trace"
    assert trace(child, str(file)) == ""
    on_stderr = trace(child, "1")
    for text in (file.read_text(), on_stderr):
        lines = [
            re.fullmatch(r"procwright\[\d+\.(\d+)\] \+\d+\.\d{3} (.*)", line).groups()
            for line in text.splitlines()
        ]
        assert [serial for serial, _ in lines] == list("111222")
        told = [event for _, event in lines]
        assert re.fullmatch(r"start pid \d+: \S*test-child exit 3", told[0])
        assert told[1] == "the program has exited"
        assert told[2].startswith("end: exited with code 3 after ")
        assert told[3].startswith("start pid ")
        assert told[4] == "stop: SIGKILL to the tree"
        assert told[5].startswith("end: killed by SIGKILL after ")


def test_nothing_unless_asked(child):
    assert trace(child, "") == trace(child, "0") == ""
