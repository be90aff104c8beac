"""`procwright.testing.Cassette`: runs that are recorded and replayed."""

import json
import subprocess
import sys

import pytest

import procwright
from procwright.testing import Cassette, Fake, NotRegistered


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cassettes" / "it.jsonl"


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_is_replayed_as_it_was(path, tmp_path):
    mark = tmp_path / "mark"
    script = f"echo ran >> {mark}; echo out; printf '\\377' >&2; cat; exit 3"

    def tested():
        lines = []
        result = procwright.run(
            ["sh", "-c", script], input=b"in\n", on_stdout_line=lines.append, limit="1KiB"
        )
        return result.to_dict(), result.explanation, lines

    with Cassette(path) as cassette:
        assert cassette.is_recording
        first = tested()
    with Cassette(path) as cassette:
        assert not cassette.is_recording
        assert tested() == first
        assert cassette.unused == 0
        assert cassette.calls[0].input == b"in\n"
    assert mark.read_text() == "ran\n"
    assert first[2] == [b"out\n", b"in\n"]
    head, line = lines_of(path)
    assert head == {"procwright": "cassette", "version": 1}
    assert line["result"] == first[0]
    assert line["result"]["stderr"] == {"base64": "/w=="}
    # The order of the two streams is that of their pieces; each stream is whole.
    for stream in ("stdout", "stderr"):
        pieces = [one for one in line["pieces"] if one["stream"] == stream]
        assert [one["after_s"] for one in pieces] == sorted(one["after_s"] for one in pieces)
    out = "".join(one["data"] for one in line["pieces"] if one["stream"] == "stdout")
    assert out == "out\nin\n"


def test_failures_are_replayed(path):
    def tested():
        said = []
        for args, options in [
            (["/no such program"], {}),
            (["sleep", "60"], {"timeout": 0}),
            (["false"], {"check": True}),
            (["sh", "-c", "echo oops >&2; kill -KILL $$"], {"check": True}),
        ]:
            with pytest.raises((procwright.RunError, procwright.SpawnError)) as caught:
                procwright.run(args, **options)
            said.append((type(caught.value), str(caught.value)))
        return said

    with Cassette(path):
        first = tested()
    with Cassette(path, "replay"):
        assert tested() == first
    assert issubclass(first[0][0], FileNotFoundError)


def test_what_is_the_same_is_replayed_in_its_order_and_once(path, tmp_path):
    counter = tmp_path / "counter"
    args = ["sh", "-c", f"echo x >> {counter}; wc -l < {counter}"]

    def tested(times):
        return [procwright.run(args, text=True).stdout.strip() for _ in range(times)]

    with Cassette(path):
        assert tested(3) == ["1", "2", "3"]
    with Cassette(path):
        assert tested(2) == ["1", "2"]
    with pytest.raises(NotRegistered) as caught, Cassette(path):
        assert tested(4)
    said = str(caught.value)
    assert said.startswith(f"run({args!r}) is not recorded in {path}, and was not started\n")
    assert said.count("(replayed)") == 3
    with Cassette(path, "add"):
        assert tested(4) == ["1", "2", "3", "4"]
    with Cassette(path):
        assert tested(4) == ["1", "2", "3", "4"]
    with Cassette(path, "record"):
        assert tested(1) == ["5"]
    with Cassette(path) as cassette:
        assert cassette.unused == 1
        assert tested(1) == ["5"]


def test_what_has_to_be_the_same(path, tmp_path):
    with Cassette(path, match=["argv", "input", "cwd"]):
        procwright.run(["cat"], input=b"1", cwd="/")
        procwright.run(["cat"], input=b"2", cwd="/")
        procwright.run(["cat"], stdin=iter([b"2", b"3"]), cwd="/")
    with Cassette(path, match=["argv", "input", "cwd"]) as cassette:
        for data in (b"23", b"1", b"2"):
            assert procwright.run(["cat"], input=data, cwd="/").stdout == data
        for options in ({"input": b"1"}, {"cwd": "/"}, {"input": b"1", "cwd": tmp_path}):
            with pytest.raises(NotRegistered, match=r"its (cwd|input_sha256) is another"):
                procwright.run(["cat"], **options)
        assert len(cassette.take_refused()) == 3


