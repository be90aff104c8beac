"""The two outputs of a child as one."""

from __future__ import annotations

from . import _core
from ._generic import Generic, Text
from ._invalid import bad_type
from ._record import Record
from ._stream import Figures, Gap, encoded_separator, frame_of, without_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any, Literal, Self, overload


class MergedLine(Record, Generic[Text]):
    """A line of one of the two outputs."""

    __slots__ = ("stream", "time", "line", "ambiguous")

    def __init__(
        self,
        stream: Literal["stdout", "stderr"],
        time: float,
        line: Text,
        ambiguous: bool = False,
    ) -> None:
        #: The output, "stdout" or "stderr".
        self.stream = stream
        #: The time when its end was read out of the pipe, in seconds since 1970.
        self.time = time
        #: The line, with its end unless `lines` has cut it; `str` if text was asked for.
        self.line: Text = line
        #: True if it may have been written before lines of the other output that were given
        #: before: both had bytes to read, and nobody knows which was first.
        self.ambiguous = ambiguous

    def __iter__(self) -> Iterator[Any]:
        """For `stream, time, line = item`."""
        return iter((self.stream, self.time, self.line))


class Merged(_core.Merged, Generic[Text]):
    """Iterates over the lines of both outputs, in the order in which they came.

    Gives `MergedLine`, and `Gap` where bytes were dropped (of which the offset is not
    known: it is -1). Any thread may close it: one that is blocked in it gets `StreamClosed`.
    """

    __slots__ = ("_decoding", "_keeper")

    #: Keeps the child.
    _keeper: object

    _decoding: tuple[str, str] | None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> MergedLine[Text] | Gap:
        item = self._next()
        if item is None:
            raise StopIteration
        number, time, data, ambiguous = item
        if number == 0:
            return Gap(-1, data)
        line: Any = data if self._decoding is None else data.decode(*self._decoding)
        return MergedLine("stdout" if number == 1 else "stderr", time, line, ambiguous)

    if TYPE_CHECKING:

        @overload
        def lines(
            self: Merged[bytes],
            separator: bytes | None = b"\n",
            *,
            max_length: int | None = None,
            too_long: Literal["split", "fail"] = "split",
            keep_ends: bool = False,
        ) -> Iterator[MergedLine[bytes] | Gap]: ...
        @overload
        def lines(
            self: Merged[Text],
            separator: str | bytes | None = b"\n",
            *,
            max_length: int | None = None,
            too_long: Literal["split", "fail"] = "split",
            keep_ends: bool = False,
        ) -> Iterator[MergedLine[Text] | Gap]: ...

    def lines(
        self,
        separator: str | bytes | None = b"\n",
        *,
        max_length: int | None = None,
        too_long: Literal["split", "fail"] = "split",
        keep_ends: bool = False,
    ) -> Iterator[Any]:
        r"""Iterates over lines as those of a `Reader` do, of both outputs.

        With a `max_length` no more than that is kept of a line that never ends: it
        comes in pieces, between which lines of the other output may stand, or is a
        `LineTooLong`. It is in bytes; a character in which a piece ends is whole in
        the next. The separator may be `str` if text was asked for.
        """
        given = separator
        if isinstance(separator, str):
            if self._decoding is None:
                hint = "the lines are bytes; pass bytes, or spawn with text=True"
                raise bad_type("separator", separator, hint)
            separator = encoded_separator(separator, self._decoding[0])
        frame = frame_of(separator, max_length, too_long, keep_ends, given)
        if self._decoding is None:
            return self._lines(frame)
        whole = frame_of(separator, max_length, too_long, True)
        return self._text_lines(whole, None if keep_ends else (separator,))

    def _lines(self, frame: _core.Frame) -> Iterator[MergedLine[bytes] | Gap]:
        while (item := self._next(frame)) is not None:
            number, time, data, ambiguous = item
            if number == 0:
                yield Gap(-1, data)
            else:
                yield MergedLine("stdout" if number == 1 else "stderr", time, data, ambiguous)

    def _text_lines(
        self, frame: _core.Frame, cut: tuple[bytes | None] | None
    ) -> Iterator[MergedLine[str] | Gap]:
        import codecs

        assert self._decoding is not None
        encoding, errors = self._decoding
        # Pieces of lines may end within a character.
        decoders: dict[str, codecs.IncrementalDecoder] = {}
        places: dict[str, tuple[float, bool]] = {}

        def rests() -> Iterator[MergedLine[str]]:
            for stream, decoder in decoders.items():
                if rest := decoder.decode(b"", True):
                    time, ambiguous = places[stream]
                    yield MergedLine(stream, time, rest, ambiguous)  # type: ignore[arg-type]
                decoder.reset()

        # Lines come with their ends: an unfinished character is over where its line is.
        for item in self._lines(frame):
            if isinstance(item, Gap):
                yield from rests()
                yield item
                continue
            stream = item.stream
            if stream not in decoders:
                decoders[stream] = codecs.getincrementaldecoder(encoding)(errors)
            places[stream] = item.time, item.ambiguous
            text = decoders[stream].decode(item.line)
            if not text:
                continue
            if cut is not None:
                text = without_end(text, cut[0], encoding)
            yield MergedLine(stream, item.time, text, item.ambiguous)
        yield from rests()

    @property
    def figures(self) -> Figures | None:
        """The figures of a `Reader`, for both together."""
        raw = self._figures()
        return None if raw is None else Figures(raw)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<procwright.Merged {self.label}{state}>"
