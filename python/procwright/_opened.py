"""The streams of what was started, as its caller gets them: of bytes or of text."""

from __future__ import annotations

from ._stream import Reader, Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import _core
    from ._keeper import Keeper
    from ._text import TextReader, TextWriter


def opened_writer(
    streams: _core.UntakenStreams, keeper: Keeper | None, decoding: tuple[str, str] | None
) -> Writer | TextWriter:
    """The stream to stdin, which keeps what was started."""
    writer = Writer(streams)
    writer._keeper = keeper
    if decoding is None:
        return writer
    from ._text import TextWriter

    return TextWriter(writer, *decoding)


def opened_reader(
    streams: _core.UntakenStreams,
    number: int,
    keeper: Keeper | None,
    decoding: tuple[str, str] | None,
) -> Reader | TextReader:
    """The stream from stdout (1) or stderr (2), which keeps what was started."""
    reader = Reader(streams, number)
    reader._keeper = keeper
    if decoding is None:
        return reader
    from ._text import text_reader

    return text_reader(reader, *decoding)
