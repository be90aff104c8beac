"""Lines that call back, and both outputs as one."""

from __future__ import annotations

import logging
import os
import queue
import signal
import threading
import time

import pytest

from procwright import (
    PIPE,
    Gap,
    InvalidValue,
    LineTooLong,
    MergedLine,
    Overflow,
    StreamClosed,
    WaitTimeout,
    spawn,
    wait,
)


@pytest.mark.parametrize("text", [False, True])
def test_callbacks(text):
    out, err = [], []
    threads = set()

    def on_line(line):
        threads.add(threading.current_thread())
        out.append(line)

    with spawn(
        "seq 1 1000; printf 'no newline'; echo error >&2",
        shell=True,
        text=text,
        on_stdout_line=on_line,
        on_stderr_line=err.append,
    ) as it:
        pass
    expected = [f"{i}\n" for i in range(1, 1001)] + ["no newline"]
    assert out == (expected if text else [line.encode() for line in expected])
    assert err == (["error\n"] if text else [b"error\n"])
    assert len(threads) == 1
    assert threading.current_thread() not in threads
    assert it.communicate() == (None, None)


def test_a_slow_callback_holds_up_nobody_and_gets_all():
    out = []
    stopped = threading.Event()

    def slow(line):
        stopped.wait()
        out.append(line)

    with spawn(["seq", "1", "20000"], on_stdout_line=slow) as it:
        assert it.wait() == 0
        stopped.set()
    assert len(out) == 20_000


def test_a_callback_that_raises(child):
    def fails(line):
        raise ZeroDivisionError(line)

    it = spawn([child, "flood-forever", "--chunk", "10"], on_stdout_line=lambda line: None)
    it.stdout.close()
    with it:
        pass
    assert it.returncode == -signal.SIGPIPE
    with pytest.raises(ZeroDivisionError), spawn("echo x; cat", shell=True, on_stdout_line=fails):
        pass


class Raised(logging.Handler):
    """What callbacks have raised, as it is logged."""

    def __init__(self):
        super().__init__()
        self.records = queue.SimpleQueue()
        self.emit = self.records.put

    def next(self):
        """Waits for it: its level, the kind of the exception, and the text."""
        record = self.records.get()
        return record.levelname, record.exc_info[0], record.getMessage()


@pytest.fixture
def raised():
    """Holds what callbacks raise, from then on."""
    handler = Raised()
    logger = logging.getLogger("procwright")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


ASK = {
    "wait": lambda it: it.wait(),
    "poll": lambda it: it.poll(),
    "communicate": lambda it: it.communicate(),
    "result": lambda it: it.result(),
    "wait_for": lambda it: it.wait_for("x", stream="stderr"),
    "with": lambda it: it.__exit__(None, None, None),
}


@pytest.mark.parametrize("ask", ASK.values(), ids=ASK)
def test_what_a_callback_raises_is_logged_at_once_and_raised_by_the_next_call(child, ask, raised):
    def fails(line):
        raise ZeroDivisionError(line)

    it = spawn([child, "cat"], stdin=PIPE, on_stdout_line=fails)
    try:
        it.stdin.write(b"one\n")
        # No call of ours is under way, and the program goes on.
        level, kind, message = raised.next()
        assert (level, kind) == ("ERROR", ZeroDivisionError)
        assert "on_stdout_line of" in message
        assert "cat has raised ZeroDivisionError" in message
        assert it.returncode is None
        with pytest.raises(ZeroDivisionError, match="one"):
            ask(it)
        # It is told once.
        assert it.poll() == it.returncode
    finally:
        it.stop()


def test_a_timeout_error_of_a_callback_is_not_taken_for_one_of_the_call(child):
    def fails(line):
        raise TimeoutError("of the callback")

    it = spawn([child, "cat"], input=b"one\n", on_stdout_line=fails)
    with pytest.raises(TimeoutError, match="of the callback"):
        it.communicate()


def test_what_on_event_raises_is_logged_at_once_and_raised_by_the_next_call(child, raised):
    calls = []

    def fails(event):
        calls.append(event.kind)
        raise ZeroDivisionError(event.kind)

    it = spawn(
        [child, "flood", "--out", "1M"],
        overflow=Overflow("drop_oldest", memory=65536),
        on_event=fails,
    )
    try:
        level, kind, message = raised.next()
        assert (level, kind) == ("ERROR", ZeroDivisionError)
        assert "on_event of" in message
        with pytest.raises(ZeroDivisionError, match="dropping"):
            it.wait()
        assert it.wait() == 0
    finally:
        it.stop()


