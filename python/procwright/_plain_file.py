"""Whether a file's descriptor has what the file itself reads or writes."""

from __future__ import annotations

import io
import os

from ._arguments import is_async

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final, Literal

#: Classes that pass bytes on as they are, and the attributes with what they have them from. Of a
#: TextIOWrapper the encoding does not matter: programs read and write what is encoded.
_BELOW: Final = {
    io.FileIO: "",
    io.BufferedReader: "raw",
    io.BufferedWriter: "raw",
    io.BufferedRandom: "raw",
    io.TextIOWrapper: "buffer",
}

#: Its `fileno()` has it write to a file what it had in memory.
_SPOOLED: Final = "tempfile.SpooledTemporaryFile"

#: Those that need not be imported. The `fileno()` of the first two sees to it that nothing is
#: missing behind the descriptor; the descriptor of a connection with TLS has what is encrypted.
_BELOW_BY_NAME: Final = {
    "procwright._stream.PipeFile": "",
    _SPOOLED: "_file",
    "socket.SocketIO": "_sock",
    # `wfile` of a socketserver.StreamRequestHandler.
    "socketserver._SocketWriter": "_sock",
}

#: The methods by which a file is read or written, also by the one above it. A class that has its
#: own of one of these changes what it passes on, though it is derived from a known one.
_BY: Final = {
    "read": ("read", "readinto", "readall", "read1"),
    "write": ("write",),
}


def is_plain(file: Any, how: Literal["read", "write"]) -> bool:
    """Whether a program that has the descriptor of `file` reads, or writes, what `file` would.

    A `GzipFile` has the descriptor of the compressed file, an `HTTPResponse` that of its
    connection. So a class that is not known is taken to change what it passes on.
    """
    while True:
        file = behind(file, how)
        if file is None:
            return False
        if not hasattr(file, how):
            # A socket is nothing but its descriptor. What gives lines reads them itself.
            return how == "write" or not hasattr(file, "__iter__")
        below = _below(type(file), how)
        if not below:
            return below is not None
        file = getattr(file, below, None)


def is_in_place(file: Any) -> bool:
    """Whether the descriptor of a plain file stands where the file does: one that has read ahead is
    moved back to there. Of a pipe nobody can tell. What it was told to write is written before.
    """
    file = _unspooled(behind(file, "read"))
    if isinstance(file, io.IOBase) and file.writable():
        # `read1` of Python's BufferedRandom would put what waits to be written elsewhere.
        file.flush()
    raw = getattr(getattr(file, "buffer", file), "raw", None)
    if not isinstance(raw, io.FileIO) or not raw.seekable():
        return True
    try:
        place = file.tell()
        if place != raw.tell():
            # What was read ahead is dropped at the end alone.
            file.seek(0, os.SEEK_END)
            file.seek(place)
    except OSError:
        # A text file that is iterated over does not tell.
        return False
    # That of a text file may be one within what it has decoded.
    return bool(place == raw.tell())


def as_it_comes(file: Any) -> Callable[[int], bytes | str | None]:
    """Reads from a file what has come: `read` of one with a buffer waits until there is as much as
    it is asked for, so that a program saw nothing of a source that goes on."""
    file = _unspooled(file)
    made = type(file)
    is_text = isinstance(file, io.TextIOBase) and not isinstance(file, io.StringIO)
    if is_text and not _is_changed(made, "read", "readline"):
        # How much it has decoded it does not tell, so that a line is the least that can be asked
        # for. Reading what is underneath would lose what it has decoded, and its newlines.
        readline: Callable[[int], str] = file.readline
        return readline
    read: Callable[[int], bytes | str | None] = file.read
    # That of the base class raises. A class that reads as it likes need not do so by `read1`.
    if getattr(made, "read1", None) is io.BufferedIOBase.read1 or _is_changed(
        made, "read", "read1"
    ):
        return read
    read1: Callable[[int], bytes | None] | None = getattr(file, "read1", None)
    if read1 is None:
        return read
    # Of a file that does not block `read1` gives nothing as it does at the end. `read` knows.
    return lambda size: read1(size) or read(size)


def _unspooled(file: Any) -> Any:
    """The file of a spooled one whose descriptor was asked for: it tells of itself, and may have
    methods of bytes for text."""
    is_spooled = any(_name(base) == _SPOOLED for base in type(file).__mro__)
    return file._file if is_spooled else file


def _name(made: type) -> str:
    return f"{made.__module__}.{made.__qualname__}"


def behind(file: Any, how: str) -> Any:
    """The file whose own method it is, behind proxies; None where that is not known.

    A named temporary file has its methods from another, and so have the files of anyio and trio.
    """
    while True:
        method = getattr(file, how, None)
        if method is None:
            return file
        owner = getattr(file, "wrapped", None) if is_async(method) else _owner(method)
        if owner is None or owner is file:
            return owner
        file = owner


def _owner(method: Any) -> Any:
    """What a method is bound to, or the one that it decorates."""
    if not hasattr(method, "__self__"):
        method = getattr(method, "__wrapped__", None)
    return getattr(method, "__self__", None)


def _is_changed(made: type, method: str, like: str) -> bool:
    """Whether a class has a method of its own behind which another is that of a base class."""
    for base in made.__mro__:
        if like in vars(base):
            return False
        if method in vars(base):
            return hasattr(made, like)
    return False


def _below(made: type, how: str) -> str | None:
    """The attribute with what a class passes on as it is, empty for its descriptor, or None."""
    for base in made.__mro__:
        if _name(base) in _BELOW_BY_NAME:
            return _BELOW_BY_NAME[_name(base)]
        if base in _BELOW:
            methods = _BY[how]
            is_own = any(
                getattr(made, one, None) is not getattr(base, one, None) for one in methods
            )
            return None if is_own else _BELOW[base]
    return None
