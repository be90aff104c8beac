"""What people type from habit works, or its error says what to type."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys

import pytest

import procwright
from procwright import PIPE, STDOUT, InvalidValue, MergedLine, _unknown, run, spawn

FUNCTIONS = {"run": run, "spawn": spawn}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_habit_has_a_hint_of_its_own(function):
    parameters = set(inspect.signature(FUNCTIONS[function]).parameters)
    for name in _unknown._HABITS:
        assert name not in parameters, name
        with pytest.raises(InvalidValue) as caught:
            FUNCTIONS[function](["true"], **{name: 5})
        text = str(caught.value)
        assert text.startswith(f"{name} is 5, and {function}() has no such parameter: ")
        assert "it has " not in text, text
        assert "did you mean" not in text, text


def test_no_hint_names_what_the_function_has_not():
    for function, call in FUNCTIONS.items():
        parameters = set(inspect.signature(call).parameters)
        for name, habit in _unknown._HABITS.items():
            hint = habit if isinstance(habit, str) else habit[function == "spawn"]
            if hint.startswith("use ") and function == "run":
                assert hint.split()[1].partition("=")[0].rstrip(",") in parameters, (name, hint)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("killSignal", 'use stop="KILL"'),
        ("extraEnv", "it is extra_env here"),
        ("timout", "did you mean timeout?"),
        ("cancle", "did you mean cancel?"),
        ("liveliness", "did you mean liveness?"),
        ("nonsense", "it has args, "),
        ("ventil", "it has args, "),
    ],
)
def test_only_a_slip_is_guessed(name, hint):
    with pytest.raises(InvalidValue) as caught:
        run(["true"], **{name: 5})
    assert f": {hint}" in str(caught.value)


@pytest.mark.parametrize("name", ["daemon", "detached"])
def test_who_wants_it_to_live_on_is_told_of_detach(name):
    for call in (run, spawn):
        with pytest.raises(InvalidValue, match="detach=True"):
            call(["true"], **{name: True})


def test_a_path_is_the_shell_to_use(child, tmp_path):
    shell = tmp_path / "shell"
    shell.write_text('#!/bin/sh\necho "mine: $2 $3"\n')
    shell.chmod(0o755)
    for one in (shell, str(shell), os.fsencode(shell)):
        assert run("a line", shell=one, text=True).stdout == "mine: a line \n"
        with spawn("a line", shell=one, text=True) as started:
            assert started.communicate()[0] == "mine: a line \n"
        [ended] = procwright.map(["a line"], shell=one, text=True)
        assert ended.result.stdout == "mine: a line \n"
    assert run("echo $0", shell="sh", text=True).stdout == "sh\n"
    for wrong in (1, 1.5, object(), [], "", b""):
        for call in (run, spawn):
            with pytest.raises(InvalidValue, match=r"^shell is .*: pass True for /bin/sh, or the"):
                call("x", shell=wrong)


def test_a_file_that_two_outputs_name_is_refused(child, tmp_path):
    file = tmp_path / "all"
    link = tmp_path / "link"
    link.symlink_to(file)
    for other in (file, str(file), os.fsencode(file), link, os.path.relpath(file)):
        for call in (run, spawn):
            with pytest.raises(InvalidValue) as caught:
                call([child, "exit", "0"], stdout=file, stderr=other)
            assert str(caught.value).endswith(": stdout names that file too: pass stderr=STDOUT")
    with pytest.raises(InvalidValue, match=r"^keep_full is .*: stderr names that file too"):
        run([child, "exit", "0"], stderr=file, keep_full=file)
    assert not file.exists()
    assert run([child, "exit", "0"], stdout=os.devnull, stderr=os.devnull).ok
    assert run("echo a; echo b >&2", shell=True, stdout=file, stderr=STDOUT).ok
    assert file.read_text() == "a\nb\n"


def test_names_of_subprocess_are_told_when_they_are_imported():
    for name in procwright._OF_SUBPROCESS:
        with pytest.raises(ImportError, match=f"no attribute '{name}': use "):
            exec(f"from procwright import {name}")
        with pytest.raises(AttributeError, match=f"no attribute '{name}': use "):
            getattr(procwright, name)
        assert not hasattr(procwright, name)
    with pytest.raises(ImportError, match="cannot import name 'nonsense'"):
        exec("from procwright import nonsense")
    text = subprocess.run(
        [sys.executable, "-c", "from procwright import check_output"], stderr=PIPE, text=True
    ).stderr
    assert text.endswith("use run(args, check=True).stdout\n")


def test_a_merged_line_is_taken_apart():
    with spawn("echo a; echo b >&2", shell=True, merged=True, text=True) as child:
        lines = []
        for stream, time, line in child.merged:
            assert isinstance(time, float)
            lines.append((stream, line))
    assert sorted(lines) == [("stderr", "b\n"), ("stdout", "a\n")]
    assert list(MergedLine("stdout", 1.5, b"x")) == ["stdout", 1.5, b"x"]


def test_communicate_refuses_merged_outputs():
    with spawn(["echo", "a"], merged=True, text=True) as child:
        with pytest.raises(InvalidValue, match=r"iterate over child\.merged, and wait\(\)$"):
            child.communicate()
        assert [item.line for item in child.merged] == ["a\n"]
        assert child.wait() == 0
