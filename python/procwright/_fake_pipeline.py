"""A pipeline that is played: one stage after the other, in no time.

What a stage has written to its stdout is the input of the next one, or of each program of a `Fan`,
and the lines that these write are that of the one behind them, one program after the other. Where a
stage does not end by itself, those behind it have waited for it, and are stopped with it.
"""

from __future__ import annotations

import errno
import io
import itertools
import os

from ._fake_calls import Call
from ._fake_judgement import judge, stopped_first, whole
from ._fake_reply import _of_dict
from ._fake_run import played
from ._fan import row
from ._invalid import InvalidValue
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
    "fans",
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
    if others := [name for name, value in options.items() if value and name not in _PLAYED]:
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
    places = row(options["fans"], len(calls))
    for place, behind in zip(places, [*places[1:], range(0)], strict=True):
        ended = [_ended(calls[stage], ask, is_read=bool(behind)) for stage in place]
        stages += ended
        if not behind:
            break
        data = _by_lines([_taken(raw) for raw in ended])
        stopped = stopped_first(ended)
        if place.start in functions:
            streams = _Streams(data, bool(stopped))
            ends[place.start] = streams.end_of(functions[place.start])
            data = b"".join(streams.written)
        for stage in behind:
            calls[stage]._options["stdin"] = ("bytes", data)
            if stopped:
                calls[stage]._stopped = stopped[0]["reason"], stopped[0]["duration_s"]
    for stage, raw in enumerate(stages):
        raw["elastic"] = raw["fan"] = None
        raw["function"] = ends.get(stage)
    _count(places, calls, stages, [stage for stage, _ in options["elastic"]])
    judge(places, stages, options)
    return whole(places, calls, stages, options["success"])


def _ended(call: Call, ask: Callable[[Call], Any], *, is_read: bool) -> dict[str, Any]:
    """What came of a stage. If it is read, the next one has all of what it writes."""
    if is_read:
        own = call._options
        of_stderr = {"limit": None, "stderr_limit": own["limit"]}
        call._options = {**own, "stdout": ("capture", None), **of_stderr}
    raw: dict[str, Any] = ask(call)
    return raw


def _taken(raw: dict[str, Any]) -> bytes:
    """Takes what a stage has written from its result: the next one has it."""
    data, raw["stdout"], raw["stdout_info"] = raw["stdout"] or b"", None, None
    return data


def _by_lines(outputs: list[bytes]) -> bytes:
    """All of them, where a last line without an end gets one if something comes behind it."""
    some = [data for data in outputs if data]
    ended = [data if data.endswith(b"\n") else data + b"\n" for data in some[:-1]]
    return b"".join(ended + some[-1:])


def _count(
    places: list[range], calls: list[Call], stages: list[dict[str, Any]], elastic: list[int]
) -> None:
    """Gives each stage the figures of what this process would have passed on to it or behind it."""
    for place, behind in itertools.pairwise(places):
        passed = len(calls[behind.start]._options["stdin"][1])
        figures = {**_NO_FIGURES, "bytes_in": passed, "bytes_out": passed}
        if len(behind) > 1:
            for stage in behind:
                stages[stage]["fan"] = figures
        elif place.start in elastic:
            stages[place.start]["elastic"] = figures


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
        if (fan := parts.get("fan")) is not None:
            stage["fan"] = {**_NO_FIGURES, **fan}
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
