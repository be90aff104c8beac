"""Several programs side by side, at the end of a pipeline or at its start."""

from __future__ import annotations

from ._invalid import InvalidValue, bad_type
from ._record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ._types import Args


class Fan(Record):
    """Programs side by side, as the last stage of a pipeline or the first.

    As the last, each gets all that the one before them writes, as behind `tee`, and has a stdout
    of its own. As the first, what they write goes into the next one, line by line, each line
    whole.

    Each is what a stage is: a list of arguments, or a mapping of `args` and options, among which
    is `stdout` for the last, and `stdin` for the first. What passes goes through this process. Of
    the last, one that reads slowly holds up the one before, and so the others, unless there is an
    elastic buffer behind that; one that leaves early is no matter for the others.
    """

    __slots__ = ("programs",)

    def __init__(self, *programs: Args | Mapping[str, Any]) -> None:
        if not programs:
            raise InvalidValue("Fan() has no program: name one at least")
        for place, program in enumerate(programs):
            if isinstance(program, Fan):
                hint = "its programs are side by side already: name them all in one"
                raise bad_type(f"a program of Fan, programs[{place}],", program, hint)
            if callable(program) and not hasattr(program, "keys"):
                hint = "a function stands between two programs: put it before, and a cat behind it"
                raise bad_type(f"a program of Fan, programs[{place}],", program, hint)
        #: The programs, as they were given.
        self.programs = programs


_HINT_MIDDLE = (
    "a Fan is the last stage or the first: put what is to be behind one of its programs with it, "
    "as ['sh', '-c', 'a | b']"
)
_HINT_ALONE = "it is all that there is: put a program before it or behind it, such as ['cat']"
_HINT_BOTH = "it has another before it: put a program between, such as ['cat']"
_HINT_FUNCTION = "a Fan is beside a program and no function: put a ['cat'] between"


def spread(stages: tuple[Any, ...]) -> tuple[tuple[Any, ...], int, int]:
    """The stages with each program of a Fan as one of them, and how many these are at the start
    and at the end: 0 without one."""
    counts = [0, 0]
    flat: list[Any] = []
    last = len(stages) - 1
    for place, stage in enumerate(stages):
        if not isinstance(stage, Fan):
            flat.append(stage)
            continue
        beside = [stages[at] for at in (place - 1, place + 1) if 0 <= at <= last]
        hint = None
        if not beside:
            hint = _HINT_ALONE if len(stage.programs) > 1 else None
        elif len(beside) > 1:
            hint = _HINT_MIDDLE
        elif callable(beside[0]) and not hasattr(beside[0], "keys"):
            hint = _HINT_FUNCTION
        elif place > 0 and isinstance(beside[0], Fan):
            hint = _HINT_BOTH
        if hint is not None:
            raise bad_type(f"stages[{place}]", stage, hint)
        counts[place > 0] = len(stage.programs)
        flat.extend(stage.programs)
    return tuple(flat), counts[0], counts[1]
