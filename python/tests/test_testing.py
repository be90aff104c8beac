"""`procwright.testing.Fake`: programs that a test plays."""

import gc
import io
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
from unittest import mock

import pytest
from conftest import comes_back, descriptors

import procwright
from procwright import PIPE, STDOUT, EndedBeforeMatch, InvalidValue
from procwright._fake_child import FOR_THE_PROGRAM, FOR_US
from procwright._options import SPAWN
from procwright.testing import (
    Err,
    Fake,
    Hang,
    In,
    NotRegistered,
    Out,
    Pause,
    Reply,
    UnexpectedInput,
    not_found,
)


@pytest.fixture
def fake():
    with Fake() as fake:
        yield fake


def test_codes_that_are_no_failure(fake):
    fake.register(["grep", ...], returncode=1)
    assert procwright.run(["grep", "x"], check=True, ok_codes=[1]).ok
    assert not procwright.run(["grep", "x"]).ok
    assert procwright.spawn(["grep", "x"], ok_codes=[1]).result().ok
    assert next(procwright.map([["grep", "x"]], ok_codes=[1])).ok
    stage = {"args": ["grep", "x"], "ok_codes": [1]}
    assert procwright.pipeline(stage, ["grep", "y"], ok_codes={1: [1]}).ok
    assert not procwright.pipeline(stage, ["grep", "y"]).ok


# What is asked for, and what answers.


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        (["git"], [["git"]], [["git", "x"], ["hg"]]),
        (["git", ...], [["git"], ["git", "a"], ["git", "a", "b"]], [["hg"], ["x", "git"]]),
        ([..., "-v"], [["-v"], ["a", "-v"], ["-v", "-v"]], [["-v", "a"]]),
        (["a", ..., "b", ..., "c"], [["a", "b", "c"], ["a", "1", "b", "b", "c"]], [["a", "c"]]),
        (["git", mock.ANY], [["git", "a"]], [["git"], ["git", "a", "b"]]),
        (["git", re.compile("a.")], [["git", "ab"]], [["git", "abc"], ["git", "a"]]),
        ([b"git", "\udcff"], [[b"git", b"\xff"]], [["git", "?"]]),
        ([...], [["anything", "at", "all"]], []),
    ],
)
def test_words_of_a_pattern(pattern, fits, fits_not):
    for args in fits:
        with Fake() as fake:
            registered = fake.register(pattern, stdout="x")
            assert procwright.run(args).stdout == b"x"
            assert registered.call_count == 1
    for args in fits_not:
        with Fake() as fake:
            fake.register(pattern)
            with pytest.raises(NotRegistered):
                procwright.run(args)
            fake.take_refused()


def test_a_line_for_the_shell_is_another_thing_than_words(fake, tmp_path):
    line = fake.register("ls | wc -l", stdout="3\n")
    path = fake.register(tmp_path / "program", stdout="path")
    assert procwright.run("ls | wc -l", shell=True, text=True).stdout == "3\n"
    assert procwright.run(tmp_path / "program").stdout == b"path"
    assert line.calls[0].shell
    assert line.calls[0].argv == ["/bin/sh", "-c", "ls | wc -l"]
    assert path.calls[0].argv == [str(tmp_path / "program")]
    with pytest.raises(NotRegistered):
        procwright.run(["ls | wc -l"])
    fake.take_refused()


def test_what_is_registered_is_tried_in_order_and_used_up(fake):
    first = fake.register(["x"], stdout="1", times=2)
    second = fake.register(["x"], stdout="2", when=lambda call: call.cwd == "/")
    third = fake.register(["x"], lambda call: Reply([call.argv[0] * 2]))
    found = [procwright.run(["x"], cwd=cwd).stdout for cwd in ("/", None, "/", None)]
    assert found == [b"1", b"1", b"2", b"xx"]
    assert [one.call_count for one in (first, second, third)] == [2, 1, 1]
    assert fake.registered == [first, second, third]


def test_what_a_call_tells(fake):
    fake.register([...])
    procwright.run(
        ["a", "b"], cwd="/", env={"A": "1", "B": "2"}, extra_env={"B": None, "C": b"3"}, input=b"in"
    )
    procwright.run(["c"], stdin=iter([b"one ", b"two"]), timeout=5)
    procwright.run(["d"])
    first, second, third = fake.calls
    assert (first.function, first.args, first.argv) == ("run", ["a", "b"], ["a", "b"])
    assert (first.cwd, first.env, first.input) == ("/", {"A": "1", "C": "3"}, b"in")
    assert (second.input, second.parameters["timeout"]) == (b"one two", 5)
    assert (third.cwd, third.env, third.input) == (None, dict(os.environ), b"")


