"""What the table beside others in docs/recipes/pipelines.md says of bash, and of this."""

import pathlib
import re
import shlex
import signal
import subprocess
import sys

import pytest
from conftest import with_time

import procwright

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"

#: It goes on for ever, whoever reads.
IMMORTAL = (
    "import os, signal; signal.signal(signal.SIGPIPE, signal.SIG_IGN)\n"
    "while True:\n"
    " try: os.write(1, b'x\\n')\n"
    " except OSError: pass"
)


def shell(line):
    return ["sh", "-c", line]


#: The programs of each row.
ROWS = {
    "yes | head -1": [["yes"], ["head", "-1"]],
    "false | cat": [["false"], ["cat"]],
    "sh -c 'exit 3' | cat": [shell("exit 3"), ["cat"]],
    "yes | sh -c 'read x; exit 3'": [["yes"], shell("read x; exit 3")],
    "yes | (killed by SIGKILL) | cat": [["yes"], shell("kill -KILL $$"), ["cat"]],
    "immortal | head -1": [[sys.executable, "-c", IMMORTAL], ["head", "-1"]],
    "sleep 100 | no-such-program": [["sleep", "100"], ["no-such-program"]],
    "python3 tool.py | head -1": [
        [sys.executable, "-c", "while True: print('y')"],
        ["head", "-1"],
    ],
}


def table():
    """The cells of each row, by what the first has as code."""
    text = (DOCS / "recipes" / "pipelines.md").read_text().partition("## Beside others")[2]
    lines = [line for line in text.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
    found = {}
    for cells in rows:
        first, *others = [cell.strip().replace("\\|", "|") for cell in cells]
        found[first.partition(", where")[0].strip("`").replace("`", "")] = others
    return found


def test_the_rows_are_these():
    assert table().keys() == ROWS.keys()


@pytest.mark.parametrize("name", [name for name in ROWS if "immortal" not in name])
def test_what_it_says_of_bash(name):
    stages = ROWS[name]
    if stages[0] == ["sleep", "100"]:
        # It waits for that, which is so for a shorter one.
        stages = [["sleep", "0.1"], *stages[1:]]
    line = " | ".join(map(shlex.join, stages))
    for told, options in zip(table()[name], ("", "set -o pipefail; "), strict=False):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        code = subprocess.run(["bash", "-c", options + line], **quiet).returncode
        assert re.search(r"\b\d+\b", told)[0] == str(code), told


def judged(result):
    return [stage.judgement for stage in result.stages]


@pytest.mark.parametrize("name", list(ROWS))
def test_what_it_says_of_this(name):
    *_, told = table()[name]
    stages = ROWS[name]
    if told.startswith("stopped at the deadline"):

        def check(timeout):
            with pytest.raises(procwright.TimeoutExpired) as caught:
                procwright.pipeline(*stages, timeout=timeout, stop="KILL")
            assert judged(caught.value.result) == ["failed", "success"]

        with_time(check)
        return
    if told.endswith("nothing was started"):
        with pytest.raises(FileNotFoundError, match="stage 2 of 2"):
            procwright.pipeline(*stages)
        return
    result = procwright.pipeline(*stages)
    if told.startswith(("success", "forgiven")):
        assert result.ok
        assert judged(result) == ["forgiven", "success"]
        return
    code, stage = re.match(r"(\d+), stage (\d) named", told).groups()
    of = len(stages)
    assert f"stage {stage} of {of}" in result.outcome
    killed = result.returncode == -signal.SIGKILL
    assert int(code) == (128 + signal.SIGKILL if killed else result.returncode)
    failed = [place for place, one in enumerate(judged(result), 1) if one == "failed"]
    assert failed == [int(stage)]
    assert ("collateral" in judged(result)) == ("collateral" in told)
