"""When and how it is told who holds the outputs of a program that has ended: `HeldAt`, and the rest
of a `communicate` that lasts."""

from __future__ import annotations

from . import _core
from ._timed import has_more
from ._timeout import Deadline, sooner

#: Seconds after its end until who holds a program's outputs is told: as in the core.
HELD_AFTER_S = 1.0


class HeldAt(Deadline):
    """The moment at which it is told who holds the outputs of a program, None while that lives."""

    __slots__ = ("_core",)

    def __init__(self, core: _core.Child) -> None:
        super().__init__(None)
        self._core = core

    def left(self) -> float | None:
        if self._end is None and self._core.poll() is not None:
            super().__init__(HELD_AFTER_S)
        return super().left()


def go_on(core: _core.Child, talk: _core.Communication, deadline: Deadline) -> bool:
    """Goes on until all is written and read and the child has ended, and has its listener told
    once, at its `HeldAt`, who holds its outputs. False if the time comes first."""
    told_at = HeldAt(core)
    is_told = False
    steps = _core.Talk(core, talk)
    try:
        while True:
            is_over, seconds = steps.step()
            if is_over:
                return True
            if not is_told and told_at.left() == 0:
                is_told = True
                core.tell_held()
            if (left := deadline.left()) == 0:
                return False
            until_told = None if is_told else told_at.left()
            has_more(steps.fileno(), sooner(sooner(seconds, until_told), left))
    finally:
        steps.close()
