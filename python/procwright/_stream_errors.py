"""The exceptions of streams. Imported when the first one is needed."""

from __future__ import annotations

import errno
import io
import subprocess

from ._errors import WaitTimeout
from ._timeout import seconds
from ._words import shown_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._types import Seconds


class StreamClosed(ValueError):
    """The stream was closed in this process, before or while it was used.

    A `ValueError`, as with every file of Python's.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.stream = stream

    def __str__(self) -> str:
        return f"{self.stream} was closed in this process: I/O operation on closed file"


class StreamForked(io.UnsupportedOperation):
    """The stream is of the process that this one was forked from.

    A fork has none of its parent's streams, so that the child sees the end of its
    input and neither takes the other's data. Hand the data on, or start the child in
    the fork. An `OSError` and a `ValueError`.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.stream = stream

    def __str__(self) -> str:
        return (
            f"{self.stream} is of the process that was forked: a fork has none of its streams. "
            "Use it there, or start the child in the fork"
        )


class LineTooLong(ValueError):
    """A line is longer than the `max_length` that was allowed.

    It is still there, to be read by other means.
    """

    def __init__(self, stream: str, max_length: int) -> None:
        super().__init__(stream, max_length)
        self.stream = stream
        self.max_length = max_length

    def __str__(self) -> str:
        return (
            f"a line of {self.stream} is longer than the {self.max_length:,} bytes that were "
            'allowed: allow more (max_length), or take it in pieces (too_long="split")'
        )


