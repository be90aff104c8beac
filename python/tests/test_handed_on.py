"""A stream of one child that is the stdin of another."""

from __future__ import annotations

import signal

import pytest

from procwright import SpawnError, run, spawn


@pytest.mark.parametrize("text", [False, True])
def test_the_first_of_a_pipeline_is_told_when_the_second_reads_no_more(text):
    first = spawn(["yes"], text=text)
    second = spawn(["head", "-3"], stdin=first.stdout, text=text)
    assert second.communicate(timeout=60)[0] == ("y\n" * 3 if text else b"y\n" * 3)
    assert first.wait(timeout=60) == -signal.SIGPIPE
    assert first.stdout.closed
    first = spawn(["yes"], text=text)
    assert run(["head", "-3"], stdin=first.stdout).stdout == b"y\n" * 3
    assert first.wait(timeout=60) == -signal.SIGPIPE


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("encoding", [None, "latin-1"])
def test_what_has_come_goes_on_at_once(text, encoding):
    kind = {"text": text, "encoding": encoding if text else None}
    first = spawn(["sh", "-c", "echo a; printf b; exec sleep 1000"], **kind)
    second = spawn(["cat"], stdin=first.stdout)
    # The first never ends.
    assert second.stdout.read(3) == b"a\nb"
    first.stop("KILL")
    assert second.wait(timeout=60) == 0


@pytest.mark.parametrize("text", [False, True])
def test_what_feeds_another_program_may_be_closed_here(text):
    first = spawn(["seq", "100000"], text=text)
    second = spawn(["wc", "-l"], stdin=first.stdout, text=True)
    first.stdout.close()
    assert second.communicate(timeout=60)[0].strip() == "100000"
    assert first.wait(timeout=60) == 0
    assert first.stdout.closed


def test_what_feeds_two_is_closed_when_both_are_done():
    first = spawn(["yes"])
    holder = spawn(["sh", "-c", "read x; echo $x; exec sleep 1000"], stdin=first.stdout)
    assert holder.stdout.readline() == b"y\n"
    assert run(["head", "-1"], stdin=first.stdout).ok
    assert not first.stdout.closed
    holder.stop("KILL")
    assert first.wait(timeout=60) == -signal.SIGPIPE


def test_a_program_that_was_not_started_has_taken_nothing():
    first = spawn(["seq", "3"])
    with pytest.raises(SpawnError):
        spawn(["/nonexistent"], stdin=first.stdout)
    assert first.communicate(timeout=60)[0] == b"1\n2\n3\n"
