"""Several programs at the end of a pipeline, each of which gets all."""

from __future__ import annotations

from ._invalid import InvalidValue, bad_type
from ._record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ._types import Args


class Fan(Record):
    """The programs side by side that a pipeline ends in, as its last stage: each gets all that the
    one before them writes, as behind `tee`, and has a stdout of its own.

    Each is what a stage is: a list of arguments, or a mapping of `args` and options, among which
    is `stdout` here. What passes goes through this process. One that reads slowly holds up the
    one before, and so the others, unless there is an elastic buffer behind that; one that leaves
    early is no matter for the others.
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


_HINT_FIRST = (
    "a Fan is fed by the program before it: put one there, such as ['cat'] if it is the input that "
    "each is to get"
)
_HINT_LAST = (
    "a Fan ends the pipeline, as each of its programs has an output of its own: what is to be "
    "behind one of them can be named with it, as ['sh', '-c', 'a | b']"
)
_HINT_FUNCTION = "a Fan copies what a program writes: put a ['cat'] between it and the function"


def spread(stages: tuple[Any, ...]) -> tuple[tuple[Any, ...], int]:
    """The stages with each program of the Fan as one of them, and how many these are: 0 without
    one."""
    for place, stage in enumerate(stages):
        if not isinstance(stage, Fan):
            continue
        hint = None
        if place == 0:
            hint = _HINT_FIRST
        elif place != len(stages) - 1:
            hint = _HINT_LAST
        elif callable(stages[place - 1]) and not hasattr(stages[place - 1], "keys"):
            hint = _HINT_FUNCTION
        if hint is not None:
            raise bad_type(f"stages[{place}]", stage, hint)
        return (*stages[:place], *stage.programs), len(stage.programs)
    return stages, 0
