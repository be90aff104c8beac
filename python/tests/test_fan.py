"""`Fan`: several programs side by side, as a stage of a pipeline."""

import errno
import signal
import sys

import pytest
from conftest import with_time
from played import check_played_as_real, numbered, says, upper

import procwright
from procwright import DEVNULL, Fan, InvalidValue, Overflow, pipeline
from procwright.testing import Hang, Reply


def judged(result):
    return [stage.judgement for stage in result.stages]


def shell(line):
    return ["sh", "-c", line]


def echoed(call):
    return Reply(stdout=call.input)


#: It reads a line, and tells it.
HEAD = ("head -1", says("y\n"))


def test_each_gets_all_and_has_an_output_of_its_own(tmp_path):
    copy = tmp_path / "copy"
    to_file = {"args": ["cat"], "stdout": copy, "env": {"A": "b"}}
    result = pipeline(["seq", "9"], ["cat"], Fan(["wc", "-l"], to_file, ["tail", "-1"]), text=True)
    assert result.ok
    assert judged(result) == ["success"] * 5
    assert result.stages[2].stdout == "9\n"
    assert result.stages[3].stdout is None
    assert result.stages[4].stdout == result.stdout == "9\n"
    assert copy.read_text() == "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
    assert [stage.fan and stage.fan.bytes_out for stage in result.stages] == [None, None, *[18] * 3]
    assert [args[0] for args in result.args] == ["seq", "cat", "wc", "cat", "tail"]
    assert result.summary == "seq 9 | cat | {wc -l, cat, tail -1} ended well"


@pytest.mark.parametrize("elastic", [False, True, {0: Overflow(memory="64KiB")}])
def test_volume_comes_to_each_whole(elastic):
    data = bytes(range(256)) * 16384
    slow = shell("head -c 1; sleep 0.1; cat")
    result = pipeline(["cat"], Fan(["cat"], slow, ["cat"]), input=data, elastic=elastic, check=True)
    assert all(stage.stdout == data for stage in result.stages[1:])


def test_one_that_leaves_or_fails_ends_no_other():
    result = pipeline(["seq", "1000000"], Fan(["head", "-1"], ["wc", "-l"]), text=True, check=True)
    assert [stage.stdout for stage in result.stages[1:]] == ["1\n", "1000000\n"]
    result = pipeline(["seq", "1000000"], Fan(shell("kill -KILL $$"), ["wc", "-l"]), text=True)
    assert judged(result) == ["success", "failed", "success"]
    assert (result.returncode, result.stdout) == (-signal.SIGKILL, "1000000\n")


def test_the_writer_is_forgiven_if_all_have_read_enough():
    result = pipeline(["yes"], Fan(["head", "-1"], ["head", "-2"]), check=True)
    assert judged(result) == ["forgiven", "success", "success"]
    result = pipeline(["yes"], Fan(["head", "-1"], shell("read x; exit 3")))
    assert judged(result) == ["collateral", "success", "failed"]
    assert result.returncode == 3
    assert "since all that read it had ended, and not all well" in result.explanation


def test_the_one_that_holds_up_the_rest_is_named():
    stages = ["yes"], Fan(shell("exec cat >/dev/null"), ["sleep", "1000"])

    def check(timeout):
        with pytest.raises(procwright.TimeoutExpired) as raised:
            pipeline(*stages, timeout=timeout, stop="KILL")
        result = raised.value.result
        assert judged(result) == ["collateral", "collateral", "failed"]
        assert "stage 3 of 3 held up the rest: sleep 1000" in result.explanation
        assert result.stages[2].fan.lag_bytes > 0

    with_time(check)


def test_all_are_started_or_none(tmp_path):
    made = tmp_path / "made"
    reads = shell(f"cat; touch {made}")
    with pytest.raises(procwright.SpawnError) as raised:
        pipeline(["yes"], Fan(reads, ["/no/such/program"], reads))
    assert raised.value.errno == errno.ENOENT
    assert "stage 3 of 4, /no/such/program" in str(raised.value)
    assert not made.exists()


def test_json_has_the_figures_of_each():
    parts = pipeline(["echo", "x"], Fan(["cat"], ["cat"]), text=True).to_dict()
    first, second, _ = parts["stages"]
    assert "fan" not in first
    assert second["fan"]["bytes_out"] == 2
    assert (first["stdout"], second["stdout"]) == (None, "x\n")