def test_a_call_tells_its_directory_as_it_was_given(fake, tmp_path):
    fake.register(["x"], when=lambda call: call.cwd == tmp_path)
    fake.register(["y"], when=lambda call: call.cwd == os.fsencode(tmp_path))
    assert procwright.run(["x"], cwd=tmp_path).ok
    [ended] = procwright.map([{"args": ["x"], "cwd": tmp_path}])
    assert ended.ok
    assert procwright.run(["y"], cwd=os.fsencode(tmp_path)).ok


def test_when_that_says_no_is_shown_what_it_has_looked_at(fake):
    fake.register(["x"], when=lambda call: call.cwd == "/tmp")
    with pytest.raises(NotRegistered) as caught:
        procwright.run(["x"], cwd="/", extra_env={"A": "1"}, input=b"in")
    shown = (
        "when() says no\n    the call has cwd='/', env=None, extra_env={'A': '1'}, input=b'in'\n"
    )
    assert shown in str(caught.value)
    fake.take_refused()


def test_a_function_that_answers_has_the_input(fake, tmp_path):
    fake.register(["x"], lambda call: Reply(stdout=call.input.upper()))
    (tmp_path / "in").write_bytes(b"file")
    for options, expected in [
        ({"input": b"data"}, b"DATA"),
        ({"stdin": iter([b"i", b"t"])}, b"IT"),
        ({"stdin": tmp_path / "in"}, b"FILE"),
        ({}, b""),
    ]:
        assert procwright.run(["x"], **options).stdout == expected
    assert procwright.spawn(["x"], input=b"data").communicate()[0] == b"DATA"


def test_what_is_not_registered_is_refused_and_told(fake, tmp_path):
    fake.register(["git", "pull", ...], times=1)
    fake.register(["git", "push", "--force"])
    fake.register(["ls"], when=lambda call: False)
    procwright.run(["git", "pull"])
    for args, text in [
        (["git", "push", "-n"], "args[2] is '-n', and not '--force'"),
        (["git", "push"], "args[2], '--force', is missing"),
        (["git", "push", "--force", "x"], "args[3], 'x', is one too many"),
        (["git", "pull", "x"], "used up"),
        (["ls"], "when() says no"),
    ]:
        for function in (procwright.run, procwright.spawn):
            with pytest.raises(NotRegistered) as caught:
                function(args, stdout=tmp_path / "out")
            said = str(caught.value)
            assert said.startswith(f"{function.__name__}({args!r}) is not registered, and was not")
            assert f"    {text}\n" in said
            assert "['git', 'pull', ...]  (used up, 1 of 1)\n" in said
            assert f"fake.register({args!r}, stdout=...)\n" in said
            assert said.endswith(f"fake.allow({args!r})")
    assert list(tmp_path.iterdir()) == []
    assert len(fake.calls) == 1
    assert len(fake.take_refused()) == 10


def test_an_error_that_is_caught_by_the_tested_code_comes_at_the_end():
    def tested(error=None):
        with Fake():
            try:
                procwright.run(["x"])
            except Exception:
                if error is not None:
                    raise error from None

    with pytest.raises(NotRegistered) as caught:
        tested()
    assert str(caught.value).startswith("run(['x']) is not registered, and was not started\n")
    assert str(caught.value).endswith("\n(The tested code has caught this error.)")
    # An error of the block's own goes first.
    with pytest.raises(ZeroDivisionError):
        tested(ZeroDivisionError())
    # No test goes on after it as if all were well.
    assert issubclass(NotRegistered, AssertionError)


def test_programs_that_are_allowed_really_run(fake, child):
    allowed = fake.allow([child, ...], times=4)
    fake.register(["x"], stdout="played")
    assert procwright.run([child, "exit", "3"]).returncode == 3
    with procwright.spawn([child, "exit", "4"]) as one:
        assert one.wait() == 4
    found = list(procwright.map([[child, "exit", "5"], ["x"], [child, "exit", "6"]]))
    assert [one.result.returncode for one in found] == [5, 0, 6]
    assert allowed.call_count == 4
    with pytest.raises(NotRegistered):
        procwright.run([child])
    fake.take_refused()


