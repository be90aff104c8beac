"""`pipeline`: every status, one deadline, no false alarm."""

import contextlib
import errno
import json
import os
import pathlib
import signal
import sys
import threading

import pytest
from conftest import cancelled_once_up, with_time
from played import check_played_as_real, says

import procwright
from procwright import InvalidValue, Overflow, pipeline
from procwright._stage_function import StageFunction
from procwright.testing import Fake, Hang, NotRegistered, Reply, not_found


def judged(result):
    return [stage.judgement for stage in result.stages]


def shell(line):
    return ["sh", "-c", line]


def test_a_reader_that_has_read_enough_is_no_alarm():
    result = pipeline(["yes"], ["head", "-1"], text=True, check=True)
    assert result.stdout == "y\n"
    assert result.ok
    assert result.returncode == 0
    assert judged(result) == ["forgiven", "success"]
    assert result.stages[0].returncode == -signal.SIGPIPE
    assert result.outcome == "ended well"
    assert result.reason == "finished"
    assert result.rule == "forgiving"


def test_what_catches_the_error_is_forgiven_by_its_words():
    code = "while True: print('y')"
    result = pipeline([sys.executable, "-c", code], ["head", "-1"])
    assert judged(result) == ["forgiven", "success"]
    assert b"BrokenPipeError" in result.stages[0].stderr


@pytest.mark.parametrize(
    ("first", "second", "judgements", "returncode"),
    [
        ("exit 1", "cat", ["failed", "success"], 1),
        ("echo x; exit 3", "cat", ["failed", "success"], 3),
        ("yes", "read x; exit 3", ["collateral", "failed"], 3),
        ("kill -KILL $$", "cat", ["failed", "success"], -9),
        ("exit 4", "cat; exit 3", ["failed", "failed"], 3),
    ],
)
def test_every_status_counts(first, second, judgements, returncode):
    result = pipeline(shell(f"exec {first}" if first == "yes" else first), shell(second))
    assert (judged(result), result.returncode, result.ok) == (judgements, returncode, False)
    with pytest.raises(procwright.CalledProcessError) as raised:
        result.check_returncode()
    assert raised.value.returncode == returncode
    assert raised.value.result is result
    assert "stage" in str(raised.value)


def test_the_error_names_the_stage_its_stderr_and_who_is_collateral():
    with pytest.raises(procwright.CalledProcessError) as raised:
        pipeline(["yes"], shell("read x; echo why >&2; exit 3"), check=True, text=True)
    text = str(raised.value)
    assert "stage 2 of 2: sh -c 'read x; echo why >&2; exit 3' exited with code 3" in text
    assert "why" in text.split("the end of stderr:")[1]
    assert "stage 1 of 2: yes was killed by SIGPIPE, since the next one had failed" in text
    assert raised.value.stderr == "why\n"


def test_rules_and_codes():
    assert judged(pipeline(["yes"], ["head", "-1"], success="strict")) == ["failed", "success"]
    last = pipeline(["false"], ["true"], success="last")
    assert last.ok
    assert judged(last) == ["ignored", "success"]
    assert pipeline(["echo", "a"], ["grep", "b"], ok_codes={1: [1]}).ok
    assert not pipeline(["echo", "a"], ["grep", "b"], ok_codes={0: [1]}).ok


def test_stdin_and_options_of_a_stage():
    assert pipeline(["cat"], ["sort"], input="b\na\n", text=True).stdout == "a\nb\n"
    assert pipeline(["cat"], ["sort"], stdin=iter([b"b\n", b"a\n"])).stdout == b"a\nb\n"
    own = {"args": "echo $WORD", "shell": True, "extra_env": {"WORD": "own"}}
    assert pipeline(own, ["cat"], extra_env={"WORD": "all"}).stdout == b"own\n"
    common = pipeline(shell("echo $WORD"), ["cat"], extra_env={"WORD": "all"})
    assert common.stdout == b"all\n"
    both = pipeline(shell("echo out; echo err >&2"), ["cat"], stderr=procwright.STDOUT)
    assert both.stdout == b"out\nerr\n"


def test_an_iterator_that_fails_stops_all():
    def pieces():
        yield b"x"
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        pipeline(["cat"], ["cat"], stdin=pieces())


