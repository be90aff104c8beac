"""What the tests share: their child processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def child() -> str:
    """The program that the tests run in many roles."""
    path = os.environ.get("PROCWRIGHT_TEST_CHILD")
    if path is None:
        root = Path(__file__).resolve().parents[2]
        target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
        path = str(target / "debug" / "test-child")
    if not os.path.exists(path):
        pytest.fail(
            f"{path} is missing: cargo build -p test-children, or set PROCWRIGHT_TEST_CHILD"
        )
    return path


@pytest.fixture
def script(tmp_path):
    """Runs Python code in a process of its own; gives back the process."""
    import subprocess

    started = []

    def start(code: str, *args: str, **options):
        path = tmp_path / f"script{len(started)}.py"
        path.write_text(code)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen([sys.executable, str(path), *args], text=True, **options)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def is_alive(pid: int) -> bool:
    """Whether a process runs: a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"