def test_order_and_number_of_calls_are_asserted(fake):
    a = fake.register(["a", ...])
    b = fake.register(["b"], times=2)
    procwright.run(["a"])
    procwright.run(["b"])
    procwright.spawn(["a", "1"]).wait()
    fake.assert_calls([["a"], ["b"], ["a", ...]])
    a.assert_called()
    a.assert_called(2)
    b.assert_called(times=1)
    calls = "\ncalls:\n  1. run(['a'])\n  2. run(['b'])\n  3. spawn(['a', '1'])"
    for wrong, text in [
        ([["a"], ["b"]], "call 3 is one too many: spawn(['a', '1'])"),
        ([["a"], ["a", ...], ["b"]], "call 2 was to be ['a', ...], and is run(['b'])"),
        ([["a"], ["b"], [...], ["c"]], "call 4 was to be ['c'], and there was none"),
    ]:
        with pytest.raises(AssertionError) as caught:
            fake.assert_calls(wrong)
        assert str(caught.value) == text + calls
    with pytest.raises(AssertionError, match=r"^\['b'\] was to be called twice, and was .* once"):
        b.assert_called(2)
    with pytest.raises(AssertionError, match=r"so often:\n  \['b'\]  \(once\)\ncalls:"):
        fake.assert_all_called()
    procwright.run(["b"])
    fake.assert_all_called()


def test_strict_wants_all_that_is_registered():
    def tested(error=None):
        with Fake(strict=True) as fake:
            fake.register(["x"])
            if error is not None:
                raise error

    with pytest.raises(AssertionError, match=r"so often:\n  \['x'\]  \(never\)\ncalls: none$"):
        tested()
    with pytest.raises(ZeroDivisionError):
        tested(ZeroDivisionError())
    with Fake(strict=True) as fake:
        fake.register(["x"], times=2)
        fake.allow(["true"])
        procwright.run(["x"])
        procwright.run(["true"])
        fake.strict = False


def test_blocks_within_each_other():
    with Fake() as outer:
        outer.register(["x"], stdout="outer")
        with Fake() as inner:
            inner.register(["x"], stdout="inner")
            assert procwright.run(["x"]).stdout == b"inner"
        assert procwright.run(["x"]).stdout == b"outer"
        with pytest.raises(InvalidValue, match="this fake is in use"), outer:
            pass
    assert procwright.run(["true"]).pid < 2**22
    with outer:
        assert procwright.run(["x"]).stdout == b"outer"


def test_threads():
    with Fake(strict=True) as fake:
        first = fake.register(["x", ...], stdout="first", times=50)
        rest = fake.register(["x", ...], lambda call: Reply(stdout=call.argv[1]), times=150)
        barrier = threading.Barrier(8)
        found = []

        def ask(number):
            barrier.wait()
            for place in range(25):
                found.append(procwright.run(["x", f"{number}-{place}"], text=True).stdout)

        threads = [threading.Thread(target=ask, args=[number]) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (first.call_count, rest.call_count, len(fake.calls)) == (50, 150, 200)
        assert found.count("first") == 50
        assert len(set(found)) == 151
        with pytest.raises(NotRegistered):
            procwright.run(["x"])
        fake.take_refused()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda fake: fake.register([]), "args is []: "),
        (lambda fake: fake.register(["a", 5]), "args[1] is 5: "),
        (lambda fake: fake.register(["a", re.compile(b"x")]), "args[1] is re.compile(b'x'): "),
        (lambda fake: fake.register(["a"], Reply(), stdout="x"), "answer is given, and stdout, "),
        (lambda fake: fake.register(["a"], ValueError), "answer is <class 'ValueError'>: "),
        (lambda fake: fake.register(["a"], lambda call: 5) and procwright.run(["a"]), "the answer"),
        (lambda fake: Reply([5]), "steps[0] is 5: "),
        (lambda fake: Pause(float("inf")), "seconds is inf: "),
    ],
)
def test_what_cannot_be_registered(fake, call, text):
    with pytest.raises(InvalidValue, match="^" + re.escape(text)):
        call(fake)


# Runs.


def test_outputs_go_where_they_are_to_go(fake, tmp_path, capfd):
    steps = [Out("one\ntwo"), Err("warning\n"), Out("\nthree")]
    fake.register(["x"], Reply(steps, returncode=3))
    lines, both, chunks = [], [], io.BytesIO()
    result = procwright.run(
        ["x"],
        text=True,
        merged=True,
        on_stdout_line=lines.append,
        on_line=lambda line: both.append((line, threading.current_thread())),
        tee=chunks,
    )
    assert (result.stdout, result.stderr) == ("one\ntwo\nthree", "warning\n")
    assert lines == ["one\n", "two\n", "three"]
    assert [line for line, _ in both] == ["one\n", "warning\n", "two\n", "three"]
    assert threading.current_thread() not in [thread for _, thread in both]
    assert chunks.getvalue() == b"one\ntwowarning\n\nthree"
    assert result.merged == [
        ("stdout", "one\ntwo"),
        ("stderr", "warning\n"),
        ("stdout", "\nthree"),
    ]
    assert result.pid > 2**22
    assert str(result.status) == result.outcome == "exited with code 3"
    assert result.explanation == "x exited with code 3\n  the end of stderr:\n    warning"
    result = procwright.run(["x"], stderr=STDOUT)
    assert (result.stdout, result.stderr) == (b"one\ntwowarning\n\nthree", None)
    result = procwright.run(["x"], stdout=tmp_path / "out", stderr=None)
    assert (result.stdout, result.stderr, result.stdout_info) == (None, None, None)
    assert (tmp_path / "out").read_bytes() == b"one\ntwo\nthree"
    assert capfd.readouterr().err == "warning\n"
    procwright.run(["x"], tee=True)
    assert capfd.readouterr() == ("one\ntwo\nthree", "warning\n")
    result = procwright.run(["x"], limit=5, keep_full=tmp_path / "full")
    assert (result.stdout, result.stdout_info.dropped_bytes) == (b"oneee", 8)
    assert result.stdout_info.dropped_at == 3
    assert (tmp_path / "full").read_bytes() == b"one\ntwo\nthree"
    assert (tmp_path / "full.stderr").read_bytes() == b"warning\n"