def test_the_one_that_holds_up_the_rest_is_named():
    def check(seconds):
        with pytest.raises(procwright.TimeoutExpired) as raised:
            pipeline(["yes"], ["sleep", "1000"], ["cat"], timeout=seconds, stop="KILL")
        assert "stage 2 of 3 held up the rest: sleep 1000" in str(raised.value)
        assert judged(raised.value.result) == ["collateral", "failed", "collateral"]

    with_time(check)
    returned = pipeline(["sleep", "1000"], ["cat"], timeout=0.3, on_timeout="return")
    assert (returned.reason, returned.ok) == ("timeout", False)
    with pytest.raises(procwright.IdleTimeout):
        pipeline(["sleep", "1000"], ["cat"], idle_timeout=0.3)
    with pytest.raises(procwright.OutputLimitExceeded):
        pipeline(["yes"], ["cat"], limit=procwright.Limit(1000, "fail"))


def test_a_cancel_and_a_signal_handler_stop_all(tmp_path):
    up = cancelled_once_up(tmp_path)
    with up as (cancel, line), pytest.raises(procwright.Cancelled) as raised:
        pipeline(["sh", "-c", line], ["cat"], cancel=cancel)
    assert raised.value.result.reason == "cancelled"
    with pytest.raises(procwright.Cancelled):
        pipeline(["true"], ["true"], cancel=cancel)

    class Rung(Exception):
        pass

    def ring(*_):
        raise Rung

    def rung():
        # It may ring at once.
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        pipeline(["sleep", "1000"], ["cat"])

    before = signal.signal(signal.SIGALRM, ring)
    try:
        with pytest.raises(Rung):
            rung()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_all_are_started_or_none(tmp_path):
    made = tmp_path / "made"
    with pytest.raises(procwright.SpawnError, match="stage 3 of 3, no-such-program"):
        pipeline(["mkdir", made], ["cat"], ["no-such-program"])
    assert not made.exists()


@pytest.mark.parametrize(
    ("stages", "options", "text"),
    [
        ((), {}, "stages is empty"),
        ((["cat"], {"args": ["cat"], "stdin": "x"}), {}, "stdin in stages[1]"),
        ((["cat"], {"stderr": None}), {}, "stages[1]"),
        ((["cat"],), {"pty": True}, "no such parameter: no stage has a terminal"),
        ((["cat"],), {"frob": True}, "frob is True, and pipeline() has no such parameter"),
        ((["cat"],), {"ok_codes": {1: [1]}}, "a stage in ok_codes is 1"),
        ((["cat"],), {"ok_codes": {0: [256]}}, "ok_codes[0] is 256"),
        ((["cat"],), {"success": "maybe"}, "success is 'maybe'"),
        ((["cat"], ["cat"]), {"elastic": 5}, "elastic is 5"),
        ((["cat"], ["cat"]), {"elastic": None}, "elastic is None"),
        ((["cat"], ["cat"]), {"elastic": {1: True}}, "a stage in elastic is 1"),
        ((["cat"], ["cat"]), {"elastic": {0: "spill"}}, "elastic[0] is 'spill'"),
        ((["cat"],), {"elastic": {0: True}}, "a stage in elastic is 0"),
        ((["cat"],), {"input": b"", "stdin": b""}, "stdin and input"),
        (
            ("echo a", ["cat"]),
            {},
            "stages[0] is 'echo a': pass each stage as a list, pipeline(['echo', 'a'], ['cat']); "
            "lines for the shell with shell=True",
        ),
        (
            (["cat"], "tr a b"),
            {},
            "stages[1] is 'tr a b': pass each stage as a list, pipeline(['cat']",
        ),
        (
            ({"args": "cat x"},),
            {},
            "stages[0]['args'] is 'cat x': pass a list, {'args': ['cat', 'x'], ",
        ),
        ((["cat"],), {"explain_after": 3}, 'run(["procwright", "pipe", program'),
        ((["cat"], ["cat", 1]), {}, "args[1] is 1"),
        ((["cat"], [""]), {}, "stage 2: args starts"),
    ],
)
def test_bad_values_are_refused(stages, options, text):
    with pytest.raises(InvalidValue) as raised:
        pipeline(*stages, **options)
    assert text in str(raised.value)


def test_json_and_repr():
    result = pipeline(["false"], ["cat"], text=True)
    parts = json.loads(result.to_json())
    assert parts == result.to_dict()
    assert (parts["success"], parts["stages"][0]["judgement"]) == (False, "failed")
    assert parts["stages"][1]["stdout"] == ""
    assert repr(result) == (
        "PipelineResult(ok=False, reason='finished', stages=[false: failed, cat: success])"
    )
    assert result.summary == "false | cat failed: stage 1 of 2 exited with code 1"


