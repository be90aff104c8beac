"""What the ends of stages that are played mean for the whole, and what is said of them."""

from __future__ import annotations

import re

from ._fake_calls import command
from ._record import Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ._core import RawPipeline
    from ._fake_calls import Call


def judge(places: list[range], stages: list[dict[str, Any]], options: Mapping[str, Any]) -> None:
    """Judges each stage as the core does, by all that is known of one that is played."""
    rule, ok_codes = options["success"], dict(options["ok_codes"])
    functions = [behind for behind, _ in options["functions"]]
    to_blame = _to_blame(places, stages)
    is_well = True
    for place in reversed(places):
        is_last = place == places[-1]
        # A function reads all that there is.
        is_well = is_well or place.start in functions
        for stage in place:
            raw = stages[stage]
            is_broken = not is_last and _is_of_a_broken_pipe(raw)
            if raw["reason"] != "finished":
                judgement = "failed" if stage in to_blame else "collateral"
            elif raw["status"][1] in (0, *raw["ok_codes"], *ok_codes.get(stage, ())):
                judgement = "success"
            elif is_broken and not is_well:
                judgement = "collateral"
            elif is_broken and rule != "strict":
                judgement = "forgiven"
            else:
                judgement = "ignored" if rule == "last" and not is_last else "failed"
            raw["judgement"] = judgement
        is_well = all(stages[stage]["judgement"] in _WELL for stage in place)


_WELL = ("success", "forgiven", "ignored")


def stopped_first(stages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of the stages at one place that all were stopped for."""
    stopped = [raw for raw in stages if raw["reason"] != "finished"]
    begun = min((raw["duration_s"] for raw in stopped), default=0.0)
    return [raw for raw in stopped if raw["duration_s"] == begun]


def _stop(places: list[range], stages: list[dict[str, Any]]) -> tuple[range, list[dict[str, Any]]]:
    """The first place with stages that all were stopped for, and these; none if none was."""
    for place in places:
        if stopped := stopped_first(stages[place.start : place.stop]):
            return place, stopped
    return range(0), []


def _to_blame(places: list[range], stages: list[dict[str, Any]]) -> list[int]:
    """The stages that held up the rest, or the one that has written too much."""
    place, stopped = _stop(places, stages)
    if not stopped or stopped[0]["reason"] == "cancelled":
        return []
    found = [stage for stage in place if any(stages[stage] is raw for raw in stopped)]
    return found[:1] if stopped[0]["reason"] == "output_limit" else found


def _is_of_a_broken_pipe(raw: Mapping[str, Any]) -> bool:
    kind, code, signal, *_ = raw["status"]
    if kind == "signaled":
        return bool(signal == 13)
    words = (raw["stderr"] or b"")[-1000:]
    return code == 141 or re.search(rb"(?i:broken pipe)|\bEPIPE\b", words) is not None


def whole(
    places: list[range], calls: list[Call], stages: list[dict[str, Any]], rule: Any
) -> RawPipeline:
    """All stages, in the words of the core."""
    of = len(stages)
    stopped = next(iter(_stop(places, stages)[1]), None)
    failed = [stage for stage, raw in enumerate(stages) if raw["judgement"] == "failed"]
    reason: Any = "finished" if stopped is None else stopped["reason"]
    success = stopped is None and all(raw["judgement"] in _WELL for raw in stages)
    if stopped is not None:
        outcome = stopped["outcome"]
    elif success:
        outcome = "ended well"
    else:
        named = (f"stage {stage + 1} of {of} {stages[stage]['outcome']}" for stage in failed)
        outcome = f"failed: {', '.join(named)}"
    summary = f"{_joined(places, [command(call) for call in calls])} {outcome}"
    text = summary
    for stage in failed:
        is_held_up = reason in _TIMES and stages[stage]["reason"] != "finished"
        held_up = " held up the rest" if is_held_up else ""
        facts = stages[stage]["explanation"].replace("\n", "\n  ")
        text += f"\n  stage {stage + 1} of {of}{held_up}: {facts}"
    for place, behind in zip(places, [*places[1:], range(0)], strict=True):
        for stage in place:
            raw = stages[stage]
            if raw["judgement"] != "collateral":
                continue
            status = Status(*raw["status"])
            ended = f"was {status}" if status.kind == "signaled" else str(status)
            why = "all were stopped"
            if raw["reason"] == "finished":
                has_one = len(behind) == 1
                why = "the next one had failed" if has_one else _ALL_HAD_ENDED
            text += f"\n  stage {stage + 1} of {of}: {command(calls[stage])} {ended}, since {why}"
    found: Any = stages
    told: RawPipeline = {
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
    return told


#: Reasons by which the one that held up the rest is to blame.
_TIMES = ("timeout", "idle_timeout")
_ALL_HAD_ENDED = "all that read it had ended, and not all well"


def _joined(places: list[range], commands: list[str]) -> str:
    row = []
    for place in places:
        several = commands[place.start : place.stop]
        row.append(several[0] if len(several) == 1 else f"{{{_short(several, ', ', 'programs')}}}")
    return _short(row, " | ", "stages")


def _short(parts: list[str], between: str, what: str) -> str:
    """All of these, or of many the beginning and the end."""
    if len(parts) > 6:
        parts = [*parts[:3], f"[… {len(parts) - 4} {what} …]", parts[-1]]
    return between.join(parts)