def test_a_fake_tells_what_the_program_would(fake, child):
    """Beside a real run of a program that does the same."""
    text = "echo one; echo two >&2; exit 3"
    fake.register("played", Reply([Out("one\n"), Err("two\n")], returncode=3))
    fake.register("killed", returncode=-signal.SIGKILL)
    fake.allow([...])
    for options in (
        {},
        {"text": True, "merged": True},
        {"stderr": STDOUT},
        {"stdout": PIPE, "stderr": procwright.DEVNULL},
        {"limit": 3},
        {"encoding": "latin-1"},
    ):
        played = procwright.run("played", shell=True, **options).to_dict()
        real = procwright.run(text, shell=True, **options).to_dict()
        assert played.keys() == real.keys()
        unlike = {name for name in real if played[name] != real[name]}
        known = {"argv", "pid", "duration_s", "cpu_user_s", "cpu_system_s", "max_rss_bytes"}
        assert unlike <= known | {"merged"} if options.get("merged") else unlike <= known, options
    played = procwright.run("killed", shell=True)
    real = procwright.run("kill -KILL $$", shell=True)
    assert (played.status, played.outcome) == (real.status, real.outcome)
    with pytest.raises(procwright.CalledProcessError) as caught:
        procwright.run("played", shell=True, check=True)
    assert caught.value.returncode == 3
    said = []
    for line in ("played", text):
        with pytest.raises(subprocess.CalledProcessError) as caught:
            procwright.run(line, shell=True, check=True)
        said.append(str(caught.value).partition(" exited with")[2])
    assert said[0] == said[1]


def test_time_goes_by_in_no_time(fake):
    fake.register(["slow"], Reply([Out("a"), Pause(3600), Out("b")]))
    fake.register(["hangs"], Reply([Out("a"), Hang()]))
    result = procwright.run(["slow"])
    assert (result.stdout, result.duration_s) == (b"ab", 3600.0)
    for args in (["slow"], ["hangs"]):
        with pytest.raises(procwright.TimeoutExpired, match="timed out after 1 min 1 s") as caught:
            procwright.run(args, timeout=61)
        assert (caught.value.result.stdout, caught.value.result.duration_s) == (b"a", 61.0)
        assert caught.value.result.status.name == "SIGTERM"
        with pytest.raises(procwright.IdleTimeout, match=r"was silent for 0.5 s"):
            procwright.run(args, timeout=61, idle_timeout=0.5)
        result = procwright.run(args, timeout=9, stop="KILL", on_timeout="return")
        assert (result.reason, result.status.name) == ("timeout", "SIGKILL")
    assert procwright.run(["slow"], timeout=7200).ok
    with pytest.raises(NotRegistered, match="registered to hang, and was asked for without a"):
        procwright.run(["hangs"])


def test_cancel_and_limit(fake):
    fake.register(["hangs"], Reply([Out("a"), Hang()]))
    fake.register(["loud"], stdout=b"x" * 100)
    cancel = procwright.Cancel()
    helper = threading.Thread(target=cancel.cancel)
    helper.start()
    with pytest.raises(procwright.Cancelled):
        procwright.run(["hangs"], cancel=cancel)
    helper.join()
    with pytest.raises(procwright.Cancelled, match="before it was started"):
        procwright.run(["hangs"], cancel=cancel)
    with pytest.raises(procwright.OutputLimitExceeded) as caught:
        procwright.run(["loud"], limit=procwright.Limit(10, "fail"))
    assert caught.value.result.stdout == b"x" * 10


