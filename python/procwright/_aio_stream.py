"""The binary streams of a child on event loops: anyio's streams of bytes."""

from __future__ import annotations

import sys

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream
from anyio.lowlevel import checkpoint

from . import _core
from ._aio_errors import OF_ANYIO
from ._aio_sleep import first, in_thread
from ._arguments import data as checked_data
from ._arguments import items, number
from ._async import readable
from ._hinted import hinted
from ._stream import Gap, frame_of, refuse_size
from ._timed import look_at_child
from ._timeout import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
    from typing import Any, Literal, NoReturn, TypeVar

    from . import _stream
    from ._stream import Figures
    from ._types import Data, Seconds

    _T = TypeVar("_T")

#: Bytes, and items, that are given out one after the other before others of the loop have their
#: turn: to suspend for each would cost more than to read it.
_BYTES_A_TURN = 256 * 1024
_ITEMS_A_TURN = 256

#: What an item takes of a turn, beside its bytes.
_OF_A_TURN = _BYTES_A_TURN // _ITEMS_A_TURN

#: Bytes that are read at once into an object that grows.
_PIECE = 256 * 1024

_WHOLE_LINES = _core.Frame(b"\n", None, False, True)


class Turns:
    """Tells when one who never has to wait is to let others run."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        #: Less than 0 when it is the turn of others.
        self.left = _BYTES_A_TURN

    def note(self, size: int) -> None:
        """Notes an item of so many bytes."""
        self.left -= size + _OF_A_TURN

    async def wait(self) -> None:
        """Lets others run if it is their turn. Before the next item is taken: one that was taken
        would be lost if this is cancelled."""
        if self.left < 0:
            self.left = _BYTES_A_TURN
            await checkpoint()


class Guard:
    """Lets one task in at a time; a second gets `BusyResourceError`.

    anyio's `ResourceGuard`, but that whether somebody is in can be seen without going in: most
    lines are there already, and two calls for each would be a third of what one costs.
    """

    __slots__ = ("_doing", "is_taken")

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self.is_taken = False

    def __enter__(self) -> None:
        if self.is_taken:
            raise anyio.BusyResourceError(self._doing)
        self.is_taken = True

    def __exit__(self, *_: object) -> None:
        self.is_taken = False


def no_attribute(stream: object, name: str) -> NoReturn:
    """Raises the error for an attribute that a stream has not."""
    from ._missing import AIO_STREAM, missing

    raise missing(stream, name, AIO_STREAM)


def whole_lines(data: Any, newline: Any) -> list[Any]:
    """The lines of what was read to the end, with their ends."""
    *lines, rest = data.split(newline)
    return [*(line + newline for line in lines), *([rest] if rest else [])]


@hinted
class Output:
    """What the streams out of a child have in common, binary or text."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._guard = Guard("reading from")
        self._turns = Turns()
        #: Gives what the child was stopped for, None if it was not.
        self._why: Callable[[BaseException], Awaitable[BaseException | None]] | None = None

    @property
    def _procwright_stream(self) -> Any:
        """What another program reads as its stdin."""
        return self._stream

    async def aclose(self) -> None:
        """Closes it: the child that writes it gets SIGPIPE. A task that waits in it gets
        `ClosedResourceError`."""
        self.close()
        await checkpoint()

    def close(self) -> None:
        """Closes it as `aclose` does. Never blocks, and may be called from any thread."""
        self._stream.close()

    @property
    def closed(self) -> bool:
        """True once it is closed."""
        closed: bool = self._stream.closed
        return closed

    @property
    def label(self) -> str:
        """The stream in words."""
        label: str = self._stream.label
        return label

    @property
    def figures(self) -> Figures | None:
        """The figures of now: see `procwright.Reader.figures`."""
        figures: Figures | None = self._stream.figures
        return figures

    def readiness_fd(self) -> int:
        """A descriptor that is readable once there is something to read: see
        `procwright.Reader`. `aio.wait` takes the stream itself."""
        fd: int = self._stream.readiness_fd()
        return fd

    async def _end(self) -> anyio.EndOfStream:
        """The end, whose cause is what the child was stopped for, if it was."""
        error = anyio.EndOfStream()
        if self._why is not None and (reason := await self._why(error)) is not None:
            error.args = (str(reason),)
            error.__cause__ = reason
        return error

    def _is_held(self) -> bool:
        is_held = getattr(self._stream, "_is_held", None)
        return is_held is not None and is_held()

    if not TYPE_CHECKING:

        def __iter__(self) -> NoReturn:
            raise TypeError(f"{self.label} is read by awaiting: async for line in stream")

        __getattr__ = no_attribute

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<procwright.aio.{type(self).__name__} {self.label}{state}>"

    async def _look(
        self, look: Callable[[], _T | None], timeout: Seconds | None = None, what: str = ""
    ) -> _T:
        """What `look` gives, which is None until it is content: asked whenever more has come."""
        deadline = None if timeout is None else Deadline(timeout)
        with self._guard, OF_ANYIO:
            await self._turns.wait()
            while (found := look()) is None:
                left = None if deadline is None else deadline.left()
                if left == 0:
                    from ._stream_errors import read_timeout

                    assert timeout is not None
                    look_at = look_at_child(self._stream, timeout)
                    doing = ""
                    if look_at is not None:
                        doing = await in_thread("procwright-look", look_at)
                    raise read_timeout(f"{what} from {self.label}", timeout, self, doing)
                await readable(self._stream.readiness_fd(), left)
            self._turns.note(_size(found))
            return found


