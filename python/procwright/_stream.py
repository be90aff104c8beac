"""The binary streams of a child: files, for all that takes a file."""

from __future__ import annotations

import io
import sys
from abc import abstractmethod

from . import _core
from ._arguments import data as checked_data
from ._arguments import items, number, word
from ._hinted import hinted
from ._invalid import bad_type, bad_value
from ._record import Record
from ._timed import line_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType
    from typing import Any, Literal, NoReturn, Self

    from ._types import Data, Seconds


class Gap(Record):
    """A place where bytes were dropped, as the `Overflow` says.

    `dropped` is their number, and `offset` is where in the child's output they stood.
    """

    __slots__ = ("offset", "dropped")

    def __init__(self, offset: int, dropped: int) -> None:
        self.offset = offset
        self.dropped = dropped


class Figures(Record):
    """Figures of a stream between a child and its reader."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "lag_bytes",
        "lag_s",
        "peak_bytes",
        "memory_bytes",
        "memory_peak_bytes",
        "disk_bytes",
        "disk_peak_bytes",
        "spilled_bytes",
        "dropped_bytes",
        "lost_bytes",
        "blocked_s",
    )

    def __init__(self, raw: _core.RawFigures) -> None:
        #: Bytes that came from the child.
        self.bytes_in = raw["bytes_in"]
        #: Bytes that were read out.
        self.bytes_out = raw["bytes_out"]
        #: Bytes that wait to be read.
        self.lag_bytes = raw["lag_bytes"]
        #: Seconds for which the oldest of them has waited.
        self.lag_s = raw["lag_s"]
        #: The most bytes that ever waited.
        self.peak_bytes = raw["peak_bytes"]
        #: Memory that is taken now.
        self.memory_bytes = raw["memory_bytes"]
        #: The most that ever was.
        self.memory_peak_bytes = raw["memory_peak_bytes"]
        #: Bytes that wait on disk.
        self.disk_bytes = raw["disk_bytes"]
        #: The most that ever did.
        self.disk_peak_bytes = raw["disk_peak_bytes"]
        #: Bytes that ever went to disk.
        self.spilled_bytes = raw["spilled_bytes"]
        #: Bytes that were dropped, as the `Overflow` says.
        self.dropped_bytes = raw["dropped_bytes"]
        #: Bytes that were on disk and could not be read again.
        self.lost_bytes = raw["lost_bytes"]
        #: Seconds at most for which the child could not write because the pipe was full.
        self.blocked_s = raw["blocked_s"]


@hinted
class PipeFile:
    """The methods of every file, which a pipe mostly cannot do."""

    __slots__ = ()

    # Each stream has these of its own.

    @property
    @abstractmethod
    def label(self) -> str: ...

    @property
    @abstractmethod
    def closed(self) -> bool: ...

    @abstractmethod
    def close(self, wait: bool = False) -> None: ...

    @abstractmethod
    def _alive(self) -> None: ...

    @property
    def name(self) -> str:
        """The stream in words. No path: it cannot be opened by it."""
        return self.label

    def seekable(self) -> bool:
        self._check()
        return False

    def seek(self, offset: int, whence: int = 0, /) -> NoReturn:
        self._cannot("seek: what a pipe has given is gone")

    def tell(self) -> NoReturn:
        self._cannot("tell: a pipe has no positions")

    def truncate(self, size: int | None = None, /) -> NoReturn:
        self._cannot("truncate: a pipe has no size")

    def detach(self) -> NoReturn:
        self._cannot("detach: there is nothing underneath that could be used alone")

    def isatty(self) -> bool:
        """Always false: it is a pipe."""
        self._check()
        return False

    def flush(self) -> None:
        """Nothing: what was written is in the pipe."""
        self._check()

    def __enter__(self) -> Self:
        self._check()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _check(self) -> None:
        if self.closed:
            self._alive()

    def _cannot(self, text: str) -> NoReturn:
        raise io.UnsupportedOperation(f"{self.label} cannot {text}")

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<procwright.{type(self).__name__} {self.label}{state}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} cannot be pickled: read it, and pass the data")


@hinted
class ReadOnly(PipeFile):
    """A child's output."""

    __slots__ = ()

    def readable(self) -> bool:
        self._check()
        return True

    def writable(self) -> bool:
        self._check()
        return False

    def write(self, data: object, /) -> NoReturn:
        self._cannot("write: the child writes it")

    def writelines(self, lines: object, /) -> NoReturn:
        self._cannot("write: the child writes it")


@hinted
class WriteOnly(PipeFile):
    """A child's input."""

    __slots__ = ()

    def readable(self) -> bool:
        self._check()
        return False

    def writable(self) -> bool:
        self._check()
        return True

    def read(self, size: int | None = -1, /) -> NoReturn:
        self._cannot("read: the child reads it")