def test_what_is_raised(fake):
    fake.register(["missing"], not_found("missing"))
    fake.register(["odd"], KeyError("odd"))
    fake.register(["x"], stdout="line\n")
    for function in (procwright.run, procwright.spawn):
        with pytest.raises(FileNotFoundError) as caught:
            function(["missing"])
        assert isinstance(caught.value, procwright.SpawnError)
        assert (caught.value.filename, caught.value.step) == ("missing", "exec")
        with pytest.raises(KeyError):
            function(["odd"])

    def bad(line):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        procwright.run(["x"], on_line=bad)


def test_input_is_compared(fake):
    fake.register(["x"], Reply([In("a\n"), Out("b"), In()]))
    assert procwright.run(["x"], input=b"a\nrest").stdout == b"b"
    with pytest.raises(
        UnexpectedInput, match=r"^run\(\['x'\]\): expected b'a\\n' on stdin, and b'c"
    ):
        procwright.run(["x"], input=b"c\n")


def test_the_result_of_a_real_run_is_told_again(child):
    results = [
        procwright.run(["sh", "-c", "echo out; echo err >&2; exit 3"], merged=True),
        procwright.run(["sh", "-c", r"printf '\377\0'; kill -KILL $$"]),
        procwright.run(["sleep", "60"], timeout=0, on_timeout="return"),
        procwright.run(["seq", "1000"], limit=100),
        procwright.run([child, "exit", "0"], stdout=None),
    ]
    for real in results:
        with Fake() as fake:
            fake.register(real.argv, real)
            again = procwright.run(real.argv, merged=real.merged is not None, on_timeout="return")
        told, played = real.to_dict(), again.to_dict()
        if real.stdout is None:
            del told["stdout"], told["stdout_info"], played["stdout"], played["stdout_info"]
        assert played == told
        assert (again.explanation, again.summary) == (real.explanation, real.summary)
        assert again.merged == real.merged
        for one, other in zip(again.merged or (), real.merged or (), strict=True):
            assert (one.ambiguous, one.time) == (other.ambiguous, other.time)
    with Fake() as fake:
        fake.register(["sleep", ...], results[2])
        with pytest.raises(procwright.TimeoutExpired):
            procwright.run(["sleep", "60"], timeout=99)


# Children.


def test_what_a_search_in_a_child_has_passed_over(fake):
    fake.register(["server"], Reply([Out("one\ntwo> "), In("\n"), Out("three\n")], returncode=3))
    with procwright.spawn(["server"], stdin=PIPE, text=True) as one:
        assert one.wait_for("> ")
        assert one.before == "one\ntwo"
        one.stdin.write("\n")
        with pytest.raises(EndedBeforeMatch):
            one.wait_for("missing")
        assert one.before == "three\n"


def test_a_child_is_one_in_all_its_ways(fake):
    steps = [Out("ready\n"), In("ping\n"), Out("pong\n"), Err("warning\n"), In()]
    fake.register(["server", ...], Reply(steps, returncode=3))
    with procwright.spawn(["server"], stdin=PIPE, text=True) as one:
        assert one.wait_for("ready")
        assert one.status is None
        one.stdin.write("ping\n")
        assert one.stdout.readline() == "pong\n"
        one.stdin.write("more")
    assert one.wait() == 3
    assert fake.calls[0].input == b"ping\nmore"
    result = one.result()
    assert (result.argv, result.args, result.stderr) == (["server"], ["server"], "warning\n")
    assert result.summary == "server exited with code 3"
    assert result.explanation == "server exited with code 3\n  the end of stderr:\n    warning"
    one = procwright.spawn(["server", "2"], stdin=PIPE)
    assert one.communicate(b"ping\nmore") == (b"ready\npong\n", b"warning\n")
    assert procwright.wait([one, one.process]).done == [one, one.process]
    lines = []
    one = procwright.spawn(["server"], stdin=PIPE, on_stdout_line=lines.append)
    one.communicate(b"ping\n")
    assert lines == [b"ready\n", b"pong\n"]
    one = procwright.spawn(["server"], input="ping\n", text=True, merged=True)
    assert [line.line for line in one.merged] == ["ready\n", "pong\n", "warning\n"]
    with pytest.raises(procwright.CalledProcessError, match=r"^server exited with code 3"):
        one.result().check_returncode()


def test_a_child_that_hangs_is_ended(fake):
    fake.register(["hangs"], Reply([Out("x"), Hang()]))
    fake.register(["crashes"], returncode=-signal.SIGSEGV)
    one = procwright.spawn(["hangs"])
    with pytest.raises(procwright.WaitTimeout, match=r"^hangs did not end"):
        one.wait(0.01)
    one.terminate()
    assert one.wait() == -signal.SIGTERM
    assert procwright.spawn(["crashes"]).wait() == -signal.SIGSEGV
    one = procwright.spawn(["hangs"])
    assert one.stop() == []
    assert one.status.name == "SIGTERM"
    one = procwright.spawn(["hangs"], pty=True)
    assert one.stdout.read1() == b"x"
    one.send_signal("INT")
    assert one.wait() == -signal.SIGINT


