"""`run()`: checks and translates what it is given, and hands it to the core."""

from __future__ import annotations

import os

from . import _core
from ._result import Event, Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, Final, Literal, NoReturn

    from ._types import Args, Data, Readable, Sink, Stdin, StrOrBytesPath, Writable

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


def run(
    args: Args,
    *,
    shell: bool = False,
    input: Data | str | None = None,
    stdin: Stdin = None,
    stdout: Sink = CAPTURE,
    stderr: Sink = CAPTURE,
    env: Mapping[Any, Any] | None = None,
    extra_env: Mapping[Any, Any] | None = None,
    cwd: StrOrBytesPath | None = None,
    user: str | int | None = None,
    group: str | int | None = None,
    extra_groups: Iterable[str | int] | None = None,
    umask: int | None = None,
    rlimits: Mapping[str, int | tuple[int, int]] | None = None,
    nice: int | None = None,
    process_group: int | None = None,
    start_new_session: bool = False,
    die_with_parent: bool | str | int = False,
    pass_fds: Iterable[int] = (),
    timeout: float | None = None,
    idle_timeout: float | None = None,
    stop: _core.Stop | None = None,
    until: Literal["eof", "exit"] = "eof",
    limit: int | _core.Limit | None = None,
    keep_full: StrOrBytesPath | None = None,
    merged: bool = False,
    tee: bool | Writable = False,
    on_line: Callable[[Any], object] | None = None,
    on_stdout_line: Callable[[Any], object] | None = None,
    on_stderr_line: Callable[[Any], object] | None = None,
    text: bool = False,
    encoding: str | None = None,
    errors: str | None = None,
    check: bool = False,
    on_timeout: Literal["raise", "return"] = "raise",
    cancel: _core.Cancel | None = None,
    on_event: Callable[[Event], object] | None = None,
) -> Result:
    """Runs a program, waits until the run is over, and returns all that came of it.

    The program reads nothing and both of its outputs are captured, unless said
    otherwise. No pipe can fill up and block it for good, every deadline holds,
    and a run that has to be stopped leaves no process behind: each that could
    not be stopped is named in `survivors`.

    args
        The program and its arguments. With `shell=True` a line for `/bin/sh`.
    input, stdin
        What the program reads. `input` is the data itself. `stdin` is a path
        object, a file or descriptor (which the program reads itself), an iterable
        of bytes or an object with `read()` (which are read on a thread of its
        own), INHERIT, or None or DEVNULL for nothing.
    stdout, stderr
        CAPTURE, INHERIT (or None), DEVNULL, a path, a file or descriptor (which
        the program writes itself); for stderr also STDOUT.
    env, extra_env
        The whole environment; what is set, or with None removed, on top of it.
    cwd, user, group, extra_groups, umask, nice, process_group, start_new_session, pass_fds
        As in `subprocess`, done without running Python in the child.
    rlimits
        Resource limits by their names in lower case, `{"nofile": 100}`; a pair is
        (soft, hard), -1 is no limit.
    die_with_parent
        The signal that the kernel sends the program when this process ends; True
        is SIGKILL.
    timeout, idle_timeout
        Seconds for the whole run; seconds without a byte of output. 0 or less has
        expired, infinity or None never does.
    stop
        How the run is ended by a timeout, a limit, `cancel` or Ctrl-C:
        `Stop("TERM", grace=5.0, scope="tree")`.
    until
        "eof": the run is over when every process that holds the program's pipes
        is gone; "exit": when the program itself has exited.
    limit, keep_full
        How many bytes of each stream are kept: a number or `Limit(n)` keeps the
        first and the last half, `Limit(n, "fail")` stops the run. `keep_full` is
        a file that gets everything (stderr in one with `.stderr` appended).
    merged
        Also record in which order the two streams were read.
    tee
        Show the output while it comes: on our own stdout and stderr, or in a file.
    on_line, on_stdout_line, on_stderr_line
        Called with each line and its end, on a thread of its own.
    text, encoding, errors
        `stdout` and `stderr` of the result are `str`: UTF-8 and "replace" if not
        said otherwise, and no translation of newlines.
    check
        Raise `CalledProcessError` unless the program exits with code 0.
    on_timeout
        "return" gives back the result of a run that timed out, whose `reason`
        says so; "raise" raises `TimeoutExpired` with the result attached.
    cancel
        A `Cancel`, whose `cancel()` ends the run from another thread.
    on_event
        Called with what there is to tell while the run goes on; the default logs
        a warning.

    Raises `InvalidValue` (a `ValueError`), `SpawnError` (an `OSError`),
    `TimeoutExpired`, `IdleTimeout`, `OutputLimitExceeded`, `Cancelled`,
    `CalledProcessError`; and whatever an iterator or callback raises.
    """
    decoding = _decoding(text, encoding, errors)
    if on_timeout not in ("raise", "return"):
        raise _invalid(f'on_timeout is {on_timeout!r}: use "raise" or "return"')
    if input is not None and stdin is not None:
        raise _invalid("stdin and input are both given: input is what the program reads")
    if isinstance(limit, int):
        limit = _core.Limit(limit)
    taps = _taps(decoding, on_line, on_stdout_line, on_stderr_line)
    if not isinstance(tee, bool):
        captured = [_captures(stdout), _captures(stderr)]
        taps += _tee(tee, captured, decoding)
    raw = _core.run(
        {
            "argv": _argv(args, shell),
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
            "die_with_parent": _death_signal(die_with_parent),
            "pass_fds": list(pass_fds),
            "stdin": _input(input, decoding) if input is not None else _stdin(stdin, decoding),
            "stdout": _sink("stdout", stdout),
            "stderr": _sink("stderr", stderr),
            "timeout": _seconds(timeout),
            "idle_timeout": _seconds(idle_timeout),
            "stop": stop,
            "until": until,
            "limit": limit,
            "keep_full": None if keep_full is None else os.fsencode(keep_full),
            "merged": bool(merged),
            "tee": tee is True,
            "taps": taps,
            "cancel": cancel,
            "on_event": _log if on_event is None else _tell(on_event),
        }
    )
    if raw["error"] is not None:
        raise raw["error"]
    result = Result(args, raw, decoding)
    if raw["io_error"] is not None or not result.ok:
        _raise(result, raw, check, on_timeout, timeout, idle_timeout)
    return result


