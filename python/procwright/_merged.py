"""The two outputs of a child as one."""

from __future__ import annotations

from . import _core
from ._generic import Generic, Text
from ._hinted import hinted
from ._invalid import bad_type
from ._stream import Figures, Gap, encoded_separator, frame_of, without_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any, Literal, Self, overload

    _Name = Literal["stdout", "stderr"]
    _Pair = tuple[_Name, Text]
else:
    _Pair = tuple


class MergedLine(_Pair[Text]):
    """A line of one of the two outputs: a pair of "stdout" or "stderr" and the line, as a `Piece`
    is, so that `for stream, line in child.merged` takes each apart."""

    #: The time when its end was read out of the pipe, in seconds since 1970.
    time: float
    #: True if it may have been written before lines of the other output that were given
    #: before: both had bytes to read, and nobody knows which was first.
    ambiguous: bool

    def __new__(cls, stream: _Name, time: float, line: Text, ambiguous: bool = False) -> Self:
        made = super().__new__(cls, (stream, line))
        made.time = time
        made.ambiguous = ambiguous
        return made

    @property
    def stream(self) -> _Name:
        """The output, "stdout" or "stderr"."""
        return self[0]

    @property
    def line(self) -> Text:
        """The line, with its end unless `lines` has cut it; `str` if text was asked for."""
        return self[1]

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self[0], self.time, self[1], self.ambiguous

    def __repr__(self) -> str:
        return (
            f"MergedLine(stream={self[0]!r}, time={self.time!r}, line={self[1]!r}, "
            f"ambiguous={self.ambiguous!r})"
        )


@hinted
class Merged(_core.Merged, Generic[Text]):
    """Iterates over the lines of both outputs, in the order in which they came.

    Gives a `MergedLine` for each; `lines()` gives a `Gap` as well where bytes were dropped. Any
    thread may close it: one that is blocked in it gets `StreamClosed`.
    """

    __slots__ = ("_decoding", "_keeper")

    #: Keeps the child.
    _keeper: object

    _decoding: tuple[str, str] | None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> MergedLine[Text]:
        while (item := self._next()) is not None:
            for line in self._whole(item):
                return line
        raise StopIteration

    def _whole(self, item: tuple[int, float, Any, bool]) -> list[MergedLine[Text]]:
        """A whole line as it is given out, and nothing for a gap, as a stream gives."""
        number, time, data, ambiguous = item
        if number == 0:
            return []
        line: Any = data if self._decoding is None else data.decode(*self._decoding)
        return [MergedLine("stdout" if number == 1 else "stderr", time, line, ambiguous)]

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
        r"""Iterates over lines as those of a `Reader` do, of both outputs, and a `Gap` where
        bytes were dropped, whose offset is not known: it is -1.

        With a `max_length` no more than that is kept of a line that never ends: it
        comes in pieces, between which lines of the other output may stand, or is a
        `LineTooLong`. It is in bytes; a character in which a piece ends is whole in
        the next. The separator may be `str` if text was asked for.
        """
        return self._lines(*self._line_maker(separator, max_length, too_long, keep_ends))

    def _line_maker(
        self, separator: Any, max_length: int | None, too_long: str, keep_ends: bool
    ) -> tuple[_core.Frame, _Plain]:
        """How lines are cut, and what makes items of them."""
        given = separator
        if isinstance(separator, str):
            if self._decoding is None:
                hint = "the lines are bytes; pass bytes, or spawn with text=True"
                raise bad_type("separator", separator, hint)
            separator = encoded_separator(separator, self._decoding[0])
        frame = frame_of(separator, max_length, too_long, keep_ends, given)
        if self._decoding is None:
            return frame, _Plain()
        # Lines come with their ends: an unfinished character is over where its line is.
        whole = frame_of(separator, max_length, too_long, True)
        return whole, _Decoder(*self._decoding, None if keep_ends else (separator,))

    def _lines(self, frame: _core.Frame, maker: _Plain) -> Iterator[MergedLine[Any] | Gap]:
        while (item := self._next(frame)) is not None:
            yield from maker.made(item)
        yield from maker.rest()

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


class _Plain:
    """Makes items of lines as they come."""

    __slots__ = ()

    def made(self, item: tuple[int, float, Any, bool]) -> list[MergedLine[Any] | Gap]:
        """The items of a line, a piece of one, or a gap."""
        number, time, data, ambiguous = item
        if number == 0:
            return [Gap(-1, data)]
        return [MergedLine("stdout" if number == 1 else "stderr", time, data, ambiguous)]

    def rest(self) -> list[MergedLine[Any]]:
        """The items that come where nothing follows."""
        return []


class _Decoder(_Plain):
    """Makes text of them, of which pieces may end within a character."""

    __slots__ = ("_cut", "_decoders", "_encoding", "_errors", "_places")

    def __init__(self, encoding: str, errors: str, cut: tuple[bytes | None] | None) -> None:
        self._encoding = encoding
        self._errors = errors
        self._cut = cut
        self._decoders: dict[Literal["stdout", "stderr"], Any] = {}
        self._places: dict[str, tuple[float, bool]] = {}

    def made(self, item: tuple[int, float, Any, bool]) -> list[MergedLine[Any] | Gap]:
        (made,) = super().made(item)
        if isinstance(made, Gap):
            return [*self.rest(), made]
        stream = made.stream
        if stream not in self._decoders:
            import codecs

            decoder = codecs.getincrementaldecoder(self._encoding)
            self._decoders[stream] = decoder(self._errors)
        self._places[stream] = made.time, made.ambiguous
        text = self._decoders[stream].decode(made.line)
        if not text:
            return []
        if self._cut is not None:
            text = without_end(text, self._cut[0], self._encoding)
        return [MergedLine(stream, made.time, text, made.ambiguous)]

    def rest(self) -> list[MergedLine[Any]]:
        rests = []
        for stream, decoder in self._decoders.items():
            if rest := decoder.decode(b"", True):
                time, ambiguous = self._places[stream]
                rests.append(MergedLine(stream, time, rest, ambiguous))
            decoder.reset()
        return rests
