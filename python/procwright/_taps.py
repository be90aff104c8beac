"""Callbacks and copies of a run's output, called on threads of the core."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._types import Tap


def line_taps(
    decoding: tuple[str, str] | None,
    captured: list[int],
    both: Callable[[Any], object] | None,
    stdout: Callable[[Any], object] | None,
    stderr: Callable[[Any], object] | None,
) -> list[Tap]:
    taps: list[Tap] = []
    if both is not None:
        both = _serialised(both)
        taps += [(stream, *_line_tap(both, decoding)) for stream in captured]
    for stream, callback in ((1, stdout), (2, stderr)):
        if callback is not None:
            taps.append((stream, *_line_tap(callback, decoding)))
    return taps


def _line_tap(
    callback: Callable[[Any], object], decoding: tuple[str, str] | None
) -> tuple[bool, Callable[[Any], object]]:
    if decoding is None:
        return True, callback
    encoding, errors = decoding
    if "\n".encode(encoding) == b"\n":
        return True, lambda line: callback(line.decode(encoding, errors))
    # Lines can only be found in the text if a newline is not one byte.
    return False, _LineDecoder(callback, encoding, errors)


class _LineDecoder:
    """Takes chunks of bytes and calls back with lines of text."""

    __slots__ = ("_callback", "_decoder", "_partial")

    def __init__(self, callback: Callable[[str], object], encoding: str, errors: str) -> None:
        import codecs

        self._callback = callback
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)
        self._partial = ""

    def __call__(self, chunk: bytes | None) -> None:
        text = self._partial + self._decoder.decode(chunk or b"", chunk is None)
        *lines, self._partial = text.split("\n")
        for line in lines:
            self._callback(line + "\n")
        if chunk is None and self._partial:
            self._callback(self._partial)


def _serialised(callback: Callable[[Any], object]) -> Callable[[Any], object]:
    """Makes a callback that two threads may call, and that is never called twice at once."""
    import _thread

    lock = _thread.allocate_lock()

    def call(argument: Any) -> object:
        with lock:
            return callback(argument)

    return call


def tee_taps(file: Any, captured: list[int], decoding: tuple[str, str] | None) -> list[Tap]:
    if not hasattr(file, "write"):
        raise TypeError(f"tee is {file!r}: pass True, or a file to write to")
    import io

    is_text = isinstance(file, io.TextIOBase) or hasattr(file, "encoding")
    write = _serialised(_text_writer(file) if is_text else _writer(file))
    taps: list[Tap] = []
    for stream in captured:
        tap: Callable[[Any], object] = _ChunkDecoder(write, decoding) if is_text else write
        taps.append((stream, False, tap))
    return taps


def _writer(file: Any) -> Callable[[bytes | None], None]:
    flush = getattr(file, "flush", None)

    def write(chunk: bytes | None) -> None:
        while chunk:
            written = file.write(chunk)
            if not isinstance(written, int) or written >= len(chunk):
                break
            # A file without a buffer writes what fits.
            chunk = chunk[written:]
        if flush is not None:
            flush()

    return write


def _text_writer(file: Any) -> Callable[[str], None]:
    flush = getattr(file, "flush", None)

    def write(text: str) -> None:
        if text:
            file.write(text)
        if flush is not None:
            flush()

    return write


class _ChunkDecoder:
    """Takes chunks of bytes and writes text."""

    __slots__ = ("_decoder", "_write")

    def __init__(self, write: Callable[[Any], object], decoding: tuple[str, str] | None) -> None:
        import codecs

        encoding, errors = decoding or ("utf-8", "replace")
        self._write = write
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)

    def __call__(self, chunk: bytes | None) -> None:
        self._write(self._decoder.decode(chunk or b"", chunk is None))
