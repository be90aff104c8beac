"""`Result`: all that came of a run."""

from __future__ import annotations

import os

from ._arguments import number
from ._generic import Err, Generic, Out
from ._hinted import hinted
from ._holder import Holder
from ._piece import Kept, Order, pieces
from ._record import Record, Status, Survivor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, NoReturn

    from ._captured import Captured
    from ._core import RawInfo, RawResult
    from ._types import Args, MaybeNone
else:
    Captured = Generic


@hinted
class StreamInfo(Record):
    """The account of one pipe."""

    __slots__ = (
        "bytes",
        "kept_bytes",
        "dropped_bytes",
        "dropped_at",
        "blocked_s",
        "complete",
        "held_by",
        "held_by_complete",
        "kept_at",
        "kept_error",
        "undelivered_bytes",
    )

    def __init__(self, raw: RawInfo) -> None:
        #: Bytes that were read.
        self.bytes = raw["bytes"]
        #: Bytes that are in the result.
        self.kept_bytes = raw["kept_bytes"]
        #: Bytes that are not: a limit left them out.
        self.dropped_bytes = raw["dropped_bytes"]
        #: The place in the kept bytes where the dropped ones would stand.
        self.dropped_at = raw["dropped_at"]
        #: How long at most the program could not write because the pipe was full. None
        #: of a terminal, of which it cannot be known.
        self.blocked_s = raw["blocked_s"]
        #: True if all is here that the program itself wrote.
        self.complete = raw["complete"]
        #: Processes that could still have written when the run was over.
        self.held_by = [Holder(*holder) for holder in raw["held_by"]]
        #: True if every process could be asked.
        self.held_by_complete = raw["held_by_complete"]
        #: The file of `keep_full`.
        self.kept_at = None if raw["kept_at"] is None else os.fsdecode(raw["kept_at"])
        #: The reason why that file does not have all bytes.
        self.kept_error = raw["kept_error"]
        #: Bytes that a callback or copy had not taken when the run was over.
        self.undelivered_bytes = raw["undelivered_bytes"]

    def to_dict(self) -> dict[str, Any]:
        """The parts as JSON has them."""
        parts = self._parts()
        parts["held_by"] = [{"pid": one.pid, "name": one.name} for one in self.held_by]
        return parts


