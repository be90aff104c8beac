"""A stream of one child that is the stdin of another."""

from __future__ import annotations

import io
import signal

import pytest

from procwright import SpawnError, run, spawn, spawn_pipeline


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


class Raw(io.RawIOBase):
    """A file without a descriptor, as one of a protocol's."""

    def __init__(self, stream):
        self.stream = stream

    def readable(self):
        return True

    def readinto(self, buffer):
        return self.stream.readinto1(buffer)


#: Files of Python's over a stream of a child's.
WRAPPED = [
    lambda stream: io.BufferedReader(Raw(stream)),
    lambda stream: io.TextIOWrapper(io.BufferedReader(Raw(stream)), "latin-1"),
    io.TextIOWrapper,
]


@pytest.mark.parametrize("wrapped", WRAPPED)
@pytest.mark.parametrize("text", [False, True])
def test_of_a_file_with_a_buffer_what_has_come_goes_on_at_once(wrapped, text):
    def begun():
        first = spawn(["sh", "-c", "echo a; echo b; exec sleep 1000"])
        file = wrapped(first.stdout)
        # What the file has read ahead by then goes on as well.
        assert file.readline() in ("a\n", b"a\n")
        return first, file

    # The first never ends.
    first, file = begun()
    assert run(["head", "-1"], stdin=file, text=text).stdout in ("b\n", b"b\n")
    first.stop("KILL")
    for stages in ([["cat"]], [["cat"], ["cat"]]):
        first, file = begun()
        start = spawn if len(stages) == 1 else spawn_pipeline
        second = start(*stages, stdin=file, text=text)
        assert second.stdout.readline() in ("b\n", b"b\n")
        first.stop("KILL")
        assert second.wait(timeout=60) in (0, [0, 0])


class Trickle(io.RawIOBase):
    """Gives pieces, and at None nothing, as a file that does not block does."""

    def __init__(self, *pieces):
        self.pieces = list(pieces)

    def readable(self):
        return True

    def readinto(self, buffer):
        piece = self.pieces.pop(0) if self.pieces else b""
        if piece is None:
            return None
        buffer[: len(piece)] = piece
        return len(piece)


@pytest.mark.parametrize("text", [False, True])
def test_all_of_a_file_with_a_buffer_goes_on(text):
    given = [b"a\r\nb", b"\xc3", b"\xa4", b"\n", b"x" * 200_000, b"\n", b"end"]
    pieces = [piece[at : at + 8192] for piece in given for at in range(0, len(piece), 8192)]
    file = io.BufferedReader(Trickle(*pieces))
    said = b"".join(given)
    if text:
        # Its newlines are what the file makes of them.
        file = io.TextIOWrapper(file, "utf-8")
        said = said.replace(b"\r\n", b"\n")
    assert run(["cat"], stdin=file).stdout == said


def test_a_file_that_has_nothing_now_has_not_ended():
    with pytest.raises(BlockingIOError, match=r"read\(\) has nothing now"):
        run(["cat"], stdin=io.BufferedReader(Trickle(b"a", None, None)))


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
