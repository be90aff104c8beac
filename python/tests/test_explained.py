"""What a program waits for, and why it does not end."""

import asyncio
import contextlib
import itertools
import os
import pathlib
import pickle
import re
import shlex
import sys

import pytest
from conftest import with_time

from procwright import (
    CAPTURE,
    DEVNULL,
    PIPE,
    Diagnosis,
    InvalidValue,
    NoSuchProcess,
    TimeoutExpired,
    Waiting,
    WaitTimeout,
    pipeline,
    run,
    spawn,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")

#: Reads its stdin in a child of its own.
READER = ["sh", "-c", "cat; exit 3"]


def waits_for(child, kind):
    """What it waits for, once that is as it should be: nothing announces it."""
    while True:
        waiting = child.waiting_for()
        if waiting.kind == kind:
            return waiting


def test_input_on_stdin_is_held_by_us():
    with spawn(READER, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL) as child:
        waiting = waits_for(child, "input")
        assert isinstance(waiting, Waiting)
        assert (waiting.name, waiting.fd, waiting.terminal) == ("cat", 0, False)
        assert waiting.pid != child.pid
        assert str(waiting).startswith(f"cat ({waiting.pid}) waits for input on stdin, pipe ")
        ours = [holder for holder in waiting.holders if holder.pid == os.getpid()]
        assert ours[0].process().pid == os.getpid()
    assert str(child.waiting_for()) == f"sh ({child.pid}) has ended"
    assert child.waiting_for().kind == "nothing"


def why_none_has_come(error, pid):
    """Whether it says that cat waits for us."""
    found = re.search(r"^  why: cat \((\d+)\) waits for input on stdin, pipe ", str(error), re.M)
    return found is not None and int(found[1]) == pid


def test_a_wait_for_a_word_says_why_there_is_none():
    with spawn(["cat"], stdin=PIPE, stderr=DEVNULL, text=True) as child:
        waits_for(child, "input")
        for call in (
            lambda timeout: child.wait_for("x", timeout=timeout),
            lambda timeout: child.stdout.readline(timeout=timeout),
            lambda timeout: child.stdout.read1(timeout=timeout),
        ):
            with pytest.raises(WaitTimeout) as caught:
                call(1)
            assert why_none_has_come(caught.value, child.pid), caught.value
            copy = pickle.loads(pickle.dumps(caught.value))
            assert (type(copy), str(copy)) == (type(caught.value), str(caught.value))
            # Whoever asks again and again pays for no look.
            with pytest.raises(WaitTimeout) as caught:
                call(0.05)
            assert "why:" not in str(caught.value)


def test_a_wait_for_a_word_says_why_there_is_none_on_an_event_loop():
    aio = pytest.importorskip("procwright.aio")

    async def waits():
        async with aio.spawn(["cat"], stdin=PIPE, stderr=DEVNULL, text=True) as child:
            while (await child.waiting_for()).kind != "input":
                pass
            for call in (child.wait_for("x", timeout=1), child.stdout.readline(timeout=1)):
                with pytest.raises(WaitTimeout) as caught:
                    await call
                assert why_none_has_come(caught.value, child.pid), caught.value

    asyncio.run(waits())


def test_room_for_output():
    ours, theirs = os.pipe()
    child = spawn(["yes"], stdout=theirs, stderr=DEVNULL)
    try:
        waiting = waits_for(child, "output")
        assert waiting.fd == 1
        assert os.getpid() in [holder.pid for holder in waiting.holders]
    finally:
        child.stop("KILL")
        os.close(ours)
        os.close(theirs)


def test_why_it_does_not_end():
    with spawn(READER, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL) as child:
        waits_for(child, "input")
        diagnosis = child.explain()
        assert isinstance(diagnosis, Diagnosis)
        assert diagnosis.waiting.kind == "input"
        assert diagnosis.why == diagnosis.waiting.text
        assert diagnosis.verdict == diagnosis.to_dict()["verdict"]
        assert diagnosis.to_dict()["waiting"]["kind"] == "input"
        assert str(diagnosis) == diagnosis.text
        assert "Looked twice" in diagnosis.text
        assert "_json" not in repr(diagnosis)
    with pytest.raises(NoSuchProcess):
        child.explain()


def test_it_is_told_while_it_goes_on():
    theirs, ours = os.pipe()
    events = []

    def tell(event):
        events.append(event)
        # Now its input ends, and with it the program.
        os.close(ours)

    try:
        result = run(READER, stdin=theirs, explain_after=0.3, on_event=tell)
    finally:
        os.close(theirs)
    assert result.returncode == 3
    [event] = events
    assert event.kind == "explained"
    assert event.command == "sh -c 'cat; exit 3'"
    assert str(event).startswith("sh -c 'cat; exit 3' has not ended after 0.3 s: ")
    assert isinstance(event.diagnosis, Diagnosis)


def test_nothing_is_told_of_a_run_that_is_over_first():
    events = []
    assert run(["true"], explain_after=600, on_event=events.append).returncode == 0
    assert run(["true"], explain_after=float("inf"), on_event=events.append).returncode == 0
    assert events == []


def test_a_timeout_says_why():
    for doubled in itertools.count():
        theirs, ours = os.pipe()
        try:
            with pytest.raises(TimeoutExpired) as raised:
                run(READER, stdin=theirs, timeout=min(2**doubled, 20))
        finally:
            os.close(theirs)
            os.close(ours)
        # A busy machine takes a longer limit, a quarter of which is for the look, up to 5 s.
        if "\n  why: " in str(raised.value):
            break
    assert "waits for input on stdin, pipe " in str(raised.value)
    result = raised.value.result
    assert f"\n  why: {result.why}\n" in str(raised.value)
    assert result.to_dict()["why"] == result.why


@contextlib.contextmanager
def silent_input():
    """A pipe into which nobody writes."""
    theirs, ours = os.pipe()
    try:
        yield theirs
    finally:
        os.close(theirs)
        os.close(ours)


def says_why(stop):
    """The text of the error that `stop(limit)` raises, with a limit that leaves enough time."""
    for limit in (1, 2, 4, 8, 20):
        with pytest.raises(TimeoutExpired) as raised:
            stop(limit)
        if "why: " in (text := str(raised.value)):
            return text
    return pytest.fail("no look was over within 5 s, a quarter of the longest limit")


def test_a_child_that_comes_to_its_limit_says_why():
    with silent_input() as stdin:
        text = says_why(lambda limit: spawn(READER, stdin=stdin, timeout=limit).result())
        assert "\n  why: cat (" in text
        text = says_why(lambda limit: spawn(READER, stdin=stdin, idle_timeout=limit).result())
        assert "waits for input on stdin, pipe " in text


def test_a_wait_for_a_word_of_one_that_is_busy_says_what_it_does():
    with spawn(["sh", "-c", "while :; do :; done"], stderr=DEVNULL, text=True) as child:
        for call in (
            lambda timeout: child.wait_for("x", timeout=timeout),
            lambda timeout: child.stdout.readline(timeout=timeout),
            lambda timeout: child.stdout.read1(timeout=timeout),
        ):
            with pytest.raises(WaitTimeout) as caught:
                call(1)
            assert f"\n  its processes:\n    sh (pid {child.pid}): " in str(caught.value)
            copy = pickle.loads(pickle.dumps(caught.value))
            assert (type(copy), str(copy)) == (type(caught.value), str(caught.value))
            with pytest.raises(WaitTimeout) as caught:
                call(0.05)
            assert "its processes" not in str(caught.value)
        child.stop("KILL")


def test_a_pipeline_says_which_stage_holds_up_the_rest_and_why():
    with silent_input() as stdin:
        text = says_why(lambda limit: pipeline(READER, ["wc"], stdin=stdin, timeout=limit))
    assert "\n  stage 1 of 2 held up the rest: sh -c 'cat; exit 3' timed out" in text
    assert "\n    why: cat (" in text


def test_a_wait_that_is_over_says_why():
    with spawn(READER, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL) as child:
        waits_for(child, "input")

        def check(seconds):
            with pytest.raises(WaitTimeout) as raised:
                child.wait(timeout=seconds)
            assert re.search(r"\n  why: cat \(\d+\) waits for input on stdin", str(raised.value))

        with_time(check)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InvalidValue, match="explain_after"):
        run(["true"], explain_after=float("nan"))
    with pytest.raises(InvalidValue, match=r"waiting_for\(\)"):
        spawn(["true"], explain_after=1)