class NoText:
    """What is no text, as a result of sh is, and no tuple, as one of plumbum: the error says what
    is. `str()` of it shows all of it, as that of `subprocess.CompletedProcess` does."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __iter__(self) -> NoReturn:
            raise TypeError(
                f"{_named(self)} is not iterable: take stdout, stderr and returncode of it, or "
                "stdout.splitlines() for the lines"
            )

        def __contains__(self, text: object) -> NoReturn:
            raise TypeError(f"{_named(self)} is no text: look in its stdout")

        def __add__(self, text: object) -> NoReturn:
            raise TypeError(f"{_named(self)} is no text: add its stdout")

        __radd__ = __add__


@hinted
class Result(NoText, Captured[StreamInfo, Out, Err, Order]):
    """All that came of a run.

    `Result[str]` is one whose `stdout` and `stderr` are both `str`, `Result[bytes, None]` one
    whose `stdout` is `bytes` and whose `stderr` went elsewhere; without types it is any.
    """

    __slots__ = (
        "_decoded",
        "_decoding",
        "_explanation",
        "_failure",
        "_segments",
        "args",
        "argv",
        "cpu_system_s",
        "cpu_user_s",
        "duration_s",
        "max_rss_bytes",
        "ok_codes",
        "outcome",
        "pid",
        "processes",
        "reason",
        "status",
        "stderr_bytes",
        "stderr_info",
        "stdout_bytes",
        "stdout_info",
        "summary",
        "survivors",
        "why",
    )

    def __init__(
        self,
        args: Args,
        raw: RawResult,
        decoding: tuple[str, str] | None,
        failure: Callable[[Result[Any, Any, Any], str], Exception],
    ) -> None:
        #: The arguments that `run` was given.
        self.args: Any = args
        #: The program and its arguments.
        self.argv: list[str] = list(raw["argv"])
        #: The program's process number while it ran.
        self.pid = raw["pid"]
        #: How it ended.
        self.status = Status(*raw["status"])
        #: Why the run is over.
        self.reason = raw["reason"]
        #: The exit codes that were to be no failure besides 0.
        self.ok_codes = raw["ok_codes"]
        #: How it came out, in a line without the command: "exited with code 3", "killed by
        #: SIGSEGV (core dumped)", "timed out after 2 s (stopped in 0.011 s)".
        self.outcome = raw["outcome"]
        #: Why it did not end by itself before its timeout or idle timeout, such as "cat (7)
        #: waits for input on stdin", None if that is not known.
        self.why = raw["why"]
        #: The command and its outcome, in a line; of a long command the beginning and the end.
        self.summary = raw["summary"]
        #: Seconds from the start of the program to the end of the run.
        self.duration_s = raw["duration_s"]
        #: Processor time of the program and the children that it waited for.
        self.cpu_user_s = raw["cpu_user_s"]
        #: Processor time of theirs in the kernel.
        self.cpu_system_s = raw["cpu_system_s"]
        #: Peak resident memory of the largest of them.
        self.max_rss_bytes = raw["max_rss_bytes"]
        #: Processes that could not be stopped.
        self.survivors = [Survivor(*survivor) for survivor in raw["survivors"]]
        #: Lines that say what each process was doing when the run had to be stopped.
        self.processes = raw["processes"]
        #: The captured bytes, None where nothing was captured.
        self.stdout_bytes = raw["stdout"]
        #: The captured bytes, None where nothing was captured.
        self.stderr_bytes = raw["stderr"]
        out, err = raw["stdout_info"], raw["stderr_info"]
        #: About stdout, None where no pipe was put between.
        self.stdout_info = None if out is None else StreamInfo(out)
        #: About stderr, None where no pipe was put between.
        self.stderr_info = None if err is None else StreamInfo(err)
        self._segments = raw["merged"]
        self._explanation = raw["explanation"]
        self._decoding = decoding
        #: Makes the exception of `check_returncode`, which names this class in turn.
        self._failure = failure
        self._decoded: dict[str, str] = {}

    @property
    def returncode(self) -> int | MaybeNone:
        """The exit code, -N after signal N, None if unknown: `status` says why."""
        return self.status.returncode

    @property
    def ok(self) -> bool:
        """True if the run ended by itself and its program with code 0, or one of `ok_codes`."""
        return self.reason == "finished" and self.status.code in (0, *self.ok_codes)

    @property
    def stdout(self) -> Out:
        """The captured data: `str` if text was asked for, else `bytes`."""
        data: Out = self._data("stdout", self.stdout_bytes)
        return data

    @property
    def stderr(self) -> Err:
        """The captured data: `str` if text was asked for, else `bytes`."""
        data: Err = self._data("stderr", self.stderr_bytes)
        return data

    def _data(self, name: str, data: bytes | None) -> Any:
        if data is None or self._decoding is None:
            return data
        text = self._decoded.get(name)
        if text is None:
            text = self._decoded[name] = data.decode(*self._decoding)
        return text

    @property
    def merged(self) -> Order:
        """The pieces of both streams in the order of reading, None unless asked for.

        Each is a `Piece`, a pair of "stdout" or "stderr" and its data. Bytes of a stream that
        are no text raise what its own attribute raises.
        """
        found: Any = None
        if self._segments is not None:
            streams = {
                1: _kept("stdout", self.stdout_bytes, self.stdout_info),
                2: _kept("stderr", self.stderr_bytes, self.stderr_info),
            }
            found = pieces(self._segments, streams, self._decoding)
        order: Order = found
        return order

    def _set_text(self, name: Literal["stdout", "stderr"], text: str) -> None:
        """The text of a stream, where decoding its bytes anew would give another."""
        self._decoded[name] = text

    @property
    def explanation(self) -> str:
        """The outcome in words: what happened, which processes held what, the end of stderr."""
        return self._explanation

    def check_returncode(self) -> None:
        """Raises `CalledProcessError` unless the run is `ok`."""
        if not self.ok:
            raise self._failure(self, self._explanation)

    def __bool__(self) -> AskOk:
        # An object is true without it, and `if run(...):` would take each failure for a success.
        # Were it `ok`, `if ended.result:` would take a failure for a result that is not there.
        raise no_truth(self, "ok")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            from ._missing import RESULT, missing

            raise missing(self, name, RESULT)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON has it: plain values only."""
        return {
            "argv": [_json(os.fsencode(word)) for word in self.argv],
            "pid": self.pid,
            "status": self.status.to_dict(),
            "reason": self.reason,
            "outcome": self.outcome,
            "why": self.why,
            "duration_s": self.duration_s,
            "cpu_user_s": self.cpu_user_s,
            "cpu_system_s": self.cpu_system_s,
            "max_rss_bytes": self.max_rss_bytes,
            "survivors": [one._parts() for one in self.survivors],
            "processes": list(self.processes),
            "stdout_info": _info(self.stdout_info),
            "stderr_info": _info(self.stderr_info),
            "stdout": _data(self.stdout_bytes),
            "stderr": _data(self.stderr_bytes),
            "merged": self._segments
            and [
                {"stream": _STREAMS[one], "bytes": size, "ambiguous": ambiguous, "at": at}
                for one, size, ambiguous, at in self._segments
            ],
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """The result as JSON. What is not UTF-8 is `{"base64": "..."}`."""
        return as_json(self.to_dict(), indent)

    def __repr__(self) -> str:
        shown = [f"args={self.args!r}", f"returncode={self.returncode!r}"]
        if self.reason != "finished":
            shown.append(f"reason={self.reason!r}")
        for name in ("stdout", "stderr"):
            if getattr(self, name + "_bytes") is not None:
                shown.append(f"{name}={_shown(self, name)}")
        if self.survivors:
            shown.append(f"survivors={self.survivors!r}")
        return f"Result({', '.join(shown)})"


class AskOk:
    """The type to type checkers of the truth of a result, which there is not.

    It is no `bool`, which pyright tells where one is asked for, with this name. With `NoReturn`
    mypy took all that follows for code that is never reached, and looked at none of it.
    """


def no_truth(thing: object, ok: str) -> TypeError:
    """The error for who asks whether a result is true."""
    return TypeError(
        f"{_named(thing)} is neither true nor false: ask for its {ok}, as in `if one.{ok}` and "
        f"`all(one.{ok} for one in many)`; or whether there is one, as in `if one is not None`"
    )


def _named(thing: object) -> str:
    kind = type(thing).__name__
    return f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind}"


