"""A run that is played: no program is started, and no time goes by."""

from __future__ import annotations

import itertools
import os
import stat
import threading
import time

from ._fake_calls import NotRegistered, UnexpectedInput, command
from ._fake_check import not_started
from ._fake_reply import Err, Hang, In, Out, Pause, Reply
from ._record import Status
from ._stdio import STDOUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ._core import RawInfo, RawResult
    from ._fake_calls import Call

#: Above what Linux gives: a fake's number is nobody's, whatever it is used for.
_pids = itertools.count(2**22 + 1)

#: Bytes that are taken of an iterable that may be endless.
_MOST_INPUT = 64 << 20


def take_input(call: Call) -> None:
    """Reads what the program would get, where that ends: nothing that is another's.

    Of a child only what is given as data: the stand-in reads the rest.
    """
    kind, value = call._options["stdin"]
    if kind == "bytes":
        call._input = value
    elif kind == "null":
        call._input = b""
    elif call.function == "spawn":
        return
    elif kind == "file":
        if os.path.isfile(value):
            with open(value, "rb") as file:
                call._input = file.read()
    elif kind == "iterator":
        taken: list[bytes] = []
        size = 0
        while size < _MOST_INPUT:
            try:
                piece = bytes(value())
            except StopIteration:
                break
            taken.append(piece)
            size += len(piece)
        call._input = b"".join(taken)


class _Played:
    """What has come of the steps: pieces by stream, the time, and why it is over."""

    def __init__(self, call: Call, reply: Reply) -> None:
        options = call._options
        self.pieces: list[tuple[int, bytes]] = []
        self.took = 0.0
        self.reason = "finished"
        self._timeout = options.get("timeout")
        self._idle = options.get("idle_timeout")
        self._to_stdout = bool(options.get("pty")) or options["stderr"][0] == "merged"
        if reply._recorded is not None:
            self.took = reply._recorded["duration_s"]
            self.reason = reply._recorded["reason"]
        if call._stopped is not None and reply._recorded is None:
            self.reason, self.took = call._stopped
            return
        rest = call.input or b""
        for step in reply.steps:
            if isinstance(step, (Out, Err)):
                stream = 2 if isinstance(step, Err) and not self._to_stdout else 1
                self.pieces.append((stream, step.data))
            elif isinstance(step, In):
                rest = self._read(call, step, rest)
            elif not self._passes(call, step):
                return

    def _read(self, call: Call, step: In, rest: bytes) -> bytes:
        if step.data is None:
            return b""
        if not rest.startswith(step.data):
            raise UnexpectedInput(
                f"{call}: expected {step.data!r} on stdin, and {rest[: len(step.data)]!r} came"
            )
        return rest[len(step.data) :]

    def _passes(self, call: Call, step: Pause | Hang) -> bool:
        """Whether the program gets over it in time."""
        silent = float("inf") if isinstance(step, Hang) else step.seconds
        ends = [(self.took + silent, "")]
        if self._idle is not None:
            ends.append((self.took + max(self._idle, 0.0), "idle_timeout"))
        if self._timeout is not None:
            ends.append((max(self._timeout, 0.0), "timeout"))
        end, reason = min(ends)
        if end == float("inf"):
            if call.cancel is None:
                raise NotRegistered(
                    f"{call} is registered to hang, and was asked for without a timeout, an "
                    "idle_timeout or a cancel: it would never end"
                )
            from ._wait import wait

            wait([call.cancel])
            end, reason = self.took, "cancelled"
        self.took = end
        if reason:
            self.reason = reason
        return not reason


def played(call: Call, reply: Reply) -> RawResult:
    """What the core would report of a run, or of a command of a map."""
    options = call._options
    cancel = call.cancel
    # A stage behind others has been started with them.
    if cancel is not None and cancel.cancelled and not call.stage:
        from ._run_errors import _cancelled_before

        raise _cancelled_before(f"{command(call)} was cancelled before it was started")
    _open_all(call)
    run = _Played(call, reply)
    limit = options.get("limit")
    if limit is not None and limit.beyond == "fail":
        _cut(run, limit.bytes)
    taps = list(options.get("taps", ()))
    error = _told(run.pieces, taps, options) if taps else None
    raw: dict[str, Any] = {
        "argv": tuple(call.argv),
        "pid": next(_pids),
        "status": _status(call, reply, run),
        "reason": run.reason,
        "ok_codes": tuple(options["ok_codes"]),
        "duration_s": run.took,
        "cpu_user_s": None,
        "cpu_system_s": None,
        "max_rss_bytes": None,
        "survivors": [],
        "processes": [],
        "merged": _segments(run.pieces) if options.get("merged") else None,
        "error": error,
        "io_error": None,
    }
    for copy in options.get("tee", ()):
        _copy(copy, run.pieces)
    for name, number in (("stdout", 1), ("stderr", 2)):
        data = b"".join(piece for stream, piece in run.pieces if stream == number)
        kept, info = _went(options, name, number, data)
        raw[name], raw[f"{name}_info"] = kept, info
    _words(call, run, raw)
    if reply._recorded is not None:
        _as_recorded(reply._recorded, raw)
    result: RawResult = raw  # type: ignore[assignment]
    return result