def test_a_map_is_recorded_and_replayed(path):
    def tested():
        commands = [["echo", "a"], {"args": ["cat"], "input": "b"}, ["/no such program"], ["false"]]
        found = list(procwright.map(commands, text=True))
        results = [one.result for one in found]
        told = [None if result is None else result.to_dict() for result in results]
        return [(one.index, one.summary, its) for one, its in zip(found, told, strict=True)]

    with Cassette(path):
        first = tested()
    assert [one[2] and one[2]["stdout"] for one in first] == ["a\n", "b", None, ""]
    with Cassette(path, "replay"):
        assert tested() == first


def test_functions_of_a_pipeline_have_to_be_the_same(path):
    def upper(lines):
        return [lines.read().upper()]

    def lower(lines):
        return [lines.read().lower()]

    def tested(*functions):
        return procwright.pipeline(["echo", "Aa"], *functions, ["cat"], text=True).stdout

    with Cassette(path):
        assert (tested(), tested(upper)) == ("Aa\n", "AA\n")
    with Cassette(path):
        # In another order: what is not the same does not match.
        assert (tested(upper), tested()) == ("AA\n", "Aa\n")
    with pytest.raises(NotRegistered, match="its functions is another"), Cassette(path):
        tested(lower)
    assert "functions" not in lines_of(path)[1]["asked"]


def test_a_pipeline_with_fans_is_replayed_as_it_was(path, tmp_path):
    given = tmp_path / "given"
    given.write_text("pear\n")
    copy = tmp_path / "copy"

    def tested(fan):
        first = procwright.Fan(["echo", "fig"], {"args": ["cat"], "stdin": given})
        result = procwright.pipeline(first, ["sort"], fan, text=True)
        return result.to_dict(), result.explanation, copy.exists() and copy.read_text()

    fan = procwright.Fan({"args": ["cat"], "stdout": copy}, ["sh", "-c", "wc -l; exit 3"])
    with Cassette(path):
        first = tested(fan)
    assert first[0]["stages"][4]["stdout"] == "2\n"
    assert first[0]["stages"][4]["fan"]["bytes_out"] == 9
    with Cassette(path):
        # What went elsewhere is not recorded.
        assert tested(fan) == (*first[:2], "")
    # What is not the same does not match: the programs of the last fan, and what is read.
    with pytest.raises(NotRegistered, match="was not started"), Cassette(path):
        tested(procwright.Fan(*reversed(fan.programs)))
    given.write_text("apple\n")
    with pytest.raises(NotRegistered, match="its input_sha256 is another"), Cassette(path):
        tested(fan)

    def row(*stages):
        return [stage["stdout"] for stage in procwright.pipeline(*stages).to_dict()["stages"]]

    path.unlink()
    with Cassette(path):
        assert row(["echo", "x"], ["cat"], ["cat"]) == [None, None, "x\n"]
    # One program is a stage like any other, and several are not.
    with Cassette(path):
        assert row(["echo", "x"], procwright.Fan(["cat"]), ["cat"]) == [None, None, "x\n"]
    with pytest.raises(NotRegistered, match="its fans is another"), Cassette(path):
        row(["echo", "x"], procwright.Fan(["cat"], ["cat"]))


def test_nothing_is_written_if_the_block_fails(path):
    def fails():
        with Cassette(path):
            procwright.run(["true"])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert not path.exists()
    with Cassette(path):
        pass
    assert not path.exists()