def test_refused(child):
    with pytest.raises(InvalidValue, match="on_stdout_line"):
        spawn([child, "echo"], stdout=None, on_stdout_line=print)
    with pytest.raises(InvalidValue, match="merged"):
        spawn([child, "echo"], merged=True, on_stderr_line=print)
    for policy in ("block", "drop_oldest"):
        with pytest.raises(InvalidValue, match="drop_newest"):
            spawn([child, "echo"], merged=True, overflow=policy)
    with pytest.raises(InvalidValue, match="utf-16"):
        spawn([child, "echo"], merged=True, encoding="utf-16")
    with pytest.raises(TypeError, match="called"):
        spawn([child, "echo"], on_stderr_line=3)


@pytest.mark.parametrize("text", [False, True])
def test_merged(text):
    before = time.time()
    it = spawn(
        "echo one; read x; echo two >&2; read x; printf thrée",
        shell=True,
        stdin=PIPE,
        merged=True,
        text=text,
    )
    assert it.stdout is None
    assert it.stderr is None
    got = []
    for item in it.merged:
        got.append(item)
        it.stdin.write("\n" if text else b"\n")
        if len(got) == 2:
            it.stdin.close()
            break
    got += list(it.merged)
    lines = [("stdout", "one\n"), ("stderr", "two\n"), ("stdout", "thrée")]
    if not text:
        lines = [(stream, line.encode()) for stream, line in lines]
    assert [(one.stream, one.line) for one in got] == lines
    assert all(isinstance(one, MergedLine) for one in got)
    # Each was read before the next was written.
    assert not any(one.ambiguous for one in got)
    # The kernel's clocks are not all one: some granularity is theirs.
    assert before - 1 <= got[0].time <= got[1].time <= got[2].time
    assert it.merged.figures.lag_bytes == 0
    assert it.wait() == 0


def test_merged_is_closed_and_interrupted(child, when_asleep):
    it = spawn([child, "cat"], stdin=PIPE, merged=True)
    when_asleep(lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        next(it.merged)
    it.stdin.write(b"x\n")
    assert next(it.merged).line == b"x\n"
    when_asleep(it.merged.close)
    with pytest.raises(StreamClosed, match="stdout and stderr"):
        next(it.merged)
    assert it.merged.closed
    it.stop()


LINES = b"one\ntwo\r\nthree\rfour\n\nlast"


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["one", "two", "three\rfour", "", "last"]),
        ({"keep_ends": True}, ["one\n", "two\r\n", "three\rfour\n", "\n", "last"]),
        ({"separator": None}, ["one", "two", "three", "four", "", "last"]),
        ({"separator": b"r"}, ["one\ntwo\r\nth", "ee\rfou", "\n\nlast"]),
        ({"separator": b"zzz", "max_length": 20}, [LINES[:20].decode(), LINES[20:].decode()]),
        ({"max_length": 4}, ["one", "two\r", "", "thre", "e\rfo", "ur", "", "last"]),
    ],
)
def test_merged_lines(child, text, options, expected):
    it = spawn([child, "cat"], input=LINES.decode() if text else LINES, merged=True, text=text)
    lines = list(it.merged.lines(**options))
    assert [line.line for line in lines] == [line if text else line.encode() for line in expected]
    assert {line.stream for line in lines} == {"stdout"}
    assert it.wait() == 0


@pytest.mark.parametrize("text", [False, True])
def test_pieces_of_merged_lines(text):
    it = spawn(
        r"printf 'l\303'; read x; printf 'o\303' >&2; read x; printf '\244n'; read x; "
        r"printf '\266\nx' >&2; read x; printf g",
        shell=True,
        stdin=PIPE,
        merged=True,
        text=text,
    )
    got = []
    for item in it.merged.lines(max_length=2):
        got.append((item.stream, item.line))
        if len(got) < 5:
            it.stdin.write("\n" if text else b"\n")
    whole = [
        ("stdout", "l", b"l\xc3"),
        ("stderr", "o", b"o\xc3"),
        ("stdout", "än", b"\xa4n"),
        ("stderr", "ö", b"\xb6"),
        ("stderr", "x", b"x"),
        ("stdout", "g", b"g"),
    ]
    assert sorted(got) == sorted((stream, line if text else raw) for stream, line, raw in whole)
    assert got[:4] == [(stream, line if text else raw) for stream, line, raw in whole[:4]]
    assert it.wait() == 0


