"""Pieces of both outputs, in the order of reading."""

from __future__ import annotations

from ._generic import Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from codecs import IncrementalDecoder
    from typing import Any, Literal, Self

    from typing_extensions import TypeVar

    _Name = Literal["stdout", "stderr"]
    _Pair = tuple[_Name, Text]
    #: The pieces of `Result.merged`, None unless asked for.
    Order = TypeVar("Order", covariant=True, default="list[Piece[str]] | list[Piece[bytes]] | None")
else:
    Order = None
    _Pair = tuple


class Piece(_Pair[Text]):
    """A piece of one of the two outputs: a pair of "stdout" or "stderr" and its data.

    The data is `str` if text was asked for, else `bytes`.
    """

    #: True if some of it may have been written before the piece in front of it, or before
    #: ambiguous ones in front of that: both streams had bytes to read, and nobody knows which
    #: was first. Where it is false, all in front was written before.
    ambiguous: bool
    #: The time when its first byte was read out of the pipe, in seconds since 1970.
    time: float

    def __new__(cls, pair: tuple[_Name, Text], ambiguous: bool = False, time: float = 0.0) -> Self:
        made = super().__new__(cls, pair)
        made.ambiguous = ambiguous
        made.time = time
        return made

    @property
    def stream(self) -> _Name:
        """The output, "stdout" or "stderr"."""
        return self[0]

    @property
    def data(self) -> Text:
        """The data: `str` if text was asked for, else `bytes`."""
        return self[1]


class Kept:
    """A walk through what is kept of one stream, the middle of which may have been dropped."""

    __slots__ = ("_at", "_data", "_from", "_to", "name")

    def __init__(
        self, name: _Name, data: bytes | None, dropped_at: int | None, dropped: int
    ) -> None:
        self.name: _Name = name
        self._data = memoryview(data or b"")
        self._at = 0
        self._from = self._to = 0
        if dropped_at is not None:
            self._from = dropped_at
            self._to = dropped_at + dropped

    def _kept_before(self, position: int) -> int:
        return position - max(0, min(position, self._to) - self._from)

    def take(self, length: int) -> bytes:
        """What is kept of the next bytes that were read."""
        start = self._kept_before(self._at)
        self._at += length
        return bytes(self._data[start : self._kept_before(self._at)])


def pieces(
    segments: list[tuple[int, int, bool, float]],
    streams: dict[int, Kept],
    decoding: tuple[str, str] | None,
) -> list[Piece[Any]]:
    """The pieces that were read: of so many bytes of a stream, by its number, each.

    A character that two pieces share is in the later one, so that the pieces of a stream are
    its text.
    """
    last = {number: place for place, (number, *_) in enumerate(segments)}
    decoders: dict[int, IncrementalDecoder] = {}
    if decoding is not None:
        import codecs

        make = codecs.getincrementaldecoder(decoding[0])
        decoders = {number: make(decoding[1]) for number in streams}
    found: list[Piece[Any]] = []
    for place, (number, length, ambiguous, time) in enumerate(segments):
        stream = streams[number]
        data: Any = stream.take(length)
        if number in decoders:
            data = decoders[number].decode(data, place == last[number])
        if data:
            found.append(Piece((stream.name, data), ambiguous, time))
    return found
