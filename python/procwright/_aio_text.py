"""The text streams of a child on event loops, and both of its outputs as one."""

from __future__ import annotations

from anyio.abc import ObjectReceiveStream, ObjectSendStream
from anyio.lowlevel import checkpoint

from . import _core
from ._aio_errors import OF_ANYIO
from ._aio_sleep import first
from ._aio_stream import Items, Output, Reader, Writer, no_attribute, whole_lines
from ._arguments import items
from ._generic import Generic, Text
from ._hinted import hinted
from ._invalid import bad_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from typing import Any, Literal, overload

    from . import _merged, _text
    from ._merged import MergedLine
    from ._stream import Gap
    from ._types import Seconds


@hinted
class TextReader(Output, ObjectReceiveStream[str]):
    """Text out of a child: its stdout or stderr. An `ObjectReceiveStream[str]` of anyio's, as
    its `TextReceiveStream`.

    Iterating gives lines with their ends; no newline is translated. `buffer` is the binary
    stream underneath, which may be read in turn.
    """

    _stream: _text.TextReader

    def __init__(self, stream: _text.TextReader, core: _core.Child | _core.PipelineChild) -> None:
        super().__init__(stream)
        self._core = core
        #: The binary stream underneath.
        self.buffer = Reader(stream._bytes)
        # One at a time reads either of both.
        self.buffer._guard = self._guard

    @property
    def encoding(self) -> str:
        """The name of its encoding."""
        return self._stream.encoding

    @property
    def errors(self) -> str | None:
        """What is done with bytes that are no text."""
        return self._stream.errors

    async def receive(self) -> str:
        """Receives what has come, to the end of a line at most; waits for the first character
        alone.

        A prompt comes as it is, and a character is never in two pieces. Raises `EndOfStream` at
        the end, as that of `buffer`, `ClosedResourceError` once it is closed. Cancelled, it has
        taken nothing.
        """
        text = await self._look(self._stream._read1_now)
        if not text:
            raise await self._end()
        return text

    def __aiter__(self) -> TextReader:
        return self

    async def __anext__(self) -> str:
        turns = self._turns
        if turns.left >= 0 and not self._guard.is_taken:
            # As in `Reader`.
            try:
                line = self._stream._readline_now()
            except Exception:
                with OF_ANYIO:
                    raise
            if line:
                turns.note(len(line))
                return line
        line = await self.readline()
        if not line:
            raise StopAsyncIteration
        return line

    async def readline(self, *, timeout: Seconds | None = None) -> str:
        """Reads a line with its end, "" at the end of all. As that of `buffer`."""
        return await self._look(self._stream._readline_now, timeout, "a line")

    async def readlines(self) -> list[str]:
        """Reads all lines to the end, with their ends. Cancelled, it has taken nothing."""
        return whole_lines(await self.read(), "\n")

    async def read(self) -> str:
        """Reads to the end. Cancelled, it has taken nothing."""
        buffer = self._stream._bytes
        with self._guard, OF_ANYIO:
            buffer._alive()
            talk = _core.Communication(self._core, None, None, [buffer, None])
            try:
                while not talk.go_on_now():
                    fds = talk.sleep()
                    if fds is None:
                        await checkpoint()
                    else:
                        await first(fds, None)
            except BaseException:
                (read, _) = talk.take()
                if read is not None:
                    buffer._put_back(read[0])
                raise
            (read, _) = talk.take()
            assert read is not None
            return self._stream._decode(*read)

    def lines(
        self,
        separator: str | None = "\n",
        *,
        max_length: int | None = None,
        too_long: Literal["split", "fail"] = "split",
        keep_ends: bool = False,
    ) -> AsyncIterator[str | Gap]:
        """Iterates over lines, and a `Gap` where bytes were dropped: as
        `procwright.TextReader.lines`."""
        cut = self._stream._line_decoder(separator, max_length, too_long, keep_ends)
        frame, decoder = cut
        buffer = self._stream._bytes

        def made(item: bytes | tuple[int, int]) -> list[str | Gap]:
            from ._stream import Gap

            return decoder.decoded(item if isinstance(item, bytes) else Gap(*item))

        return Items(self, lambda: buffer._next_now(frame), made, decoder.rest)

    @property
    def gaps(self) -> list[Gap]:
        """The gaps of `buffer`: offsets are in bytes."""
        return self._stream.gaps

    @property
    def blocked_s(self) -> float | None:
        """The `blocked_s` of `buffer`."""
        return self._stream.blocked_s


