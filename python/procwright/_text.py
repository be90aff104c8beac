"""The text streams of a child."""

from __future__ import annotations

import codecs
import io
import sys

from . import _core
from ._arguments import items
from ._hinted import hinted
from ._invalid import bad_type
from ._stream import (
    Figures,
    Gap,
    Reader,
    ReadOnly,
    WriteOnly,
    Writer,
    encoded_separator,
    frame_of,
    read_lines,
    refuse_size,
    without_end,
)
from ._timed import line_within, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, Literal

    from ._types import Seconds

#: Error handlers of the native stream: it has to know what becomes of a broken character.
_ERRORS = ("strict", "replace", "ignore", "surrogateescape")

#: Looks at a line that never ends before other streams have their turn.
_LOOKS = 16

_WHOLE_LINES = _core.Frame(b"\n", None, False, True)


@hinted
class TextReader(_core.TextReader, ReadOnly):
    """Text out of a child: its stdout or stderr.

    A text file as `open(..., newline="\\n")` gives one, and an `io.TextIOBase`: no newline
    is translated. `buffer` is the binary stream underneath, which may be read in turn. Any
    thread may close it, as with that, and those that are blocked in it get `StreamClosed`.
    """

    __slots__ = ()

    mode = "r"
    #: Newlines are not translated, so none was seen.
    newlines = None
    line_buffering = False

    @property
    def label(self) -> str:
        """The stream in words."""
        return self._bytes.label

    @property
    def _bytes(self) -> Reader:
        buffer = self.buffer
        assert isinstance(buffer, Reader)
        return buffer

    def _alive(self) -> None:
        self._bytes._alive()

    def readlines(self, hint: int | None = -1, /) -> list[str]:
        """Reads all lines to the end, or so many that they have `hint` characters."""
        return read_lines(self, hint)

    def fileno(self) -> int:
        """The descriptor of `buffer`, to be handed on."""
        return self._bytes.fileno()

    def readiness_fd(self) -> int:
        """The descriptor of `buffer` for event loops."""
        return self._bytes.readiness_fd()

    def _is_held(self) -> bool:
        return self._bytes._is_held()

    @property
    def figures(self) -> Figures | None:
        """The figures of `buffer`."""
        return self._bytes.figures

    @property
    def blocked_s(self) -> float | None:
        """The `blocked_s` of `buffer`."""
        return self._bytes.blocked_s

    def close(self, wait: bool = False) -> None:
        """Closes it and `buffer`. Returns at once, or with `wait` when no thread is inside."""
        self._bytes.close(wait)

    def readline(self, size: int | None = -1, /, *, timeout: Seconds | None = None) -> str:
        """Reads a line with its end, "" at the end of all. `timeout` as that of the binary one."""
        if timeout is None:
            return super().readline(size)
        refuse_size(size)
        buffer = self._bytes
        line = line_within(buffer, buffer._peek_line, timeout)
        return "" if line is None else line.decode(self.encoding, self.errors)

    def read1(self, *, timeout: Seconds | None = None) -> str:
        """Reads what has come, to the end of a line at most; waits for the first character alone.

        "" at the end. A prompt comes as it is, and a character is never in two pieces. With a
        timeout it raises `WaitTimeout` if nothing has come by then.
        """
        return within(timeout, self._bytes, "text", lambda _has_more: self._read1_now())

    def _read1_now(self) -> str | None:
        """What `read1` gives, None if that would wait."""
        buffer = self._bytes
        kind, data = buffer._peek_line(0)
        if kind == "end":
            return ""
        if not data:
            return None
        decoder = codecs.getincrementaldecoder(self.encoding)(self.errors)
        text = decoder.decode(data, kind == "line")
        if kind == "part":
            # The beginning of a character waits for its rest.
            whole = len(data) - len(decoder.getstate()[0])
            if whole:
                buffer.read1(whole)
        return text or None

    def _readline_now(self) -> str | None:
        """The next line with its end, "" at the end of all; None if that would wait."""
        while (found := self._bytes._next_now(_WHOLE_LINES)) is not None:
            (item,) = found
            if item is None:
                return ""
            if isinstance(item, bytes):
                return item.decode(self.encoding, self.errors)
            # A gap, which `gaps` tells.
        return None

    def _hand_on(self) -> None:
        self._bytes._hand_on()

    def _hand_back(self, has_begun: bool) -> None:
        self._bytes._hand_back(has_begun)

    def _decode_so_far(self, data: bytes) -> str:
        """The text of what was left, to which more may come. Takes nothing.

        A character of which the rest has not come is left out, and what `strict` would refuse is
        �: this is for an error that is told in its place.
        """
        return self._decoder_of_what_came().decode(data)

    def _decoder_of_what_came(self) -> codecs.IncrementalDecoder:
        errors = self.errors or "strict"
        return codecs.getincrementaldecoder(self.encoding)(
            "replace" if errors == "strict" else errors
        )

    def _decode(self, data: bytes, edges: list[int]) -> str:
        """Decodes all that was left. No character reaches over an edge."""
        text = []
        begun = 0
        for edge in [*edges, len(data)]:
            text.append(data[begun:edge].decode(self.encoding, self.errors))
            begun = edge
        return "".join(text)

    @property
    def gaps(self) -> list[Gap]:
        """The gaps of `buffer`: offsets are in bytes."""
        return self._bytes.gaps

    def lines(
        self,
        separator: str | None = "\n",
        *,
        max_length: int | None = None,
        too_long: Literal["split", "fail"] = "split",
        keep_ends: bool = False,
    ) -> Iterator[str | Gap]:
        r"""Iterates over lines, and a `Gap` where bytes were dropped.

        As that of the binary stream; `max_length` is in bytes. A character that a
        piece of a line ends in is whole in the next.
        """
        return self._lines(*self._line_decoder(separator, max_length, too_long, keep_ends))

    def _line_decoder(
        self, separator: str | None, max_length: int | None, too_long: str, keep_ends: bool
    ) -> tuple[_core.Frame, LineDecoder]:
        """How lines are cut as bytes, and what makes text of them."""
        wanted = encoded_separator(separator, self.encoding)
        # Lines come with their ends: an unfinished character is over where its line is.
        frame = frame_of(wanted, max_length, too_long, True, separator)
        cut = None if keep_ends else (wanted,)
        return frame, LineDecoder(self.encoding, self.errors or "strict", cut)

    def _lines(self, frame: _core.Frame, decoder: LineDecoder) -> Iterator[str | Gap]:
        for item in self._bytes._lines(frame):
            yield from decoder.decoded(item)
        yield from decoder.rest()


