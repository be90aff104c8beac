"""What `run()` and `spawn()` share: checks what they are given, and translates it for the core."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, Final, NoReturn

    from . import _core
    from ._types import Args, Readable, StrOrBytesPath

#: For stdout and stderr: into the result. For stdin: what `input` has.
PIPE: Final = -1
#: For stderr: wherever stdout goes, like `2>&1`.
STDOUT: Final = -2
#: Nothing to read, nowhere to write.
DEVNULL: Final = -3
#: The caller's own.
INHERIT: Final = -4
#: Into the result; another name for `PIPE`.
CAPTURE: Final = PIPE

_CHUNK = 64 * 1024


def _invalid(text: str) -> ValueError:
    from ._errors import InvalidValue

    return InvalidValue(text)


def _setup(
    caller: str,
    args: Args,
    shell: bool,
    env: Mapping[Any, Any] | None,
    extra_env: Mapping[Any, Any] | None,
    cwd: StrOrBytesPath | None,
    user: str | int | None,
    group: str | int | None,
    extra_groups: Iterable[str | int] | None,
    umask: int | None,
    rlimits: Mapping[str, int | tuple[int, int]] | None,
    nice: int | None,
    process_group: int | None,
    start_new_session: bool,
    die_with_parent: bool | str | int,
    pass_fds: Iterable[int],
    stop: _core.Stop | None,
    pty: bool | tuple[int, int],
    liveness: bool,
) -> _core.RawSetup:
    """All but the streams."""
    return {
        "argv": _argv(caller, args, shell),
        "env": None if env is None else _env("env", env),
        "extra_env": _extra_env(extra_env),
        "cwd": None if cwd is None else os.fsencode(cwd),
        "user": user,
        "group": group,
        "extra_groups": None if extra_groups is None else list(extra_groups),
        "umask": None if umask == -1 else umask,
        "rlimits": _rlimits(rlimits),
        "nice": nice,
        "process_group": None if process_group == -1 else process_group,
        "new_session": bool(start_new_session),
        "pty": _pty(pty),
        "die_with_parent": _death_signal(die_with_parent),
        "pass_fds": list(pass_fds),
        "liveness": bool(liveness),
        "stop": stop,
    }


def _argv(caller: str, args: Any, shell: bool) -> list[bytes]:
    one = isinstance(args, (str, bytes)) or hasattr(args, "__fspath__")
    if shell:
        # As subprocess: the items behind the line are the shell's $0, $1, ...
        words = [args] if one else list(args)
        return [b"/bin/sh", b"-c", *_words(words)]
    if one:
        _refuse_line(caller, args)
    return _words(args)


def _words(args: Any) -> list[bytes]:
    words = []
    for index, word in enumerate(args):
        try:
            words.append(os.fsencode(word))
        except TypeError:
            raise TypeError(
                f"args[{index}] is {word!r}, of type {type(word).__name__}: "
                "every argument is a str, bytes or a path"
            ) from None
    return words


def _refuse_line(caller: str, args: Any) -> NoReturn:
    import shlex

    line = os.fsdecode(args)
    try:
        words = shlex.split(line)
    except ValueError:
        words = [line]
    raise TypeError(
        f"{caller}({args!r}): args is one string. Pass a list, {caller}({words!r}), "
        f"or say that it is a line for the shell, {caller}({args!r}, shell=True)"
    )


def _decoding(text: bool, encoding: str | None, errors: str | None) -> tuple[str, str] | None:
    if not text and encoding is None and errors is None:
        return None
    if encoding is not None or errors is not None:
        # Found wrong now and not when everything has been run.
        import codecs

        codecs.lookup(encoding or "utf-8")
        codecs.lookup_error(errors or "replace")
    return encoding or "utf-8", errors or "replace"


def _input(data: Any, decoding: tuple[str, str] | None) -> tuple[str, object]:
    if isinstance(data, str):
        if decoding is None:
            raise TypeError("input is a str: pass text=True, or bytes")
        return "bytes", _encode(data, decoding)
    return "bytes", bytes(memoryview(data)) if not isinstance(data, bytes) else data


def _encode(text: str, decoding: tuple[str, str]) -> bytes:
    encoding, errors = decoding
    # To replace what the program says is a matter of display; to replace what it
    # is told would be a silent loss.
    return text.encode(encoding, "strict" if errors == "replace" else errors)


def _stdin(source: Any, decoding: tuple[str, str] | None) -> tuple[str, object]:
    if source is None:
        return "null", None
    if isinstance(source, bool) or source == STDOUT:
        raise _invalid(f"stdin is {source!r}: pass a file, an iterable of bytes, or input=")
    if isinstance(source, int):
        if source == PIPE:
            return "bytes", b""
        if source == DEVNULL:
            return "null", None
        if source == INHERIT:
            return "inherit", None
        return _descriptor("stdin", source)
    if isinstance(source, (str, bytes, bytearray, memoryview)):
        raise TypeError(
            f"stdin is {type(source).__name__}: pass the data itself as input=..., "
            "or a file's name as stdin=pathlib.Path(...)"
        )
    if hasattr(source, "__fspath__"):
        return "file", os.fsencode(source)
    number = _fileno(source)
    if number is not None:
        return _descriptor("stdin", number)
    if hasattr(source, "read"):
        return "iterator", _pieces(source, decoding).__next__
    if hasattr(source, "__iter__") or hasattr(source, "__next__"):
        pieces = iter(source)
        if decoding is not None:
            pieces = _encoded(pieces, decoding)
        return "iterator", pieces.__next__
    raise TypeError(
        f"stdin is {source!r}: pass a file, a descriptor, a path, an iterable of bytes "
        "or an object with read()"
    )


def _pieces(source: Readable, decoding: tuple[str, str] | None) -> Iterator[bytes]:
    while True:
        piece = source.read(_CHUNK)
        if piece is None:
            raise BlockingIOError("stdin: read() has nothing now: its file does not block")
        if not piece:
            return
        # What a text file gives is text, asked for or not.
        yield _encode(piece, decoding or ("utf-8", "strict")) if isinstance(piece, str) else piece


def _encoded(pieces: Iterator[Any], decoding: tuple[str, str]) -> Iterator[Any]:
    for piece in pieces:
        yield _encode(piece, decoding) if isinstance(piece, str) else piece


def _captures(sink: Any) -> bool:
    return isinstance(sink, int) and sink == PIPE


def _sink(name: str, target: Any) -> tuple[str, object]:
    if target is None:
        return "inherit", None
    if isinstance(target, bool):
        raise _invalid(f"{name} is {target!r}: pass CAPTURE, DEVNULL, a path or a file")
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
        # What we wrote before stands before what the program writes.
        flush()
    return _descriptor(name, number)


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
        raise _invalid(f"{name} is {number}: a descriptor is not negative")
    return "fd", number


def _env(name: str, env: Mapping[Any, Any]) -> list[tuple[bytes, bytes]]:
    try:
        return [(os.fsencode(key), os.fsencode(value)) for key, value in env.items()]
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def _extra_env(env: Mapping[Any, Any] | None) -> list[tuple[bytes, bytes | None]]:
    if env is None:
        return []
    unset = [(os.fsencode(key), None) for key, value in env.items() if value is None]
    set_ = {key: value for key, value in env.items() if value is not None}
    return [*unset, *_env("extra_env", set_)]


def _rlimits(
    rlimits: Mapping[str, int | tuple[int, int]] | None,
) -> list[tuple[str, int, int]]:
    limits = []
    for name, value in (rlimits or {}).items():
        soft, hard = (value, value) if isinstance(value, int) else value
        limits.append((name, _rlimit(soft), _rlimit(hard)))
    return limits


def _rlimit(value: int) -> int:
    return 2**64 - 1 if value == -1 else value


def _pty(size: Any) -> tuple[int, int] | None:
    if size is False or size is None:
        return None
    if size is True:
        return _terminal_size() or (24, 80)
    try:
        # What os.get_terminal_size() gives has them the other way round.
        rows, columns = size[::-1] if isinstance(size, os.terminal_size) else size
        if _is_size(rows, columns):
            return rows, columns
    except (TypeError, ValueError):
        pass
    raise _invalid(f"pty is {size!r}: pass True, or (rows, columns)")


def _is_size(*numbers: Any) -> bool:
    return all(isinstance(n, int) and 0 < n < 1 << 16 for n in numbers)


def _terminal_size() -> tuple[int, int] | None:
    """That of the caller's own terminal, if there is one that knows it."""
    for number in (1, 0):
        try:
            columns, rows = os.get_terminal_size(number)
        except OSError:
            continue
        if rows and columns:
            return rows, columns
    return None


