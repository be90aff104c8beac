"""What the output of all children may take together."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import procwright
from procwright import Budget, InvalidValue, spawn


@pytest.fixture(autouse=True)
def as_before():
    before = procwright.budget()
    yield
    procwright.set_budget(before.memory, before.disk)
    assert procwright.budget() == before


def test_it_is_set_and_told():
    procwright.set_budget(memory="64MiB", disk=1 << 30)
    assert procwright.budget() == Budget(memory=64 << 20, disk=1 << 30)
    procwright.set_budget(1 << 20)
    assert procwright.budget() == Budget(1 << 20, None)
    procwright.set_budget()
    assert procwright.budget() == Budget(256 << 20, None)
    assert repr(procwright.budget()) == "Budget(memory=268435456, disk=None)"


def test_values_that_cannot_be_used():
    before = procwright.budget()
    for wrong in (-1, 2**63, "12 elephants", "", "1e3"):
        for name in ("memory", "disk"):
            with pytest.raises(InvalidValue, match=name):
                procwright.set_budget(**{name: wrong})
    for wrong in (1.5, True, b"1"):
        with pytest.raises(TypeError, match=r"^memory is .*64KiB"):
            procwright.set_budget(memory=wrong)
    assert procwright.budget() == before


def test_what_is_more_goes_to_disk(child):
    procwright.set_budget(memory="256KiB")
    it = spawn([child, "flood", "--out", "4M"])
    it.wait()
    assert it.stdout.figures.spilled_bytes >= 3 << 20
    assert len(it.stdout.read()) == 4 << 20


def test_the_environment_says_it_first():
    code = (
        "import procwright\n"
        "assert procwright.budget() == procwright.Budget(3 << 20, 5 << 30)\n"
        "procwright.set_budget(disk=None)\n"
        "assert procwright.budget() == procwright.Budget(256 << 20, None)\n"
    )
    said = {"PROCWRIGHT_MEMORY_BUDGET": "3MiB", "PROCWRIGHT_DISK_BUDGET": "5GiB"}
    subprocess.run([sys.executable, "-c", code], env=os.environ | said, check=True)
