"""The option `--procwright-explain` of pytest."""

import contextlib
import os
import select
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")

#: Waits until it has been told of it.
SLOW = """
import subprocess, time

def test_slow(request):
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE):
        while not request.node._report_sections:
            time.sleep(0.01)
    assert {outcome}

def test_quick():
    pass
"""

#: Hangs.
STUCK = """
import subprocess

def test_stuck():
    subprocess.Popen(["yes"], stdout=subprocess.PIPE).wait()
"""


def pytest_argv(*args):
    # A run of somebody else's: nothing of ours but what is installed.
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args]


def pytest_run(directory, *args):
    return subprocess.run(pytest_argv(*args), cwd=directory, capture_output=True, text=True)


def test_a_test_that_takes_long_is_explained_and_goes_on(tmp_path):
    (tmp_path / "test_it.py").write_text(SLOW.format(outcome="False"))
    result = pytest_run(tmp_path, "--procwright-explain=0.2")
    said = "test_it.py::test_slow has not ended after 0.2 s:\n"
    assert f"\n{said}" in result.stderr
    assert "Looked twice" in result.stderr
    assert "Captured procwright call" in result.stdout
    assert said in result.stdout
    assert "1 failed, 1 passed" in result.stdout


def test_the_ini_file_and_a_test_that_passes(tmp_path):
    (tmp_path / "test_it.py").write_text(SLOW.format(outcome="True"))
    (tmp_path / "pytest.ini").write_text("[pytest]\nprocwright_explain = 0.2\n")
    result = pytest_run(tmp_path)
    assert "test_slow has not ended after 0.2 s" in result.stderr
    assert "2 passed" in result.stdout


def explained(directory, limit):
    """What is said of a test that hangs, which is ended then."""
    argv = pytest_argv(f"--procwright-explain={limit}")
    run = subprocess.Popen(
        argv,
        cwd=directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with run:
        said = ""
        for line in run.stderr:
            said += line
            if "Looked twice" in line:
                break
        os.killpg(run.pid, signal.SIGKILL)
    return said


def test_a_deadlock_with_the_test_itself_is_one(tmp_path):
    (tmp_path / "test_it.py").write_text(STUCK)
    for limit in (1, 2, 4, 8, 20):
        said = explained(tmp_path, limit)
        assert "test_stuck has not ended after" in said
        if "Deadlock" in said:
            assert "cannot go on: stdout of it is full" in " ".join(said.split())
            return
    pytest.fail("after 20 s nothing has come to hang")


@pytest.mark.parametrize("reads", [True, False])
def test_a_stderr_that_takes_nothing_is_no_fault_of_the_test(tmp_path, reads):
    """It has lost its reader, or is full and has one that does not read."""
    (tmp_path / "test_it.py").write_text(SLOW.format(outcome="True"))
    reader, stderr = os.pipe()
    os.set_blocking(stderr, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(stderr, b"x" * select.PIPE_BUF)
    os.set_blocking(stderr, True)
    if not reads:
        os.close(reader)
    argv = pytest_argv("-W", "error", "--procwright-explain=0.2")
    with subprocess.Popen(
        argv, cwd=tmp_path, stdout=subprocess.PIPE, stderr=stderr, text=True
    ) as run:
        os.close(stderr)
        assert "2 passed" in run.stdout.read()
        assert run.wait() == 0
    if reads:
        os.close(reader)


@pytest.mark.parametrize("given", ["soon", "-1", "nan", "inf"])
def test_what_is_no_time_is_refused(tmp_path, given):
    result = pytest_run(tmp_path, f"--procwright-explain={given}")
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--procwright-explain is a number of seconds" in result.stderr
    assert repr(given) in result.stderr
