"""Whether a file's descriptor has what the file itself reads or writes."""

from __future__ import annotations

import io

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

#: Those that need not be imported. The `fileno()` of the first two sees to it that nothing is
#: missing behind the descriptor; the descriptor of a connection with TLS has what is encrypted.
_BELOW_BY_NAME: Final = {
    "procwright._stream.PipeFile": "",
    "tempfile.SpooledTemporaryFile": "",
    "socket.SocketIO": "_sock",
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
            # A socket, which is nothing but its descriptor.
            return True
        below = _below(type(file), how)
        if not below:
            return below is not None
        file = getattr(file, below, None)


def has_read_ahead(file: Any) -> bool:
    """Whether a plain file has read more than it has given, or has moved within that.

    Its place is then another than that of its descriptor. Of a pipe nobody can tell.
    """
    file = behind(file, "read")
    raw = getattr(getattr(file, "buffer", file), "raw", None)
    if not isinstance(raw, io.FileIO) or not raw.seekable():
        return False
    try:
        return bool(file.tell() != raw.tell())
    except OSError:
        # A text file that is iterated over does not tell.
        return True


def as_it_comes(file: Any) -> Callable[[int], bytes | str | None]:
    """Reads from a file what has come: `read` of one with a buffer waits until there is as much as
    it is asked for, so that a program saw nothing of a source that goes on."""
    if isinstance(file, io.TextIOBase) and not isinstance(file, io.StringIO):
        # How much it has decoded it does not tell, so that a line is the least that can be asked
        # for. Reading what is underneath would lose what it has decoded, and its newlines.
        readline: Callable[[int], str] = file.readline
        return readline
    read: Callable[[int], bytes | str | None] = file.read
    # That of the base class raises.
    if getattr(type(file), "read1", None) is io.BufferedIOBase.read1:
        return read
    read1: Callable[[int], bytes | None] | None = getattr(file, "read1", None)
    if read1 is None:
        return read
    # Of a file that does not block `read1` gives nothing as it does at the end. `read` knows.
    return lambda size: read1(size) or read(size)


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


def _below(made: type, how: str) -> str | None:
    """The attribute with what a class passes on as it is, empty for its descriptor, or None."""
    for base in made.__mro__:
        name = f"{base.__module__}.{base.__qualname__}"
        if name in _BELOW_BY_NAME:
            return _BELOW_BY_NAME[name]
        if base in _BELOW:
            is_own = getattr(made, how, None) is not getattr(base, how, None)
            return None if is_own else _BELOW[base]
    return None
