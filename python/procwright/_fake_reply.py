"""What a fake program does: its steps, and how it ends."""

from __future__ import annotations

import errno as errors
import os

from ._arguments import data as checked_data
from ._arguments import items, number
from ._errors import _spawn_error
from ._hinted import hinted
from ._invalid import InvalidValue, bad_type, bad_value
from ._record import Record
from ._result import Result
from ._timeout import seconds as checked_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TypeAlias

    from ._errors import SpawnError
    from ._types import Data, Seconds

    _Step: TypeAlias = "Out | Err | In | Pause | Hang"

_DATA = "pass bytes, or a str, which is encoded as UTF-8"


def _bytes(name: str, value: Any) -> bytes:
    if not isinstance(value, str):
        return bytes(checked_data(name, value, _DATA))
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise bad_value(name, value, _DATA) from None


@hinted
class Out(Record):
    """A fake program writes this to its stdout."""

    __slots__ = ("data",)

    def __init__(self, data: Data | str) -> None:
        #: The bytes.
        self.data = _bytes("data", data)


@hinted
class Err(Record):
    """A fake program writes this to its stderr."""

    __slots__ = ("data",)

    def __init__(self, data: Data | str) -> None:
        #: The bytes.
        self.data = _bytes("data", data)


@hinted
class In(Record):
    """A fake program reads this from its stdin; without data all, to the end.

    If something else comes, the program says so on stderr and exits with code 99.
    """

    __slots__ = ("data",)

    def __init__(self, data: Data | str | None = None) -> None:
        #: The bytes, None for all that comes.
        self.data = None if data is None else _bytes("data", data)


@hinted
class Pause(Record):
    """A fake program does nothing for so long.

    In a `run` and in a `map` no time goes by: the run is told to have taken it, and a timeout
    that is shorter comes.
    """

    __slots__ = ("seconds",)

    def __init__(self, seconds: Seconds) -> None:
        found = checked_seconds(seconds, "seconds")
        if found is None or not 0 <= found < 2**31:
            raise _too_long("seconds", seconds)
        #: The time.
        self.seconds: float = found


def _too_long(name: str, value: Any) -> InvalidValue:
    return bad_value(name, value, "pass a time, 0 or more; Hang() is for ever")


@hinted
class Hang(Record):
    """A fake program does not end by itself: a timeout, a cancel, a signal or a stop ends it."""

    __slots__ = ()


_STEPS = (Out, Err, In, Pause, Hang)


@hinted
class Reply(Record):
    """What a fake program does.

    steps
        One after the other: `Out`, `Err`, `In`, `Pause`, `Hang`. Text or bytes alone are an
        `Out`.
    stdout, stderr
        What it writes before these.
    returncode
        How it ends: an exit code, or -N for an end by signal N.
    """

    __slots__ = ("steps", "returncode", "_recorded")

    def __init__(
        self,
        steps: Iterable[_Step | Data | str] = (),
        *,
        stdout: Data | str = b"",
        stderr: Data | str = b"",
        returncode: int = 0,
    ) -> None:
        made: list[_Step] = []
        if out := _bytes("stdout", stdout):
            made.append(Out(out))
        if err := _bytes("stderr", stderr):
            made.append(Err(err))
        hint = "pass a list of steps: Out, Err, In, Pause or Hang, or text for an Out"
        for place, step in enumerate(items("steps", steps, hint)):
            if isinstance(step, _STEPS):
                made.append(step)
            elif isinstance(step, (str, bytes, bytearray, memoryview)):
                made.append(Out(step))
            else:
                raise bad_type(f"steps[{place}]", step, hint)
        #: The steps.
        self.steps = tuple(made)
        hint = "pass an exit code, 0 to 255, or -N for an end by signal N, to -64"
        #: The exit code, or -N for signal N.
        self.returncode = number("returncode", returncode, -64, 255, hint)
        #: Parts of a result that was recorded, for a run.
        self._recorded: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"Reply({list(self.steps)!r}, returncode={self.returncode!r})"

    def _parts(self) -> dict[str, Any]:
        return {"steps": self.steps, "returncode": self.returncode}

    @classmethod
    def of(cls, result: Result[Any, Any, Any]) -> Reply:
        """What plays a result of a real run: all that it tells is told again."""
        if not isinstance(result, Result):
            raise bad_type("result", result, "pass a Result, as run() gives it")
        return _of_dict(result.to_dict(), result.explanation, result.summary)


def _of_dict(parts: dict[str, Any], explanation: str, summary: str) -> Reply:
    """The reply that plays a result again, as the JSON of it says."""
    found = {
        name: None if parts[name] is None else _data_of(parts[name])
        for name in ("stdout", "stderr")
    }
    steps: list[_Step] = []
    at = {"stdout": 0, "stderr": 0}
    kinds: dict[str, type[Out | Err]] = {"stdout": Out, "stderr": Err}
    for one in parts["merged"] or ():
        name = one["stream"]
        # Of what a limit has dropped nothing is left to play.
        piece = (found[name] or b"")[at[name] : at[name] + one["bytes"]]
        at[name] += one["bytes"]
        if piece:
            steps.append(kinds[name](piece))
    for name, data in found.items():
        if rest := (data or b"")[at[name] :]:
            steps.append(kinds[name](rest))
    status = parts["status"]
    code = -status["signal"] if status["kind"] == "signaled" else status.get("code", 0)
    reply = Reply(steps, returncode=code)
    reply._recorded = {**_raw_parts(parts), "explanation": explanation, "summary": summary}
    return reply


_KEPT = (
    "pid",
    "reason",
    "outcome",
    "duration_s",
    "cpu_user_s",
    "cpu_system_s",
    "max_rss_bytes",
    "processes",
)


def _raw_parts(parts: dict[str, Any]) -> dict[str, Any]:
    """The parts of a report, as the core gives them, out of those of JSON."""
    raw = {name: parts[name] for name in _KEPT}
    # Records that were made before it was told have none.
    raw["why"] = parts.get("why")
    status = parts["status"]
    raw["status"] = tuple(
        status.get(name) for name in ("kind", "code", "signal", "name", "core", "why")
    )
    raw["survivors"] = [(one["pid"], one["name"], one["state"]) for one in parts["survivors"]]
    for name in ("stdout_info", "stderr_info"):
        info = parts[name]
        if info is not None:
            info = {**info, "held_by": [(one["pid"], one["name"], None) for one in info["held_by"]]}
            if info["kept_at"] is not None:
                info["kept_at"] = _data_of(info["kept_at"])
        raw[name] = info
    segments = parts["merged"]
    raw["merged"] = segments and [
        (1 if one["stream"] == "stdout" else 2, one["bytes"], one["ambiguous"], one["at"])
        for one in segments
    ]
    return raw


def _data_of(written: str | dict[str, str]) -> bytes:
    """The bytes of text, or of base64."""
    if isinstance(written, str):
        return written.encode()
    import base64

    return base64.b64decode(written["base64"], validate=True)


def not_found(program: str) -> SpawnError:
    """The error of a program that does not exist, for a fake to raise."""
    if not isinstance(program, str):
        raise bad_type("program", program, "pass the name of a program, a str")
    return failed_start(errors.ENOENT, program, "exec")


def failed_start(errno: int, program: str, step: str) -> SpawnError:
    reason = os.strerror(errno)
    return _spawn_error(errno, reason, program, step, f"cannot run {program}: {step}: {reason}")
