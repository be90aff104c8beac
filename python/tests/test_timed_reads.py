"""Reads of a stream with a time limit, and what has come of text."""

from __future__ import annotations

import pickle
import re
import threading

import pytest

from procwright import PIPE, InvalidValue, Reader, StreamClosed, TimeoutExpired, WaitTimeout, spawn

KINDS = [
    {},
    {"text": True},
    {"encoding": "utf-16-le"},
    {"overflow": "block"},
    {"overflow": "block", "text": True},
]


def cat(**options):
    return spawn(["cat"], stdin=PIPE, **options)


def said(options, text):
    """What is written so that `text` is read, and how it is read."""
    is_text = "text" in options or "encoding" in options
    return text if is_text else text.encode()


@pytest.mark.parametrize("options", KINDS)
def test_a_line_with_a_time_limit(options):
    with cat(**options) as child:
        for timeout in (0, 0.05):
            with pytest.raises(WaitTimeout) as caught:
                child.stdout.readline(timeout=timeout)
            text = f"no line from stdout of cat within {timeout} s; nothing is lost"
            assert str(caught.value) == text
            assert isinstance(caught.value, (TimeoutExpired, TimeoutError))
            assert type(caught.value).__name__ == "WaitTimeout"
            assert str(pickle.loads(pickle.dumps(caught.value))) == text
        child.stdin.write(said(options, "hal"))
        with pytest.raises(WaitTimeout):
            child.stdout.readline(timeout=0.05)
        child.stdin.write(said(options, "f\nmore\nré"))
        assert child.stdout.readline(timeout=60) == said(options, "half\n")
        assert child.stdout.readline(timeout=60) == said(options, "more\n")
        with pytest.raises(WaitTimeout):
            child.stdout.readline(timeout=0)
        child.stdin.close()
        assert child.stdout.readline(timeout=60) == said(options, "ré")
        assert child.stdout.readline(timeout=0) == said(options, "")


@pytest.mark.parametrize("options", [{}, {"overflow": "block"}])
def test_what_has_come_of_bytes_with_a_time_limit(options):
    with cat(**options) as child:
        for timeout in (0, 0.05):
            with pytest.raises(WaitTimeout, match=r"^no bytes from stdout of cat within"):
                child.stdout.read1(timeout=timeout)
        child.stdin.write(b"prompt? a\nb")
        assert child.stdout.read1(7, timeout=60) == b"prompt?"
        assert child.stdout.read1(-1, timeout=60)[:1] == b" "
        child.stdin.close()
        assert b"prompt? a\nb".endswith(child.stdout.read(timeout=60))
        assert child.stdout.read1(timeout=0) == b""
        with pytest.raises(InvalidValue, match=r"^timeout is 'x': "):
            child.stdout.read1(timeout="x")


@pytest.mark.parametrize("options", [one for one in KINDS if "text" in one or "encoding" in one])
def test_what_has_come_with_a_time_limit(options):
    with cat(**options) as child:
        for timeout in (0, 0.05):
            with pytest.raises(WaitTimeout, match=r"^no text from stdout of cat within"):
                child.stdout.read1(timeout=timeout)
        child.stdin.write(said(options, "prompt? "))
        assert child.stdout.read1(timeout=60) == said(options, "prompt? ")
        child.stdin.write(said(options, "a\n"))
        assert child.stdout.read1(timeout=60) == said(options, "a\n")
        child.stdin.close()
        assert child.stdout.read1(timeout=60) == said(options, "")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_a_character_is_in_one_piece(encoding):
    first, rest = "é".encode(encoding)[:1], "é".encode(encoding)[1:]
    with cat(encoding=encoding) as child:
        child.stdin.buffer.write("x".encode(encoding) + first)
        assert child.stdout.read1() == "x"
        with pytest.raises(WaitTimeout):
            child.stdout.read1(timeout=0.05)
        child.stdin.buffer.write(rest)
        assert child.stdout.read1(timeout=60) == "é"


def test_a_close_ends_it():
    with cat(text=True) as child:
        closed = []

        def read():
            with pytest.raises(StreamClosed):
                child.stdout.readline(timeout=60)
            closed.append(True)

        thread = threading.Thread(target=read)
        thread.start()
        child.stdout.close()
        thread.join()
        assert closed == [True]


@pytest.mark.parametrize("options", KINDS[:3])
def test_a_part_of_a_line_has_no_time_limit(options):
    with cat(**options) as child:
        with pytest.raises(InvalidValue, match=r"^size is 5: leave it out with a timeout"):
            child.stdout.readline(5, timeout=1)
        with pytest.raises(InvalidValue, match=r"^timeout is 'x': pass seconds"):
            child.stdout.readline(timeout="x")


def test_what_io_calls_runs_no_python():
    # In a frame of Python's the handler of a signal could raise, and lose what was read.
    for name in ("read1", "readinto", "readinto1", "read", "peek"):
        assert name not in Reader.__dict__


@pytest.mark.parametrize(
    ("options", "read"),
    [
        ({}, lambda stdout: stdout.read(timeout=1)),
        ({}, lambda stdout: stdout.read1(timeout=1)),
        ({"text": True}, lambda stdout: stdout.readline(timeout=1)),
        ({"overflow": "block"}, lambda stdout: stdout.read(timeout=1)),
    ],
)
def test_who_holds_the_stream_of_a_program_that_has_ended_is_said(options, read):
    with spawn(["sh", "-c", "sleep 1000 & exit 3"], **options) as child:
        child.wait()
        with pytest.raises(WaitTimeout) as caught:
            read(child.stdout)
        text = str(caught.value)
        assert re.search(r"\n  it has exited with code 3; stdout .*held open by sleep \(pid", text)
        assert "\n  hint: with until exit" in text
        child.stop()
