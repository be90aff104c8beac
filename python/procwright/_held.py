"""The rest of a `communicate` that lasts, which tells who holds the outputs of a program that has
ended."""

from __future__ import annotations

from . import _core
from ._timed import has_more
from ._timeout import Deadline, sooner


def go_on(
    core: _core.Child, talk: _core.Communication, deadline: Deadline, told_after_s: float
) -> bool:
    """Goes on until all is written and read and the child has ended, and has its listener told, so
    many seconds after that end, who holds its outputs. False if the time comes first."""
    told_at = Deadline(None)
    is_told = False
    steps = _core.Talk(core, talk)
    try:
        while True:
            is_over, seconds = steps.step()
            if is_over:
                return True
            if told_at.left() is None and core.poll() is not None:
                told_at = Deadline(told_after_s)
            if not is_told and told_at.left() == 0:
                is_told = True
                core.tell_held()
            if (left := deadline.left()) == 0:
                return False
            until_told = None if is_told else told_at.left()
            has_more(steps.fileno(), sooner(sooner(seconds, until_told), left))
    finally:
        steps.close()
