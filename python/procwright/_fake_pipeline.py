"""A pipeline that is played: one stage after the other, in no time.

What a stage has written to its stdout is the input of the next one. Where a stage does not end by
itself, those behind it have waited for it, and are stopped with it.
"""

from __future__ import annotations

import errno
import io
import os
import re

from ._fake_calls import Call, command
from ._fake_reply import _of_dict
from ._fake_run import played
from ._invalid import InvalidValue
from ._record import Status
from ._stream import Figures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ._core import RawPipeline

#: Options of a run that a stage has not.
_OF_A_RUN = {
    "merged": False,
    "keep_full": None,
    "explain_after": None,
    "max_length": None,
    "too_long": False,
}


#: What can be played of a pipeline.
_PLAYED = {
    "cancel",
    "elastic",
    "functions",
    "idle_timeout",
    "ok_codes",
    "on_event",
    "stages",
    "stop",
    "success",
    "timeout",
}


def calls_of(options: Mapping[str, Any], stages: list[dict[str, Any]]) -> list[Call]:
    """The call of each stage, with the options of a run. `stages` have their parameters."""
    has = {**options, "a Fan": options["fans"], "fans": None}
    if others := [name for name, value in has.items() if value and name not in _PLAYED]:
        raise InvalidValue(
            f"{others[0]} is given, and a Fake and a Cassette play no pipeline with it"
        )
    of_all = {name: options[name] for name in ("timeout", "idle_timeout", "stop", "cancel")}
    return [
        Call("pipeline", given["args"], {**raw, **of_all, **_OF_A_RUN}, given, place)
        for place, (raw, given) in enumerate(zip(options["stages"], stages, strict=True))
    ]


def played_pipeline(
    calls: list[Call],
    options: Mapping[str, Any],
    ask: Callable[[Call], Any],
) -> RawPipeline:
    """What the core would report. `ask` answers a stage. What that or a function raises comes
    through."""
    functions: dict[int, Callable[[Any], None]] = dict(options["functions"])
    ends: dict[int, tuple[str, str]] = {}
    stages: list[dict[str, Any]] = []
    for place, call in enumerate(calls):
        own = call._options
        is_last = place == len(calls) - 1
        if not is_last:
            # The next one has all of what it writes.
            of_stderr = {"limit": None, "stderr_limit": own["limit"]}
            call._options = {**own, "stdout": ("capture", None), **of_stderr}
        raw = ask(call)
        stages.append(raw)
        if is_last:
            break
        data, raw["stdout"], raw["stdout_info"] = raw["stdout"] or b"", None, None
        behind = calls[place + 1]
        if place in functions:
            streams = _Streams(data, raw["reason"] != "finished")
            ends[place] = streams.end_of(functions[place])
            data = b"".join(streams.written)
        behind._options["stdin"] = ("bytes", data)
        if raw["reason"] != "finished":
            behind._stopped = raw["reason"], raw["duration_s"]
    for place, raw in enumerate(stages):
        raw["elastic"] = None
        if any(place == behind for behind, _ in options["elastic"]):
            passed = len(calls[place + 1]._options["stdin"][1])
            raw["elastic"] = {**_NO_FIGURES, "bytes_in": passed, "bytes_out": passed}
        raw["fan"] = None
        raw["function"] = ends.get(place)
    _judge(stages, options)
    return _whole(calls, stages, options["success"])


#: Those of a buffer that had nothing to do.
_NO_FIGURES = dict.fromkeys(Figures.__slots__, 0)
#: What is recorded of a whole pipeline besides its stages.
_OF_WHOLE = ("success", "rule", "reason", "outcome", "duration_s")


def replayed(
    calls: list[Call], options: Mapping[str, Any], recorded: Mapping[str, Any], texts: list[Any]
) -> RawPipeline:
    """What the core reported of one that was recorded, as its JSON says, whose functions are not
    called. `texts` are the summary and explanation of each stage, and at last of all."""
    parts_and_texts = zip(recorded["stages"], texts[:-1], strict=True)
    replies = iter([_of_dict(parts, said, line) for parts, (line, said) in parts_and_texts])
    plain = {**options, "functions": [], "elastic": []}
    raw: Any = played_pipeline(calls, plain, lambda call: played(call, next(replies)))
    for stage, parts in zip(raw["stages"], recorded["stages"], strict=True):
        stage["judgement"] = parts["judgement"]
        if parts["elastic"] is not None:
            stage["elastic"] = {**_NO_FIGURES, **parts["elastic"]}
        if (function := parts.get("function")) is not None:
            stage["function"] = function["end"], function["judgement"]
    raw.update({name: recorded[name] for name in _OF_WHOLE})
    raw["summary"], raw["explanation"] = texts[-1]
    whole: RawPipeline = raw
    return whole