_KEEP_FULL = "\n  hint: it is to keep all of the output: name a file that can be written"


_TEE = "\n  hint: it is to get a copy of the output: name a file that can be written"


def _open_all(call: Call) -> None:
    """Opens the files of the call, and empties those it writes, as is done before a start."""
    options = call._options
    files = [(options[name], flags, "") for name, flags in _FILES.items()]
    full = options.get("keep_full")
    if full is not None:
        files += [(("file", full), _FILES["stdout"], _KEEP_FULL)]
    for _, kind, target in options.get("tee", ()):
        files += [((kind, target), _FILES["stdout"], _TEE)]
    for (kind, path), flags, hint in files:
        if kind != "file" or _is_fifo(path):
            # Whoever is at the other end would take this for the end.
            continue
        try:
            os.close(os.open(path, flags, 0o666))
        except OSError as error:
            raise not_started(call, "open", path, error, hint) from None


def _is_fifo(path: bytes) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False


_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
_FILES = {"stdin": os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK, "stdout": _WRITE, "stderr": _WRITE}


def _cut(run: _Played, most: int) -> None:
    """Ends the run at the byte that is one too many."""
    sizes = {1: 0, 2: 0}
    for place, (stream, piece) in enumerate(run.pieces):
        if sizes[stream] + len(piece) > most:
            run.pieces[place:] = [(stream, piece[: most - sizes[stream]])]
            run.reason = "output_limit"
            return
        sizes[stream] += len(piece)


def _status(call: Call, reply: Reply, run: _Played) -> tuple[Any, ...]:
    if run.reason == "finished" or reply._recorded is not None:
        code = reply.returncode
    else:
        from . import _core

        stop = call._options.get("stop") or _core.Stop()
        code = -_number(stop.signal)
    if code >= 0:
        return "exited", code, None, None, None, None
    return "signaled", None, -code, _name(-code), False, None


def _number(name: str) -> int:
    import signal

    found: int = getattr(signal, name, signal.SIGTERM)
    return int(found)


