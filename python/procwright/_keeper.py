"""What becomes of a child that nobody keeps."""

from __future__ import annotations

import atexit
import sys
from weakref import ref

from . import _core
from ._options import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._types import Args

#: The keepers that there are, for the end of the interpreter: by their `id`, since a dictionary
#: is changed and listed by one step each, whatever other threads do.
_keepers: dict[int, ref[Keeper]] = {}


class Keeper:
    """Knows that somebody has a child: the `Child` and each of its streams refer to it, and it
    to none of them.

    So it goes, without a garbage collection, when the last of them goes. A program that runs on
    then has nobody who reads it or waits for it, and would be killed by SIGPIPE at its next
    word, whatever it is about. It is warned of, and stopped as its `stop` says.
    """

    __slots__ = ("__weakref__", "_args", "_core", "_line")

    def __init__(self, core: _core.Child, args: Args, line: tuple[str, int, str]) -> None:
        self._core: _core.Child | None = core
        self._args = args
        self._line = line
        _keepers[id(self)] = ref(self)

    def release(self) -> None:
        """Leaves the program to itself from now on."""
        self._core = None

    def forget(self) -> _core.Child | None:
        """Warns of the program and has it stopped, if it runs. The child that is stopped."""
        core, self._core = self._core, None
        # The program is stopped, whatever becomes of the warning.
        if core is None or not core.stop_in_background():
            return None
        self._warn(core)
        return core

    def _warn(self, core: _core.Child) -> None:
        import warnings

        filename, number, module = self._line
        text = (
            f"nobody keeps the child {quoted(self._args)} (pid {core.process().pid}), which still "
            "ran: it is stopped. Keep the Child, or one of its streams, for as long as it is to "
            "run; start it in a `with` block; or spawn with detach=True what is to live on"
        )
        warnings.warn_explicit(text, ResourceWarning, filename, number, module)

    def __del__(self) -> None:
        _keepers.pop(id(self), None)
        self.forget()


def line_of_caller() -> tuple[str, int, str]:
    """File and number of the line outside of this package that has called, and its module."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        frame = frame.f_back
    name = frame.f_globals.get("__name__", "<unknown>")
    return frame.f_code.co_filename, frame.f_lineno, name


@atexit.register
def _forget_all() -> None:
    """At the end of the interpreter nobody is left who could keep a child."""
    keepers = [keeper for one in list(_keepers.values()) if (keeper := one()) is not None]
    stopped = [core for keeper in keepers if (core := keeper.forget()) is not None]
    for core in stopped:
        # Waits for the stop that is under way.
        core.stop(None)