class _Streams:
    """What a function between two programs reads and writes."""

    def __init__(self, data: bytes, is_stopped: bool) -> None:
        self._input = io.BytesIO(data)
        #: Whether all are stopped behind this data, which is no end of it.
        self._is_stopped = is_stopped
        self._is_cut = False
        self.written: list[bytes] = []

    def read(self, size: int) -> bytes:
        data = self._input.read(size)
        if not data and size and self._is_stopped:
            self._is_cut = True
            raise OSError(errno.ECANCELED, os.strerror(errno.ECANCELED))
        return data

    def end_of(self, function: Callable[[Any], None]) -> tuple[str, str]:
        """What becomes of the function, and its judgement. What it raises comes through, but for
        the error that it has from here."""
        try:
            function(self)
        except OSError as error:
            if not self._is_cut or error.errno != errno.ECANCELED:
                raise
            return "cancelled", "collateral"
        return "returned", "success"

    def write(self, data: bytes) -> None:
        self.written.append(data)


def _judge(stages: list[dict[str, Any]], options: Mapping[str, Any]) -> None:
    """Judges each stage as the core does, by all that is known of one that is played."""
    rule, ok_codes = options["success"], dict(options["ok_codes"])
    functions = [behind for behind, _ in options["functions"]]
    to_blame = _to_blame(stages)
    is_well = True
    for place in reversed(range(len(stages))):
        raw = stages[place]
        is_last = place == len(stages) - 1
        # A function reads all that there is.
        is_well = is_well or place in functions
        if raw["reason"] != "finished":
            judgement = "failed" if place == to_blame else "collateral"
        elif raw["status"][1] == 0 or raw["status"][1] in ok_codes.get(place, ()):
            judgement = "success"
        elif not is_last and _is_of_a_broken_pipe(raw) and not is_well:
            judgement = "collateral"
        elif not is_last and _is_of_a_broken_pipe(raw) and rule != "strict":
            judgement = "forgiven"
        else:
            judgement = "ignored" if rule == "last" and not is_last else "failed"
        raw["judgement"] = judgement
        is_well = judgement in _WELL


_WELL = ("success", "forgiven", "ignored")


def _to_blame(stages: list[dict[str, Any]]) -> int | None:
    """The place of the stage that held up the rest, or that has written too much."""
    for place, raw in enumerate(stages):
        if raw["reason"] != "finished":
            return None if raw["reason"] == "cancelled" else place
    return None


def _is_of_a_broken_pipe(raw: Mapping[str, Any]) -> bool:
    kind, code, signal, *_ = raw["status"]
    if kind == "signaled":
        return bool(signal == 13)
    words = (raw["stderr"] or b"")[-1000:]
    return code == 141 or re.search(rb"(?i:broken pipe)|\bEPIPE\b", words) is not None


def _whole(calls: list[Call], stages: list[dict[str, Any]], rule: Any) -> RawPipeline:
    """All stages, in the words of the core."""
    of = len(stages)
    stopped = next((raw for raw in stages if raw["reason"] != "finished"), None)
    failed = [place for place, raw in enumerate(stages) if raw["judgement"] == "failed"]
    reason: Any = "finished" if stopped is None else stopped["reason"]
    success = stopped is None and all(raw["judgement"] in _WELL for raw in stages)
    if stopped is not None:
        outcome = stopped["outcome"]
    elif success:
        outcome = "ended well"
    else:
        named = (f"stage {place + 1} of {of} {stages[place]['outcome']}" for place in failed)
        outcome = f"failed: {', '.join(named)}"
    summary = f"{_joined([command(call) for call in calls])} {outcome}"
    text = summary
    for place in failed:
        held_up = " held up the rest" if reason in ("timeout", "idle_timeout") else ""
        facts = stages[place]["explanation"].replace("\n", "\n  ")
        text += f"\n  stage {place + 1} of {of}{held_up}: {facts}"
    for place, raw in enumerate(stages):
        if raw["judgement"] == "collateral":
            status = Status(*raw["status"])
            ended = f"was {status}" if status.kind == "signaled" else str(status)
            why = "the next one had failed" if raw["reason"] == "finished" else "all were stopped"
            text += f"\n  stage {place + 1} of {of}: {command(calls[place])} {ended}, since {why}"
    found: Any = stages
    whole: RawPipeline = {
        "stages": found,
        "success": success,
        "rule": rule,
        "reason": reason,
        "outcome": outcome,
        "summary": summary,
        "duration_s": max(raw["duration_s"] for raw in stages),
        "explanation": text,
        "error": None,
        "io_error": None,
    }
    return whole


def _joined(commands: list[str]) -> str:
    if len(commands) > 6:
        commands = [*commands[:3], f"[… {len(commands) - 4} stages …]", commands[-1]]
    return " | ".join(commands)
