"""What people type from habit works, or its error says what to type."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import io
import logging
import math
import os
import pathlib
import pickle
import re
import signal
import subprocess
import sys
import unittest.mock
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

import pytest

import procwright
from procwright import (
    PIPE,
    STDOUT,
    InvalidValue,
    MergedLine,
    Stop,
    _missing,
    _names,
    _unknown,
    queue,
    run,
    spawn,
)

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
        # As sh writes them.
        with pytest.raises(InvalidValue) as caught:
            FUNCTIONS[function](["true"], **{f"_{name}": 5})
        assert str(caught.value) == f"_{text}"


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
        ("_timeout", "it is timeout here"),
        ("extraEnv", "it is extra_env here"),
        ("timout", "did you mean timeout?"),
        ("cancle", "did you mean cancel?"),
        ("liveliness", "did you mean liveness?"),
        ("nonsense", "all that it has is in help(procwright.run)"),
        ("ventil", "it has until, "),
    ],
)
def test_only_a_slip_is_guessed(name, hint):
    with pytest.raises(InvalidValue) as caught:
        run(["true"], **{name: 5})
    assert f": {hint}" in str(caught.value)


def test_the_nearest_names_are_listed_and_no_more():
    texts = set()
    for seed in ("1", "2"):
        code = "import procwright\ntry: procwright.map([], ventil=5)\n"
        code += "except procwright.InvalidValue as error: print(error)"
        env = {"PYTHONHASHSEED": seed}
        texts.add(run([sys.executable, "-c", code], extra_env=env, text=True, check=True).stdout)
    (text,) = texts
    listed = text.split(": it has ")[1]
    assert listed.count(",") == 3, text
    assert " more, all in help(procwright.map)\n" in listed


def test_other_names_for_codes_that_are_no_failure(child):
    for call, said in [
        (lambda: run(["true"], retcode=(0, 1, 4)), "pass ok_codes=[1, 4]"),
        (lambda: run(["true"], success_exit_codes={0}), "pass ok_codes=[1]"),
        (lambda: run(["true"], check=[0, 2]), "check=True, ok_codes=[2]"),
        (lambda: spawn(["true"], ok_code=7), "pass ok_codes=[7]"),
        (lambda: procwright.map([["true"]], expected_codes=[3]), "pass ok_codes=[3]"),
        (
            lambda: list(procwright.map([{"args": ["true"], "ok_code": 3}])),
            "pass ok_codes=[3]",
        ),
        (lambda: run(["true"], ok_codes=1), "ok_codes is 1: pass a list of exit codes"),
        (lambda: run(["true"], ok_codes={0: [1]}), "codes by stage are those of a pipeline"),
        (lambda: run(["true"], ok_codes=iter([1])), "it can be gone through but once"),
    ]:
        with pytest.raises(InvalidValue) as caught:
            call()
        assert said in str(caught.value)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: procwright.pipeline("seq 3 | wc -l"),
            "pass each stage as a list, pipeline(['seq', '3'], ['wc', '-l']); lines for",
        ),
        (
            lambda: procwright.spawn_pipeline("echo 'a | b' | cat", ["wc"]),
            "spawn_pipeline(['echo', 'a | b'], ['cat'], ['wc']); lines for",
        ),
        (
            lambda: procwright.pipeline("cut -d '|' -f1 words"),
            "it needs a shell: run(",
        ),
        (
            lambda: procwright.pipeline("seq 3 > out | wc"),
            "it needs a shell: run('seq 3 > out | wc', shell=True)",
        ),
        (
            lambda: procwright.pipeline(["seq", "3"], "wc > $OUT"),
            "'wc > $OUT' needs a shell, as a stage ['sh', '-c', 'wc > $OUT']",
        ),
        (
            lambda: run("seq 3 | wc"),
            "pass its programs to pipeline(['seq', '3'], ['wc']), or say that it is a line",
        ),
        (
            lambda: spawn("seq 3 | wc"),
            "pass its programs to spawn_pipeline(['seq', '3'], ['wc']), or say",
        ),
        (lambda: run("ls 'a b'"), "pass a list, run(['ls', 'a b']), or say that it is a line"),
        (
            lambda: run("cd x && make"),
            ": say that it is a line for the shell, run('cd x && make', shell=True)",
        ),
        (
            lambda: procwright.map(["echo a", "echo b"]),
            "pass a list for each: map([['echo', 'a'], ['echo', 'b']]), or lines for the shell: "
            "map(['echo a', 'echo b'], shell=True)",
        ),
        (
            lambda: procwright.map(["ls", "-l"]),
            "pass a list of commands: map([['ls', '-l']]), or lines for the shell",
        ),
    ],
)
def test_a_line_is_told_as_the_lists_that_it_is(call, said):
    with pytest.raises(InvalidValue) as caught:
        call()
    assert said in str(caught.value)


def test_where_no_name_is_near_none_is_listed():
    for call in (run, spawn):
        with pytest.raises(InvalidValue) as caught:
            call(["true"], qqq=5)
        end = f": all that it has is in help(procwright.{call.__name__})"
        assert str(caught.value).endswith(end)


def test_a_file_to_append_to():
    with pytest.raises(InvalidValue, match=r'stdout=open\(path, "ab"\)'):
        run(["true"], append=True)
    with pytest.raises(InvalidValue, match=r"it is a path.*stdout=open\('log', 'ab'\)"):
        run(["true"], stdout=">>log")


def test_parameters_of_other_queues():
    for make in (
        queue.Receiver,
        queue.Receiver.of_parent,
        functools.partial(queue.Receiver.open, "x"),
    ):
        with pytest.raises(InvalidValue, match="no such parameter: limit is how much a lane takes"):
            make(maxsize=5)


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


def test_the_word_of_a_place_is_no_file(child, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for word in ("capture", "pipe", "inherit", "null", "devnull", "merged"):
        for name in ("stdout", "stderr"):
            for call in (run, spawn):
                with pytest.raises(InvalidValue, match=f"^{name} is '{word}': pass .*, or pathlib"):
                    call([child, "exit", "0"], **{name: word})
        assert run([child, "exit", "0"], stdout=pathlib.Path(word)).ok
    assert len(os.listdir(tmp_path)) == 6


def test_names_of_subprocess_are_told_when_they_are_imported():
    for name in [*_names.MODULE, "ErrorReturnCode_2", "SignalException_SIGKILL", "_Popen"]:
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


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("procwright.to_process", "what runs here are programs, and no functions"),
        ("procwright.cd", "cmd(...).with_options(cwd=...)"),
        ("procwright.run(['true']).exit_code", "use returncode"),
        ("procwright.spawn(['true']).send", "of a child with stdin=PIPE"),
        ("procwright.cmd('git').status", "a word of the program is with_args('status')"),
    ],
)
def test_python_puts_no_guess_of_its_own_behind_what_to_type(asked, told):
    words = [sys.executable, "-W", "ignore", "-c", f"import procwright\n{asked}"]
    last = run(words, text=True).stderr.splitlines()[-1]
    assert last.startswith("AttributeError: ")
    assert last.endswith(told)


def test_a_program_as_a_name_of_ours_is_told_how_it_is_run(tmp_path, monkeypatch):
    (tmp_path / "ls_of_ours").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImportError, match=r'use run\(\["ls_of_ours", \.\.\.\]\) for the program'):
        exec("from procwright import ls_of_ours")
    assert not hasattr(procwright, "ls_of_ours")
    with pytest.raises(ImportError, match="cannot import name 'ls'"):
        exec("from procwright import ls")


def test_a_merged_line_is_taken_apart():
    with spawn("echo a; echo b >&2", shell=True, merged=True, text=True) as child:
        lines = []
        for stream, line in child.merged:
            lines.append((stream, line))
    assert sorted(lines) == [("stderr", "b\n"), ("stdout", "a\n")]
    one = MergedLine("stdout", 1.5, b"x", True)
    assert one == ("stdout", b"x") == (one.stream, one.line)
    again = pickle.loads(pickle.dumps(one))
    assert (again, again.time, again.ambiguous) == (one, 1.5, True)
    assert repr(one) == "MergedLine(stream='stdout', time=1.5, line=b'x', ambiguous=True)"


def test_communicate_refuses_merged_outputs():
    with spawn(["echo", "a"], merged=True, text=True) as child:
        with pytest.raises(InvalidValue, match=r"iterate over child\.merged, and wait\(\)$"):
            child.communicate()
        assert [item.line for item in child.merged] == ["a\n"]
        assert child.wait() == 0


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: run("ls", "-l"), "run(['ls', '-l'])"),
        (lambda: spawn(["ls"], "-l", "-a"), "spawn(['ls', '-l', '-a'])"),
        (
            lambda: run("echo $1", "x", shell=True),
            "$1, $2, ...: run(['echo $1', 'sh', 'x'], shell=True)",
        ),
        (
            lambda: procwright.map(["echo", "{}"], "ABC"),
            "map([['echo', item] for item in items])",
        ),
        (lambda: procwright.map(print, "ABC"), "map([['program', item] for item in items])"),
    ],
)
def test_words_behind_the_arguments_say_where_they_go(call, hint):
    with pytest.raises(InvalidValue) as caught:
        call()
    assert str(caught.value).endswith(hint)
    assert isinstance(caught.value, TypeError)


def test_a_shell_takes_the_words_as_it_is_told():
    assert run(["echo $1", "sh", "x"], shell=True, text=True).stdout == "x\n"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("grace", "use stop=Stop(grace=seconds)"),
        ("scope", 'use stop=Stop(scope="group")'),
        ("dry_run", "leave the call out: shlex.join("),
        ("dry", "leave the call out: shlex.join("),
        ("on_cancel", "catch procwright.Cancelled"),
    ],
)
def test_what_is_done_otherwise_is_told(name, hint):
    calls = [*FUNCTIONS.values()]
    if name.startswith("dry"):
        calls.append(lambda args, **given: procwright.map([args], **given))
    for call in calls:
        with pytest.raises(InvalidValue) as caught:
            call(["true"], **{name: 3})
        assert f": {hint}" in str(caught.value)


def test_two_places_for_one_output_are_told_how():
    for call in FUNCTIONS.values():
        with pytest.raises(
            InvalidValue, match=r"^stdout is .*: pass one of them: .*keep_full=path"
        ):
            call(["true"], stdout=[PIPE, "file"])


def test_a_callback_that_takes_other_arguments_is_refused(child):
    class Has:
        def method(self, line, stream):
            pass

    for one in (lambda line, stream: None, lambda: None, Has().method):
        with pytest.raises(
            InvalidValue, match=r"^on_line is .*with 1 argument, as def on_line\(line\)"
        ):
            run([child, "echo", "x"], on_line=one)
        with pytest.raises(InvalidValue, match=r"with 1 argument, as def on_stdout_line\(line\)$"):
            spawn([child, "echo", "x"], on_stdout_line=one)
        with pytest.raises(InvalidValue, match=r"as def on_event\(event\)$"):
            run([child, "echo", "x"], on_event=one)
    with pytest.raises(InvalidValue, match=r"3 arguments, as def on_line\(line, stream, index\)$"):
        procwright.map([["true"]], on_line=lambda line: None)
    seen = []
    for one in (seen.append, lambda *line: seen.append(*line), lambda line, n=1: seen.append(line)):
        run([child, "echo", "x"], on_line=one)
    assert seen == [b"x\n"] * 3


class Awaited:
    """What can be called, and gives something that has to be awaited."""

    async def __call__(self, *_):
        raise AssertionError

    async def write(self, _):
        raise AssertionError

    async def numbers(self, *_):
        yield 1


def test_a_callback_that_has_to_be_awaited_is_refused(child):
    it = Awaited()
    for one in (it, it.write, it.numbers, functools.partial(it.write), functools.partial(it)):
        calls = {
            "on_line": lambda one: run([child, "fails"], on_line=one),
            "on_stderr_line": lambda one: run([child, "fails"], on_stderr_line=one),
            "on_stdout_line": lambda one: spawn([child, "fails"], on_stdout_line=one),
            "on_event": lambda one: spawn([child, "fails"], on_event=one),
            "callback": lambda one: procwright.wait([os.getpid()], timeout=0, callback=one),
        }
        for name, call in calls.items():
            with pytest.raises(
                InvalidValue, match=f"^{name} is .*: it is called, and nobody"
            ) as it:
                call(one)
            assert ("async for line in child.stdout" in str(it.value)) == ("line" in name)
        with pytest.raises(InvalidValue, match=r"^on_line is .*nobody would await it"):
            procwright.map([["true"]], on_line=one)
    for ordinary in (unittest.mock.Mock(return_value=None), [].append, functools.partial(print)):
        assert run([child, "exit", "0"], on_line=ordinary).ok


def test_what_has_to_be_awaited_is_no_file(child):
    with pytest.raises(InvalidValue, match=r"^tee is .*write\(\) has to be awaited"):
        run([child, "exit"], tee=Awaited())

    class Read:
        async def read(self, size):
            raise AssertionError

    for stdin in (Awaited().numbers(), Read()):
        for call in (run, spawn):
            with pytest.raises(InvalidValue, match=r"^stdin is .*: child = aio.spawn\(") as it:
                call([child, "cat"], stdin=stdin)
            assert "await child.stdin.send(piece)" in str(it.value)


def test_a_result_is_not_asked_whether_it_is_true(child):
    (ended,) = procwright.map([[child, "exit", "1"]])
    both = procwright.pipeline([child, "exit", "1"], ["cat"])
    for result in (run([child, "exit", "1"]), run([child, "exit"]), ended, ended.result, both):
        with pytest.raises(
            TypeError, match=r"neither true nor false: ask for its ok, .*or .* not None"
        ):
            bool(result)


def test_an_executable_for_a_shell_is_told_as_one():
    for call in (run, spawn):
        with pytest.raises(InvalidValue, match="shell names the shell: pass shell='/bin/bash'"):
            call("exit", shell=True, executable="/bin/bash")
        with pytest.raises(InvalidValue, match="the first of args is what is run"):
            call(["exit"], executable="/bin/bash")


def test_what_a_pipeline_has_not_is_told():
    of_whole = set(inspect.signature(procwright.pipeline).parameters)
    for name, hint in _unknown._OF_PIPELINE.items():
        assert name not in of_whole, name
        for stages, given in (([["true"]], {name: 5}), ([{"args": ["true"], name: 5}], {})):
            with pytest.raises(InvalidValue) as caught:
                procwright.pipeline(*stages, ["cat"], **given)
            assert str(caught.value) == f"{name} is 5, and pipeline() has no such parameter: {hint}"
    with pytest.raises(InvalidValue, match=r"it is one of the whole, pipeline\(..., text=True\)$"):
        procwright.pipeline({"args": ["true"], "text": True})
    with pytest.raises(InvalidValue, match=r"did you mean timeout\?$"):
        procwright.pipeline(["true"], timout=3)


def test_a_command_of_a_map_has_no_name():
    for name in _unknown._OF_A_COMMAND:
        (ended,) = refused = list(_until_refused({"args": ["true"], name: "test7"}))
        assert refused
        text = f"{name} is 'test7', and a command of map() has no such option: "
        assert str(ended).startswith(text)
        assert "names[ended.index]" in str(ended)


def _until_refused(command):
    try:
        list(procwright.map([command]))
    except InvalidValue as error:
        yield error


def test_an_error_of_ours_is_made_of_a_result(child):
    with pytest.raises(InvalidValue, match=r"^result is 7: pass a Result.*subprocess.Called"):
        procwright.CalledProcessError(7, ["make"])
    with pytest.raises(InvalidValue, match=r"^result is 7: pass a Result.*subprocess.Called"):
        procwright.CalledProcessError(7, ["make"], output="", stderr="no rule")
    with pytest.raises(InvalidValue, match=r"^result is None: pass a Result.*subprocess.Called"):
        procwright.CalledProcessError(returncode=7, cmd="make")
    error = procwright.CalledProcessError(run([child, "exit", "7"]), "it says so")
    assert (str(error), error.returncode) == ("it says so", 7)
    assert pickle.loads(pickle.dumps(error)).returncode == 7
    with pytest.raises(procwright.TimeoutExpired) as caught:
        run([child, "sleep", "1000"], timeout=0.01)
    # It is an OSError, whose constructor would take these from its arguments.
    assert (caught.value.errno, caught.value.filename) == (None, None)


def test_a_process_of_nobody_says_of_whom():
    with pytest.raises(InvalidValue, match=r"^process is None: pass its number.*os.getpid\(\)"):
        procwright.Process(None)
    with pytest.raises(InvalidValue, match=r"^Process\(\) is of a process, .*os.getpid\(\)"):
        procwright.Process()


def test_a_number_is_no_signal_of_a_stop():
    for number in (5, 2, 15):
        with pytest.raises(InvalidValue, match=r"^signal is .*may be a signal or seconds.*grace=5"):
            Stop(number)
    assert Stop(signal.SIGINT) == Stop("INT") == Stop("SIGINT")
    for number in (signal.SIGKILL, signal.SIGRTMIN, signal.SIGRTMAX):
        stop = Stop(signal.Signals(number), grace=2.5)
        assert pickle.loads(pickle.dumps(stop)) == stop
        assert copy.copy(stop) == stop
    for number in range(signal.SIGRTMIN + 1, signal.SIGRTMAX):
        stop = Stop(f"RTMIN+{number - signal.SIGRTMIN}")
        assert pickle.loads(pickle.dumps(stop)) == stop


def attributes_asked(child):
    result = run([child, "exit", "0"])
    running = procwright.map([[child, "exit", "0"]])
    yield running, _missing.MAP
    yield running.progress, _missing.PROGRESS
    [ended] = running
    with spawn([child, "exit", "0"]) as it:
        yield result, _missing.RESULT
        yield ended, _missing.ENDED
        yield it, _missing.CHILD
        yield it.process, _missing.PROCESS


def test_attributes_of_others_are_told(child):
    for thing, hints in attributes_asked(child):
        name = type(thing).__name__
        for asked, hint in hints.items():
            assert not hasattr(thing, asked), asked
            with pytest.raises(AttributeError) as caught:
                getattr(thing, asked)
            assert str(caught.value) == f"{name!r} object has no attribute {asked!r}: {hint}"
            first, _, second = hint.partition(" ")
            if first == "use" and second[0].isalpha():
                # What it says to use is there.
                used = second.partition(" ")[0].partition("(")[0].rstrip(",;")
                assert used in ("not", "json.loads", "result") or hasattr(
                    thing, used.partition(".")[0]
                ), (asked, hint)
        with pytest.raises(AttributeError) as caught:
            getattr(thing, "nonsense")  # noqa: B009
        assert str(caught.value) == f"{name!r} object has no attribute 'nonsense'"
        assert caught.value.name == "nonsense"


def test_what_a_result_has_is_told_by_who_has_the_result(child):
    [ended] = procwright.map([[child, "exit", "0"]])
    with spawn([child, "exit", "0"]) as it:
        with pytest.raises(AttributeError, match=r"'reason': use child\.result\(\)\.reason$"):
            getattr(it, "reason")  # noqa: B009
        with pytest.raises(AttributeError, match=r"'timed_out': of child\.result\(\): use reason"):
            getattr(it, "timed_out")  # noqa: B009
    with pytest.raises(AttributeError, match=r"'reason': use ended\.result\.reason$"):
        getattr(ended, "reason")  # noqa: B009


def test_a_result_can_be_copied(child):
    result = run([child, "echo", "x"], text=True)
    for again in (copy.copy(result), copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert again.stdout == "x\n"


def test_who_iterates_over_a_child_is_told_what_to_iterate_over(child):
    with (
        spawn([child, "echo", "x"]) as it,
        pytest.raises(TypeError, match=r"iterate over child\.stdout"),
    ):
        list(it)


def test_seconds_in_texts_are_rounded(child):
    with spawn([child, "sleep-forever"], text=True) as it:
        for timeout, text in (
            (0.05999835700073163, "within 0.06 s"),
            (-1.0000030039991543, "within 0 s"),
            (0.05, "within 0.05 s"),
        ):
            for call in (
                lambda timeout: it.wait_for("x", timeout),
                lambda timeout: it.stdout.readline(timeout=timeout),
                lambda timeout: it.wait(timeout),
                lambda timeout: it.process.wait(timeout),
                lambda timeout: procwright.wait([it], timeout=timeout) and it.process.wait(timeout),
            ):
                with pytest.raises(procwright.WaitTimeout) as caught:
                    call(timeout)
                assert text in str(caught.value)
        it.stop("KILL")


def test_a_read_of_so_many_bytes_has_a_time_limit(child):
    with spawn([child, "cat"], stdin=PIPE) as it:
        it.stdin.write(b"1234")
        for _ in range(3):
            with pytest.raises(
                procwright.WaitTimeout, match=r"^no 8 bytes from stdout of .*0\.05 s"
            ):
                it.stdout.read(8, timeout=0.05)
        with pytest.raises(procwright.WaitTimeout, match=r"^no end of stdout of .*"):
            it.stdout.read(timeout=0)
        it.stdin.write(b"56789")
        assert it.stdout.read(8, timeout=60) == b"12345678"
        assert it.stdout.read(1, timeout=0) == b"9"
        it.stdin.close()
        assert it.stdout.read(timeout=60) == b""
        assert it.stdout.read(5, timeout=math.inf) == b""


def test_check_of_a_map_raises_as_run(child):
    slow = [child, "sleep-forever"]
    for command, kind in (
        ({"args": slow, "timeout": 0.05}, procwright.TimeoutExpired),
        ({"args": slow, "idle_timeout": 0.05}, procwright.IdleTimeout),
        (
            {"args": [child, "echo", "long"], "limit": procwright.Limit(1, "fail")},
            procwright.OutputLimitExceeded,
        ),
        ({"args": [child, "exit", "3"]}, procwright.CalledProcessError),
    ):
        for executor in (None, ThreadPoolExecutor(1)):
            [ended] = procwright.map([command], stop="KILL", executor=executor)
            with pytest.raises(kind) as caught:
                ended.check()
            assert caught.value.result is ended.result
            if executor is not None:
                executor.shutdown()
            if "timeout" in command:
                assert caught.value.timeout == 0.05


def test_a_bug_in_on_line_of_a_map_is_logged(child, caplog):
    def show(line, stream, index):
        return {}["bug"]

    running = procwright.map([[child, "echo", "x"]], on_line=show)
    with caplog.at_level(logging.ERROR):
        [ended] = running
    [record] = caplog.records
    assert record.name == "procwright"
    assert "on_line for command 0 of a map has raised KeyError: 'bug'" in record.getMessage()
    assert record.exc_info[0] is KeyError
    assert ended.outcome == "KeyError: 'bug'"
    with pytest.raises(KeyError):
        ended.check()


def test_all_stages_in_one_list_are_told_to_be_unpacked():
    for stages in ([["seq", "3"], ["wc"]], [{"args": ["seq", "3"]}, ["wc"]]):
        with pytest.raises(
            InvalidValue, match=r"each stage is an argument: pass pipeline\(\*stages"
        ):
            procwright.pipeline(stages)


def test_what_an_ended_gives_back(child):
    for ended in procwright.map([[child, "echo", "x"]], text=True):
        assert ended.check().stdout == "x\n"


def test_patterns_in_a_list_are_told_as_one(child):
    with spawn([child, "echo", "x"], text=True) as it:
        with pytest.raises(InvalidValue, match=r'one regular expression for all, "\(first\)'):
            it.wait_for(["a", "b"])
        assert it.wait_for("(a)|(x)").lastindex == 2


def test_a_pattern_over_two_lines_is_told_of():
    for pattern in ("a\nb", r"a\nb", re.compile(b"a\nb"), rb"a\nb"):
        assert "in one line at a time" in str(procwright.MatchTimeout("x", 1, pattern, []))
        ended = str(procwright.EndedBeforeMatch("x", 0, pattern, ["a", "b"]))
        assert ended.startswith("x exited with code 0 before it said ")
        assert "(which is looked for in one line at a time); its last lines" in ended
    assert "at a time" not in str(procwright.MatchTimeout("x", 1, "a.b", []))


def test_attributes_of_a_pipeline_are_told():
    both = procwright.pipeline(["true"], ["true"])
    for name, hint in _missing.PIPELINE.items():
        with pytest.raises(AttributeError) as caught:
            getattr(both, name)
        assert str(caught.value) == f"'PipelineResult' object has no attribute {name!r}: {hint}"


def test_methods_say_what_to_type(child):
    with spawn([child, "sleep-forever"]) as it:
        for call, hint in (
            (lambda: it.stop(grace=1), r'pass Stop("TERM", grace=seconds)'),
            (lambda: it.stop(timeout=3), r'pass Stop("TERM", grace=seconds)'),
            (lambda: it.stop(stp="KILL"), "did you mean stop?"),
            (lambda: it.stop(qqq=1), "it has stop"),
            (lambda: it.terminate(force=True), "use stop()"),
            (lambda: it.kill(qqq=1), "it has none"),
        ):
            with pytest.raises(InvalidValue) as caught:
                call()
            assert hint in str(caught.value)
            assert isinstance(caught.value, TypeError)
        assert it.poll() is None
        assert it.stop(stop="KILL") == []
    assert str(inspect.signature(it.stop)).startswith("(stop: ")


def test_errors_say_who_has_what_they_have_not(child):
    with pytest.raises(procwright.TimeoutExpired) as caught:
        run([child, "sleep-forever"], timeout=0.05, stop="KILL")
    error = caught.value
    for name, hint in (
        ("returncode", "use result.returncode"),
        ("summary", "use result.summary"),
        ("duration_s", "use result.duration_s"),
        ("exit_code", "of result: use returncode"),
        ("timedOut", 'of result: use reason == "timeout"'),
    ):
        with pytest.raises(AttributeError, match=f"{re.escape(hint)}$"):
            getattr(error, name)
    with pytest.raises(procwright.CalledProcessError) as caught:
        run([child, "exit", "3"], check=True)
    for name in ("status", "signal", "exit_code", "ok"):
        with pytest.raises(AttributeError, match=r": (use|of) result"):
            getattr(caught.value, name)
    assert repr(caught.value) == f"CalledProcessError({caught.value.result.summary!r})"
    assert not hasattr(caught.value, "__notes__")
    with spawn([child, "sleep-forever"]) as it:
        with pytest.raises(procwright.WaitTimeout) as waited:
            it.wait(0.01)
        it.stop("KILL")
    with pytest.raises(AttributeError, match="there is no result yet"):
        waited.value.returncode  # noqa: B018
    again = pickle.loads(pickle.dumps(caught.value))
    assert repr(again) == repr(caught.value)


def test_names_of_other_languages_are_told(child):
    result = run([child, "exit", "0"])
    for name, hint in (
        ("timedOut", 'use reason == "timeout"'),
        ("isCanceled", 'use reason == "cancelled"'),
        ("exitCode", "use returncode"),
        ("durationS", "use duration_s"),
    ):
        with pytest.raises(AttributeError, match=f"{re.escape(hint)}$"):
            getattr(result, name)
    for name in ("preferLocal", "ipc", "deliver_cancel", "capture_stdout"):
        with pytest.raises(InvalidValue, match=r": (use|both outputs|spawn)") as caught:
            run(["true"], **{name: True})
        assert "it has " not in str(caught.value)
    with pytest.raises(InvalidValue, match="deadline is that of all"):
        procwright.map([["true"]], timeout_all=5)
    with pytest.raises(InvalidValue, match=r"calls time\.sleep\(0\.1\)"):
        procwright.map([["true"]], delay=0.1)
    with pytest.raises(InvalidValue, match="the program says what is echoed: leave it out"):
        spawn(["cat"], pty=True, echo=False)
    with pytest.raises(InvalidValue, match=r"print\(shlex\.join\(args\)\) before the call"):
        run(["cat"], echo=True)
    with pytest.raises(InvalidValue, match="what is written to a pipe is not echoed"):
        run(["cat"], echo_stdin=True)
    for name in ("encoding", "env", "pty", "shell"):
        with pytest.raises(AttributeError, match="it is what was passed to run"):
            getattr(run(["true"]), name)
    with pytest.raises(AttributeError, match="nothing is shown unless tee=True"):
        _ = run(["true"]).hide


def test_a_limit_for_each_stream_is_told_as_one():
    for call in (run, spawn):
        with pytest.raises(InvalidValue, match=r"^limit is .*pass one, for both$"):
            call(["true"], limit={"stdout": 100, "stderr": 10})


def test_a_function_at_the_end_is_told_what_to_put_behind_it():
    with pytest.raises(InvalidValue, match=r'put a program behind it, \["cat"\]$'):
        procwright.pipeline(["cat"], lambda lines: lines)


def test_a_result_in_place_of_merged_lines_is_refused():
    with spawn("echo a; echo b >&2", shell=True, merged=True, text=True) as child:
        with pytest.raises(InvalidValue, match=r"iterate over child\.merged first, and result\(\)"):
            child.result()
        assert sorted(line.line for line in child.merged) == ["a\n", "b\n"]
        assert child.result().ok
    # Who stops it wants nothing more of what it says.
    with spawn(["yes"], merged=True) as child:
        child.stop("KILL")
        assert child.result().reason == "cancelled"


INTO_STDIN = "; an iterable, a file or a pathlib.Path goes into stdin="


@pytest.mark.parametrize("input", [iter([b"a"]), (b for b in [b"a"]), pathlib.Path("a"), sys.stdin])
def test_input_that_is_not_the_data_is_sent_to_stdin(input):
    for call in (
        lambda: run(["cat"], input=input),
        lambda: spawn(["cat"], input=input),
        lambda: procwright.pipeline(["cat"], ["cat"], input=input, text=True),
        lambda: procwright.spawn_pipeline(["cat"], ["cat"], input=input),
    ):
        with pytest.raises(InvalidValue) as caught:
            call()
        assert str(caught.value).startswith("input is ")
        assert str(caught.value).endswith(INTO_STDIN)


def test_a_function_in_front_of_a_pipeline_is_its_stdin():
    def words(lines=None):
        yield b"a\n"

    with pytest.raises(InvalidValue, match="give the first program its input by stdin="):
        procwright.pipeline(words, ["cat"])
    assert procwright.pipeline(["cat"], ["cat"], stdin=words()).stdout == b"a\n"


def test_a_map_that_halts_soon_is_told_how():
    for value in ("soon,fail=1", "soon"):
        with pytest.raises(InvalidValue, match="for `soon` have the iterable of commands end"):
            procwright.map([["true"]], halt=value)
    for value in ("now,fail=1", 1):
        with pytest.raises(InvalidValue, match=r"pass stop_after_failures=1$"):
            procwright.map([["true"]], halt=value)


def test_text_looked_for_in_bytes_is_told_of_both_ways():
    with spawn(["cat"], stdin=PIPE) as child:
        for pattern in ("a", re.compile("a")):
            with pytest.raises(InvalidValue, match=r"for bytes, .*, or spawn with text=True$"):
                child.wait_for(pattern)
        with pytest.raises(InvalidValue, match=r"for bytes, which the streams are of$"):
            child.wait_for(5)


def test_both_directions_are_told():
    with pytest.raises(InvalidValue, match=r'stdin=PIPE, channel="from_child"'):
        spawn(["true"], channel="both")


def test_where_lines_may_go():
    log = logging.getLogger("procwright.test")
    for call in (run, spawn):
        with pytest.raises(InvalidValue, match=r"on_stderr_line=lambda line: log\.info\(line\)"):
            call(["true"], stderr=log)
        with pytest.raises(InvalidValue, match=r"on_stdout_line=print is called with each line"):
            call(["true"], stdout=print)
        with pytest.raises(InvalidValue, match=r"tee=\{'stderr': it\}"):
            call(["true"], stderr=io.StringIO())
        with pytest.raises(InvalidValue, match="tee=path has a copy of both outputs"):
            call(["true"], log="x.log")


def test_a_read_of_the_child_is_one_of_its_stream():
    with spawn(["true"]) as child, pytest.raises(AttributeError, match=r"use stdout\.read1\(\)"):
        child.read1()


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: procwright.run(["a"], retries=3), "for attempt in range(3)"),
        (lambda: procwright.run(["a"], verbose=True), "before your Python starts its first"),
        (lambda: procwright.pipeline(["a"], ["b"], on_line=print), "spawn_pipeline(...) gives it"),
        (lambda: procwright.map([["a"]], results="x"), '"stdout": f"{n}.out"'),
        (lambda: procwright.map([["a"]], link=True), "zip(these, those)"),
        (lambda: procwright.map([["a"]], delay=1), "calls time.sleep(0.1) before"),
    ],
)
def test_what_others_have_is_told_as_what_to_type(call, hint):
    with pytest.raises(procwright.InvalidValue) as caught:
        call()
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"_out": print}, "use on_stdout_line=print, which is called with each line"),
        ({"err": print}, "use on_stderr_line=print, which is called with each line"),
        ({"out": "file"}, "use stdout"),
        ({"hide": "stderr"}, 'tee={"stdout": True} shows the other'),
        ({"hide": "out"}, 'tee={"stderr": True} shows the other'),
        ({"hide": True}, "leave it out"),
        ({"logfile": sys.stdout}, "tee=sys.stdout, or another file or a path"),
        ({"log": "path"}, "tee=path has a copy"),
        ({"retcode": None}, "any exit code is a result unless check=True is said: leave it out"),
        ({"_ok_code": None}, "any exit code is a result unless check=True is said: leave it out"),
    ],
)
def test_the_value_says_what_is_meant(given, hint):
    for call in FUNCTIONS.values():
        with pytest.raises(InvalidValue) as caught:
            call(["true"], **given)
        assert hint in str(caught.value)


def test_stderr_of_a_stage_is_passed_on_as_it_is_told():
    hint = _unknown._OF_PIPELINE["from"]
    line = hint.split("'")[1]
    stage = ["sh", "-c", line, "sh", "sh", "-c", "echo out; echo err >&2"]
    assert procwright.pipeline(stage, ["cat"], text=True).stdout == "err\n"
    (document,) = (pathlib.Path(__file__).parents[2] / "docs" / "recipes").glob("pipelines.md")
    assert line in document.read_text()
    line = line.replace("2>&1 >/dev/null", "3>&1 >&2 2>&3 3>&-")
    both = procwright.pipeline([*stage[:2], line, *stage[3:]], ["cat"], text=True)
    assert both.stdout == "err\n"
    assert both.stages[0].stderr == "out\n"


def test_ways_to_run_a_command_of_plumbum_are_told():
    class _FG:
        pass

    for way, hint in (
        (_FG(), r"use \.run\(stdin=INHERIT"),
        (1, r"\.spawn\(\).*\.run\(tee=True\)$"),
    ):
        with pytest.raises(TypeError, match=hint):
            procwright.cmd("true") & way
    with pytest.raises(TypeError, match=r"use \.run\(stderr='err'\)$"):
        procwright.cmd("true") >= "err"  # noqa: B015
    inner = procwright.cmd("echo", "x")
    with pytest.raises(InvalidValue, match=r"^args\[0\] is .*\*command\.args$"):
        procwright.cmd("env").with_args(inner)
    assert procwright.cmd("env").with_args(*inner.args).run(text=True).stdout == "x\n"


@pytest.mark.parametrize("text", [False, True])
def test_a_mapping_is_no_stdin(text):
    for call in (
        lambda stdin: run(["cat"], stdin=stdin, text=text),
        lambda stdin: spawn(["cat"], stdin=stdin, text=text),
        lambda stdin: procwright.pipeline(["cat"], ["cat"], stdin=stdin, text=text),
        lambda stdin: procwright.map([{"args": ["cat"], "stdin": stdin}], text=text).wait(),
    ):
        for stdin in ({"file": "in.txt"}, {b"a": 1}, os.environ):
            with pytest.raises(InvalidValue, match=r"^stdin is .*stdin=pathlib\.Path\(\.\.\.\)"):
                call(stdin)


def test_what_nothing_would_look_at_is_not_set(child):
    both = procwright.spawn_pipeline(["true"], ["true"])
    with spawn([child, "exit", "3"]) as it, both:
        for name, hint in (
            ("logfile", "tee=sys.stdout"),
            ("logfile_read", "tee=sys.stdout"),
            ("timeout", r"wait_for\(\), readline\(\) and wait\(\) have one each"),
            ("delaybeforesend", "leave it out"),
            ("mine", "keep it beside the child$"),
        ):
            with pytest.raises(AttributeError, match=f"'{name}' to set: .*{hint}"):
                setattr(it, name, None)
        for name, hint in (("logfile", '"tee", path'), ("mine", "keep it beside")):
            with pytest.raises(AttributeError, match=f"'{name}' to set: .*{hint}"):
                setattr(both, name, None)
        with pytest.raises(AttributeError):
            it.returncode = 5
        # What a mock or a test replaces is there.
        with unittest.mock.patch.object(it, "wait", return_value=7):
            assert it.wait() == 7
        assert it.wait() == 3
        with unittest.mock.patch.object(procwright.Child, "poll", return_value=8):
            assert it.poll() == 8
        it.stdout = None
        assert it.communicate()[0] is None


def test_a_subclass_of_a_child_has_attributes_of_its_own():
    class Mine(procwright.Child):
        def __init__(self):
            self.mine = 5

    assert Mine().mine == 5


def test_a_status_is_no_number(child):
    with spawn([child, "exit", "4"]) as it:
        status = it.process.wait()
        for number in (4, 0, -9, True, signal.SIGKILL):
            with pytest.raises(TypeError, match=r"compare its returncode, status\.returncode =="):
                assert status == number
            with pytest.raises(TypeError, match="a Status is no number"):
                assert number != status
        with pytest.raises(TypeError, match="a Status is no number"):
            assert status in (0, 4)
    assert status.returncode == 4
    assert status == procwright.Status("exited", 4)
    assert status != procwright.Status("exited", 0)
    assert status != "4"
    assert status is not None
    assert len({status, procwright.Status("exited", 4)}) == 1


def test_a_child_is_no_stdin_and_its_output_is():
    with procwright.spawn(["true"]) as child:
        with pytest.raises(procwright.InvalidValue, match=r"stdin=child\.stdout"):
            procwright.spawn(["cat"], stdin=child)
        with pytest.raises(procwright.InvalidValue, match=r"stdin=child\.stdout"):
            procwright.run(["cat"], stdin=child)


def test_commands_that_are_awaited_are_no_iterable():
    async def commands():
        yield ["true"]

    with pytest.raises(procwright.InvalidValue, match=r"\[one async for one in commands\]"):
        procwright.map(commands())


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: run("true", shell=True, echo=True), "print(args) before the call"),
        (lambda: run("true", shell=True, dry=True), ": args is the line"),
        (lambda: run(["true"], hide="stderr"), 'tee={"stdout": True} shows the other'),
        (lambda: run(["true"], retcode=None), "leave it out"),
        (lambda: run(["true"], _ok_code=[0, 3]), "pass ok_codes=[3]"),
        (lambda: run(["true"], _err_to_out=True), "pass stderr=STDOUT"),
        (lambda: run(["true"], _cwd="/"), "it is cwd here"),
        (lambda: run(["true"], _out=print), "use on_stdout_line"),
        (lambda: run(["true"], buffer=False), "pass limit=0"),
        (lambda: run(["true"], timeout_signal="KILL"), 'use stop="KILL"'),
        (lambda: run(["cat"], stdin={"file": "in.txt"}), "it is a mapping: pass a file's name"),
        (lambda: spawn(["true"], logfile=sys.stdout), "tee=sys.stdout"),
        (lambda: procwright.cmd("true", ok_code=3), "pass ok_codes=[3]"),
        (lambda: procwright.cmd("curl", o="page.html"), "words of it: '-o', 'page.html'"),
        (lambda: procwright.cmd("ls", no_group=True), "words of it: '--no-group'"),
        (lambda: procwright.cmd("ls", timout=1), "did you mean timeout?"),
        (lambda: procwright.cmd("git").with_args("log", n=3), "words of it: '-n', '3'"),
        (lambda: procwright.cmd("ls", ["a", "b"]), "each of these is a word, *words"),
        (lambda: run(["cat"], stdin=Queue()), "pass iter(queue.get, None)"),
        (lambda: run(["cat"], stdin=asyncio.Queue()), "it has to be awaited"),
        (lambda: run(["cat"], stdin=run(["true"])), "input=result.stdout"),
        (lambda: run(["cat"], input=run(["true"])), "input=result.stdout"),
        (lambda: run(["cat"], input=procwright.pipeline(["true"])), "input=result.stdout"),
    ],
    ids=str,
)
def test_more_habits_are_answered(call, said):
    with pytest.raises(InvalidValue) as caught:
        call()
    assert said in str(caught.value)


RESULTS = {
    "Result": lambda: run(["echo", "x"], text=True),
    "PipelineResult": lambda: procwright.pipeline(["echo", "x"], text=True),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_not_taken_apart(name):
    for take in (list, lambda result: [*result], dict):
        with pytest.raises(TypeError, match=rf"^a {name} is not iterable: take stdout, stderr"):
            take(RESULTS[name]())


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_no_text(name):
    result = RESULTS[name]()
    for take, hint in (
        (lambda: "x" in result, "look in its stdout"),
        (lambda: result + "y", "add its stdout"),
        (lambda: "y" + result, "add its stdout"),
    ):
        with pytest.raises(TypeError, match=f"^a {name} is no text: {hint}$"):
            take()
    for method in ("strip", "splitlines", "split", "decode"):
        with pytest.raises(AttributeError, match=rf": use stdout\.{method}\(\)$"):
            getattr(result, method)
    # It shows what came, in a log too.
    assert str(result) == repr(result) == f"{result}"


def test_a_command_is_no_block_and_has_no_subcommands():
    command = procwright.cmd("git")
    with pytest.raises(TypeError, match=r"use `with command\.spawn\(\) as child`"), command:
        pass
    with pytest.raises(
        AttributeError, match=r"a word of the program is with_args\('cherry-pick'\)"
    ):
        command.cherry_pick()
    with pytest.raises(AttributeError) as caught:
        command.with_arg("status")
    # Of a slip Python says which name it is like.
    assert caught.value.obj is command
    assert not hasattr(command, "_private")


def test_names_of_others_are_told_where_they_are_imported():
    for module, name, hint in [
        ("procwright", "SubprocessError", "use subprocess.SubprocessError"),
        ("procwright", "Popen", "use spawn, which gives a Child"),
        ("procwright", "FG", "stdin=INHERIT"),
        ("procwright", "local", "use cmd"),
        ("procwright.aio", "run_process", "use await aio.run"),
        ("procwright.aio", "to_process", "use anyio.to_process"),
    ]:
        if module == "procwright.aio":
            pytest.importorskip("anyio")
        with pytest.raises(ImportError, match=re.escape(hint)):
            exec(f"from {module} import {name}")


def test_what_is_advised_goes_through():
    """The advice for a name of others is one that runs, and leads to no second error."""
    for data in ("x", b"x"):
        with pytest.raises(TypeError) as caught:
            procwright.cmd("cat") << data
        advised = str(caught.value).partition(": use ")[2]
        assert eval(f"procwright.cmd('cat'){advised}").stdout == data
    with pytest.raises(AttributeError, match=r"use with_options\(extra_env=\.\.\.\)"):
        procwright.cmd("cat").setenv  # noqa: B018
    with pytest.raises(InvalidValue, match=r"iterate over spawn\(args\)\.stdout"):
        procwright.run(["ls"], _iter=True)
    with procwright.spawn(["cat"], stdin=PIPE, pty=True) as child:
        with pytest.raises(AttributeError, match=r'use stdin\.write\("\\x04"\)'):
            child.sendeof  # noqa: B018
        with pytest.raises(AttributeError, match=r"of bytes procwright\.wait\("):
            child.read_nonblocking  # noqa: B018
        child.stdin.write(b"a\n")
        assert procwright.wait([child.stdout], timeout=60).done == [child.stdout]
        assert child.stdout.read1()
