"""Commands and pipelines as values, and what is tried with them out of habit."""

import copy
import os
import pathlib
import pickle

import pytest

import procwright
from procwright import Fan, InvalidValue, _missing, aio, cmd


def upper(lines):
    return lines


CONTENT = cmd("grep", "-v", "#", env={"A": "b"}) | cmd("sort")
ALL = CONTENT | upper | Fan(cmd("cat"), ["wc", "-l"])
VALUES = [cmd("a"), cmd("a b", shell=True), CONTENT, ALL, CONTENT.with_options(timeout=5)]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_copies_are_equal(value):
    for other in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
        assert other == value
        assert hash(other) == hash(value)
        assert repr(other) == repr(value)
    assert len({value, copy.copy(value), *VALUES}) == len(VALUES)


def test_equal_are_equal_words_and_options():
    assert cmd("a", "b") == cmd(["a", "b"]) == cmd("a").with_args("b") == cmd(("a",), "b")
    assert cmd("a", cwd="/", umask=0) == cmd("a", umask=0).with_options(cwd="/")
    assert cmd("a") != cmd("a", cwd="/") != cmd("a", cwd="/x")
    assert cmd("a") != cmd("a") | cmd("a")
    assert (cmd("a") | cmd("b")) | cmd("c") == cmd("a") | (cmd("b") | cmd("c"))
    assert cmd("a") != "a"
    assert cmd("a") != aio.cmd("a")


@pytest.mark.parametrize(
    ("value", "shows", "reads"),
    [
        (cmd("grep", "a b", cwd="/"), "cmd('grep', 'a b', cwd='/')", "grep 'a b'"),
        (cmd("a|b", shell=True), "cmd('a|b', shell=True)", "/bin/sh -c 'a|b'"),
        (
            cmd("echo $1", "sh", "x", shell="bash"),
            "cmd('echo $1', 'sh', 'x', shell='bash')",
            "bash -c 'echo $1' sh x",
        ),
        (
            CONTENT,
            "cmd('grep', '-v', '#', env={'A': 'b'}) | cmd('sort')",
            "grep -v '#' | sort",
        ),
        (
            ALL,
            f"{CONTENT!r} | upper | Fan(cmd('cat'), ['wc', '-l'])",
            "grep -v '#' | sort | upper | {cat, wc -l}",
        ),
        (
            (cmd("a") | cmd("b")).with_options(timeout=5),
            "(cmd('a') | cmd('b')).with_options(timeout=5)",
            "a | b",
        ),
        (
            cmd("a") | Fan({"args": ["b"], "stdout": "c"}, cmd("d")),
            "cmd('a') | Fan({'args': ['b'], 'stdout': 'c'}, cmd('d'))",
            "a | {b, d}",
        ),
    ],
)
def test_it_can_be_read(value, shows, reads):
    assert repr(value) == shows
    assert str(value) == reads


