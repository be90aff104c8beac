"""When and how it is told who holds the outputs of a program that has ended: `HeldAt`, and the rest
of a `communicate` that lasts; and that one caller alone communicates."""

from __future__ import annotations

import errno
import weakref
from contextlib import suppress

from . import _core
from ._timed import has_more
from ._timeout import Deadline, sooner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

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


#: What who communicates beside another is told.
_ONE_AT_A_TIME = (
    "somebody communicates with this child already, and gets all of its output: share that result, "
    "or call again when it has come"
)


class Alone:
    """A block that one caller at a time is in: another thread or task, or a handler of a signal
    that runs within it, is refused, and does not wait.

    Callers stand in a row, and the first is in. Each is there by a weak reference to a mark of its
    own: where an interrupt comes between two steps of a block's beginning or end, the mark is gone
    with the caller's frame. A lock would be held for ever.
    """

    __slots__ = ("_row",)

    def __init__(self) -> None:
        self._row: list[weakref.ref[_Mark]] = []

    def __call__(self, refusal: Callable[[str], Exception] = RuntimeError) -> _Mark:
        """The block: `with alone():`. `refusal` makes the error of who is not let in."""
        return _Mark(self._row, refusal)


class _Mark:
    __slots__ = ("__weakref__", "_own", "_refusal", "_row")

    def __init__(self, row: list[weakref.ref[_Mark]], refusal: Callable[[str], Exception]) -> None:
        self._row = row
        self._refusal = refusal
        self._own = weakref.ref(self)

    def __enter__(self) -> None:
        row = self._row
        # One step for all threads, and their order.
        row.append(self._own)
        for one in list(row):
            if one is self._own:
                return
            if one() is not None:
                self.__exit__()
                raise self._refusal(_ONE_AT_A_TIME)
            with suppress(ValueError):
                row.remove(one)

    def __exit__(self, *_: object) -> None:
        with suppress(ValueError):
            self._row.remove(self._own)


#: What the system says that has no room for one more descriptor.
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def go_on(core: _core.Child, talk: _core.Communication, deadline: Deadline) -> bool:
    """Goes on until all is written and read, and has the listener of the child told once, at its
    `HeldAt`, who holds its outputs. False if the time comes first."""
    try:
        return _told(core, talk, deadline)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
    # Without a descriptor more nobody is told.
    return talk.go_on(deadline.left())


def _told(core: _core.Child, talk: _core.Communication, deadline: Deadline) -> bool:
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
                core.tell_held(None)
            if (left := deadline.left()) == 0:
                return False
            until_told = None if is_told else told_at.left()
            has_more(steps.fileno(), sooner(sooner(seconds, until_told), left))
    finally:
        steps.close()