def as_json(parts: dict[str, Any], indent: int | None) -> str:
    """The parts of a result as JSON, with so much `indent`."""
    import json

    hint = "pass how many spaces, 0 to 1000, or a str of them, or None for one line"
    if indent is not None and not isinstance(indent, str):
        number("indent", indent, 0, 1000, hint)
    return json.dumps(parts, indent=indent, ensure_ascii=False)


#: The names of the streams, by the numbers of their descriptors.
_STREAMS = {1: "stdout", 2: "stderr"}


def _kept(name: Literal["stdout", "stderr"], data: bytes | None, info: StreamInfo | None) -> Kept:
    if info is None:
        return Kept(name, data, None, 0)
    return Kept(name, data, info.dropped_at, info.dropped_bytes)


def _shown(result: Result[Any, Any, Any], name: str) -> str:
    """A stream as `repr` shows it, with a mark where a limit has left out bytes."""
    data: bytes = getattr(result, name + "_bytes")
    info: StreamInfo | None = getattr(result, name + "_info")
    at = None if info is None else info.dropped_at
    dropped = 0 if info is None or at is None else info.dropped_bytes
    if len(data) > 200:
        of_all = f" of {len(data) + dropped:,}" if dropped else ""
        return f"<{len(data):,}{of_all} bytes>"
    if not dropped:
        try:
            return repr(getattr(result, name))
        except UnicodeError:
            return repr(data)
    # A character may have been cut in two there.
    decoding = result._decoding
    ends = (data[:at], data[at:])
    head, tail = ends if decoding is None else (end.decode(decoding[0], "replace") for end in ends)
    return f"{head!r} [… {dropped:,} bytes dropped …] {tail!r}"


def _json(data: bytes) -> str | dict[str, str]:
    try:
        return data.decode()
    except UnicodeDecodeError:
        import base64

        return {"base64": base64.b64encode(data).decode("ascii")}


def _data(data: bytes | None) -> str | dict[str, str] | None:
    return None if data is None else _json(data)


def _info(info: StreamInfo | None) -> dict[str, Any] | None:
    if info is None:
        return None
    parts = info.to_dict()
    if parts["kept_at"] is not None:
        parts["kept_at"] = _json(os.fsencode(parts["kept_at"]))
    return parts