def test_nothing_changes_it():
    env = {"A": "1"}
    words = ["a"]
    said = cmd(words, env=env, pass_fds=[])
    same = copy.deepcopy(said)
    env["A"] = "2"
    words.append("b")
    said.options["env"] = {}
    said.options["env"]["A"] = "3"
    said.with_options(cwd="/").with_args("b")
    assert said == same
    assert (said.args, said.options) == (("a",), {"env": {"A": "1"}, "pass_fds": ()})
    data = bytearray(b"a")
    reads = cmd("cat", input=data, extra_env=os.environ)
    data[0] = 98
    assert reads.options["input"] == b"a"
    assert type(reads.options["extra_env"]) is dict
    assert CONTENT.stages == (cmd("grep", "-v", "#", env={"A": "b"}), cmd("sort"))


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: cmd("a") > "file", TypeError, r"use \.run\(stdout='file'\)"),
        (lambda: CONTENT > "file", TypeError, r"sort'\) is a value, .*use \.run\(stdout='file'\)"),
        (lambda: cmd("a") >> "file", TypeError, r"stdout=open\('file', 'ab'\)"),
        (lambda: cmd("a") < "file", TypeError, r"stdin=pathlib\.Path\('file'\)"),
        (lambda: cmd("a") << "text", TypeError, r"run\(input='text', text=True\)"),
        (lambda: cmd("a") & 1, TypeError, r"use \.spawn\(\)"),
        (lambda: cmd("a") | "sort -r", InvalidValue, r"pass cmd\('sort', '-r'\)"),
        (lambda: "text" | cmd("a"), InvalidValue, r"run\(input=\.\.\.\)"),
        (lambda: cmd("a") | ["sort", "-r"], InvalidValue, r"pass cmd\('sort', '-r'\)"),
        (lambda: CONTENT | pathlib.Path("x"), InvalidValue, r"run\(stdout=path\)"),
        (lambda: cmd("a") | 5, InvalidValue, "pass a command"),
        (lambda: cmd("a") | aio.cmd("b"), InvalidValue, r"and one of procwright\.aio"),
        (lambda: CONTENT.with_options(text=True) | cmd("a"), InvalidValue, r"options \(text\)"),
        (lambda: bool(cmd("a")), TypeError, "neither true nor false"),
        (lambda: cmd("a") and CONTENT, TypeError, r"ask for run\(\)\.ok"),
        (lambda: not CONTENT, TypeError, "a Pipeline is neither true nor false"),
        (lambda: cmd("a")(), TypeError, r"cmd\('a'\) is not called: use \.run\(\)"),
        (lambda: cmd("a")("b"), TypeError, r"use \.with_args\('b'\)\.run\(\)"),
        (lambda: cmd("a")["b", "c"], TypeError, r"use \.with_args\('b', 'c'\)"),
        (lambda: list(cmd("a")), TypeError, r"splitlines\(\)"),
        (lambda: cmd("a b"), InvalidValue, r"cmd\('a', 'b'\), or .*cmd\('a b', shell=True\)"),
        (lambda: cmd("git log", "-1"), InvalidValue, r"pass each word, cmd\('git', 'log', '-1'\)"),
        (lambda: cmd("a | b"), InvalidValue, r"cmd\('a'\) \| cmd\('b'\)"),
        (lambda: cmd("a > $b"), InvalidValue, r"is 'a > \$b': say that it is a line for the shell"),
        (lambda: cmd(), InvalidValue, "no program"),
        (lambda: cmd([]), InvalidValue, "no program"),
        (lambda: cmd("a", 5), InvalidValue, r"args\[1\] is 5: pass a str.*'5'"),
        (lambda: cmd("a").with_args(None), InvalidValue, "pass a str"),
        (lambda: cmd(cmd("a")), InvalidValue, r"with_args\(\) and with_options\(\)"),
        (lambda: cmd(upper), InvalidValue, "a function is a stage as it is"),
        (lambda: cmd("a", timout=5), InvalidValue, r"cmd\(\) has no such parameter.*timeout"),
        (lambda: cmd("a").with_options(capture_output=True), InvalidValue, "leave it out"),
        (lambda: CONTENT.with_options(pipefail=True), InvalidValue, 'success="strict"'),
        (lambda: procwright.map(cmd("a")), InvalidValue, "pass an iterable of commands"),
    ],
)
def test_what_is_tried_out_of_habit_is_answered(make, kind, text):
    with pytest.raises(kind, match=text):
        make()


def test_a_program_whose_name_has_a_blank(tmp_path):
    program = tmp_path / "a program"
    program.write_text("#!/bin/sh\necho $1\n")
    program.chmod(0o755)
    assert cmd(program, "x").run().stdout == cmd([str(program)], "x").run().stdout == b"x\n"


def test_attributes_of_others_are_told():
    for name, hint in _missing.SAID.items():
        with pytest.raises(AttributeError) as caught:
            getattr(cmd("a"), name)
        assert str(caught.value) == f"'Command' object has no attribute {name!r}: {hint}"
    assert not hasattr(CONTENT, "no_such")


def test_it_is_a_class_that_takes_types():
    assert isinstance(cmd("a"), procwright.Command)
    assert isinstance(CONTENT, procwright.Pipeline)
    assert procwright.Command[object].__origin__ is procwright.Command