@hinted
class TextWriter(ObjectSendStream[str]):
    """Text into a child: its stdin. An `ObjectSendStream[str]` of anyio's, as its
    `TextSendStream`.

    Encodes what it is given and sends it at once: `buffer` is the binary stream. Newlines are
    not translated.
    """

    def __init__(self, stream: _text.TextWriter, core: _core.Child | _core.PipelineChild) -> None:
        self._stream = stream
        #: The binary stream underneath.
        self.buffer = Writer(stream.buffer, core)

    @property
    def encoding(self) -> str:
        """The name of its encoding."""
        return self._stream.encoding

    async def send(self, item: str) -> None:
        """Sends all of it, as that of `buffer` does."""
        if not isinstance(item, str):
            raise bad_type("text", item, "pass a str; bytes go into `buffer`")
        try:
            await self._send(item)
        except BrokenPipeError as error:
            found = await self.buffer._told(error)
            if found is error:
                raise
            raise found from found.__cause__

    async def _send(self, item: str) -> None:
        buffer = self.buffer
        # The guard comes before the encoder, whose state changes.
        with buffer._guard, OF_ANYIO:
            self._stream._alive()
            before = buffer.bytes_written
            state = self._stream._encoder.getstate()
            try:
                await buffer._send(self._stream._encode(item))
            except BaseException:
                if buffer.bytes_written == before:
                    # Nothing is there yet, not even a byte order mark.
                    self._stream._encoder.setstate(state)
                raise

    async def write(self, text: str) -> int:
        """Writes all of it, as `send` does. How many characters."""
        await self.send(text)
        return len(text)

    async def writelines(self, lines: Iterable[str]) -> None:
        """Writes each."""
        for line in items("lines", lines, "pass a list of str"):
            await self.send(line)

    async def aclose(self) -> None:
        """Closes it and `buffer`: the child comes to the end of its input."""
        await self.buffer.aclose()

    def close(self) -> None:
        """Closes it as `aclose` does. Never blocks, and may be called from any thread."""
        self.buffer.close()

    @property
    def closed(self) -> bool:
        """True once it is closed."""
        return self.buffer.closed

    def readiness_fd(self) -> int:
        """The descriptor of `buffer` for event loops."""
        return self.buffer.readiness_fd()

    @property
    def label(self) -> str:
        """The stream in words."""
        return self.buffer.label

    if not TYPE_CHECKING:
        __getattr__ = no_attribute

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<procwright.aio.TextWriter {self.label}{state}>"


@hinted
class Merged(Output, Generic[Text]):
    """Iterates over the lines of both outputs, in the order in which they came.

    Gives a `MergedLine` for each; `lines()` gives a `Gap` as well where bytes were dropped. Closed
    by any task: one that waits in it gets `ClosedResourceError`.
    """

    _stream: _merged.Merged[Any]

    def __aiter__(self) -> AsyncIterator[MergedLine[Text]]:
        return Items(self, self._stream._next_now, self._stream._whole)

    if TYPE_CHECKING:

        @overload
        def lines(
            self: Merged[bytes],
            separator: bytes | None = b"\n",
            *,
            max_length: int | None = None,
            too_long: Literal["split", "fail"] = "split",
            keep_ends: bool = False,
        ) -> AsyncIterator[MergedLine[bytes] | Gap]: ...
        @overload
        def lines(
            self: Merged[Text],
            separator: str | bytes | None = b"\n",
            *,
            max_length: int | None = None,
            too_long: Literal["split", "fail"] = "split",
            keep_ends: bool = False,
        ) -> AsyncIterator[MergedLine[Text] | Gap]: ...

    def lines(
        self,
        separator: str | bytes | None = b"\n",
        *,
        max_length: int | None = None,
        too_long: Literal["split", "fail"] = "split",
        keep_ends: bool = False,
    ) -> AsyncIterator[Any]:
        """Iterates over lines of both outputs: as `procwright.Merged.lines`."""
        frame, maker = self._stream._line_maker(separator, max_length, too_long, keep_ends)
        return Items(self, lambda: self._stream._next_now(frame), maker.made, maker.rest)