def test_streams_of_a_child_are_named_by_its_program(fake):
    fake.register(["server", ...], Reply([In("ping\n")], returncode=3))
    one = procwright.spawn(["server", "a b"], stdin=PIPE)
    assert one.stderr.label == "stderr of server 'a b'"

    def write_on():
        while True:
            one.stdin.write(b"x")

    one.stdin.write(b"ping\n")
    with pytest.raises(BrokenPipeError, match=r"stdin of server 'a b'.*exited with code 3"):
        write_on()
    one = procwright.spawn(["server", "1"], stdin=PIPE, merged=True)
    assert one.merged.label == "stdout and stderr of server 1"


def test_a_child_that_is_left_ends_with_the_block():
    with Fake() as fake:
        fake.register(["hangs"], Reply([Hang()]))
        left = procwright.spawn(["hangs"])
        assert left.status is None
    assert left.wait() == -signal.SIGKILL


def test_a_child_that_gets_other_input_says_so(fake):
    fake.register(["x"], Reply([In("ping\n"), Out("pong\n")]))
    one = procwright.spawn(["x"], stdin=PIPE)
    _, err = one.communicate(b"pang\n")
    assert one.returncode == 99
    assert err.startswith(b"fake program: expected b'ping\\n' on stdin, and b'pa")


def test_what_is_set_for_the_program_is_not_for_the_stand_in(fake):
    fake.register(["x"], stdout="played")
    one = procwright.spawn(
        ["x"],
        cwd="/no such directory",
        env={},
        user="nobody",
        rlimits={"as": 4096},
        umask=0o777,
        nice=5,
        chroot="/no such directory",
        cpu_affinity=[8191],
    )
    assert one.communicate() == (b"played", b"")
    call = fake.calls[0]
    assert (call.cwd, call.env) == ("/no such directory", {})
    # An option that is new is for the program, or for us.
    assert SPAWN.keys() == FOR_THE_PROGRAM | FOR_US
    assert not FOR_THE_PROGRAM & FOR_US


# What is refused before a program starts.


REFUSED = [
    (["x\0"], {}),
    ([""], {}),
    (["x"], {"env": {"A=B": "1"}}),
    (["x"], {"extra_env": {"": "1"}}),
    (["x"], {"user": "no such user"}),
    (["x"], {"group": "no such group"}),
    (["x"], {"rlimits": {"no such limit": 1}}),
    (["x"], {"stdin": 777_777}),
    (["x"], {"stdout": 777_777}),
    (["x"], {"pass_fds": [777_777]}),
    (["x"], {"cwd": "/no such directory"}),
    (["x"], {"cwd": b"/dev/null"}),
    (["x"], {"stdin": pathlib.Path("/no such directory/file")}),
    (["x"], {"stdout": "/no such directory/file"}),
    (["x"], {"stderr": "/"}),
]


def wrong(call, args, options):
    """What is raised, without the program, which is none."""
    with pytest.raises((InvalidValue, OSError)) as caught:
        call(args, **options)
    error = caught.value
    parts = [getattr(error, name, None) for name in ("errno", "strerror", "filename", "step")]
    return type(error), parts, str(error)


@pytest.mark.parametrize(("args", "options"), REFUSED)
@pytest.mark.parametrize("call", [procwright.run, procwright.spawn])
def test_what_the_core_refuses_a_fake_refuses(call, args, options):
    really = wrong(call, args, options)
    with Fake() as fake:
        fake.register([...])
        assert wrong(call, args, options) == really


def test_a_full_record_that_cannot_be_opened(fake):
    fake.register([...])
    options = {"keep_full": "/no such directory/file"}
    error, _, text = wrong(procwright.run, ["x"], options)
    assert issubclass(error, procwright.SpawnError)
    assert text.startswith('cannot run x: open "/no such directory/file": No such file')


def test_what_is_refused_is_not_done(fake, tmp_path):
    fake.register([...])
    (tmp_path / "out").write_bytes(b"full")
    with pytest.raises(InvalidValue):
        procwright.run(["x"], stdout=tmp_path / "out", env={"=": ""})
    assert (tmp_path / "out").read_bytes() == b"full"
    taken = iter([b"piece"])
    with pytest.raises(InvalidValue):
        procwright.run(["x"], stdin=taken, env={"=": ""})
    assert list(taken) == [b"piece"]


# Many.


