"""Starts where threads, processes or descriptors are missing, or that nobody wants any more.

Either the program runs and all that it needs of us is there, or it was never started and the
error says which step was refused.
"""

from __future__ import annotations

import errno
import os

import pytest

import procwright
from procwright import Cancel, Cancelled, run, spawn

#: Makes every start with one more of what is missing each time, until it is there. Prints the
#: errors on the way, as name, errno, step and whether somebody was called.
STARTS = """
import errno, os, resource, sys, threading
import procwright
from procwright import run, spawn
procwright.SpawnError, procwright.Cancelled  # What is imported when it is needed.
import procwright._callback, procwright._taps, logging

directory, what, user = sys.argv[1:]
def source(called):
    called.append("stdin")
    yield b"x"
def ended(child):
    while True:
        try:
            assert child.wait() == 0
            break
        except OSError as error:
            # A callback's thread may have the last descriptor for a moment. A wait that needs one
            # to sleep can be made again.
            if error.errno != errno.EMFILE: raise
    for caller in child._callers:
        caller.finish(procwright._child.Deadline(None))
null = open("/dev/null")
STARTS = {
    "run": lambda argv, called: run(argv),
    "run, lines": lambda argv, called: run(argv, on_line=called.append),
    "run, stdin": lambda argv, called: run(argv, stdin=source(called)),
    "run, tee": lambda argv, called: run(argv, tee=True),
    "run, descriptors": lambda argv, called: run(argv, pass_fds=[null.fileno()], stdin=null),
    "run, dies with us": lambda argv, called: run(argv, die_with_parent=True),
    "run, pty": lambda argv, called: run(argv, pty=True),
    "spawn": lambda argv, called: ended(spawn(argv)),
    "spawn, lines": lambda argv, called: ended(
        spawn(argv, on_stdout_line=called.append, on_stderr_line=called.append)
    ),
    "spawn, stdin": lambda argv, called: ended(spawn(argv, stdin=source(called))),
    "spawn, input": lambda argv, called: ended(spawn(argv, input=bytes(1 << 20))),
}
for name, start in STARTS.items():
    start(["true"], [])
if what == "NPROC":
    os.setgroups([])
    os.setresgid(int(user), int(user), int(user))
    os.setresuid(int(user), int(user), int(user))
kind = getattr(resource, "RLIMIT_" + what)
most, hard = resource.getrlimit(kind)
def present():
    while len(os.listdir("/proc/self/task")) > 1:
        pass  # Threads of ours end by themselves, and let go of their descriptors.
    if what == "NPROC":
        return 1
    with open("/dev/null") as file:
        return file.fileno()
for name, start in STARTS.items():
    for more in range(64):
        # A thread of an earlier start may call yet: it has another list.
        made, called = f"{directory}/{name} {more}", []
        now = present()
        resource.setrlimit(kind, (now + more, hard))
        try:
            start(["mkdir", made], called)
        except BaseException as error:
            kept = error
        else:
            kept = None
        finally:
            resource.setrlimit(kind, (most, hard))
        if kept is None:
            assert os.path.isdir(made), name
            break
        assert not os.path.exists(made), f"{name} was started: {kept!r}"
        if not isinstance(kept, procwright.SpawnError):
            raise kept
        print(name, kept.errno, kept.step, len(called), sep="; ")
"""


@pytest.mark.parametrize("what", ["NOFILE", "NPROC"])
def test_what_is_missing_is_missed_before_the_start(script, tmp_path, what):
    if what == "NPROC" and os.geteuid() != 0:
        pytest.skip("root is needed, to become a user whom nobody else is")
    tmp_path.chmod(0o777)
    for directory in [tmp_path, *tmp_path.parents][:3]:
        directory.chmod(directory.stat().st_mode | 0o111)
    process = script(STARTS, str(tmp_path), what, str(200_000 + os.getpid()))
    out, err = process.communicate()
    assert process.returncode == 0, err
    refused = [line.split("; ") for line in out.splitlines() if line.count("; ") == 3]
    assert {called for *_, called in refused} == {"0"}
    numbers = {number for _, number, _, _ in refused}
    steps = {step for _, _, step, _ in refused}
    if what == "NPROC":
        assert numbers == {str(errno.EAGAIN)}
        assert steps == {"pthread_create", "clone"}
        threads = [name for name, _, step, _ in refused if step == "pthread_create"]
        # The pump, and a thread for each callback.
        assert threads.count("spawn, lines") >= 3
        assert threads.count("run, lines") >= 2
    else:
        assert numbers == {str(errno.EMFILE)}
        assert steps <= {"pipe", "dup", "open", "openpt", "clone"}
        # Not of each start: a descriptor of the one before may be let go of meanwhile.
        assert len({name for name, *_ in refused}) > 5


def test_a_cancelled_cancel_starts_nothing(tmp_path):
    cancel = Cancel()
    cancel.cancel()
    made, kept = tmp_path / "made", tmp_path / "kept"
    kept.write_text("of before")

    def source():
        pytest.fail("input for whom?")
        yield b""

    for options in [{}, {"stdout": str(kept)}, {"stdin": source()}, {"on_timeout": "return"}]:
        with pytest.raises(Cancelled, match="was cancelled before it was started") as caught:
            run(["mkdir", made], cancel=cancel, **options)
        assert caught.value.result is None
        assert (caught.value.cmd, caught.value.output, caught.value.stdout) == (None, None, None)
        assert caught.value.stderr is None
        assert not made.exists()
        assert kept.read_text() == "of before"


@pytest.mark.parametrize("function", [run, spawn])
def test_words_that_the_shell_would_drop(function):
    with pytest.raises((TypeError, ValueError)) as caught:
        function(["echo", "-l", "a b"], shell=True)
    text = str(caught.value)
    assert f"{function.__name__}(\"echo -l 'a b'\", shell=True)" in text
    assert f"{function.__name__}(['echo', '-l', 'a b'])" in text


def test_words_that_the_shell_uses():
    for line in ['echo "$1"', 'echo "$@"', "echo ${1}", "echo $*", 'shift 0; echo "${1:-none}"']:
        assert run([line, "sh", "word"], shell=True).stdout == b"word\n"
    assert run(["echo $#", "sh", "word"], shell=True).stdout == b"1\n"
    assert run(["echo a b"], shell=True).stdout == b"a b\n"


@pytest.mark.parametrize("value", [5, "print", object()])
def test_a_callable_that_is_none_is_refused_at_the_call(tmp_path, value):
    made = tmp_path / "made"
    names = ["on_stdout_line", "on_stderr_line", "on_event"]
    for function in (run, spawn):
        for name in names if function is spawn else [*names, "on_line"]:
            with pytest.raises((TypeError, procwright.InvalidValue), match=f"^{name} "):
                function(["mkdir", made], **{name: value})
            assert not made.exists()
