"""`run()`: checks and translates what it is given, and hands it to the core."""

from __future__ import annotations

import os

from . import _core
from ._options import (
    CAPTURE,
    _captures,
    _check_pty,
    _decoding,
    _input,
    _invalid,
    _seconds,
    _setup,
    _sink,
    _stdin,
)
from ._result import Event, Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Literal

    from ._types import Args, Data, Sink, Stdin, StrOrBytesPath, Writable


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
    liveness: bool = False,
    pty: bool | tuple[int, int] = False,
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
    liveness
        The program can watch this process: `LivenessMonitor.of_parent()` tells it of our
        end, for one load from memory.
    pty
        Run it on a terminal of its own, so that it shows colours and writes line by
        line: True for the size of ours, or 24 by 80; `(rows, columns)` for another.
        Both outputs come as `stdout`, their line ends as `\\r\\n`. `stdin` stays as it
        is said, but for INHERIT where ours is a terminal: then what is typed there is
        passed on.
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
    if not isinstance(args, (str, bytes, list, tuple)) and not hasattr(args, "__fspath__"):
        args = list(args)
    _check_pty(pty, stdout, stderr, merged, process_group)
    captured = [stream for stream, to in ((1, stdout), (2, stderr)) if _captures(to)]
    if pty and 2 in captured:
        captured.remove(2)
        if on_stderr_line is not None:
            raise _invalid("on_stderr_line: with pty both streams are one, use on_stdout_line")
    if not captured and (tee or on_line is not None):
        raise _invalid("tee and on_line need a captured stream: capture stdout or stderr")
    taps = _taps(decoding, captured, on_line, on_stdout_line, on_stderr_line)
    if not isinstance(tee, bool):
        taps += _tee(tee, captured, decoding)
    raw = _core.run(
        {
            **_setup(
                "run",
                args,
                shell,
                env,
                extra_env,
                cwd,
                user,
                group,
                extra_groups,
                umask,
                rlimits,
                nice,
                process_group,
                start_new_session,
                die_with_parent,
                pass_fds,
                stop,
                pty,
                liveness,
            ),
            "stdin": _input(input, decoding) if input is not None else _stdin(stdin, decoding),
            "stdout": _sink("stdout", stdout),
            "stderr": _sink("stderr", stderr),
            "timeout": _seconds(timeout),
            "idle_timeout": _seconds(idle_timeout),
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


def _taps(
    decoding: tuple[str, str] | None,
    captured: list[int],
    both: Callable[[Any], object] | None,
    stdout: Callable[[Any], object] | None,
    stderr: Callable[[Any], object] | None,
) -> list[tuple[int, bool, Callable[[Any], object]]]:
    taps: list[tuple[int, bool, Callable[[Any], object]]] = []
    if both is not None:
        both = _one_at_a_time(both)
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
    file: Any, captured: list[int], decoding: tuple[str, str] | None
) -> list[tuple[int, bool, Callable[[Any], object]]]:
    if not hasattr(file, "write"):
        raise TypeError(f"tee is {file!r}: pass True, or a file to write to")
    import io

    is_text = isinstance(file, io.TextIOBase) or hasattr(file, "encoding")
    write = _one_at_a_time(_text_writer(file) if is_text else _writer(file))
    taps: list[tuple[int, bool, Callable[[Any], object]]] = []
    for stream in captured:
        tap: Callable[[Any], object] = _Decoded(write, decoding) if is_text else write
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
