"""Several programs side by side, as a stage of a pipeline."""

from __future__ import annotations

from ._invalid import InvalidValue, bad_type
from ._record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ._late import LateCommand
    from ._types import Args


class Fan(Record):
    """Programs side by side, as a stage of a pipeline.

    Each gets all that the stage before them writes, as behind `tee`, and what all of them write
    goes into the next one, line by line, each line whole. As the last stage each has a stdout of
    its own, as the first a stdin.

    Each is what a stage is: a list of arguments, or a mapping of `args` and options, among which
    is `stdout` for the last, and `stdin` for the first. What passes goes through this process. One
    that reads slowly holds up the stage before, and so the others, unless there is an elastic
    buffer behind that; one that leaves early is no matter for the others.
    """

    __slots__ = ("programs",)

    def __init__(self, *programs: Args | Mapping[str, Any] | LateCommand[Any]) -> None:
        if not programs:
            raise InvalidValue("Fan() has no program: name one at least")
        for place, program in enumerate(programs):
            if isinstance(program, Fan):
                hint = "its programs are side by side already: name them all in one"
                raise bad_type(f"a program of Fan, programs[{place}],", program, hint)
            if hasattr(program, "_is_late_pipeline"):
                hint = "it is several programs, and this place is for one: ['sh', '-c', 'a | b']"
                raise bad_type(f"a program of Fan, programs[{place}],", program, hint)
            if hasattr(program, "_is_late_command"):
                continue
            if _is_function(program):
                hint = "a function stands between two programs: put it before, and a cat behind it"
                raise bad_type(f"a program of Fan, programs[{place}],", program, hint)
        #: The programs, as they were given.
        self.programs = programs


_HINT_ALONE = "it is all that there is: put a program before it or behind it, such as ['cat']"
_HINT_BOTH = "it has another before it: put a program between, such as ['cat']"
_HINT_FUNCTION = "a Fan is beside a program and no function: put a ['cat'] between"


def spread(stages: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[tuple[int, int]]]:
    """The stages with each program of a Fan as one of them; and of each Fan how many programs are
    before it, and how many it has."""
    fans: list[tuple[int, int]] = []
    flat: list[Any] = []
    before = 0
    for place, stage in enumerate(stages):
        if not isinstance(stage, Fan):
            flat.append(stage)
            before += not _is_function(stage)
            continue
        beside = [stages[at] for at in (place - 1, place + 1) if 0 <= at < len(stages)]
        hint = None
        if not beside and len(stage.programs) > 1:
            hint = _HINT_ALONE
        elif any(_is_function(one) for one in beside):
            hint = _HINT_FUNCTION
        elif place > 0 and isinstance(stages[place - 1], Fan):
            hint = _HINT_BOTH
        if hint is not None:
            raise bad_type(f"stages[{place}]", stage, hint)
        fans.append((before, len(stage.programs)))
        flat.extend(stage.programs)
        before += len(stage.programs)
    return tuple(flat), fans


def row(fans: list[tuple[int, int]], stages: int) -> list[range]:
    """The stages that stand at each place, one after the other, of so many with these Fans."""
    several = dict(fans)
    places: list[range] = []
    before = 0
    while before < stages:
        end = before + several.get(before, 1)
        places.append(range(before, end))
        before = end
    return places


def _is_function(stage: Any) -> bool:
    return callable(stage) and not hasattr(stage, "keys")