class StreamOverflow(OSError):
    """More came than `Overflow("fail")` keeps. What came before has been read.

    `offset` is where in the output the first byte stands that was too much.
    """

    def __init__(self, stream: str, offset: int) -> None:
        super().__init__(errno.ENOBUFS, stream, None)
        self.stream = stream
        self.offset = offset

    def __str__(self) -> str:
        return (
            f"{self.stream} wrote more than may be kept, from byte {self.offset:,} on: "
            "read it sooner, or choose another overflow"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (StreamOverflow, (self.stream, self.offset))


class StreamLost(OSError):
    """Bytes that lay on disk cannot be read again. The stream goes on behind them.

    `offset` and `length` say which.
    """

    def __init__(self, stream: str, offset: int, length: int, number: int, reason: str) -> None:
        super().__init__(number, reason)
        self.stream = stream
        self.offset = offset
        self.length = length

    def __str__(self) -> str:
        return (
            f"{self.length:,} bytes of {self.stream} at offset {self.offset:,} were on disk "
            f"and cannot be read: {self.strerror}"
        )

    def __reduce__(self) -> tuple[object, ...]:
        parts = (self.stream, self.offset, self.length, self.errno, self.strerror)
        return (StreamLost, parts)


class Stalled(subprocess.SubprocessError):
    """The child cannot go on: its output is full, and is not read.

    Full is all that its `Overflow` keeps, and the pipe. A call that waits for such a child,
    or writes to it, might wait for ever. Nothing was ended, and nothing is lost: the
    call may be made again. `streams` names what is full, `after_s` says for how long
    no reading of it began, `writing` whether it was a write that waited.
    """

    def __init__(
        self, cmd: str, streams: list[tuple[str, int, int]], after_s: float, writing: bool
    ) -> None:
        super().__init__(cmd, streams, after_s, writing)
        self.cmd = cmd
        self.streams = [name for name, _, _ in streams]
        self.after_s = after_s
        self.writing = writing
        self._kept = streams

    def __str__(self) -> str:
        names = " and ".join(self.streams)
        it = "it" if len(self.streams) == 1 else "them"
        kept = "".join(
            f"\n  {name}: {memory:,} bytes are kept in memory and {disk:,} on disk"
            for name, memory, disk in self._kept
        )
        input = "reads no input and " if self.writing else ""
        return (
            f"{self.cmd} {input}cannot go on: its {names} is full, and nobody has read {it} for "
            f"{self.after_s:g} s{kept}\n  hint: read {it}, on another thread if this one waits; or "
            "spawn with an overflow= that keeps more or drops, or with DEVNULL. The call may be "
            "made again"
        )


class _ReadTimeout(WaitTimeout):
    #: What was waited for.
    _what: str = ""
    #: The lines that say what the child waits for or does.
    _doing: str = ""

    def __str__(self) -> str:
        what = self._what.removeprefix("a ")
        said = f"no {what} within {shown_seconds(self.timeout)}; nothing is lost"
        return said + self._doing

    def __reduce__(self) -> tuple[object, ...]:
        return (_read_timeout, (self.cmd, self.timeout, (), self._what, self._doing))


# Users see one class: that this one has words of its own is a detail.
_ReadTimeout.__name__ = _ReadTimeout.__qualname__ = "WaitTimeout"


def read_timeout(
    what: str, timeout: Seconds | None, stream: Any, doing: str | None = None
) -> WaitTimeout:
    """The error of a read with a time limit. `what` was waited for; `doing` are the lines that say
    what the child waits for or does, for which is looked here where they are None."""
    binary = getattr(stream, "buffer", stream)
    keeper = getattr(getattr(binary, "_stream", binary), "_keeper", None)
    if doing is None:
        look = None if keeper is None else keeper.look(seconds(timeout))
        doing = "" if look is None else look()
    cmd = what if keeper is None else keeper.args
    return _read_timeout(cmd, timeout, (stream,), what, doing)


def _read_timeout(
    cmd: Any, timeout: Seconds | None, pending: tuple[object, ...], what: str, doing: str
) -> WaitTimeout:
    error = _ReadTimeout(cmd, timeout, pending)
    error._what = what
    error._doing = doing
    return error


class EndedBeforeMatch(subprocess.SubprocessError):
    """The child ended, or closed its output, and said nothing that matches.

    `cmd` is what was started, `returncode` how it ended (None if it lives on),
    `pattern` what was looked for, and `lines` the last lines that came.
    """

    def __init__(
        self,
        cmd: Any,
        returncode: int | None,
        pattern: Any,
        lines: list[Any],
        command: str | None = None,
    ) -> None:
        super().__init__(cmd, returncode, pattern, lines, command)
        self.cmd = cmd
        self._command = str(cmd) if command is None else command
        self.returncode = returncode
        self.pattern = pattern
        self.lines = lines

    def __str__(self) -> str:
        how = "closed its output" if self.returncode is None else _ended(self.returncode)
        return f"{self._command} {how} before it said {_sought(self.pattern)}{_tail(self.lines)}"


class MatchTimeout(WaitTimeout):
    """The time came before the child said what was waited for.

    `pattern` is what was looked for, `lines` are the last lines that came.
    """

    #: What was started, in a line, and the lines that say what it waits for or does.
    _command: str = ""
    _doing: str = ""

    def __init__(self, cmd: Any, timeout: Seconds | None, pattern: Any, lines: list[Any]) -> None:
        super().__init__(cmd, timeout)
        self.pattern = pattern
        self.lines = lines

    def __str__(self) -> str:
        within = shown_seconds(self.timeout)
        said = f"{self._command or self.cmd} did not say {_sought(self.pattern)} within {within}"
        return f"{said}{_tail(self.lines)}{self._doing}"

    def __reduce__(self) -> tuple[object, ...]:
        parts = (self.cmd, self.timeout, self.pattern, self.lines, self._command, self._doing)
        return (match_timeout, parts)


def match_timeout(
    cmd: Any, timeout: Seconds | None, pattern: Any, lines: list[Any], command: str, doing: str
) -> MatchTimeout:
    """The error of a search whose time is up. `command` is what was started, in a line, and `doing`
    are the lines that say what it waits for or does."""
    error = MatchTimeout(cmd, timeout, pattern, lines)
    error._command = command
    error._doing = doing
    return error


def _ended(returncode: int) -> str:
    """How it ended, as every other error says it."""
    if returncode >= 0:
        return f"exited with code {returncode}"
    import signal

    try:
        return f"was killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"was killed by signal {-returncode}"


def _sought(pattern: Any) -> str:
    """A pattern as an error shows it. Of one with the end of a line it says what one who has seen
    the last lines would not think of."""
    text = getattr(pattern, "pattern", pattern)
    newline, escaped = (b"\n", rb"\n") if isinstance(text, bytes) else ("\n", r"\n")
    by_line = newline in text or escaped in text
    return f"{pattern!r}{' (which is looked for in one line at a time)' if by_line else ''}"


def _tail(lines: list[Any]) -> str:
    if not lines:
        return "; it said nothing"
    shown = [line if isinstance(line, str) else line.decode(errors="replace") for line in lines]
    return "; its last lines:\n" + "\n".join("    " + line for line in shown)


for _public in (
    StreamClosed,
    StreamForked,
    LineTooLong,
    StreamOverflow,
    StreamLost,
    Stalled,
    _ReadTimeout,
    EndedBeforeMatch,
    MatchTimeout,
):
    _public.__module__ = "procwright"