def test_one_that_is_held_has_the_stdout_of_the_last(tmp_path):
    copy = tmp_path / "copy"
    fan = Fan({"args": ["cat"], "stdout": copy}, ["cat"])
    with procwright.spawn_pipeline(["cat"], fan, stdin=procwright.PIPE, text=True) as child:
        child.stdin.write("pear\n")
        assert child.stdout.readline() == "pear\n"
    result = child.result()
    assert result.ok
    assert copy.read_text() == "pear\n"
    quiet = Fan({"args": ["cat"], "stdout": DEVNULL}, ["cat"])
    with procwright.spawn_pipeline(["echo", "x"], quiet, text=True) as child:
        assert child.communicate() == ("x\n", "")
    with pytest.raises(InvalidValue, match=r"stdout.*one stdout, of its last program"):
        procwright.spawn_pipeline(["cat"], Fan(["cat"], ["cat"]))


def test_what_a_fan_cannot_be():
    def function(lines):
        return lines

    fan = Fan(["cat"], ["cat"])
    for stages, words in [
        ((fan,), r"^stages\[0\] is Fan\(.*put a program before it or behind it"),
        ((["cat"], fan, function), r"^stages\[1\] is Fan\(.*put a \['cat'\] between"),
        ((["cat"], fan, function, ["cat"]), r"^stages\[1\] is Fan\(.*put a \['cat'\] between"),
        ((["cat"], fan, fan, ["cat"]), r"^stages\[2\] is Fan\(.*put a program between"),
        ((fan, fan), r"^stages\[1\] is Fan\(.*put a program between"),
        ((fan, function, ["cat"]), r"^stages\[0\] is Fan\(.*put a \['cat'\] between"),
        ((["cat"], function, fan), r"^stages\[2\] is Fan\(.*put a \['cat'\] between"),
        ((["cat"], Fan(["cat"], 5)), r"^stages\[2\] is 5: pass a list"),
        ((["cat"], Fan("cat")), r"^stages\[1\] is 'cat': pass each stage as a list"),
    ]:
        with pytest.raises(InvalidValue, match=words):
            pipeline(*stages)
    with pytest.raises(InvalidValue, match="elastic"):
        pipeline(["cat"], fan, elastic={1: True})
    with pytest.raises(InvalidValue, match="elastic is behind stage 0 of 3"):
        pipeline(fan, ["cat"], elastic={0: True})
    with pytest.raises(InvalidValue, match="input and stdin are for one program"):
        pipeline(fan, ["cat"], input=b"x")
    with pytest.raises(InvalidValue, match=r"^stages\[1\]\['stdin'\] is .*a file or nothing"):
        pipeline(Fan(["cat"], {"args": ["cat"], "stdin": iter([b"x"])}), ["cat"])
    with pytest.raises(InvalidValue, match="name one at least"):
        Fan()
    with pytest.raises(InvalidValue, match="side by side already"):
        Fan(fan)
    with pytest.raises(InvalidValue, match="a function stands between two programs"):
        Fan(function)
    # Of one alone it is the option of the whole.
    assert pipeline(["cat"], {"args": ["cat"], "stdout": DEVNULL}).stdout is None
    # One program is a stage like any other.
    assert pipeline(["echo", "x"], Fan(["cat"]), text=True).stdout == "x\n"
    assert repr(Fan(["cat"])) == "Fan(programs=(['cat'],))"
    assert Fan(["cat"]) == Fan(["cat"]) != fan


def test_no_end_is_said_twice(tmp_path):
    fan = Fan(["cat"], {"args": ["cat"], "stdout": DEVNULL})
    words = "^stdout is .*: the last program of the Fan has a stdout of its own"
    for call in pipeline, procwright.spawn_pipeline:
        for other in tmp_path / "x", DEVNULL:
            with pytest.raises(InvalidValue, match=words):
                call(["cat"], fan, stdout=other)
    assert not (tmp_path / "x").exists()
    assert pipeline(["echo", "x"], fan, stdout=procwright.CAPTURE).stdout is None
    own = Fan({"args": ["cat"], "stdin": DEVNULL})
    for given in {"input": b"x"}, {"stdin": DEVNULL}:
        (name,) = given
        words = f"^{name} is .*: the first program has a stdin of its own"
        with pytest.raises(InvalidValue, match=words):
            pipeline(own, ["cat"], **given)
    assert pipeline(own, ["cat"]).stdout == b""
    assert pipeline(Fan(["cat"]), ["cat"], input=b"x").stdout == b"x"


def test_an_iterator_feeds_all_and_shell_lines_are_taken():
    given = iter(["a\n", "b\n"])
    result = pipeline("cat", Fan("wc -l", "sort -r"), shell=True, stdin=given, text=True)
    assert [stage.stdout for stage in result.stages] == [None, "2\n", "b\na\n"]


