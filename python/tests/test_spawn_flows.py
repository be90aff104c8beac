"""Interrupting what never waits: a stream that flows without a pause, a large write."""

from __future__ import annotations

import contextlib
import signal

import pytest

from procwright import DEVNULL, PIPE, spawn

MANY = 1 << 40

#: None of them has an end, nor has a line of the stream one.
READS = {
    "read": lambda it: it.stdout.read(),
    "read(n)": lambda it: it.stdout.read(MANY),
    "readline": lambda it: it.stdout.readline(),
    "for line in": lambda it: next(it.stdout),
    "lines": lambda it: next(it.stdout.lines(b"\r")),
    "readinto": lambda it: it.stdout.readinto(bytearray(1 << 28)),
}
TEXT = ("read", "read(n)", "readline", "for line in")
WAYS = [(options, how) for options in ({}, {"overflow": "block"}) for how in READS] + [
    ({"text": True}, how) for how in TEXT
]


class Told(Exception):
    """By the handler."""


@pytest.fixture
def soon():
    """A handler raises, a moment later."""

    def tell(number, frame):
        raise Told

    before = signal.signal(signal.SIGALRM, tell)

    @contextlib.contextmanager
    def rings():
        # In the block: the moment may be over at once.
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        yield

    yield rings
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(("options", "how"), WAYS)
def test_a_read_of_what_never_ends(child, soon, options, how):
    it = spawn([child, "flood-forever"], **options)
    with pytest.raises(Told), soon():
        READS[how](it)
    assert signal.set_wakeup_fd(-1) == -1
    # What was read is the next that is read.
    assert it.stdout.read(4) == ("...." if options.get("text") else b"....")
    it.stop()


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_both_as_one(child, soon, stream):
    argv = [child, "flood-forever", *(["--err"] if stream == "stderr" else [])]
    it = spawn(argv, merged=True)
    with pytest.raises(Told), soon():
        next(it.merged)
    it.stop()


def test_communicate(child, soon):
    it = spawn([child, "flood-forever"], stdin=PIPE)
    with pytest.raises(Told), soon():
        it.communicate(b"x" * 1000)
    it.stop()


def test_a_handler_that_does_not_raise(child):
    heard = []
    before = signal.signal(signal.SIGALRM, lambda *_: heard.append(1))
    it = spawn([child, "flood-forever"])
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        assert it.stdout.read(1 << 27) == b"." * (1 << 27)
        assert heard
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        it.stop()


def test_a_write(child, soon):
    it = spawn([child, "cat"], stdin=PIPE, stdout=DEVNULL)
    data = bytes(1 << 31)
    # Perhaps before the first byte.
    while not it.stdin.bytes_written:
        with pytest.raises(Told), soon():
            it.stdin.write(data)
    assert 0 < it.stdin.bytes_written < 1 << 31
    it.stop()
