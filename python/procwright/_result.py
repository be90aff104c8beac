"""What a run gives back."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from ._core import RawInfo, RawResult


class _Record:
    """A value with named parts that compares by them."""

    __slots__: tuple[str, ...] = ()

    def _parts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value!r}" for name, value in self._parts().items())
        return f"{type(self).__name__}({parts})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((type(self), *map(str, self._parts().values())))


class Holder(_Record):
    """A process that holds a pipe of the run."""

    __slots__ = ("pid", "name")

    def __init__(self, pid: int, name: str) -> None:
        self.pid = pid
        self.name = name

    def __str__(self) -> str:
        return f"{self.name} (pid {self.pid})"


class Survivor(_Record):
    """A process that could not be stopped.

    `state` is the system's letter: D is a wait that not even SIGKILL ends; S or
    R is usually another user's process.
    """

    __slots__ = ("pid", "name", "state")

    def __init__(self, pid: int, name: str, state: str) -> None:
        self.pid = pid
        self.name = name
        self.state = state

    def __str__(self) -> str:
        return f"{self.name} (pid {self.pid}, state {self.state})"


class Status(_Record):
    """How the program ended. Never guessed: what cannot be known is "unknown".

    `kind` is "exited" (then `code` is set), "signaled" (`signal`, `name` and
    `core`) or "unknown" (`why`).
    """

    __slots__ = ("kind", "code", "signal", "name", "core", "why")

    def __init__(
        self,
        kind: Literal["exited", "signaled", "unknown"],
        code: int | None = None,
        signal: int | None = None,
        name: str | None = None,
        core: bool | None = None,
        why: str | None = None,
    ) -> None:
        self.kind = kind
        self.code = code
        self.signal = signal
        self.name = name
        self.core = core
        self.why = why

    @property
    def returncode(self) -> int | None:
        """The exit code, -N after signal N, None if unknown."""
        return self.code if self.signal is None else -self.signal

    def __repr__(self) -> str:
        parts = self._parts().items()
        shown = ", ".join(f"{key}={value!r}" for key, value in parts if value is not None)
        return f"Status({shown})"

    def to_dict(self) -> dict[str, Any]:
        """The parts that this kind has."""
        if self.kind == "exited":
            return {"kind": self.kind, "code": self.code}
        if self.kind == "signaled":
            return {
                "kind": self.kind,
                "signal": self.signal,
                "name": self.name,
                "core": self.core,
            }
        return {"kind": self.kind, "why": self.why}


class StreamInfo(_Record):
    """What went through one pipe."""

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
        #: How many bytes were read.
        self.bytes = raw["bytes"]
        #: How many of them are in the result.
        self.kept_bytes = raw["kept_bytes"]
        #: How many are not: what a limit left out.
        self.dropped_bytes = raw["dropped_bytes"]
        #: Where in the kept bytes the dropped ones would stand.
        self.dropped_at = raw["dropped_at"]
        #: How long at most the program could not write because the pipe was full. None
        #: of a terminal, of which it cannot be known.
        self.blocked_s = raw["blocked_s"]
        #: Whether all is here that the program itself wrote.
        self.complete = raw["complete"]
        #: Who could still have written when the run was over.
        self.held_by = [Holder(*holder) for holder in raw["held_by"]]
        #: Whether every process could be asked.
        self.held_by_complete = raw["held_by_complete"]
        #: The file of `keep_full`.
        self.kept_at = None if raw["kept_at"] is None else os.fsdecode(raw["kept_at"])
        #: What kept that file from having all bytes.
        self.kept_error = raw["kept_error"]
        #: Bytes that a callback or copy had not taken when the run was over.
        self.undelivered_bytes = raw["undelivered_bytes"]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        parts = self._parts()
        parts["held_by"] = [{"pid": one.pid, "name": one.name} for one in self.held_by]
        return parts


class Event(_Record):
    """What a run tells while it goes on; `str()` says it in words.

    Of kind "held": the program has exited, but a second later other processes
    still hold its pipes.
    """

    __slots__ = ("kind", "text", "command", "streams", "holders", "complete")

    def __init__(
        self,
        kind: str,
        text: str,
        command: str = "",
        streams: str = "",
        holders: list[tuple[int, str]] | None = None,
        complete: bool = True,
    ) -> None:
        self.kind = kind
        self.text = text
        self.command = command
        self.streams = streams
        self.holders = [Holder(*holder) for holder in holders or ()]
        self.complete = complete

    def __str__(self) -> str:
        return self.text


class Result:
    """All that came of a run."""

    __slots__ = (
        "_decoded",
        "_decoding",
        "_explanation",
        "_segments",
        "_summary",
        "args",
        "argv",
        "cpu_system_s",
        "cpu_user_s",
        "duration_s",
        "max_rss_bytes",
        "pid",
        "processes",
        "reason",
        "status",
        "stderr_bytes",
        "stderr_info",
        "stdout_bytes",
        "stdout_info",
        "survivors",
    )

    def __init__(self, args: Any, raw: RawResult, decoding: tuple[str, str] | None) -> None:
        #: What `run` was given.
        self.args = args
        #: The program and its arguments.
        self.argv: list[str] = list(raw["argv"])
        #: The program's process number while it ran.
        self.pid = raw["pid"]
        #: How it ended.
        self.status = Status(*raw["status"])
        #: Why the run is over.
        self.reason = raw["reason"]
        #: From the start of the program to the end of the run.
        self.duration_s = raw["duration_s"]
        #: Processor time of the program and the children that it waited for.
        self.cpu_user_s = raw["cpu_user_s"]
        #: So too, in the kernel.
        self.cpu_system_s = raw["cpu_system_s"]
        #: Peak resident memory of the largest of them.
        self.max_rss_bytes = raw["max_rss_bytes"]
        #: Processes that could not be stopped.
        self.survivors = [Survivor(*survivor) for survivor in raw["survivors"]]
        #: What the processes were doing when the run had to be stopped, a line each.
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
        self._summary = raw["summary"]
        self._explanation = raw["explanation"]
        self._decoding = decoding
        self._decoded: dict[str, str] = {}

    @property
    def returncode(self) -> int | None:
        """The exit code, -N after signal N, None if unknown."""
        return self.status.returncode

    @property
    def ok(self) -> bool:
        """Whether the run ended by itself and its program with code 0."""
        return self.reason == "finished" and self.status.code == 0

    @property
    def stdout(self) -> Any:
        """The captured data: `str` if text was asked for, else `bytes`."""
        return self._data("stdout", self.stdout_bytes)

    @property
    def stderr(self) -> Any:
        """The captured data: `str` if text was asked for, else `bytes`."""
        return self._data("stderr", self.stderr_bytes)

    def _data(self, name: str, data: bytes | None) -> str | bytes | None:
        if data is None or self._decoding is None:
            return data
        text = self._decoded.get(name)
        if text is None:
            text = self._decoded[name] = data.decode(*self._decoding)
        return text

    @property
    def merged(self) -> list[tuple[str, bytes]] | None:
        """Both streams in the order of reading, None unless asked for."""
        if self._segments is None:
            return None
        pieces: list[tuple[str, bytes]] = []
        streams = {
            1: _Kept("stdout", self.stdout_bytes, self.stdout_info),
            2: _Kept("stderr", self.stderr_bytes, self.stderr_info),
        }
        for number, length in self._segments:
            stream = streams[number]
            piece = stream.take(length)
            if piece:
                pieces.append((stream.name, piece))
        return pieces

    @property
    def explanation(self) -> str:
        """The outcome in words: what happened, who held what, the end of stderr."""
        return self._explanation

    def check_returncode(self) -> None:
        """Raises `CalledProcessError` unless the run is `ok`."""
        if not self.ok:
            from ._errors import CalledProcessError

            raise CalledProcessError(self, self._explanation)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON has it: plain values only."""
        return {
            "argv": [_json(os.fsencode(word)) for word in self.argv],
            "pid": self.pid,
            "status": self.status.to_dict(),
            "reason": self.reason,
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
            and [{"stream": _STREAMS[one], "bytes": size} for one, size in self._segments],
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """The result as JSON. What is not UTF-8 is `{"base64": "..."}`."""
        import json

        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def __repr__(self) -> str:
        shown = [f"args={self.args!r}", f"returncode={self.returncode!r}"]
        if self.reason != "finished":
            shown.append(f"reason={self.reason!r}")
        for name in ("stdout", "stderr"):
            data = getattr(self, name + "_bytes")
            if data is not None and len(data) <= 200:
                shown.append(f"{name}={_shown(self, name)!r}")
            elif data is not None:
                shown.append(f"{name}=<{len(data):,} bytes>")
        if self.survivors:
            shown.append(f"survivors={self.survivors!r}")
        return f"Result({', '.join(shown)})"


#: By the number of their descriptor.
_STREAMS = {1: "stdout", 2: "stderr"}


class _Kept:
    """Walks through one stream, of which the middle may have been dropped."""

    __slots__ = ("_at", "_data", "_from", "_to", "name")

    def __init__(self, name: str, data: bytes | None, info: StreamInfo | None) -> None:
        self.name = name
        self._data = memoryview(data or b"")
        self._at = 0
        self._from = self._to = 0
        if info is not None and info.dropped_at is not None:
            self._from = info.dropped_at
            self._to = info.dropped_at + info.dropped_bytes

    def _kept_before(self, position: int) -> int:
        return position - max(0, min(position, self._to) - self._from)

    def take(self, length: int) -> bytes:
        start = self._kept_before(self._at)
        self._at += length
        return bytes(self._data[start : self._kept_before(self._at)])


def _shown(result: Result, name: str) -> object:
    try:
        return getattr(result, name)
    except UnicodeError:
        return getattr(result, name + "_bytes")


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