def test_on_an_event_loop():
    pytest.importorskip("anyio")
    from procwright import aio

    async def main():
        async with aio.spawn(READER, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL) as child:
            while (await child.waiting_for()).kind != "input":
                pass
            assert (await child.explain()).waiting.kind == "input"
        events = []
        result = await aio.run(["true"], explain_after=600, on_event=events.append, stdout=CAPTURE)
        assert (result.returncode, events) == (0, [])

    asyncio.run(main())

    def stop(limit):
        async def awaited():
            async with aio.spawn(READER, stdin=stdin, timeout=limit) as child:
                await child.result()

        asyncio.run(awaited())

    def stop_all(limit):
        asyncio.run(aio.pipeline(READER, ["wc"], stdin=stdin, timeout=limit))

    with silent_input() as stdin:
        assert "\n  why: cat (" in says_why(stop)
        assert "\n    why: cat (" in says_why(stop_all)


def without_figures(text):
    """The text with the same number for each process and figure: they are others each time."""
    return re.sub(r"(\(pid |[a-z] \()\d+|[\d.]+ (s|ms)\b", r"\1#\2", text)


@pytest.mark.parametrize(
    ("document", "line", "shell"),
    [
        ("README.md", "echo unpacking >&2; yes | (sleep 60; gzip > /dev/null)", True),
        ("docs/reference/python.md", ["sh", "-c", "echo half; sleep 60"], False),
    ],
)
def test_a_document_shows_the_error_that_comes(document, line, shell):
    text = (pathlib.Path(__file__).parents[2] / document).read_text()
    begin = f"\n```text\n{shlex.join(['/bin/sh', '-c', line] if shell else line)} timed out"
    assert text.count(begin) == 1
    start = text.index(begin) + len("\n```text\n")
    shown = without_figures(text[start : text.index("\n```\n", start)])
    # A machine with much to do may not have started all of it by the first of these.
    for timeout in (1, 4, 16, 50):
        with pytest.raises(TimeoutExpired) as caught:
            run(line, shell=shell, timeout=timeout)
        if without_figures(str(caught.value)) == shown:
            return
    assert without_figures(str(caught.value)) == shown
