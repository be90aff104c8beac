"""`cmd()`: what commands and pipelines do that are said now and started later."""

import builtins
import errno
import inspect
import pathlib
import re
import subprocess
import typing

import anyio.abc
import pytest

import procwright
from procwright import PIPE, STDOUT, Fan, InvalidValue, aio, cmd, map, pipeline, run, spawn
from procwright.testing import Cassette, Fake, NotRegistered


def upper(lines):
    for line in lines:
        yield line.upper()


def test_nothing_is_started_until_it_is_run(tmp_path):
    made = tmp_path / "made"
    touch = cmd("touch", made)
    both = cmd("true") | touch
    assert not made.exists()
    touch.run(check=True)
    assert made.exists()
    made.unlink()
    both.run(check=True)
    assert made.exists()


def test_one_is_run_as_often_as_one_likes():
    count = cmd("wc", "-l")
    assert [count.run(input="x\n" * n, text=True).stdout for n in (3, 5)] == ["3\n", "5\n"]
    joined = cmd("grep", "-v", "#") | cmd("sort")
    assert joined.run(input="b\n#\na\n", text=True).stdout == "a\nb\n"
    assert joined.run(input=b"#\nz\n").stdout == b"z\n"


def test_what_a_result_has_is_a_list():
    result = cmd("sh", "-c", "exit 3").run()
    assert (result.args, result.returncode) == (["sh", "-c", "exit 3"], 3)
    with pytest.raises(procwright.CalledProcessError) as caught:
        (cmd("true") | cmd("false")).run(check=True)
    assert caught.value.result.args == [["true"], ["false"]]


@pytest.mark.parametrize(
    ("words", "options", "prints"),
    [
        (("printf", "%s.", "a b"), {}, "a b."),
        ((["printf", "%s."], "a b"), {}, "a b."),
        ((("printf", b"%s."), pathlib.Path("a b")), {}, "a b."),
        ((pathlib.Path("/bin/echo"), "-n"), {}, ""),
        (("echo $0 $1", "sh", "a"), {"shell": True}, "sh a\n"),
        (("echo a | tr a b",), {"shell": True}, "b\n"),
    ],
)
def test_it_is_said_as_run_takes_it(words, options, prints):
    said = cmd(*words, **options)
    assert said.run(text=True).stdout == prints
    assert (said | cmd("cat")).run(text=True).stdout == prints
    assert run(said, text=True).stdout == prints


def test_words_and_options_are_added():
    git = cmd("printf", "%s-")
    two = git.with_args("a", "b")
    assert (git.run().stdout, two.run().stdout) == (b"-", b"a-b-")
    where = cmd("pwd", cwd="/").with_options(text=True)
    assert where.run().stdout == "/\n"
    assert where.run(cwd="/usr").stdout == "/usr\n"
    assert where.with_options(cwd="/usr").run().stdout == "/usr\n"
    line = cmd("echo $A", shell=True, extra_env={"A": "b"})
    assert line.run().stdout == b"b\n"
    assert line.with_options(extra_env=None, shell=False).args == ("echo $A",)


def test_an_option_of_the_call_takes_back_one_of_its_own():
    slow = cmd("sleep", "0.2", timeout=0.01)
    with pytest.raises(procwright.TimeoutExpired):
        slow.run()
    assert slow.run(timeout=None).ok
    assert run(slow, timeout=1000).ok
    assert run(slow.with_options(timeout=None)).ok


def test_a_default_that_a_call_is_given_takes_nothing_back():
    slow = cmd("sleep", "1000", timeout=0.01, stop="KILL")
    with pytest.raises(procwright.TimeoutExpired):
        run(slow, timeout=None)
    with spawn(cmd("cat", stdin=PIPE), stdin=None, text=True) as child:
        child.stdin.write("a\n")
    both = (cmd("sleep", "1000") | cmd("cat")).with_options(timeout=0.01, stop="KILL")
    with pytest.raises(procwright.TimeoutExpired):
        procwright.pipeline(both, timeout=None)


def test_it_is_spawned():
    with cmd("cat", stdin=PIPE).spawn(text=True) as child:
        child.stdin.write("a\n")
        assert child.stdout.readline() == "a\n"
    with spawn(cmd("cat", stdin=PIPE), text=True) as child:
        child.stdin.write("b\n")
        assert child.stdout.readline() == "b\n"
    child = cmd("sh", "-c", "echo a; echo b >&2", stderr=STDOUT).spawn()
    assert child.communicate() == (b"a\nb\n", None)