def _size(found: Any) -> int:
    """How long the text or the bytes in what was found are: itself, an item of `lines`, or the
    third member of one of both outputs. A gap has none."""
    if isinstance(found, tuple):
        (found,) = found
        if isinstance(found, tuple) and len(found) > 2:
            found = found[2]
    return len(found) if isinstance(found, (bytes, str)) else 0


@hinted
class Reader(Output, ByteReceiveStream):
    """Bytes out of a child: its stdout or stderr. A `ByteReceiveStream` of anyio's.

    Iterating gives lines with their ends. One task at a time may read it; a second gets
    `BusyResourceError`.
    """

    _stream: _stream.Reader

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Receives what has come, at most so many bytes; waits for the first alone.

        Raises `EndOfStream` at the end, whose cause is what the child was stopped for if that was a
        limit that it was spawned with; `ClosedResourceError` once it is closed. Cancelled, it has
        taken nothing.
        """
        hint = "pass a number of bytes, 1 or more"
        max_bytes = number("max_bytes", max_bytes, 1, sys.maxsize, hint)
        data = await self._look(lambda: self._stream._read_now(max_bytes))
        if not data:
            raise await self._end()
        return data

    def __aiter__(self) -> Reader:
        return self

    async def __anext__(self) -> bytes:
        turns = self._turns
        if turns.left >= 0 and not self._guard.is_taken:
            # A line that is there already has nothing to wait for, and nobody comes in between.
            try:
                found = self._stream._next_now(_WHOLE_LINES)
            except Exception:
                with OF_ANYIO:
                    raise
            if found is not None and isinstance(line := found[0], bytes):
                turns.left -= len(line) + _OF_A_TURN
                return line
        line = await self.readline()
        if not line:
            raise StopAsyncIteration
        return line

    async def readline(self, size: int = -1, /, *, timeout: Seconds | None = None) -> bytes:
        """Reads a line with its end, b"" at the end of all; with a `size`, no more than that.

        With a timeout it raises `WaitTimeout` if no whole line has come by then; what has stays,
        as when it is cancelled.
        """
        size = _core.checked_size(size)
        if size == 0:
            with OF_ANYIO:
                self._stream._alive()
            return b""
        frame = _WHOLE_LINES
        if size > 0:
            if timeout is not None:
                refuse_size(size)
            frame = _core.Frame(b"\n", size, False, True)

        def look() -> bytes | None:
            while (found := self._stream._next_now(frame)) is not None:
                (item,) = found
                if item is None:
                    return b""
                if isinstance(item, bytes):
                    return item
                # A gap, which `gaps` tells.
            return None

        return await self._look(look, timeout, "a line")

    async def readlines(self) -> list[bytes]:
        """Reads all lines to the end, with their ends. Cancelled, it has taken nothing."""
        return whole_lines(await self.read(), b"\n")

    async def read(self, size: int = -1, /) -> bytes:
        """Reads so many bytes, or to the end. Fewer come at the end alone, b"" after it.

        Cancelled, it has taken nothing.
        """
        left = _core.checked_size(size)
        most = sys.maxsize if left < 0 else left
        pieces: list[bytes] = []
        with self._guard, OF_ANYIO:
            self._stream._alive()
            try:
                while most > 0:
                    piece = self._stream._read_now(min(most, _PIECE))
                    if piece is None:
                        await readable(self._stream.readiness_fd(), None)
                    elif not piece:
                        break
                    else:
                        pieces.append(piece)
                        most -= len(piece)
                        self._turns.note(len(piece))
                        await self._turns.wait()
            except BaseException:
                self._stream._put_back(b"".join(pieces))
                raise
        return b"".join(pieces)

    def lines(
        self,
        separator: bytes | None = b"\n",
        *,
        max_length: int | None = None,
        too_long: Literal["split", "fail"] = "split",
        keep_ends: bool = False,
    ) -> AsyncIterator[bytes | Gap]:
        """Iterates over lines, and a `Gap` where bytes were dropped: as
        `procwright.Reader.lines`."""
        frame = frame_of(separator, max_length, too_long, keep_ends)
        return Items(self, lambda: self._stream._next_now(frame), _line_or_gap)

    @property
    def gaps(self) -> list[Gap]:
        """The places where bytes were dropped in what was read so far."""
        return self._stream.gaps

    @property
    def blocked_s(self) -> float | None:
        """Seconds at most for which the child could not write so far, its pipe being full."""
        return self._stream.blocked_s


def _line_or_gap(item: bytes | tuple[int, int]) -> list[bytes | Gap]:
    return [item if isinstance(item, bytes) else Gap(*item)]


class Items:
    """Iterates over what an output gives, made into something.

    An asynchronous generator that is left before its end would stay until the loop gets round to
    it. Nothing is lost by leaving this one: what it holds are the rests of one line at most.
    """

    __slots__ = ("_end", "_look", "_made", "_make", "_output", "_over")

    def __init__(
        self,
        output: Output,
        look: Callable[[], tuple[Any] | None],
        make: Callable[[Any], Iterable[Any]],
        end: Callable[[], Iterable[Any]] = tuple,
    ) -> None:
        """`look` gives an item in a tuple, None at the end, or nothing; `make` makes an item
        into those that are given out, and `end` gives those that come last."""
        self._output = output
        self._look = look
        self._make = make
        self._end = end
        self._made: list[Any] = []
        self._over = False

    def __aiter__(self) -> Items:
        return self

    async def __anext__(self) -> Any:
        while not self._made:
            if self._over:
                raise StopAsyncIteration
            (item,) = await self._output._look(self._look)
            self._over = item is None
            self._made = [*(self._end() if item is None else self._make(item))]
        return self._made.pop(0)


@hinted
class Writer(ByteSendStream):
    """Bytes into a child: its stdin. A `ByteSendStream` of anyio's.

    Nothing is buffered: what was sent is in the pipe. One task at a time may write it; a second
    gets `BusyResourceError`.
    """

    def __init__(self, stream: _stream.Writer, core: _core.Child | _core.PipelineChild) -> None:
        self._stream = stream
        self._core = core
        self._guard = Guard("writing to")
        self._turns = Turns()
        #: Gives the exception to raise for one which says that the child reads no more.
        self._ask: Callable[[BaseException, float | None], Awaitable[BaseException]] | None = None

    async def send(self, item: Data) -> None:
        """Sends all of it, and waits until the pipe has taken it.

        Raises `BrokenResourceError`, which is a `BrokenPipeError`, when the child reads no more,
        with how that has ended; of one that was stopped for a limit that it was spawned with what
        `wait` raises; `ClosedResourceError`; `procwright.Stalled` if the child cannot read because
        nobody reads what it writes. Cancelled, it may have sent a part: see `bytes_written`.
        """
        if not isinstance(item, bytes):
            # A copy, since others run before all is sent, and may change it.
            hint = "pass bytes; a stream for a str comes with text=True"
            item = bytes(checked_data("data", item, hint))
        try:
            with self._guard, OF_ANYIO:
                await self._send(item)
        except BrokenPipeError as error:
            found = await self._told(error)
            if found is error:
                raise
            raise found from found.__cause__

    async def _told(self, error: BrokenPipeError) -> BaseException:
        return error if self._ask is None else await self._ask(error, None)

    async def _send(self, item: bytes) -> None:
        """Sends all of it, for one who has the guard."""
        self._stream._alive()
        self._turns.note(len(item))
        await self._turns.wait()
        sent = self._stream._write_now(item, 0)
        if sent == len(item):
            return
        wait = self._core.begin_wait(True)
        while sent < len(item):
            # The child's own end is not waited for: its pipe tells of that.
            _, news, seconds = wait.sleep()
            await first([self._stream.readiness_fd(), *news], seconds)
            taken = self._stream._write_now(item, sent)
            if taken:
                sent += taken
                wait = self._core.begin_wait(True)

    async def write(self, data: Data) -> int:
        """Writes all of it, as `send` does. How many bytes."""
        before = self._stream.bytes_written
        await self.send(data)
        return self._stream.bytes_written - before

    async def writelines(self, lines: Iterable[Data]) -> None:
        """Writes each."""
        for line in items("lines", lines, "pass a list of bytes"):
            await self.send(line)

    @property
    def bytes_written(self) -> int:
        """How many bytes have gone into the pipe."""
        return self._stream.bytes_written

    async def aclose(self) -> None:
        """Closes it: the child comes to the end of its input."""
        self.close()
        await checkpoint()

    def close(self) -> None:
        """Closes it as `aclose` does. Never blocks, and may be called from any thread."""
        self._stream.close()

    @property
    def closed(self) -> bool:
        """True once it is closed."""
        return self._stream.closed

    def readiness_fd(self) -> int:
        """A descriptor that is readable once there is room, or nobody reads any more: see
        `procwright.Writer`. `aio.wait` takes the stream itself."""
        return self._stream.readiness_fd()

    @property
    def label(self) -> str:
        """The stream in words."""
        return self._stream.label

    if not TYPE_CHECKING:
        __getattr__ = no_attribute

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<procwright.aio.{type(self).__name__} {self.label}{state}>"