def test_a_map_is_played(fake):
    fake.register(["ok", ...], lambda call: Reply([call.argv[1].upper()]))
    fake.register(["fails"], stderr="no\n", returncode=1)
    fake.register(["missing"], not_found("missing"))
    commands = [["ok", "a"], ["fails"], {"args": ["ok", "b"], "cwd": "/"}, ["missing"]]
    with procwright.map(commands, text=True, parallel=8) as many:
        found = list(many)
        progress = many.progress
    assert [one.index for one in found] == [0, 1, 2, 3]
    assert [one.stdout for one in found] == ["A", "", "B", ""]
    assert [one.ok for one in found] == [True, False, True, False]
    assert isinstance(found[3].error, FileNotFoundError)
    assert found[1].summary == "fails exited with code 1"
    assert (progress.taken, progress.succeeded, progress.failed) == (4, 2, 2)
    assert progress.all_taken
    assert [call.function for call in fake.calls] == ["map"] * 4
    assert (fake.calls[2].cwd, fake.calls[2].parameters["text"]) == ("/", True)
    found = list(procwright.map([["fails"]] * 9, stop_after_failures=2))
    assert len(found) == 2
    with pytest.raises(InvalidValue, match="journal is given, and a fake keeps none"):
        procwright.map([["ok", "a"]], journal="x")
    with pytest.raises(NotRegistered, match=r"^map\(\['what'\]\) is not registered"):
        list(procwright.map([["what"]]))
    fake.take_refused()
    with pytest.raises(ZeroDivisionError):
        list(procwright.map(1 / 0 for _ in range(3)))
    assert list(procwright.map([["ok", "a"]], deadline=0)) == []


@pytest.mark.parametrize("options", [{"deadline": 0.2}, {"deadline": 0.2, "timeout": 9}])
def test_the_deadline_of_a_map_ends_what_hangs(fake, options):
    fake.register([...], Reply([Out("a"), Hang()]))
    with procwright.map([["x"]] * 5, parallel=2, **options) as many:
        found = list(many)
        assert many.progress.stopped_by == "deadline"
    # As many as there are places had begun.
    assert [one.result.reason for one in found] == ["timeout"] * 2
    assert [one.result.stdout for one in found] == [b"a"] * 2
    assert found[0].summary.startswith("x timed out after 0.2 s")


def test_a_command_that_is_refused_is_a_result():
    commands = [["true"], ["true", "\0"], {"args": ["true"], "user": "no such user"}]
    really = list(procwright.map(commands, ordered=True))
    with Fake() as fake:
        fake.register(["true", ...], times=1)
        fake.register(["true", ...], InvalidValue("no"))
        played = list(procwright.map([*commands, ["true"]]))
    assert [one.ok for one in played] == [True, False, False, False]
    for one, other in zip(played, really, strict=False):
        assert (type(one.error), str(one.error)) == (type(other.error), str(other.error))
        assert one.summary == other.summary
    assert isinstance(played[3].error, InvalidValue)
    with Fake() as fake, pytest.raises(OSError, match="pass_fds=777777"):
        list(procwright.map([["true"]], pass_fds=[777_777]))


def test_children_that_have_ended_keep_no_descriptors(fake):
    fake.register([...], Reply([In("in"), "out"]))

    def play():
        with procwright.spawn(["x"], input=b"in") as one:
            assert one.communicate()[0] == b"out"

    play()
    gc.collect()
    before = descriptors()
    for _ in range(4):
        play()
    gc.collect()
    comes_back(before)
    assert [call.input for call in fake.calls] == [b"in"] * 5


# The plugin.

TESTS = """
import procwright, pytest, sys

def test_fixture(procwright_fake):
    procwright_fake.register(["git", ...], stdout="played")
    assert procwright.run(["git", "push"]).stdout == b"played"

def test_refused(procwright_fake):
    try:
        procwright.run(["git"])
    except Exception:
        pass
"""


def pytest_run(directory, *args):
    # A run of somebody else's: nothing of ours but what is installed.
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args]
    return subprocess.run(argv, cwd=directory, capture_output=True, text=True)