def burst(tmp_path):
    """A stage that writes much, and one that begins to read when the first has written all."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    writes = shell(f"head -c 4000000 /dev/zero; echo written > {gate}")
    return writes, shell(f"read line < {gate}; wc -c")


@pytest.mark.parametrize(
    "elastic",
    [True, {0: True}, {0: Overflow(memory="64MiB")}, Overflow("drop_newest", memory="8MiB")],
)
def test_a_buffer_lets_a_stage_end_at_its_own_speed(tmp_path, elastic):
    # Without one each would wait for the other.
    result = pipeline(*burst(tmp_path), elastic=elastic, text=True, check=True)
    assert int(result.stdout) == 4_000_000
    first, second = result.stages
    assert (first.elastic.bytes_in, first.elastic.bytes_out) == (4_000_000, 4_000_000)
    assert first.elastic.peak_bytes > 3_000_000
    assert second.elastic is None


def test_no_buffer_where_none_is_asked_for():
    for elastic in [False, {}, {0: False}, Overflow("block")]:
        result = pipeline(["true"], ["cat"], ["cat"], elastic=elastic)
        assert [stage.elastic for stage in result.stages] == [None] * 3
    result = pipeline(["true"], ["cat"], ["cat"], elastic={1: True})
    assert [stage.elastic is None for stage in result.stages] == [True, False, True]


def test_json_has_what_the_schema_says():
    path = pathlib.Path(__file__).parents[2] / "docs" / "reference" / "result.schema.json"
    schema = json.loads(path.read_text())
    parts = pipeline(["true"], ["cat"], elastic=True).to_dict()
    assert list(parts) == schema["$defs"]["pipeline"]["required"]
    first = parts["stages"][0]
    assert {"judgement", "elastic"} <= set(first) <= set(schema["properties"])
    buffer = schema["properties"]["elastic"]["oneOf"][1]
    assert list(first["elastic"]) == buffer["required"]


def test_each_stage_is_audited():
    seen = []
    active = [True]

    def hook(event, args):
        if active and event == "procwright.pipeline":
            seen.append(args[1])

    sys.addaudithook(hook)
    pipeline(["true"], ["cat"])
    active.clear()
    assert seen == [["true"], ["cat"]]


def test_what_a_test_plays_is_not_started_for_real(procwright_fake, tmp_path):
    procwright_fake.register(["touch", ...], stdout="played")
    procwright_fake.register(["cat"], lambda call: Reply(stdout=call.input + b", and passed on"))
    result = pipeline(["touch", str(tmp_path / "made")], ["cat"], text=True)
    assert result.stdout == "played, and passed on"
    assert not (tmp_path / "made").exists()


# A `Fake` answers for each stage.


@pytest.mark.parametrize(
    ("stages", "options"),
    [
        ([("echo a", says("a\n")), ("tr a A", lambda call: says(call.input.upper()))], {}),
        ([("echo half; exit 3", says("half\n", 3)), ("cat", says("half\n"))], {}),
        ([("exit 3", says("", 3)), ("cat", says(""))], {"success": "last"}),
        ([("cat", says("")), ("echo no >&2; exit 4", says("", 4, "no\n"))], {}),
        ([("exit 3", says("", 3)), ("exit 4", says("", 4))], {}),
        ([("cat", says("")), ("exit 1", says("", 1))], {"ok_codes": {1: [1]}}),
        ([("exec yes", says("y\n", -13)), ("head -1", says("y\n"))], {}),
        ([("exec yes", says("y\n", -13)), ("head -1", says("y\n"))], {"success": "strict"}),
        ([("exec yes", says("y\n", -13)), ("read x; exit 3", says("", 3))], {}),
        ([("cat", says("")), ("kill -9 $$", says("", -9)), ("exec cat", says(""))], {}),
        (
            [("printf abcdef >&2", says("", 0, "abcdef")), ("printf 123456", says("123456"))],
            {"limit": 4},
        ),
    ],
)
def test_what_is_played_is_judged_as_what_runs(stages, options):
    check_played_as_real(stages, options)


def test_a_played_stage_that_hangs_holds_up_the_rest(procwright_fake):
    for name, reply in [("a", says("1\n")), ("b", Reply(["half", Hang()])), ("c", says("end"))]:
        procwright_fake.register([name], reply)
    with pytest.raises(procwright.TimeoutExpired) as caught:
        pipeline(["a"], ["b"], ["c"], timeout=60)
    result = caught.value.result
    assert [one.judgement for one in result.stages] == ["success", "failed", "collateral"]
    assert (result.duration_s, result.stdout) == (60, b"")
    assert str(caught.value) == (
        "a | b | c timed out after 1 min 0 s (stopped in 0 s)\n"
        "  stage 2 of 3 held up the rest: b timed out after 1 min 0 s (stopped in 0 s)\n"
        "    the program was killed by SIGTERM\n"
        "  stage 3 of 3: c was killed by SIGTERM, since all were stopped"
    )


def test_functions_are_called_between_stages_that_are_played(procwright_fake):
    procwright_fake.register(["a"], stdout="x\ny\n")
    b = procwright_fake.register(["b"], lambda call: Reply(stdout=call.input))
    result = pipeline(["a"], lambda lines: (one.upper() for one in lines), ["b"], text=True)
    assert (result.stdout, result.stages[0].function) == (
        "X\nY\n",
        StageFunction("returned", "success"),
    )
    (call,) = b.calls
    assert (call.function, call.stage, call.input) == ("pipeline", 1, b"X\nY\n")

    def fails(lines):
        raise KeyError("mine")
        yield

    with pytest.raises(KeyError, match="mine"):
        pipeline(["a"], fails, ["b"])


def looks(told):
    """A function that tells what it has seen of its input."""

    def function(lines):
        try:
            for line in lines:
                told.append(line)
                yield line
        except OSError as error:
            told.append(error.errno)
            raise
        told.append("end")

    return function


def test_a_function_behind_a_stage_that_is_stopped_sees_no_end_of_its_input(tmp_path):
    hangs = shell("echo a; exec sleep 1000")
    told, real = [], []
    with Fake() as fake:
        fake.register(hangs, Reply([b"a\n", Hang()]))
        cat = fake.register(["cat"], lambda call: Reply(stdout=call.input))
        with pytest.raises(procwright.TimeoutExpired) as caught:
            pipeline(hangs, looks(told), ["cat"], looks(told), ["cat"], timeout=60)
    played = caught.value.result

    with cancelled_once_up(tmp_path) as (cancel, line), pytest.raises(procwright.Cancelled):
        pipeline(shell(f"echo a; {line}"), looks(real), ["cat"], cancel=cancel)
    assert told == [b"a\n", errno.ECANCELED, errno.ECANCELED]
    # It may have come before the line.
    assert real in ([b"a\n", errno.ECANCELED], [errno.ECANCELED])
    cut = StageFunction("cancelled", "collateral")
    assert [one.function for one in played.stages] == [cut, cut, None]
    assert [one.judgement for one in played.stages] == ["failed", "collateral", "collateral"]
    assert [call.input for call in cat.calls] == [b"a\n", b""]


def test_a_function_may_do_with_its_end_what_it_likes(procwright_fake):
    procwright_fake.register(["a"], Reply([b"half", Hang()]))
    b = procwright_fake.register(["b"])

    def ends_well(file):
        with contextlib.suppress(OSError):
            file.read()
        return [b"so far"]

    with pytest.raises(procwright.TimeoutExpired) as caught:
        pipeline(["a"], ends_well, ["b"], timeout=60)
    assert caught.value.result.stages[0].function == StageFunction("returned", "success")
    assert b.calls[0].input == b"so far"

    def fails(file):
        file.read()

    def fails_itself(file):
        raise OSError(errno.ECANCELED, "mine")

    with pytest.raises(procwright.TimeoutExpired):
        pipeline(["a"], fails, ["b"], timeout=60)
    with pytest.raises(OSError, match="mine"):
        pipeline(["a"], fails_itself, ["b"], timeout=60)


def test_what_is_refused_of_a_pipeline_that_is_played(procwright_fake, tmp_path):
    procwright_fake.register(["a"], stdout="1")
    procwright_fake.register(["missing"], not_found("missing"))
    with pytest.raises(NotRegistered, match=r"^pipeline\(..., \['b'\]\) is not registered"):
        pipeline(["a"], ["b"])
    procwright_fake.take_refused()
    with pytest.raises(procwright.SpawnError, match="cannot run missing"):
        pipeline(["a"], ["missing"])
    with pytest.raises(InvalidValue, match=r"stage 2: args\[0\]"):
        pipeline(["a"], ["b\0"])
    with pytest.raises(InvalidValue, match="play pipeline"):
        procwright.spawn_pipeline(["a"], ["a"])
    procwright_fake.assert_calls([["a"], ["a"], ["missing"]])


def test_stages_that_are_allowed_really_run(procwright_fake):
    procwright_fake.allow(["yes"])
    procwright_fake.allow(["head", ...])
    procwright_fake.register(["numbers"], stdout="3\n1\n2\n")
    procwright_fake.allow(["sort"])
    # Joined as ever: the first has no end.
    assert pipeline(["yes"], ["head", "-1"]).stdout == b"y\n"
    # Beside a stage that is played, one after the other.
    assert pipeline(["numbers"], ["sort"], ["head", "-1"]).stdout == b"1\n"
    called = [["yes"], ["head", "-1"], ["numbers"], ["sort"], ["head", "-1"]]
    procwright_fake.assert_calls(called)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_no_more_stages_really_run_than_are_allowed(procwright_fake, times):
    allowed = procwright_fake.allow(["echo", ...], times=times)
    played = procwright_fake.register(["echo", ...], stdout="played")
    result = pipeline(["echo", "a"], ["echo", "b"], text=True)
    assert result.stdout == ("b\n" if times > 1 else "played")
    assert (allowed.call_count, played.call_count) == (min(times, 2), max(2 - times, 0))
    assert len(procwright_fake.calls) == 2


def test_what_is_no_stage_is_refused():
    with pytest.raises(InvalidValue, match=r"^stages\[1\] is 5: pass a list"):
        pipeline(["true"], 5)


def test_a_function_stands_between_two_programs():
    def upper(lines):
        for line in lines:
            yield line.upper()

    result = pipeline(shell("printf 'pear\\napple\\n'"), upper, ["sort"], text=True, check=True)
    assert result.stdout == "APPLE\nPEAR\n"
    assert result.stages[0].function == StageFunction("returned", "success")
    assert result.stages[1].function is None
    assert len(result.stages) == len(result.args) == 2
    assert result.to_dict()["stages"][0]["function"] == {
        "end": "returned",
        "judgement": "success",
    }


def test_a_function_reads_a_file_and_gives_pieces():
    given = [b"a", bytearray(b"b"), memoryview(b"c"), b""]
    assert pipeline(["true"], lambda _: given, ["cat"]).stdout == b"abc"
    assert pipeline(["echo", "é"], lambda file: [file.read()], ["cat"]).stdout == "é\n".encode()
    count = pipeline(["seq", "200000"], lambda file: [b"%d" % sum(map(int, file))], ["cat"])
    assert count.stdout == b"%d" % sum(range(200001))
    # A line ends with \n alone, and no newline is translated.
    lines = pipeline(
        ["printf", "a\\r\\nb\\rc\\n"], lambda file: map(repr, file), ["cat"], text=True
    )
    assert lines.stdout == repr("a\r\n") + repr("b\rc\n")
    assert pipeline(["echo"], lambda _: None, ["wc", "-c"], text=True).stdout.strip() == "0"


def test_volume_passes_through_a_function_whole():
    def copy(file):
        while data := file.read1(100_000):
            yield data

    data = os.urandom(1 << 20) * 4
    result = pipeline(["cat"], copy, ["cat"], copy, ["cat"], input=data)
    assert result.ok
    assert result.stdout == data


def test_an_exception_of_a_function_stops_all_and_comes_through(tmp_path):
    class Own(Exception):
        pass

    def fails(file):
        yield file.readline()
        raise Own("on purpose")

    seen = tmp_path / "seen"
    reader = shell(f"cat > /dev/null; : > {seen}")
    with pytest.raises(Own, match="on purpose"):
        pipeline(shell("echo half; exec sleep 1000"), fails, reader)
    assert not seen.exists()


@pytest.mark.parametrize(
    ("gives", "text", "words"),
    [
        (lambda _: ["a"], False, r"gave str, not bytes \(pass text=True"),
        (lambda _: [5], True, "gave int, not str or bytes"),
        (lambda _: "a", True, "returned one str: yield pieces"),
        (lambda _: 5, False, "not iterable"),
    ],
)
def test_what_a_function_gives_is_checked(gives, text, words):
    with pytest.raises(TypeError, match=words):
        pipeline(["true"], gives, ["cat"], text=text)


def test_a_function_whose_reader_has_enough_is_forgiven():
    result = pipeline(["yes"], lambda lines: lines, ["head", "-1"])
    assert result.ok
    assert judged(result) == ["forgiven", "success"]
    assert result.stages[0].function == StageFunction("broken_pipe", "forgiven")
    # One that has read enough itself.
    result = pipeline(["yes"], lambda file: [file.readline()], ["cat"])
    assert result.ok
    assert result.stdout == b"y\n"
    assert judged(result) == ["forgiven", "success"]


def test_a_function_comes_out_of_a_stop(capsys):
    ends = []

    def reads(file):
        try:
            yield from file
        except OSError as error:
            ends.append(error.errno)
            raise

    with pytest.raises(procwright.TimeoutExpired) as caught:
        pipeline(["sleep", "1000"], reads, ["cat"], timeout=0.3)
    assert ends == [errno.ECANCELED]
    result = caught.value.result
    assert result.stages[0].function == StageFunction("cancelled", "collateral")
    # What comes of the stop is no error that somebody has to be told of.
    assert capsys.readouterr().err == ""


def test_a_function_that_does_not_come_out_is_left_and_named():
    go_on, done, ends = threading.Event(), threading.Event(), []

    def stuck(file):
        go_on.wait()
        try:
            file.read()
        except OSError as error:
            ends.append(error.errno)
        done.set()

    with pytest.raises(procwright.TimeoutExpired, match="has not returned, and its thread goes on"):
        pipeline(["yes"], stuck, ["cat"], timeout=0.3, stop=procwright.Stop("KILL"))
    go_on.set()
    assert done.wait(100)
    assert ends == [errno.ECANCELED]


def test_a_stream_that_was_kept_keeps_no_pipe():
    kept = []
    result = pipeline(["yes"], lambda file: kept.append(file), ["cat"])
    assert result.ok
    with pytest.raises(ValueError, match="has returned"):
        kept[0].read()


def test_where_a_function_may_stand():
    def copy(file):
        return file

    with pytest.raises(InvalidValue, match=r"^stages\[0\] is <function .* by stdin="):
        pipeline(copy, ["cat"])
    with pytest.raises(InvalidValue, match=r"^stages\[1\] is <function .* what comes of"):
        pipeline(["cat"], copy)
    with pytest.raises(InvalidValue, match=r"^stages\[2\] is <function .* one function of both"):
        pipeline(["cat"], copy, copy, ["cat"])
    with pytest.raises(InvalidValue, match=r"^elastic\[0\] is True: leave it out"):
        pipeline(["cat"], copy, ["cat"], elastic={0: True})
    result = pipeline(["echo", "a"], copy, ["cat"], ["cat"], elastic=True)
    assert result.stdout == b"a\n"
    assert result.stages[0].elastic is None
    assert result.stages[1].elastic is not None


def test_a_function_is_not_called_if_nothing_can_be_started(tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    called = []
    with pytest.raises(procwright.SpawnError):
        pipeline([str(script)], called.append, ["cat"])
    assert called == []


def test_threads_of_functions_do_not_stay():
    def threads():
        return len(os.listdir("/proc/self/task"))

    def round_of():
        for _ in range(100):
            assert pipeline(["echo", "a"], lambda file: file, ["cat"]).stdout == b"a\n"

    pipeline(["echo", "a"], lambda file: file, ["cat"])
    fds = len(os.listdir("/proc/self/fd"))
    round_of()
    # One of inotify may be on its way out.
    assert threads() < 20
    assert len(os.listdir("/proc/self/fd")) <= fds + 2


def test_a_function_in_a_pipeline_that_one_holds():
    def doubled(lines):
        for line in lines:
            yield line.strip() * 2 + "\n"

    with procwright.spawn_pipeline(
        ["cat"], doubled, ["cat"], stdin=procwright.PIPE, text=True
    ) as child:
        for said in ("pear\n", "fig\n"):
            child.stdin.write(said)
            assert child.stdout.readline() == said.strip() * 2 + "\n"
    result = child.result()
    assert result.ok
    assert result.stages[0].function == StageFunction("returned", "success")


def test_an_exception_of_a_function_in_a_pipeline_that_one_holds():
    def fails(file):
        raise LookupError("on purpose")

    child = procwright.spawn_pipeline(["yes"], fails, ["cat"])
    with pytest.raises(LookupError, match="on purpose"):
        child.result()