def test_before_save_changes_or_leaves_out(path):
    def hide(line):
        if line["asked"]["argv"][0] == "true":
            return None
        text = json.dumps(line).replace("secret", "******")
        return json.loads(text)

    with Cassette(path, before_save=hide):
        procwright.run(["true"])
        procwright.run(["echo", "secret"])
    assert "secret" not in path.read_text()
    with Cassette(path):
        assert procwright.run(["echo", "******"]).stdout == b"******\n"
    assert len(lines_of(path)) == 2


def test_what_is_no_cassette(path):
    with pytest.raises(FileNotFoundError, match="no such cassette"):
        Cassette(path, "replay")
    path.parent.mkdir()
    good = '{"procwright": "cassette", "version": 1}\n'
    for text in ("", "x", "{}", good + "{}", good + "5", good + '{"asked": {}}', good + "[]"):
        path.write_text(text)
        with pytest.raises(procwright.InvalidValue, match=r"it is no cassette .*record it anew"):
            Cassette(path)
    with Cassette(path, "record"):
        procwright.run(["true"])
    with Cassette(path, "replay"), pytest.raises(procwright.InvalidValue, match="is a child, and"):
        procwright.spawn(["true"])


def test_a_callback_may_run_programs(path):
    def inner(line):
        found.append(procwright.run(["echo", "inner"]).stdout)

    for _ in range(2):
        found = []
        with Cassette(path):
            procwright.run(["echo", "outer"], on_stdout_line=inner)
        assert found == [b"inner\n"]


def test_a_pipeline_is_replayed_as_it_was(path, tmp_path):
    mark = tmp_path / "mark"

    def tested():
        begin = ["sh", "-c", f"echo ran >> {mark}; cat; echo said >&2; exit 3"]
        found = []
        for options in ({}, {"success": "last"}, {"ok_codes": {0: [3]}}):
            result = procwright.pipeline(
                begin,
                lambda lines: (one.upper() for one in lines),
                ["cat"],
                input=b"in\n",
                **options,
            )
            found.append((result.to_dict(), result.explanation, result.stages[0].explanation))
        try:
            procwright.pipeline(["sleep", "60"], ["cat"], timeout=0, check=True)
        except procwright.TimeoutExpired as error:
            found.append((error.result.to_dict(), str(error), ""))
        with pytest.raises(FileNotFoundError) as caught:
            procwright.pipeline(["true"], ["/no such program"])
        return found, str(caught.value)

    with Cassette(path):
        first = tested()
    with Cassette(path) as cassette:
        assert tested() == first
        assert cassette.unused == 0
        assert [call.stage for call in cassette.calls[:2]] == [0, 1]
        with pytest.raises(NotRegistered, match=r"^pipeline\(\['true'\], ...\) \| pipeline"):
            procwright.pipeline(["true"], ["cat"])
        cassette.take_refused()
    assert mark.read_text() == "ran\n" * 3
    judged = [[one["judgement"] for one in parts["stages"]] for parts, *_ in first[0][:3]]
    assert judged == [["failed", "success"], ["ignored", "success"], ["success", "success"]]


def test_a_fake_within_a_cassette(path):
    with Cassette(path), Fake() as fake:
        fake.register(["x"])
        procwright.run(["x"])
    assert not path.exists()


TESTS = """
import procwright

def test_it(procwright_cassette):
    assert procwright.run(["sh", "-c", "echo x >> ran; echo $$"]).ok
"""


FAILS = """
import procwright

def test_it(procwright_cassette):
    procwright.run(["true"])
    assert False
"""


def test_the_fixture_keeps_nothing_of_a_test_that_fails(tmp_path):
    (tmp_path / "test_it.py").write_text(FAILS)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    result = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True)
    assert "1 failed in" in result.stdout, result.stdout
    assert not (tmp_path / "cassettes").exists()


def test_the_fixture(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    for _ in range(2):
        result = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True)
        assert "1 passed" in result.stdout, result.stdout
    assert (tmp_path / "ran").read_text() == "x\n"
    assert (tmp_path / "cassettes" / "test_it" / "test_it.jsonl").exists()