def test_the_fixture(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    result = pytest_run(tmp_path)
    assert "1 passed, 1 error" in result.stdout or "2 passed, 1 error" in result.stdout
    assert "run(['git']) is not registered" in result.stdout
    assert "(The tested code has caught this error.)" in result.stdout


ONCE = """
import procwright

def test_refused(procwright_fake):
    procwright.run(["git"])

def test_caught(procwright_fake):
    try:
        procwright.run(["hg"])
    except Exception:
        found = None
    assert found == "mine"
"""


def test_in_the_fixture_what_was_refused_is_told_once(tmp_path):
    (tmp_path / "test_it.py").write_text(ONCE)
    # Without the lines of the summary, which say it again.
    said = pytest_run(tmp_path, "--tb=short", "-rN").stdout
    assert "2 failed in" in said, said
    refused, _, caught = said.partition("test_caught")
    assert refused.count("run(['git']) is not registered, and was not started") == 1, said
    assert "has caught" not in refused
    # The other is told beside the error of the test, which came of it.
    assert caught.count("run(['hg']) is not registered, and was not started") == 1, said
    assert caught.count("(The tested code has caught this error.)") == 1


def test_what_was_caught_is_a_note_of_the_error_that_follows():
    def tested(error):
        with Fake():
            try:
                procwright.run(["x"])
            except Exception:
                raise error from None

    with pytest.raises(ZeroDivisionError) as caught:
        tested(ZeroDivisionError())
    (note,) = caught.value.__notes__
    assert note.startswith("run(['x']) is not registered, and was not started\n")
    assert note.endswith("(The tested code has caught this error.)")


def test_an_error_that_shows_what_was_refused_has_no_note():
    def raises_another():
        with Fake():
            try:
                procwright.run(["x"])
            except Exception:
                raise ZeroDivisionError  # noqa: B904

    def raises_a_group():
        with Fake():
            try:
                procwright.run(["x"])
            except NotRegistered as error:
                raise ExceptionGroup("all", [error]) from None

    for call, kind in ((raises_another, ZeroDivisionError), (raises_a_group, ExceptionGroup)):
        with pytest.raises(kind) as caught:
            call()
        assert not hasattr(caught.value, "__notes__")


def test_pytest_does_not_import_procwright_for_the_plugin(tmp_path):
    (tmp_path / "test_it.py").write_text(
        """
import sys

def test_it(request):
    assert "pytest_procwright" in sys.modules
    assert [name for name in sys.modules if name.partition(".")[0] == "procwright"] == []
    plugin = sys.modules["pytest_procwright"]
    hooks = [name for name in dir(plugin) if name.startswith("pytest_")]
    assert hooks == ["pytest_addoption", "pytest_configure", "pytest_runtest_makereport"]
    import threading
    assert threading.active_count() == 1
"""
    )
    result = pytest_run(tmp_path, "--strict-markers", "-W", "error")
    assert "1 passed" in result.stdout, result.stdout


def test_an_expression_is_a_line_for_the_shell(fake):
    listed = fake.register(re.compile("ls .*"), stdout="listed\n")
    for args in ("ls -l", ["ls -l"]):
        assert procwright.run(args, shell=True, text=True).stdout == "listed\n"
    assert listed.call_count == 2
    with pytest.raises(NotRegistered, match="a line for the shell, and the call has no shell"):
        procwright.run(["ls", "-l"])
    with pytest.raises(NotRegistered, match=r"re\.compile\('ls \.\*'\), a line for the shell"):
        procwright.run("cat ls x", shell=True)
    with pytest.raises(InvalidValue, match="pass an expression for text"):
        fake.register(re.compile(b"ls"))
    fake.take_refused()


def test_the_shell_of_a_line_may_be_named(fake):
    fake.register(["/bin/sh", "-c", re.compile("ls .*")], stdout="listed\n")
    assert procwright.run("ls -l", shell=True, text=True).stdout == "listed\n"
    assert procwright.run(["/bin/sh", "-c", "ls -l"], text=True).stdout == "listed\n"


def test_what_a_mock_has_is_told(fake):
    registered = fake.register(["x"])
    for name, hint in (
        ("assert_called_once", "use assert_called(times=1)"),
        ("assert_not_called", "use assert_called(times=0)"),
        ("call_args", "use calls[-1].args, and calls[-1].parameters"),
        ("side_effect", "pass the answer to register()"),
        ("reset_mock", "make another Fake"),
    ):
        with pytest.raises(AttributeError, match=rf"'{name}': {re.escape(hint)}"):
            getattr(registered, name)
    for name, hint in (
        ("pass_command", "use allow(args)"),
        ("allow_unregistered", "use allow([...])"),
        ("keep_last_process", "leave it out"),
        ("any", "unittest.mock.ANY is any word"),
        ("call_count", "use len(calls)"),
    ):
        with pytest.raises(AttributeError, match=rf"'{name}': {re.escape(hint)}"):
            getattr(fake, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        fake.nonsense  # noqa: B018
    for name, hint in (
        ("wait", "a pause is a step of the Reply"),
        ("occurrences", "use times"),
        ("exit_code", "use returncode"),
        ("side_effect", "use answer"),
        ("stdot", r"did you mean stdout\?"),
    ):
        with pytest.raises(InvalidValue, match=f"{name} is 2, and register.. has no such .*{hint}"):
            fake.register(["x"], **{name: 2})
    with pytest.raises(InvalidValue, match=r"^answer is .*register each for once"):
        fake.register(["x"], [Reply(stdout="1"), Reply(stdout="2")])
