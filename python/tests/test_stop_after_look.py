"""`Child.stop` ends what the program has left, whatever was asked about it before."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from conftest import is_alive

import procwright
from procwright import DEVNULL, EndedBeforeMatch, spawn

#: Every way to learn that the program has ended.
LOOKS = {
    "nothing": lambda it: None,
    "wait": lambda it: it.wait(),
    "poll": lambda it: it.poll(),
    "returncode": lambda it: it.returncode,
    "status": lambda it: it.status,
    "repr": repr,
    "a signal": lambda it: it.terminate(),
    "wait of many": lambda it: procwright.wait([it]),
    "as_completed": lambda it: list(procwright.as_completed([it])),
    "wait_async": lambda it: asyncio.run(procwright.wait_async([it])),
    "the process": lambda it: (it.process.wait(), it.process.returncode),
}


def left_by(it, pidfile: Path) -> int:
    """The process that a program has left which has ended."""
    it.process.wait()
    pid = int(pidfile.read_text())
    assert is_alive(pid)
    return pid


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("options", [{}, {"process_group": 0}, {"start_new_session": True}])
@pytest.mark.parametrize("sink", [procwright.PIPE, DEVNULL])
def test_whatever_was_asked_before(child, tmp_path, look, options, sink):
    if sink is DEVNULL and not options:
        pytest.skip("nothing tells whose that is: docs/concepts/stopping.md")
    pidfile = tmp_path / "pid"
    argv = [child, "fork-holder", "0", "--pidfile", str(pidfile)]
    it = spawn(argv, stdout=sink, stderr=sink, **options)
    left = left_by(it, pidfile)
    LOOKS[look](it)
    assert is_alive(left), "a look ends nobody"
    assert it.stop() == []
    assert not is_alive(left)
    assert it.returncode == 0
    assert it.stop() == []


def test_a_block_that_is_left_by_an_exception(child, tmp_path):
    pidfile = tmp_path / "pid"
    # It holds stdout, and its stderr ends with the program.
    shell = '"$0" fork-holder 0 --pidfile "$1" 2>/dev/null; exec 2>&-; sleep 0.05'
    lefts = []

    def block():
        with spawn(["/bin/sh", "-c", shell, child, str(pidfile)]) as it:
            lefts.append(left_by(it, pidfile))
            it.wait_for(b"nobody says this", stream="stderr")

    with pytest.raises(EndedBeforeMatch):
        block()
    assert not is_alive(lefts[0])