@hinted
class Reader(_core.Reader, ReadOnly):
    """Bytes out of a child: its stdout or stderr.

    A binary file as `open(..., "rb")` gives one, and an `io.BufferedIOBase`. Any number
    of threads may read it at once, and any may close it: those that are blocked in it get
    `StreamClosed`, in that call. Ctrl-C ends a
    blocked read on the main thread at once, and the next read gives what came.
    """

    __slots__ = ("_is_to_close", "_keeper", "_takers")

    #: Keeps the child, None if that is detached.
    _keeper: Any

    mode = "rb"

    #: Programs whose stdin it is, and whether it is closed once there are none.
    _takers: int
    _is_to_close: bool

    def close(self, wait: bool = False) -> None:
        """Closes it: the child that writes it gets SIGPIPE. Returns at once, or with `wait` when
        no thread is inside.

        While it is the stdin of another program, that alone reads it: it is closed when that
        reads no more.
        """
        if getattr(self, "_takers", 0):
            self._is_to_close = True
        else:
            super().close(wait)

    # Only what Python calls is made here: read1() and readinto() are called by io.TextIOWrapper and
    # io.BufferedReader in one step with keeping what they give, and a handler of a signal that
    # raised between the two, in a frame of ours, would lose it.

    def readline(self, size: int | None = -1, /, *, timeout: Seconds | None = None) -> bytes:
        """Reads a line with its end, b"" at the end of all.

        With a timeout it raises `WaitTimeout` if no whole line has come by then; what has stays,
        and the call may be made again.
        """
        if timeout is None:
            return super().readline(size)
        refuse_size(size)
        return line_within(self, self._peek_line, timeout) or b""

    def _hand_on(self) -> None:
        """From now on it is the stdin of another program."""
        self._takers = getattr(self, "_takers", 0) + 1
        self._is_to_close = getattr(self, "_is_to_close", False)

    def _hand_back(self, has_begun: bool) -> None:
        """That program reads no more, or was not started and has not begun to."""
        self._takers -= 1
        self._is_to_close |= has_begun
        if self._is_to_close:
            self.close()

    def readlines(self, hint: int | None = -1, /) -> list[bytes]:
        """Reads all lines to the end, or so many that they have `hint` bytes."""
        return read_lines(self, hint)

    def fileno(self) -> int:
        """The number of the pipe, where that is what is read: with `Overflow("block")`.

        To be handed on, as `Popen(stdin=child.stdout)` does. From then on the pipe is
        for the one that has got it, and the child left to itself: it may be dropped. Elsewhere
        raises `io.UnsupportedOperation`: procwright reads the pipe, and another
        reader would take data away from it. So it does while bytes wait here that were read out of
        the pipe, as by `wait_for` and `readline`, which its other reader would miss; as `stdin` of
        `run` and its like the stream hands these on as well.
        """
        self._check()
        number, held = self._pipe()
        if held:
            self._cannot_hand_on(f"{held} bytes")
        if number is None:
            self._cannot(
                "give a fileno: its data waits in this process and not in the pipe. "
                'Spawn with overflow="block" to hand the pipe on; for event loops there '
                "is readiness_fd()"
            )
        _leave(self)
        return number

    def _cannot_hand_on(self, what: str) -> NoReturn:
        self._cannot(
            f"give a fileno: {what} wait in this process that were read out of the pipe already, "
            "as by wait_for() or readline(), and another reader would miss them. Take them by "
            "read1(), or pass the stream itself, run(..., stdin=child.stdout), which hands on all"
        )

    @property
    def gaps(self) -> list[Gap]:
        """The places where bytes were dropped in what was read so far.

        What is read as bytes has no mark there; no line reaches over one.
        """
        return [Gap(*gap) for gap in self._gaps()]

    @property
    def figures(self) -> Figures | None:
        """The figures of now: how far the reader lags behind, what was spilled, dropped.

        None with `Overflow("block")`, where the kernel alone knows.
        """
        raw = self._figures()
        return None if raw is None else Figures(raw)

    def lines(
        self,
        separator: bytes | None = b"\n",
        *,
        max_length: int | None = None,
        too_long: Literal["split", "fail"] = "split",
        keep_ends: bool = False,
    ) -> Iterator[bytes | Gap]:
        r"""Iterates over lines, and a `Gap` where bytes were dropped.

        separator
            What ends a line; None for `\n`, `\r` and `\r\n`, as a progress display
            writes them.
        max_length, too_long
            The longest line in bytes, with its end. A longer one comes in pieces, or
            is a `LineTooLong`.
        keep_ends
            Leave the separator at the end of each.
        """
        frame = frame_of(separator, max_length, too_long, keep_ends)
        return self._lines(frame)

    def _lines(self, frame: _core.Frame) -> Iterator[bytes | Gap]:
        while (item := self._next_in(frame)) is not None:
            yield item if isinstance(item, bytes) else Gap(*item)