def _raise(
    result: Result,
    raw: _core.RawResult,
    check: bool,
    on_timeout: str,
    timeout: float | None,
    idle_timeout: float | None,
) -> None:
    """Raises what this result is to raise, if anything."""
    text = result.explanation
    reason = result.reason
    if raw["io_error"] is not None:
        from ._errors import SystemFailure

        errno, words = raw["io_error"]
        raise SystemFailure(result, f"reading the output failed: {words}\n{text}", errno)
    if reason == "output_limit":
        from ._errors import OutputLimitExceeded

        raise OutputLimitExceeded(result, text)
    if reason == "cancelled":
        from ._errors import Cancelled

        raise Cancelled(result, text)
    if reason == "timeout" and on_timeout == "raise":
        from ._errors import TimeoutExpired

        raise TimeoutExpired(result, text, timeout)
    if reason == "idle_timeout" and on_timeout == "raise":
        from ._errors import IdleTimeout

        raise IdleTimeout(result, text, idle_timeout)
    if check:
        result.check_returncode()


def _invalid(text: str) -> ValueError:
    from ._errors import InvalidValue

    return InvalidValue(text)


def _argv(args: Any, shell: bool) -> list[bytes]:
    one = isinstance(args, (str, bytes)) or hasattr(args, "__fspath__")
    if shell:
        # As subprocess: the items behind the line are the shell's $0, $1, ...
        words = [args] if one else list(args)
        return [b"/bin/sh", b"-c", *_words(words)]
    if one:
        _refuse_line(args)
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


def _refuse_line(args: Any) -> NoReturn:
    import shlex

    line = os.fsdecode(args)
    try:
        words = shlex.split(line)
    except ValueError:
        words = [line]
    raise TypeError(
        f"run({args!r}): args is one string. Pass a list, run({words!r}), "
        f"or say that it is a line for the shell, run({args!r}, shell=True)"
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


def _death_signal(value: bool | str | int) -> str | int | None:
    if isinstance(value, bool):
        return "KILL" if value else None
    return value


def _seconds(value: float | None) -> float | None:
    if value is None:
        return None
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else 0.0


def _taps(
    decoding: tuple[str, str] | None,
    both: Callable[[Any], object] | None,
    stdout: Callable[[Any], object] | None,
    stderr: Callable[[Any], object] | None,
) -> list[tuple[int, bool, Callable[[Any], object]]]:
    taps: list[tuple[int, bool, Callable[[Any], object]]] = []
    if both is not None:
        both = _one_at_a_time(both)
        taps += [(stream, *_line_tap(both, decoding)) for stream in (1, 2)]
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
    # Where a newline is not one byte, lines can only be found in the text.
    return False, _TextLines(callback, encoding, errors)


class _TextLines:
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


def _one_at_a_time(callback: Callable[[Any], object]) -> Callable[[Any], object]:
    """The same, called by two threads and yet never twice at once."""
    import _thread

    lock = _thread.allocate_lock()

    def call(argument: Any) -> object:
        with lock:
            return callback(argument)

    return call


def _tee(
    file: Any, captured: list[bool], decoding: tuple[str, str] | None
) -> list[tuple[int, bool, Callable[[Any], object]]]:
    if not hasattr(file, "write"):
        raise TypeError(f"tee is {file!r}: pass True, or a file to write to")
    import io

    is_text = isinstance(file, io.TextIOBase) or hasattr(file, "encoding")
    write = _one_at_a_time(_text_writer(file) if is_text else _writer(file))
    taps: list[tuple[int, bool, Callable[[Any], object]]] = []
    for stream, is_captured in zip((1, 2), captured):
        if is_captured:
            tap: Callable[[Any], object] = _Decoded(write, decoding) if is_text else write
            taps.append((stream, False, tap))
    if not taps:
        raise _invalid("tee needs a captured stream: capture stdout or stderr")
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


class _Decoded:
    """Takes chunks of bytes and writes text."""

    __slots__ = ("_decoder", "_write")

    def __init__(self, write: Callable[[Any], object], decoding: tuple[str, str] | None) -> None:
        import codecs

        encoding, errors = decoding or ("utf-8", "replace")
        self._write = write
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)

    def __call__(self, chunk: bytes | None) -> None:
        self._write(self._decoder.decode(chunk or b"", chunk is None))


def _tell(hook: Callable[[Event], object]) -> Callable[..., object]:
    return lambda *parts: hook(Event(*parts))


def _log(kind: str, text: str, *_parts: object) -> None:
    import logging

    logging.getLogger("procwright").warning("%s", text)