def _name(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _segments(pieces: Iterable[tuple[int, bytes]]) -> list[tuple[int, int, bool, float]]:
    # The order is that in which the test has written the steps, and known.
    now = time.time()
    found: list[tuple[int, int, bool, float]] = []
    for stream, piece in pieces:
        if found and found[-1][0] == stream:
            found[-1] = stream, found[-1][1] + len(piece), False, now
        elif piece:
            found.append((stream, len(piece), False, now))
    return found


def _went(
    options: dict[str, Any], name: str, number: int, data: bytes
) -> tuple[bytes | None, dict[str, Any] | None]:
    """Puts the output where it was to go: what the result has of it, and its account."""
    kind, target = options[name]
    if kind in ("merged", "null") or (number == 2 and options.get("pty")):
        return None, None
    if kind != "capture":
        _write(kind, target, number, data)
        return None, None
    kept, at = data, None
    limit = options.get(f"{name}_limit", options.get("limit"))
    if limit is not None and len(data) > limit.bytes:
        # The first half, with the odd byte, and the last.
        at = limit.bytes - limit.bytes // 2
        kept = data[:at] + data[len(data) - limit.bytes // 2 :]
    full = options.get("keep_full")
    if full is not None:
        full = full if number == 1 else full + b".stderr"
        with open(full, "wb") as file:
            file.write(data)
    return kept, {
        "bytes": len(data),
        "kept_bytes": len(kept),
        "dropped_bytes": len(data) - len(kept),
        "dropped_at": at,
        "blocked_s": None if options.get("pty") else 0.0,
        "complete": True,
        "held_by": [],
        "held_by_complete": True,
        "kept_at": full,
        "kept_error": None,
        "undelivered_bytes": 0,
    }


def _copy(copy: tuple[int, str, Any], pieces: list[tuple[int, bytes]]) -> None:
    """Writes a copy of the output that the core would make."""
    number, kind, target = copy
    data = b"".join(piece for stream, piece in pieces if number in (0, stream))
    _write("inherit" if kind == "own" else kind, target, number, data)


def _write(kind: str, target: Any, number: int, data: bytes) -> None:
    if kind == "file":
        with open(target, "wb") as file:
            file.write(data)
        return
    fd = target if kind == "fd" else number
    while data:
        data = data[os.write(fd, data) :]


def _told(
    pieces: list[tuple[int, bytes]], taps: list[Any], options: dict[str, Any]
) -> BaseException | None:
    """Calls back with the output, on a thread of its own as a run does; what that raises."""
    raised: list[BaseException] = []

    def tell() -> None:
        try:
            feeds = [(stream, _feed(by_line, call, options)) for stream, by_line, call in taps]
            for stream, piece in pieces:
                for number, feed in feeds:
                    if number == stream and piece:
                        feed(piece)
            for _, feed in feeds:
                feed(None)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=tell, name="procwright-fake")
    thread.start()
    thread.join()
    return raised[0] if raised else None


def _feed(
    by_line: bool, call: Callable[[Any], object], options: dict[str, Any]
) -> Callable[[bytes | None], object]:
    return _Lines(call, options["max_length"], options["too_long"]) if by_line else call


class _Lines:
    """Calls back with each line."""

    def __init__(self, call: Callable[[Any], object], longest: int | None, fails: bool) -> None:
        self._call = call
        self._longest = longest
        self._fails = fails
        self._begun = b""

    def __call__(self, piece: bytes | None) -> None:
        *lines, self._begun = (self._begun + (piece or b"")).split(b"\n")
        for line in lines:
            self._give(line + b"\n")
        if piece is None and self._begun:
            self._give(self._begun)

    def _give(self, line: bytes) -> None:
        longest = self._longest
        if longest is None or len(line) <= longest:
            self._call(line)
            return
        if self._fails:
            from ._stream_errors import LineTooLong

            raise LineTooLong("the output", longest)
        for begun in range(0, len(line), longest):
            self._call(line[begun : begun + longest])


def _words(call: Call, run: _Played, raw: dict[str, Any]) -> None:
    """The outcome in words, as the core has them."""
    options = call._options
    status = str(Status(*raw["status"]))
    predicate = f"was {status}" if raw["status"][0] == "signaled" else status
    limit = options.get("limit")
    said = {
        "finished": status,
        "timeout": f"timed out after {_seconds(options.get('timeout'))} (stopped in 0 s)",
        "idle_timeout": f"was silent for {_seconds(options.get('idle_timeout'))} (stopped in 0 s)",
        "cancelled": f"was cancelled after {_seconds(run.took)} (stopped in 0 s)",
        "output_limit": f"wrote more than {limit and limit.bytes} bytes (stopped in 0 s)",
    }
    raw["outcome"] = said[run.reason]
    # No program runs that could be looked at.
    raw["why"] = None
    is_over = run.reason == "finished"
    raw["summary"] = f"{command(call)} {predicate if is_over else raw['outcome']}"
    text = raw["summary"] if is_over else f"{raw['summary']}\n  the program {predicate}"
    for name in ("stdout", "stderr"):
        info = raw[f"{name}_info"]
        if info and info["dropped_bytes"]:
            of_all = f"{info['dropped_bytes']} of {info['bytes']} bytes of {name}"
            text += f"\n  {of_all} were dropped by the limit"
    is_one = bool(options.get("pty")) or options.get("stderr") == STDOUT
    last = "stdout" if is_one else "stderr"
    lines = _end(raw[last] or b"", raw[f"{last}_info"]).rstrip().splitlines()[-10:]
    if lines:
        name = "its output" if is_one else "stderr"
        text += "\n".join([f"\n  the end of {name}:", *[f"    {line}" for line in lines]])
    raw["explanation"] = text


def _end(data: bytes, info: RawInfo | None) -> str:
    """The end of a stream, with a mark where a limit has left out bytes."""
    begin = max(0, len(data) - 2000)
    at = info and info["dropped_at"]
    if info is None or at is None or at < begin:
        return data[begin:].decode(errors="replace")
    mark = f"[… {info['dropped_bytes']} bytes dropped …]"
    head, tail = (end.decode(errors="replace") for end in (data[begin:at], data[at:]))
    return f"{head}{mark}{tail}"


def _seconds(time: float | None) -> str:
    time = max(time or 0.0, 0.0)
    if time >= 60:
        return f"{int(time) // 60} min {int(time) % 60} s"
    return f"{time:.3f}".rstrip("0").rstrip(".") + " s"


def _as_recorded(recorded: dict[str, Any], raw: dict[str, Any]) -> None:
    """Tells what the recorded run told, where this one has as much."""
    for name, value in recorded.items():
        if name in ("stdout_info", "stderr_info"):
            if raw[name] is not None and value is not None:
                raw[name] = {**value, "kept_at": raw[name]["kept_at"]}
        elif name != "merged":
            raw[name] = value
        elif raw["merged"] is not None and value is not None:
            raw["merged"] = value
