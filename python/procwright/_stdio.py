"""Standard streams: what a program reads and where it writes, a terminal, and encodings."""

from __future__ import annotations

import os

from ._invalid import InvalidValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final

    from ._types import Readable

#: A pipe. `run` captures stdout and stderr with it, and feeds stdin from `input`.
PIPE: Final = -1
#: The place where stdout goes, for stderr: `2>&1`.
STDOUT: Final = -2
#: Nothing to read, nowhere to write.
DEVNULL: Final = -3
#: The caller's own.
INHERIT: Final = -4
#: Another name for `PIPE`: the output goes into the result.
CAPTURE: Final = PIPE

#: Bytes asked of a `read()` at once.
_CHUNK = 64 * 1024


def text_decoding(text: bool, encoding: str | None, errors: str | None) -> tuple[str, str] | None:
    """Encoding and error handler of the streams, None for bytes."""
    if not text and encoding is None and errors is None:
        return None
    if encoding is not None or errors is not None:
        # Unknown names are refused here, and not when everything has been run.
        import codecs

        codecs.lookup(encoding or "utf-8")
        codecs.lookup_error(errors or "replace")
    return encoding or "utf-8", errors or "replace"


def captures(sink: Any) -> bool:
    """True if output that goes to `sink` comes to this process."""
    return isinstance(sink, int) and sink == PIPE


def named(target: Any) -> str:
    """The constant that the caller wrote, not its number."""
    names = {DEVNULL: "DEVNULL", INHERIT: "INHERIT"}
    return names.get(target, repr(target)) if isinstance(target, int) else repr(target)


def data_source(data: Any, decoding: tuple[str, str] | None) -> tuple[str, object]:
    """The parameter `input` for the core."""
    if isinstance(data, str):
        if decoding is None:
            raise TypeError("input is a str: pass text=True, or bytes")
        return "bytes", _encode(data, decoding)
    return "bytes", bytes(memoryview(data)) if not isinstance(data, bytes) else data


def source(stdin: Any, decoding: tuple[str, str] | None) -> tuple[str, object]:
    """The parameter `stdin` for the core: a word, and what belongs to it."""
    if stdin is None:
        return "null", None
    if isinstance(stdin, bool) or stdin == STDOUT:
        raise InvalidValue(f"stdin is {stdin!r}: pass a file, an iterable of bytes, or input=")
    if isinstance(stdin, int):
        if stdin == PIPE:
            return "bytes", b""
        if stdin == DEVNULL:
            return "null", None
        if stdin == INHERIT:
            return "inherit", None
        return _descriptor("stdin", stdin)
    if isinstance(stdin, (str, bytes, bytearray, memoryview)):
        raise TypeError(
            f"stdin is {type(stdin).__name__}: pass the data itself as input=..., "
            "or a file's name as stdin=pathlib.Path(...)"
        )
    if hasattr(stdin, "__fspath__"):
        return "file", os.fsencode(stdin)
    number = _fileno(stdin)
    if number is not None:
        return _descriptor("stdin", number)
    if hasattr(stdin, "read"):
        return "iterator", _chunks(stdin, decoding).__next__
    if hasattr(stdin, "__iter__") or hasattr(stdin, "__next__"):
        pieces = iter(stdin)
        if decoding is not None:
            pieces = _encoded(pieces, decoding)
        return "iterator", pieces.__next__
    raise TypeError(
        f"stdin is {stdin!r}: pass a file, a descriptor, a path, an iterable of bytes "
        "or an object with read()"
    )


def stdout_sink(target: Any) -> tuple[str, object]:
    """The parameter `stdout` for the core: a word, and what belongs to it."""
    return _sink("stdout", target)


def stderr_sink(target: Any) -> tuple[str, object]:
    """The parameter `stderr` for the core: a word, and what belongs to it."""
    return _sink("stderr", target)


def _sink(name: str, target: Any) -> tuple[str, object]:
    if target is None:
        return "inherit", None
    if isinstance(target, bool):
        raise InvalidValue(f"{name} is {target!r}: pass CAPTURE, DEVNULL, a path or a file")
    if isinstance(target, int):
        if target == PIPE:
            return "capture", None
        if target == STDOUT:
            return "merged", None
        if target == DEVNULL:
            return "null", None
        if target == INHERIT:
            return "inherit", None
        return _descriptor(name, target)
    if isinstance(target, (str, bytes)) or hasattr(target, "__fspath__"):
        return "file", os.fsencode(target)
    number = _fileno(target)
    if number is None:
        raise TypeError(
            f"{name} is {target!r}, which is no file of the system's: "
            f"pass tee={name!r}-like objects as tee=..., or take the data from the result"
        )
    flush = getattr(target, "flush", None)
    if flush is not None:
        # Our earlier writes have to stand before what the program writes.
        flush()
    return _descriptor(name, number)


def _encode(text: str, decoding: tuple[str, str]) -> bytes:
    encoding, errors = decoding
    # Replacing what the program says is a matter of display; replacing what it is told
    # would be a silent loss.
    return text.encode(encoding, "strict" if errors == "replace" else errors)


def _encoded(pieces: Iterator[Any], decoding: tuple[str, str]) -> Iterator[Any]:
    for piece in pieces:
        yield _encode(piece, decoding) if isinstance(piece, str) else piece


def _chunks(file: Readable, decoding: tuple[str, str] | None) -> Iterator[bytes]:
    while True:
        piece = file.read(_CHUNK)
        if piece is None:
            raise BlockingIOError("stdin: read() has nothing now: its file does not block")
        if not piece:
            return
        # A text file gives text, asked for or not.
        yield _encode(piece, decoding or ("utf-8", "strict")) if isinstance(piece, str) else piece


def _fileno(file: Any) -> int | None:
    fileno = getattr(file, "fileno", None)
    if fileno is None:
        return None
    try:
        number: int = fileno()
    except OSError:
        # io.UnsupportedOperation: a file in memory.
        return None
    return number


def _descriptor(name: str, number: int) -> tuple[str, object]:
    if number < 0:
        raise InvalidValue(f"{name} is {number}: a descriptor is not negative")
    return "fd", number


def terminal(pty: Any) -> tuple[int, int] | None:
    """The parameter `pty` for the core: rows and columns, None without a terminal."""
    if pty is False or pty is None:
        return None
    if pty is True:
        return _own_size() or (24, 80)
    try:
        # os.get_terminal_size() gives the columns first.
        rows, columns = pty[::-1] if isinstance(pty, os.terminal_size) else pty
        if is_size(rows, columns):
            return rows, columns
    except (TypeError, ValueError):
        pass
    raise InvalidValue(f"pty is {pty!r}: pass True, or (rows, columns)")


def is_size(*numbers: Any) -> bool:
    """True if a terminal can have so many rows or columns."""
    return all(isinstance(n, int) and 0 < n < 1 << 16 for n in numbers)


def _own_size() -> tuple[int, int] | None:
    """Rows and columns of the caller's own terminal, if there is one that knows them."""
    for number in (1, 0):
        try:
            columns, rows = os.get_terminal_size(number)
        except OSError:
            continue
        if rows and columns:
            return rows, columns
    return None
