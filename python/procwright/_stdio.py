"""Standard streams: what a program reads and where it writes, a terminal, and encodings."""

from __future__ import annotations

import os

from ._arguments import codec, data, encoded, is_async, number, refuse_closed
from ._invalid import bad_type, bad_value
from ._plain_file import as_it_comes, behind, is_in_place, is_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Final, TypeGuard

#: A pipe. `run` captures stdout and stderr with it, and feeds stdin from `input`.
PIPE: Final = -1
#: The place where stdout goes, for stderr: `2>&1`.
STDOUT: Final = -2
#: Nothing to read, nowhere to write.
DEVNULL: Final = -3
#: The caller's own.
INHERIT: Final = -4
#: Another name for `PIPE`: the output goes into the result.
CAPTURE: Final = -1

_CONSTANTS = {PIPE: "PIPE", STDOUT: "STDOUT", DEVNULL: "DEVNULL", INHERIT: "INHERIT"}
_STDIN = (
    "pass a file, a descriptor, a path object, an iterable of bytes, an object with read(), "
    "DEVNULL or INHERIT, or the data itself as input=..."
)
_QUEUE = "pass iter(queue.get, None), which ends where None is put"
_SINK = "pass CAPTURE, INHERIT, DEVNULL, a path, or a file or descriptor of the system's"

#: Names of places where others have words: a file of that name is rarely meant.
_WORDS = {
    "capture": "CAPTURE",
    "pipe": "PIPE",
    "inherit": "INHERIT",
    "null": "DEVNULL",
    "devnull": "DEVNULL",
    "merged": "stderr=STDOUT",
}

_TWO_PLACES = (
    "what is captured goes to a file as well with run(..., keep_full=path), and is shown with tee"
)

#: Bytes asked of a `read()` at once.
_CHUNK = 64 * 1024


def text_decoding(text: bool, encoding: str | None, errors: str | None) -> tuple[str, str] | None:
    """Encoding and error handler of the streams, None for bytes."""
    if not text and encoding is None and errors is None:
        return None
    if encoding is None and errors is None:
        return "utf-8", "replace"
    return codec(encoding, errors)


def captures(sink: Any) -> bool:
    """True if output that goes to `sink` comes to this process."""
    return isinstance(sink, int) and sink == PIPE


def named(target: Any) -> Any:
    """The constant that the caller wrote, not its number, for an error."""
    is_number = isinstance(target, int) and not isinstance(target, bool)
    return _Constant(_CONSTANTS[target]) if is_number and target in _CONSTANTS else target


