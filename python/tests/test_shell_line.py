"""Words behind a line for the shell: those that it would drop without an error are refused."""

import json
import pathlib

import pytest

import procwright
from procwright import InvalidValue, run, spawn
from procwright._options import argv

CASES = json.loads(
    (pathlib.Path(__file__).resolve().parents[2] / "conformance" / "shell.json").read_text()
)


@pytest.mark.parametrize("words", CASES["used"])
def test_words_that_may_be_used_are_let_pass(words):
    assert argv("run", words, True)[2:] == [word.encode() for word in words]


@pytest.mark.parametrize("words", CASES["taken_for_one"])
def test_a_first_word_that_is_taken_for_1(words):
    with pytest.raises(InvalidValue, match=r"the first word behind the line is \$0") as caught:
        argv("run", words, True)
    # What is told to pass is taken.
    told = str(caught.value)
    assert repr([words[0], "sh", *words[1:]]) in told
    assert argv("run", [words[0], "sh", *words[1:]], True)


@pytest.mark.parametrize("words", CASES["unused"])
def test_words_that_no_part_of_the_line_uses(words):
    with pytest.raises(InvalidValue, match="uses none of the words behind it"):
        argv("run", words, True)


def test_every_function_refuses_them(tmp_path):
    line = f'touch {tmp_path}/started; cat "$1"'
    for call in (
        lambda: run([line, "x"], shell=True),
        lambda: spawn([line, "x"], shell=True),
        lambda: list(procwright.map([[line, "x"]], shell=True)),
        lambda: procwright.pipeline({"args": [line, "x"], "shell": True}, ["cat"]),
    ):
        with pytest.raises(InvalidValue, match=r"\$0, so that \$1, which the line uses, is empty"):
            call()
    assert not list(tmp_path.iterdir())