@hinted
class Writer(_core.Writer, WriteOnly):
    """Bytes into a child: its stdin.

    A binary file as `open(..., "wb")` gives one, and an `io.BufferedIOBase`. Nothing is
    buffered: what was written is in the pipe. No SIGPIPE is
    sent; a child that reads no more is a `BrokenPipeError`.
    """

    __slots__ = ("_ask", "_keeper", "_one")

    #: Gives the exception to raise for one which says that the child reads no more.
    _ask: Callable[[BaseException, float | None], BaseException]

    #: Keeps the child, None if that is detached.
    _keeper: Any

    mode = "wb"

    def __init__(self, streams: _core.UntakenStreams) -> None:
        import threading

        # Two writes never mix. One of the same thread's, by a signal handler or a
        # finaliser, goes in between: it would wait for itself.
        self._one = threading.RLock()

    def write(self, data: Data, /) -> int:
        """Writes all of it, and blocks until the pipe has taken it. How many bytes.

        Raises `BrokenPipeError` when the child reads no more, with how that has ended; of one that
        was stopped for a limit that it was spawned with what `wait` raises; `StreamClosed`. After a
        KeyboardInterrupt `bytes_written` tells how far it came.
        """
        if not isinstance(data, (bytes, bytearray)):
            hint = "pass bytes; a stream for a str comes with text=True"
            data = checked_data("data", data, hint)
        self._alive()
        try:
            with self._one:
                return self._write_all(data)
        except BrokenPipeError as error:
            told = self._ask(error, None)
            if told is error:
                raise
            raise told from told.__cause__

    def writelines(self, lines: Iterable[Data], /) -> None:
        """Writes each."""
        for line in items("lines", lines, "pass a list of bytes"):
            self.write(line)

    def fileno(self) -> int:
        """The number of the pipe, to be handed on.

        From then on the child is left to itself: it may be dropped.
        """
        self._check()
        number = self._pipe()
        _leave(self)
        return number


def _leave(stream: Reader | Writer) -> None:
    """Leaves the program to itself: another process may be all that has its pipe."""
    keeper = getattr(stream, "_keeper", None)
    if keeper is not None:
        keeper.release()


io.BufferedIOBase.register(Reader)
io.BufferedIOBase.register(Writer)


def binary(stream: Any) -> Any:
    """The binary stream under a text stream, or the stream itself."""
    return getattr(stream, "buffer", stream)


def refuse_size(size: int | None) -> None:
    """Refuses a part of a line with a time limit."""
    if size is not None and size != -1:
        raise bad_value("size", size, "leave it out with a timeout, which is for a whole line")


def read_lines(stream: Any, hint: int | None) -> list[Any]:
    if hint is None:
        return list(stream)
    words = "pass how much to read, or None for all"
    hint = number("hint", hint, -sys.maxsize - 1, sys.maxsize, words)
    if hint <= 0:
        return list(stream)
    lines = []
    size = 0
    for line in stream:
        lines.append(line)
        size += len(line)
        if size >= hint:
            break
    return lines


def without_end(text: str, separator: bytes | None, encoding: str) -> str:
    """Cuts the end off a line, as the core does with bytes."""
    if separator is None:
        return text.removesuffix("\n").removesuffix("\r")
    if separator == b"\n":
        return text[:-1].removesuffix("\r") if text.endswith("\n") else text
    return text.removesuffix(separator.decode(encoding, "surrogateescape"))


def encoded_separator(separator: Any, encoding: str) -> bytes | None:
    """The separator of text as bytes."""
    if separator is None:
        return None
    hint = f"pass characters that {encoding} has, one or more, or None for any newline"
    if not isinstance(separator, str):
        raise bad_type("separator", separator, hint)
    try:
        return separator.encode(encoding)
    except UnicodeEncodeError:
        raise bad_value("separator", separator, hint) from None


def frame_of(
    separator: Any, max_length: int | None, too_long: str, keep_ends: bool, given: Any = None
) -> _core.Frame:
    """How lines are cut. `given` is the separator as the caller has given it, if it was text."""
    given = separator if given is None else given
    if separator is not None:
        kind = "characters" if isinstance(given, str) else "bytes"
        hint = f"pass the {kind} that end a line, one or more, or None for any newline"
        if not isinstance(separator, (bytes, bytearray)):
            raise bad_type("separator", given, hint)
        if not separator:
            raise bad_value("separator", given, hint)
    if max_length is not None:
        # No line could have an end.
        least = 1 if separator is None else len(separator)
        hint = f"pass a number of bytes, {least} or more as the separator has so many, or None"
        max_length = number("max_length", max_length, least, sys.maxsize, hint)
    word("too_long", too_long, ("split", "fail"))
    return _core.Frame(separator, max_length, too_long == "fail", bool(keep_ends))