class _Constant:
    """The name of a constant, which is shown without quotes."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


_AWAITED = (
    "it has to be awaited, and is read on a thread: child = aio.spawn(..., stdin=PIPE), and "
    "await child.stdin.send(piece) for each piece"
)


_DATA = (
    "pass bytes, or a str with text=True; an iterable, a file or a pathlib.Path goes into stdin="
)

_RESULT = "pass what the program wrote: input=result.stdout"


def _is_result(value: Any) -> bool:
    """Whether it is the result of a run or a pipeline."""
    return hasattr(type(value), "stdout_bytes")


def data_source(input: Any, decoding: tuple[str, str] | None) -> tuple[str, object]:
    """The parameter `input` for the core."""
    if isinstance(input, str):
        if decoding is None:
            raise bad_type("input", input, "pass text=True with a str, or bytes")
        return "bytes", _encode(input, decoding)
    return "bytes", bytes(data("input", input, _RESULT if _is_result(input) else _DATA))


def source(stdin: Any, decoding: tuple[str, str] | None) -> tuple[str, object]:
    """The parameter `stdin` for the core: a word, and what belongs to it."""
    if stdin is None:
        return "null", None
    if isinstance(stdin, bool) or stdin == STDOUT:
        raise (bad_type if isinstance(stdin, bool) else bad_value)("stdin", named(stdin), _STDIN)
    if isinstance(stdin, int):
        if stdin == PIPE:
            return "bytes", b""
        if stdin == DEVNULL:
            return "null", None
        if stdin == INHERIT:
            return "inherit", None
        return _descriptor("stdin", stdin)
    if isinstance(stdin, (str, bytes, bytearray, memoryview)):
        hint = "pass the data itself as input=..., or a file's name as stdin=pathlib.Path(...)"
        raise bad_type("stdin", stdin, hint)
    if hasattr(stdin, "__fspath__"):
        return "file", encoded("stdin", stdin)
    if hasattr(type(stdin), "_procwright_stream"):
        # That of an event loop is over a synchronous one.
        stdin = stdin._procwright_stream
    refuse_closed("stdin", stdin)
    fd = _fileno("stdin", stdin)
    if fd is not None:
        fd = descriptor("stdin", fd)
        if is_plain(stdin, "read") and is_in_place(stdin):
            return "fd", fd
    if _is_result(stdin):
        raise bad_type("stdin", stdin, _RESULT)
    if hasattr(stdin, "pid") and hasattr(stdin, "stdout"):
        raise bad_type("stdin", stdin, "pass what it writes: stdin=child.stdout")
    if hasattr(stdin, "__aiter__") or is_async(getattr(stdin, "read", None)):
        raise bad_type("stdin", stdin, _AWAITED)
    if hasattr(stdin, "keys"):
        # Its keys would be what is read.
        hint = "it is a mapping: pass a file's name as stdin=pathlib.Path(...), or input=..."
        raise bad_type("stdin", stdin, hint)
    if hasattr(stdin, "_hand_on"):
        return "iterator", _HandedOn(stdin, decoding).__next__
    if hasattr(stdin, "read"):
        return "iterator", _chunks(as_it_comes(stdin), decoding).__next__
    if hasattr(stdin, "__iter__") or hasattr(stdin, "__next__"):
        pieces = iter(stdin)
        if decoding is not None:
            pieces = _encoded(pieces, decoding)
        return "iterator", pieces.__next__
    # As queue.Queue and that of multiprocessing.
    if hasattr(stdin, "get") and hasattr(stdin, "put"):
        raise bad_type("stdin", stdin, _AWAITED if is_async(stdin.get) else _QUEUE)
    raise bad_type("stdin", stdin, _STDIN)


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
        raise bad_type(name, target, _SINK)
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
    if isinstance(target, str) and target in _WORDS:
        hint = f"pass {_WORDS[target]}, or pathlib.Path({target!r}) for a file of that name"
        raise bad_value(name, target, hint)
    if isinstance(target, (str, bytes)) or hasattr(target, "__fspath__"):
        _refuse_redirection(name, target)
        return "file", encoded(name, target)
    if isinstance(target, (list, tuple)):
        raise bad_type(name, target, f"pass one of them: {_TWO_PLACES}")
    refuse_closed(name, target)
    fd = _fileno(name, target)
    if fd is None:
        hint = _SINK
        if hasattr(target, "write"):
            hint += f"; an object that is no file of the system's goes into tee={{{name!r}: it}}"
        elif callable(target):
            hint += f"; on_{name}_line={_named(target)} is called with each line"
        elif hasattr(target, "handlers"):
            hint += f"; on_{name}_line=lambda line: log.info(line) hands lines to a logger"
        raise bad_type(name, target, hint)
    fd = descriptor(name, fd)
    if not is_plain(target, "write"):
        hint = (
            "the program would write past it, to the descriptor below: pass "
            f"tee={{{name!r}: it}}, for which {name} has to be captured, or its fileno() where "
            "that is what is meant"
        )
        raise bad_type(name, target, hint)
    flush = getattr(behind(target, "flush"), "flush", None)
    if flush is not None:
        # Our earlier writes have to stand before what the program writes.
        flush()
    return "fd", fd


def _named(function: Any) -> str:
    return getattr(function, "__name__", "function")


def _refuse_redirection(name: str, target: Any) -> None:
    """Refuses what is a shell's redirection, and would be the name of a file here."""
    text = target.decode(errors="replace") if isinstance(target, bytes) else target
    if not isinstance(text, str) or not text.startswith(">"):
        return
    path = text.lstrip(">").strip()
    does = f"{name}={path!r}"
    if text.startswith(">>"):
        does = f"{name}=open({path!r}, 'ab')"
    hint = (
        f"it is a path, and no line of a shell: pass {does}; pathlib.Path({text!r}) if that is "
        "its name"
    )
    raise bad_value(name, target, hint)