def test_a_python_program_that_leaves_early_is_no_matter():
    code = "import sys; sys.stdin.readline()"
    fan = Fan([sys.executable, "-c", code], ["wc", "-c"])
    result = pipeline(["head", "-c", "4000000", "/dev/zero"], fan, text=True, check=True)
    assert result.stdout == "4000000\n"


def test_lines_of_several_come_whole_to_the_next(tmp_path):
    given = tmp_path / "given"
    given.write_text("fig\n")
    writes = ["seq", "-f", "%.0f and more words of this line", "50000"]
    first = Fan(writes, {"args": ["cat"], "stdin": given}, writes)
    result = pipeline(first, ["cat"], text=True, check=True)
    lines = result.stdout.splitlines()
    expected = [f"{number} and more words of this line" for number in range(1, 50001)]
    assert sorted(lines) == sorted([*expected, *expected, "fig"])
    assert [args[0] for args in result.args] == ["seq", "cat", "seq", "cat"]
    assert [stage.fan for stage in result.stages] == [None] * 4


def test_each_of_several_writers_is_judged():
    result = pipeline(Fan(["yes"], shell("exit 3"), ["yes"]), ["head", "-1"])
    assert judged(result) == ["forgiven", "failed", "forgiven", "success"]
    assert result.outcome == "failed: stage 2 of 4 exited with code 3"


def test_a_fan_at_both_ends_and_a_buffer_where_there_may_be_one():
    fan = Fan(["wc", "-l"], ["wc", "-l"])
    for elastic in [True, {2: True}]:
        result = pipeline(Fan(["seq", "9"], ["seq", "9"]), ["cat"], fan, elastic=elastic, text=True)
        assert result.ok
        assert [stage.stdout for stage in result.stages] == [None, None, None, "18\n", "18\n"]


def test_in_the_middle_each_gets_all_and_the_next_one_the_lines_of_all():
    even = shell("sed -n '2~2s/$/ is even/p'")
    odd = shell("sed -n '1~2s/$/ is odd/p'")
    result = pipeline(["seq", "4"], Fan(even, odd), ["sort"], text=True, check=True)
    assert result.stdout == "1 is odd\n2 is even\n3 is odd\n4 is even\n"
    assert [stage.fan and stage.fan.bytes_out for stage in result.stages] == [None, 8, 8, None]
    assert [stage.stdout for stage in result.stages[:3]] == [None] * 3

    def count(lines):
        yield f"{sum(1 for _ in lines)}\n"

    cats = Fan(["cat"], ["cat"])
    stages = [Fan(["seq", "9"], ["seq", "9"]), ["cat"], cats, ["cat"], count, ["cat"], cats]
    for elastic in False, True:
        result = pipeline(*stages, ["sort"], Fan(["cat"]), text=True, elastic=elastic, check=True)
        assert result.stdout == "36\n36\n"
    stdin = procwright.PIPE
    with procwright.spawn_pipeline(["cat"], cats, ["cat"], stdin=stdin, text=True) as child:
        child.stdin.write("pear\n")
        assert [child.stdout.readline() for _ in range(2)] == ["pear\n", "pear\n"]
    own = Fan({"args": ["cat"], "stdout": DEVNULL}, ["cat"])
    with pytest.raises(InvalidValue, match=r"stdout in stages\[1\] is not for a stage"):
        pipeline(["cat"], own, ["cat"])


def test_a_line_that_is_too_long_in_the_middle_is_an_error():
    stages = ["cat", "/dev/zero"], Fan(["cat"], ["cat"]), ["cat"]
    with pytest.raises(OSError, match="a line of more than 16777216 bytes"):
        pipeline(*stages, stdout=DEVNULL, stop="KILL")


# A `Fake` answers for each program.