class LineDecoder:
    """Makes text of lines, of which pieces may end within a character."""

    __slots__ = ("_cut", "_decoder", "_encoding")

    def __init__(self, encoding: str, errors: str, cut: tuple[bytes | None] | None) -> None:
        """`cut` has the separator that is cut off, or is None."""
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)
        self._encoding = encoding
        self._cut = cut

    def decoded(self, item: bytes | Gap) -> list[str | Gap]:
        """The texts of a line or piece."""
        if isinstance(item, Gap):
            rest = self.rest()
            self._decoder.reset()
            return [*rest, item]
        text = self._decoder.decode(item)
        if text and self._cut is not None:
            return [without_end(text, self._cut[0], self._encoding)]
        return [text] if text else []

    def rest(self) -> list[str]:
        """What an unfinished character comes to, where nothing follows."""
        rest = self._decoder.decode(b"", True)
        return [rest] if rest else []


@hinted
class _CodecReader(TextReader):
    """A text stream for encodings that only Python can decode.

    It keeps the decoder's state and the text that was decoded and not given out yet.
    An exception of a signal handler may come between any two steps. So bytes are kept
    until what they say is, and that is kept in one step, with the decoder's state.
    It checks whether the stream is alive before it takes its lock: in a fork no thread may
    be left that would release it.
    """

    __slots__ = ("_decoder", "_is_end_late", "_kept", "_one", "_raw")

    #: Text that was not given out, whether that is all, the bytes that were decoded
    #: last, and the decoder's state behind them.
    _kept: tuple[str, bool, bytes | None, Any]

    def __init__(self, buffer: Reader, encoding: str, errors: str) -> None:
        import threading

        self._decoder = codecs.getincrementaldecoder(encoding)(errors)
        self._kept = ("", False, None, self._decoder.getstate())
        #: Bytes that were read: at most one piece.
        self._raw: list[bytes] = []
        #: Whether the end of a line that was given out may come next, which is passed over.
        self._is_end_late = False
        self._one = threading.RLock()

    @property
    def _text(self) -> str:
        return self._kept[0]

    @property
    def _ended(self) -> bool:
        return self._kept[1]

    def __iter__(self) -> _CodecReader:
        self._alive()
        return self

    def __next__(self) -> str:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    def read(self, size: int | None = -1, /) -> str:
        size = _size(size)
        self._alive()
        with self._one:
            while size < 0 or len(self._text) < size:
                if not self._more():
                    break
            self._check()
            return self._give(len(self._text) if size < 0 else size)

    def readline(self, size: int | None = -1, /, *, timeout: Seconds | None = None) -> str:
        if timeout is not None:
            refuse_size(size)
            return line_within(self, self._peek_line, timeout) or ""
        size = _size(size)
        limit = None if size < 0 else size
        self._alive()
        with self._one:
            begun = 0
            while True:
                end = self._text.find("\n", begun) + 1
                if limit is not None and (end > limit or (not end and len(self._text) >= limit)):
                    end = limit
                elif not end:
                    begun = len(self._text)
                    if self._more():
                        continue
                    end = len(self._text)
                self._check()
                return self._give(end)

    def _read1_now(self) -> str | None:
        kind, text = self._peek_line(0)
        if kind == "part" and text:
            text = self._give(len(text))
        return "" if kind == "end" else text or None

    def _readline_now(self) -> str | None:
        kind, line = self._peek_line(sys.maxsize)
        while kind == "part" and self._bytes._is_held():
            # Nothing tells of bytes that were read already.
            kind, line = self._peek_line(sys.maxsize)
        return {"line": line, "part": None, "end": ""}[kind]

    def _give(self, n: int) -> str:
        text, *rest = self._kept
        self._kept = (text[n:], *rest)
        return text[:n]

    def fileno(self) -> int:
        """The descriptor of `buffer`, to be handed on."""
        text, _, _, (begun, _) = self._kept
        if (text or begun) and not self.closed:
            what = f"{len(text)} characters" if text else "bytes of a character that is not whole"
            self._bytes._cannot_hand_on(what)
        return self._bytes.fileno()

    def _put_back(self, text: str) -> None:
        """Makes this text the next that is read."""
        with self._one:
            kept, *rest = self._kept
            self._kept = (text + kept, *rest)

    def _expect_end(self) -> None:
        self._is_end_late = True

    def _without_late_end(self, text: str) -> str:
        """The text, without the end of a line that was given out before it."""
        if not self._is_end_late:
            return text
        return text.removeprefix("\r\n" if text.startswith("\r\n") else "\n")

    def _is_held(self) -> bool:
        return bool(self._text) or self._ended or super()._is_held()

    def _more(self) -> bool:
        """Decodes more; whether there was any. Keeps all if it is interrupted."""
        if self._ended:
            return False
        self._take(-1)
        return self._feed()

    def _take(self, size: int) -> None:
        """Reads, unless there are bytes that were not decoded."""
        if self._raw and self._raw[0] is self._kept[2]:
            self._raw.clear()
        if not self._raw:
            # One call reads and appends: no handler runs in between.
            self._raw.extend(map(self._bytes.read1, (size,)))

    def _feed(self) -> bool:
        """Decodes what was read; whether it was anything."""
        data = self._raw[0]
        text, _, _, state = self._kept
        self._decoder.setstate(state)
        text += self._decoder.decode(data, not data)
        if self._is_end_late and text not in {"", "\r"}:
            text = self._without_late_end(text)
            self._is_end_late = False
        self._kept = (text, not data, data, self._decoder.getstate())
        return bool(data)

    def _peek_line(self, looked_at: int) -> tuple[Literal["line", "part", "end"], str | None]:
        """Looks without waiting, as the binary stream does, at text."""
        if not self._one.acquire(blocking=False):
            # Another thread reads.
            return "part", None
        try:
            for _ in range(_LOOKS):
                if end := self._text.find("\n") + 1:
                    return "line", self._give(end)
                if self._ended:
                    return ("line", self._give(len(self._text))) if self._text else ("end", None)
                # Lines of bytes do not matter: all goes through the decoder.
                if self._raw and self._raw[0] is not self._kept[2]:
                    self._feed()
                    continue
                kind, data = self._bytes._peek_line(0)
                if kind != "part":
                    self._raw[:] = [data or b""]
                elif data is None:
                    break
                else:
                    self._take(len(data))
                self._feed()
            return "part", self._text if len(self._text) > looked_at else None
        finally:
            self._one.release()

    def _decode_so_far(self, data: bytes) -> str:
        with self._one:
            text, ended, seen, state = self._kept
            if ended:
                return text
            if self._raw and self._raw[0] is not seen:
                data = self._raw[0] + data
            # One of its own: that of the stream goes on where it was.
            decoder = self._decoder_of_what_came()
            decoder.setstate(state)
            return self._without_late_end(text + decoder.decode(data))

    def _decode(self, data: bytes, edges: list[int]) -> str:
        with self._one:
            text, ended, seen, state = self._kept
            if not ended:
                if self._raw and self._raw[0] is not seen:
                    data = self._raw[0] + data
                self._decoder.setstate(state)
                text += self._decoder.decode(data, True)
            text = self._without_late_end(text)
            self._is_end_late = False
            self._kept = ("", True, None, state)
            return text

    def _line_decoder(
        self, separator: str | None, max_length: int | None, too_long: str, keep_ends: bool
    ) -> tuple[_core.Frame, LineDecoder]:
        # First, so that a wrong value is told of first.
        super()._line_decoder(separator, max_length, too_long, keep_ends)
        self._cannot(
            f"cut lines in {self.encoding}: iterate over it, or over the lines of its buffer"
        )