def _named(target: Any) -> str:
    """The constant that somebody has written, not its number."""
    names = {DEVNULL: "DEVNULL", INHERIT: "INHERIT"}
    return names.get(target, repr(target)) if isinstance(target, int) else repr(target)


def _check_pty(pty: Any, stdout: Any, stderr: Any, merged: bool, process_group: int | None) -> None:
    """What cannot be had on a terminal, in the words of this language."""
    if pty is False or pty is None:
        return
    if not _captures(stdout):
        raise _invalid(
            f"stdout is {_named(stdout)}, and with pty it is the terminal: leave it out, "
            "or pass CAPTURE"
        )
    if stderr is None or (isinstance(stderr, int) and stderr == INHERIT):
        raise _invalid(
            f"stderr is {_named(stderr)}, and with pty it is the terminal: leave it out, and it "
            "comes with stdout; or send it to a file"
        )
    if merged:
        raise _invalid(
            "merged=True is for two streams, and a pty is one: leave it out, stdout has all "
            "of it in the order in which it was written"
        )
    if process_group not in (None, -1):
        raise _invalid(
            f"process_group is {process_group!r}: a program on a pty leads a session and a "
            "group of its own, leave it out"
        )


def _death_signal(value: bool | str | int) -> str | int | None:
    if isinstance(value, bool):
        return "KILL" if value else None
    return value


def _seconds(value: float | None) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int):
        return value
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else 0.0