@pytest.mark.parametrize(
    ("stages", "options"),
    [
        # At the end each has all, and a stdout of its own.
        ([('printf "a\\nb"', says("a\nb")), [("tr ab AB", upper), ("cat", echoed)]], {}),
        # At the start the lines of all come whole, and a last one without an end gets one.
        (
            [
                [
                    ('printf "a\\nb"', says("a\nb")),
                    ("true", says("")),
                    ("sleep 0.1; echo c", says("c\n")),
                ],
                ('sed "s/^/> /"', numbered),
            ],
            {},
        ),
        # In the middle both.
        (
            [
                ('printf "a\\nb\\n"', says("a\nb\n")),
                [("cat", echoed), ("tr ab AB; sleep 0.1", upper)],
                ("sort", lambda call: says(b"".join(sorted(call.input.splitlines(True))))),
            ],
            {"text": True},
        ),
        # Each is judged.
        (
            [
                ("cat", says("")),
                [("exit 3", says("", 3)), ("echo no >&2; exit 4", says("", 4, "no\n"))],
            ],
            {},
        ),
        ([("cat", says("")), [("cat", says("")), ("exit 1", says("", 1))]], {"ok_codes": {2: [1]}}),
        ([[("exit 3", says("", 3)), ("kill -9 $$", says("", -9))], ("cat", says(""))], {}),
        (
            [[("exit 3", says("", 3)), ("true", says(""))], ("cat", says(""))],
            {"success": "last"},
        ),
        # One that can write no more is forgiven if all who read it are well.
        ([("exec yes", says("y\n", -13)), [HEAD, HEAD]], {}),
        ([("exec yes", says("y\n", -13)), [HEAD, HEAD]], {"success": "strict"}),
        ([("exec yes", says("y\n", -13)), [HEAD, ("read x; exit 3", says("", 3))]], {}),
        ([[("exec yes", says("y\n", -13)), ("exit 3", says("", 3))], HEAD], {}),
        # Of one program it is none, of many the text has some.
        ([("echo a", says("a\n")), [("cat", echoed)], ("cat", echoed)], {"elastic": True}),
        ([("echo a", says("a\n")), [("cat", echoed)] * 7], {"elastic": True}),
        ([("echo abcdef", says("abcdef\n")), [("cat", echoed)] * 2], {"limit": 4}),
    ],
)
def test_what_is_played_comes_out_as_what_runs(stages, options):
    check_played_as_real(stages, options)


def test_each_program_that_is_played_is_a_call(procwright_fake, tmp_path):
    procwright_fake.register(["fig"], stdout="fig")
    cat = procwright_fake.register(["cat"], echoed)
    ends = procwright_fake.register(["wc", ...], lambda call: Reply(stdout=f"{len(call.input)}\n"))
    copy = tmp_path / "copy"
    given = tmp_path / "given"
    given.write_text("pear\n")
    first = Fan(["fig"], {"args": ["cat"], "stdin": given})
    counts = Fan({"args": ["wc", "-c"], "stdout": copy}, ["wc", "-c"])
    result = pipeline(first, ["cat"], counts, text=True, check=True)
    assert (result.stdout, result.stages[3].stdout, copy.read_text()) == ("9\n", None, "9\n")
    assert [stage.fan and stage.fan.bytes_out for stage in result.stages] == [None] * 3 + [9, 9]
    assert [(call.stage, call.input) for call in cat.calls] == [(1, b"pear\n"), (2, b"fig\npear\n")]
    assert [(call.stage, call.input) for call in ends.calls] == [
        (place, b"fig\npear\n") for place in (3, 4)
    ]


def test_played_programs_that_hang_side_by_side_hold_up_the_rest(procwright_fake):
    for name, reply in [("a", says("1\n")), ("b", Reply(["half", Hang()])), ("c", says("end"))]:
        procwright_fake.register([name], reply)
    with pytest.raises(procwright.TimeoutExpired) as caught:
        pipeline(["a"], Fan(["b"], ["c"], ["b"]), ["c"], timeout=60)
    result = caught.value.result
    assert judged(result) == ["success", "failed", "success", "failed", "collateral"]
    assert (result.duration_s, result.stdout, result.reason) == (60, b"", "timeout")
    assert "stage 2 of 5 held up the rest: b timed out after 1 min 0 s" in str(caught.value)
    assert "stage 5 of 5: c was killed by SIGTERM, since all were stopped" in str(caught.value)
    # That which has written too much is the first that all are stopped for.
    limit = procwright.Limit(2, beyond="fail")
    with pytest.raises(procwright.OutputLimitExceeded) as caught:
        pipeline(["a"], Fan(["b"], ["c"]), timeout=60, limit=limit)
    assert caught.value.result.reason == "output_limit"


def test_a_cancel_ends_what_is_played_side_by_side(procwright_fake):
    procwright_fake.register(["a"])
    procwright_fake.register(["hangs"], Reply([Hang()]))
    cancel = procwright.Cancel()

    def stops(lines):
        cancel.cancel()
        return []

    stages = [["a"], stops, ["a"], Fan(["hangs"], ["a"], ["hangs"]), ["a"]]
    with pytest.raises(procwright.Cancelled) as caught:
        pipeline(*stages, cancel=cancel)
    result = caught.value.result
    assert judged(result) == ["success"] * 2 + ["collateral", "success", "collateral", "collateral"]
    assert result.reason == "cancelled"