def refuse_same_file(given: Mapping[str, Any]) -> None:
    """Refuses a file that two parameters name: each would open it, and the one overwrites what
    the other has written."""
    seen: dict[bytes, str] = {}
    for name, target in _files(given):
        path = encoded(name, target)
        if b"\0" in path:
            # The core refuses it.
            continue
        path = os.path.realpath(path)
        if os.path.exists(path) and not os.path.isfile(path):
            # Such as /dev/null or a terminal, which nothing overwrites.
            continue
        if path in seen:
            hint = "pass stderr=STDOUT" if name == "stderr" else "pass another file"
            raise bad_value(name, target, f"{seen[path]} names that file too: {hint}")
        seen[path] = name


def _files(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The files that are written, by the names of their parameters."""
    for name in ("stdout", "stderr", "keep_full"):
        if is_path(given.get(name)):
            yield name, given[name]
    tee = given.get("tee")
    if is_mapping(tee):
        yield from ((f"tee[{name!r}]", one) for name, one in tee.items() if is_path(one))
    elif is_path(tee):
        yield "tee", tee


def is_path(target: Any) -> bool:
    return isinstance(target, (str, bytes)) or hasattr(target, "__fspath__")


def is_mapping(target: object) -> TypeGuard[Mapping[Any, Any]]:
    return hasattr(target, "items") and hasattr(target, "keys")


def _encode(text: str, decoding: tuple[str, str]) -> bytes:
    encoding, errors = decoding
    # Replacing what the program says is a matter of display; replacing what it is told
    # would be a silent loss.
    return text.encode(encoding, "strict" if errors == "replace" else errors)


def _encoded(pieces: Iterator[Any], decoding: tuple[str, str]) -> Iterator[Any]:
    for piece in pieces:
        yield _encode(piece, decoding) if isinstance(piece, str) else piece


def _chunks(
    read: Callable[[int], bytes | str | None], decoding: tuple[str, str] | None
) -> Iterator[bytes]:
    while True:
        piece = read(_CHUNK)
        if piece is None:
            raise BlockingIOError("stdin: read() has nothing now: its file does not block")
        if not piece:
            return
        # A text file gives text, asked for or not.
        yield _encode(piece, decoding or ("utf-8", "strict")) if isinstance(piece, str) else piece


class _HandedOn:
    """The pieces of another child's output, which the program reads in our place.

    Once the core reads no more, since the program has ended or has closed its stdin, that output
    is closed, so that the other program is told by SIGPIPE, as in a pipeline of the shell's.
    """

    __slots__ = ("_has_begun", "_pieces", "_stream")

    def __init__(self, stream: Any, decoding: tuple[str, str] | None) -> None:
        # What has come goes on at once: read() would wait until there is as much as it is asked
        # for. Of text it is a line, or what there is of one.
        is_text = not hasattr(stream, "readinto")
        self._pieces = _chunks((lambda _: stream.read1()) if is_text else stream.read1, decoding)
        self._stream = stream
        self._has_begun = False
        stream._hand_on()

    def __next__(self) -> bytes:
        self._has_begun = True
        return next(self._pieces)

    def __del__(self) -> None:
        # A program that was not started has taken nothing.
        self._stream._hand_back(self._has_begun)


def _fileno(name: str, file: Any) -> int | None:
    fileno = getattr(file, "fileno", None)
    if fileno is None:
        return None
    try:
        fd: int = fileno()
    except (OSError, AttributeError):
        # io.UnsupportedOperation: a file in memory. A buffer has the method also where what it
        # reads from has not, as for a member of a tarfile.
        return None
    if isinstance(fd, int) and fd < 0:
        # A socket that was closed.
        raise bad_value(name, file, "it is closed, pass one that is open")
    return fd


def _descriptor(name: str, value: Any) -> tuple[str, object]:
    return "fd", descriptor(name, value)


def descriptor(name: str, value: Any) -> int:
    """The number of a descriptor."""
    return number(name, value, 0, 2**31 - 1, "pass the number of an open descriptor, 0 or more")


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
    fits = isinstance(pty, (tuple, list, os.terminal_size))
    raise (bad_value if fits else bad_type)(
        "pty", pty, "pass True, or (rows, columns), from 1 to 65535 each"
    )


def is_size(*numbers: Any) -> bool:
    """True if a terminal can have so many rows or columns."""
    return all(isinstance(n, int) and n is not True and 0 < n < 1 << 16 for n in numbers)


def _own_size() -> tuple[int, int] | None:
    """Rows and columns of the caller's own terminal, if there is one that knows them."""
    for fd in (1, 0):
        try:
            columns, rows = os.get_terminal_size(fd)
        except OSError:
            continue
        if rows and columns:
            return rows, columns
    return None