def test_a_broken_character_ends_with_its_merged_line():
    it = spawn(
        r"printf 'caf\303\nnext\n\303'", shell=True, merged=True, text=True, errors="replace"
    )
    assert [item.line for item in it.merged.lines()] == ["caf\ufffd", "next", "\ufffd"]


def test_a_merged_line_that_never_ends(child):
    it = spawn([child, "big-line", "100M"], merged=True)
    size = 0
    for item in it.merged.lines(max_length=64 * 1024):
        assert len(item.line) <= 64 * 1024
        size += len(item.line)
    assert size >= 100_000_000


def test_merged_lines_by_turns_and_refused(child):
    data = b"a;b\n" + b"x" * 1000 + b"\nend\n"
    it = spawn([child, "cat"], input=data, merged=True)
    merged = it.merged
    assert next(merged.lines(b";")).line == b"a"
    assert next(merged).line == b"b\n"
    with pytest.raises(LineTooLong, match="100 bytes"):
        next(merged.lines(max_length=100, too_long="fail"))
    assert next(merged).line == b"x" * 1000 + b"\n"
    with pytest.raises(TypeError, match="text=True"):
        merged.lines("\n")
    for bad in ({"separator": b""}, {"separator": b"ab", "max_length": 1}, {"too_long": "cut"}):
        with pytest.raises(InvalidValue, match="|".join(bad)):
            merged.lines(**bad)
    lines = merged.lines()
    assert next(lines).line == b"end"
    merged.close()
    with pytest.raises(StreamClosed):
        next(lines)
    it.wait()


def dropping(child):
    it = spawn(
        [child, "cat"], stdin=PIPE, merged=True, overflow=Overflow("drop_newest", memory=4096)
    )
    it.stdin.write(b"0123456\n" * 20_000)
    it.stdin.close()
    it.wait()
    return it


def test_whoever_asks_for_lines_of_both_alone_meets_no_gap(child):
    it = dropping(child)
    kept = 0
    for item in it.merged:
        assert (item.stream, type(item.time)) == ("stdout", float)
        kept += len(item.line)
    assert 0 < kept == 160_000 - it.merged.figures.dropped_bytes < 160_000


def test_merged_gaps(child):
    it = dropping(child)
    items = list(it.merged.lines(keep_ends=True))
    dropped = sum(item.dropped for item in items if isinstance(item, Gap))
    kept = sum(len(item.line) for item in items if isinstance(item, MergedLine))
    assert dropped > 0
    assert kept + dropped == 160_000


@pytest.mark.parametrize("way", ["communicate", "result"])
def test_the_last_callback_has_returned_by_then(child, way):
    go = threading.Event()
    seen = []

    def slow(line):
        go.wait()
        seen.append(line)

    it = spawn([child, "cat"], input=b"one\ntwo\n", on_stdout_line=slow)
    it.wait()
    with pytest.raises(WaitTimeout):
        getattr(it, way)(timeout=0.05)
    go.set()
    getattr(it, way)()
    assert seen == [b"one\n", b"two\n"]


def test_communicate_raises_what_a_callback_raised(child):
    def bad(line):
        raise KeyError(line)

    it = spawn([child, "cat"], input=b"one\n", on_stdout_line=bad)
    with pytest.raises(KeyError):
        it.communicate()
    assert it.communicate() == (None, b"")


def test_a_wait_for_merged_lines_knows_of_those_that_were_read_already(child):
    with spawn([child, "says", "out:a\\nb\\nrest", "ack"], stdin=PIPE, merged=True) as it:
        assert next(it.merged).line == b"a\n"
        assert wait([it.merged], "any").done == [it.merged]
        assert next(it.merged).line == b"b\n"
        # What is no whole line yet is waited for.
        assert wait([it.merged], "any", timeout=0.05).done == []
        it.stdin.write(b"\n")
        assert [line.line for line in it.merged] == [b"rest"]
        assert wait([it.merged], "any").done == [it.merged]