def test_functions_and_fans_are_stages():
    joined = cmd("cat") | upper | cmd("sort") | Fan(cmd("cat"), ["wc", "-l"])
    result = joined.run(input="b\na\n", text=True, check=True)
    assert [stage.stdout for stage in result.stages] == [None, None, "A\nB\n", "2\n"]
    sources = Fan(cmd("echo", "b"), cmd("echo $A", shell=True, env={"A": "a"}))
    assert (sources | cmd("sort")).run(text=True).stdout == "a\nb\n"


def test_stages_have_options_of_their_own():
    where = cmd("pwd", cwd="/")
    joined = cmd("true") | where
    assert joined.run(cwd="/usr").stdout == b"/\n"
    mixed = cmd("sh", "-c", "echo a >&2", stderr=STDOUT) | cmd("cat")
    assert mixed.run().stdout == b"a\n"
    with pytest.raises(InvalidValue, match=r"one of the whole, pipeline\(..., stdin=Path\('/dev"):
        (cmd("true") | cmd("cat", stdin=pathlib.Path("/dev/null"))).run()


def test_the_first_may_say_what_it_reads_and_the_last_where_it_writes(tmp_path):
    fruit, copy = tmp_path / "fruit", tmp_path / "copy"
    fruit.write_text("pear\napple\n")
    joined = cmd("sort", stdin=fruit) | cmd("cat")
    assert joined.run(text=True).stdout == "apple\npear\n"
    assert (joined | cmd("head", "-1")).run(text=True).stdout == "apple\n"
    assert (cmd("cat", input=b"x") | cmd("cat")).run().stdout == b"x"
    assert pipeline({"args": ["cat"], "stdin": fruit, "stdout": copy}).stdout is None
    assert copy.read_text() == fruit.read_text()
    with (cmd("cat", stdin=PIPE) | cmd("cat", stdout=copy)).spawn(text=True) as child:
        assert child.stdout is None
        child.stdin.write("plum")
    assert copy.read_text() == "plum"
    with pytest.raises(InvalidValue, match=r"^input is b'x': the first stage has its own, b'y':"):
        (cmd("cat", input=b"y") | cmd("cat")).run(input=b"x")
    with pytest.raises(InvalidValue, match=r"^stdin and input are both given"):
        joined.run(input=b"x")
    with pytest.raises(InvalidValue, match=r"^stdout is '/dev/null': the last stage has its own"):
        pipeline(["true"], {"args": ["cat"], "stdout": copy}, stdout="/dev/null")
    with pytest.raises(InvalidValue, match=r"stdout in stages\[0\] is not for a stage"):
        (cmd("true", stdout=copy) | cmd("cat")).run()


def test_codes_of_a_command_that_are_no_failure():
    found = cmd("grep", "pear", ok_codes=[1], text=True)
    assert found.run(input="apple\n", check=True).returncode == 1
    assert not found.run(input="apple\n", ok_codes=[]).ok
    # A stage takes them along.
    assert (cmd("grep", "pear", ok_codes=[1]) | cmd("cat")).run(check=True).stages[0].ok
    assert not (cmd("grep", "pear", ok_codes=[2]) | cmd("cat")).run().ok


def test_options_of_a_whole_pipeline():
    found = cmd("grep", "pear") | cmd("wc", "-l")
    allowed = found.with_options(ok_codes={0: [1]}, text=True)
    assert not found.run(input=b"apple\n").ok
    result = allowed.run(input="apple\n")
    assert (result.ok, result.stdout) == (True, "0\n")
    assert procwright.pipeline(allowed, input="apple\n").ok
    assert not procwright.pipeline(allowed, input="apple\n", ok_codes={1: [1]}).ok
    assert not allowed.run(input="apple\n", ok_codes=None).ok
    with pytest.raises(
        InvalidValue, match=r"whose options \(ok_codes, text\) are those of a whole"
    ):
        procwright.pipeline(allowed, ["cat"])


def test_calls_take_them_in_the_place_of_lists():
    hello = cmd("echo", "a", env={})
    joined = cmd("sort") | cmd("uniq")
    results = [one.stdout for one in map([hello, ["echo", "b"]], ordered=True, text=True)]
    assert results == ["a\n", "b\n"]
    assert procwright.pipeline(hello, joined, ["cat"]).stdout == b"a\n"
    assert procwright.pipeline(["echo", "c"], Fan(cmd("cat"))).stdout == b"c\n"