@hinted
class TextWriter(WriteOnly):
    """Text into a child: its stdin.

    Encodes what it is given and writes it at once: `buffer` is the binary stream.
    Newlines are not translated.
    """

    __slots__ = ("_encoder", "_one", "buffer", "encoding", "errors", "__weakref__")

    mode = "w"
    newlines = None
    line_buffering = False
    write_through = True

    def __init__(self, buffer: Writer, encoding: str, errors: str) -> None:
        import threading

        self.buffer = buffer
        self.encoding = encoding
        # Replacing what the child is told would be a silent loss.
        self.errors = "strict" if errors == "replace" else errors
        # The encoder keeps a state: a byte order mark comes once.
        self._encoder = codecs.getincrementalencoder(encoding)(self.errors)
        self._one = threading.RLock()

    @property
    def label(self) -> str:
        """The stream in words."""
        return self.buffer.label

    def _alive(self) -> None:
        self.buffer._alive()

    def write(self, text: str, /) -> int:
        """Writes all of it. How many characters. Raises as that of `buffer`."""
        if not isinstance(text, str):
            raise bad_type("text", text, "pass a str; bytes go into `buffer`")
        self.buffer._alive()
        with self._one:
            self.buffer.write(self._encode(text))
        return len(text)

    def _encode(self, text: str) -> bytes:
        return self._encoder.encode(text)

    def writelines(self, lines: Iterable[str], /) -> None:
        """Writes each."""
        for line in items("lines", lines, "pass a list of str"):
            self.write(line)

    def fileno(self) -> int:
        """The descriptor of `buffer`, to be handed on."""
        return self.buffer.fileno()

    def readiness_fd(self) -> int:
        """The descriptor of `buffer` for event loops."""
        return self.buffer.readiness_fd()

    def close(self, wait: bool = False) -> None:
        """Closes it and `buffer`: the child comes to the end of its input."""
        self.buffer.close(wait)

    @property
    def closed(self) -> bool:
        """True once it is closed."""
        return self.buffer.closed


io.TextIOBase.register(TextReader)
io.TextIOBase.register(TextWriter)


def _size(size: Any) -> int:
    return -1 if size is None else _core.checked_size(size)


def text_reader(buffer: Reader, encoding: str, errors: str) -> TextReader:
    """The text stream over `buffer`."""
    name = codecs.lookup(encoding).name
    simple = name in ("utf-8", "ascii", "latin-1", "iso8859-1") or _is_one_byte(name)
    if simple and errors in _ERRORS:
        return TextReader(buffer, name, errors)
    return _CodecReader(buffer, encoding, errors)


def _is_one_byte(name: str) -> bool:
    """True if each byte is one character, and the first 128 are those of ASCII."""
    if not name.startswith(("cp125", "iso8859-", "koi8")):
        return False
    first = bytes(range(128))
    return first.decode(name) == first.decode("ascii")
