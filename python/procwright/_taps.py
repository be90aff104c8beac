"""Callbacks of a run's output, called on threads of the core."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._types import Tap


def line_taps(
    decoding: tuple[str, str] | None,
    longest: tuple[int | None, bool],
    captured: list[int],
    both: Callable[[Any], object] | None,
    stdout: Callable[[Any], object] | None,
    stderr: Callable[[Any], object] | None,
) -> list[Tap]:
    taps: list[Tap] = []
    if both is not None:
        both = serialised(both)
        taps += [(stream, *_line_tap(both, decoding, longest)) for stream in captured]
    for stream, callback in ((1, stdout), (2, stderr)):
        if callback is not None:
            taps.append((stream, *_line_tap(callback, decoding, longest)))
    return taps


def _line_tap(
    callback: Callable[[Any], object],
    decoding: tuple[str, str] | None,
    longest: tuple[int | None, bool],
) -> tuple[bool, Callable[[Any], object]]:
    if decoding is None:
        return True, callback
    encoding, errors = decoding
    if "\n".encode(encoding) == b"\n":
        return True, _line_decoder(callback, encoding, errors, longest[0])
    # Lines can only be found in the text if a newline is not one byte.
    return False, _LineDecoder(callback, encoding, errors, *longest)


def _line_decoder(
    callback: Callable[[str], object], encoding: str, errors: str, max_length: int | None
) -> Callable[[bytes], object]:
    import codecs

    decoder = codecs.getincrementaldecoder(encoding)(errors)

    def call(line: bytes) -> object:
        is_piece = len(line) == max_length and not line.endswith(b"\n")
        # A character in which a piece of a line ends is whole in the next.
        text = decoder.decode(line, not is_piece)
        return callback(text) if text else None

    return call


class _LineDecoder:
    """Takes chunks of bytes and calls back with lines of text."""

    __slots__ = ("_callback", "_decoder", "_fails", "_longest", "_max_length", "_partial")

    def __init__(
        self,
        callback: Callable[[str], object],
        encoding: str,
        errors: str,
        max_length: int | None,
        too_long_fails: bool,
    ) -> None:
        import codecs

        self._callback = callback
        self._fails = too_long_fails
        self._max_length = max_length
        # Characters that have at most as many bytes, but for rare ones of two units.
        unit = len("\n\n".encode(encoding)) - len("\n".encode(encoding))
        self._longest = None if max_length is None else max(max_length // unit, 1)
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)
        self._partial = ""

    def __call__(self, chunk: bytes | None) -> None:
        text = self._partial + self._decoder.decode(chunk or b"", chunk is None)
        *lines, self._partial = text.split("\n")
        for line in lines:
            self._call(line + "\n")
        longest = self._longest
        if longest is not None and len(self._partial) > longest:
            whole = len(self._partial) // longest * longest
            # The rest, which may get its newline, is never empty.
            whole -= 0 if whole < len(self._partial) else longest
            begun, self._partial = self._partial[:whole], self._partial[whole:]
            self._call(begun)
        if chunk is None and self._partial:
            self._call(self._partial)

    def _call(self, line: str) -> None:
        longest = self._longest
        if longest is None or len(line) <= longest:
            self._callback(line)
            return
        if self._fails:
            from ._stream_errors import LineTooLong

            assert self._max_length is not None
            raise LineTooLong("the output", self._max_length)
        for begun in range(0, len(line), longest):
            self._callback(line[begun : begun + longest])


def serialised(callback: Callable[[Any], object]) -> Callable[[Any], object]:
    """Makes a callback that two threads may call, and that is never called twice at once."""
    import _thread

    lock = _thread.allocate_lock()

    def call(argument: Any) -> object:
        with lock:
            return callback(argument)

    return call