@pytest.mark.parametrize("together", [False, True])
def test_a_pipeline_is_spawned(together):
    joined = cmd("sed", "-u", "s/a/b/") | cmd("cat")
    if together:
        child = joined.spawn(stdin=PIPE, text=True)
    else:
        child = procwright.spawn_pipeline(joined, stdin=PIPE, text=True)
    with child:
        child.stdin.write("a\n")
        assert child.stdout.readline() == "b\n"


def test_what_cannot_be_started_says_so():
    with pytest.raises(procwright.SpawnError) as caught:
        cmd("/no/such").run()
    assert caught.value.errno == errno.ENOENT
    with pytest.raises(procwright.SpawnError, match="cannot run stage 2 of 2, /no/such"):
        (cmd("true") | cmd("/no/such")).run()


def test_calls_refuse_what_is_not_theirs():
    joined = cmd("a") | cmd("b")
    with pytest.raises(InvalidValue, match=r"several programs, and run\(\) is for one: pipeline"):
        run(joined)
    with pytest.raises(InvalidValue, match=r"spawn\(\) is for one: spawn_pipeline"):
        spawn(joined)
    with pytest.raises(InvalidValue, match="a command of a map is one program"):
        list(map([joined]))
    with pytest.raises(InvalidValue, match=r"with_args\('b'\)"):
        cmd("a").run("b")
    with pytest.raises(InvalidValue, match=r"run\(\) has no such parameter: spawn\(\) has it"):
        cmd("a", detach=True).run()
    with pytest.raises(InvalidValue, match="did you mean timeout"):
        cmd("a").run(timout=5)
    with pytest.raises(InvalidValue, match="did you mean timeout"):
        joined.run(timout=5)
    with pytest.raises(InvalidValue, match="this place is for one"):
        procwright.pipeline(["a"], Fan(joined))


def test_a_fake_answers_them():
    push = cmd("git", "push")
    with Fake() as fake:
        pushed = fake.register(["git", "push", ...], returncode=1)
        fake.register(["cat", ...], lambda call: procwright.testing.Reply(stdout=call.input))
        fake.register(cmd("a | b", shell=True), stdout="line")
        assert push.with_args("origin").run().returncode == 1
        assert cmd("a | b", shell=True).run().stdout == b"line"
        assert (cmd("cat") | cmd("cat", "-")).run(input=b"x").stdout == b"x"
        assert [one.stdout for one in map([cmd("cat")], input=b"y")] == [b"y"]
        with pytest.raises(NotRegistered):
            cmd("ls").run()
        fake.take_refused()
    assert pushed.call_count == 1


def test_a_cassette_records_and_replays_them(tmp_path):
    def both():
        one = cmd("sh", "-c", "echo $$").run(text=True).stdout
        return one, (cmd("sh", "-c", "echo $$") | cmd("cat")).run(text=True).stdout

    with Cassette(tmp_path / "tape"):
        recorded = both()
    with Cassette(tmp_path / "tape", "replay"):
        assert both() == recorded


def generics(text):
    """The names of types with types behind them, as `Child[str, None]`, and these."""
    for span in re.findall(r"`([^`\n]+)`", text):
        for whole, behind in re.findall(r"((?:\w+\.)*[A-Z]\w*)\[([\w\s.,|\[\]\\]*)\]", span):
            yield whole
            yield from re.findall(r"\b[A-Z]\w+", behind)


def test_what_is_told_of_types_can_be_imported():
    root = pathlib.Path(__file__).resolve().parents[2]
    places = [root / "docs" / name for name in ("reference/python.md", "guide/subprocess.md")]
    texts = [place.read_text(encoding="utf-8") for place in places]
    for module in (procwright, aio):
        public = [getattr(module, name) for name in module.__all__]
        texts += [inspect.getdoc(one) or "" for one in public if callable(one)]
    found = {name for text in texts for name in generics(text)}
    assert {"Child", "Result", "PipelineResult"} <= found
    known = (procwright, aio, subprocess, typing, builtins, anyio.abc)
    for name in sorted(found):
        last = name.rpartition(".")[2]
        assert any(hasattr(module, last) for module in known), name
