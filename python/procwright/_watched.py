"""The handles that the core watches for the things that a wait is given."""

from __future__ import annotations

from . import _core
from ._arguments import refuse_closed
from ._invalid import bad_type, bad_value, shown
from ._process import AnyProcess, opened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def watched(thing: Any) -> _core._Watched:
    """The handle that the core can watch for a thing; None if that is over."""
    if isinstance(thing, (AnyProcess, int, str)):
        return opened(thing)
    if isinstance(monitor := getattr(thing, "monitor", thing), _core.LivenessMonitor):
        # That of an event loop has it. One whose peer is gone needs no descriptor, which may not
        # be had any more.
        return monitor if monitor.alive() else None
    if isinstance(thing, _core.Cancel):
        return thing
    if isinstance(receiver := getattr(thing, "receiver", thing), _core.Receiver):
        # An ObjectReceiver has it, and that of an event loop.
        return receiver
    if isinstance(own := getattr(thing, "_handle", None), _core.ProcessHandle):
        # A child of ours.
        return own
    is_held = getattr(thing, "_is_held", None)
    if is_held is not None and (thing.closed or is_held()):
        # A stream of ours: what it has read already no descriptor tells of.
        return None
    for name in ("readiness_fd", "fileno"):
        number = getattr(thing, name, None)
        # A process that has a descriptor, too, is waited for as a process.
        if number is not None and not (name == "fileno" and hasattr(thing, "pid")):
            refuse_closed("a member of procs", thing)
            return _descriptor(thing, name, number())
    if not hasattr(thing, "pid"):
        hint = "pass a process, or an object with readiness_fd() or fileno()"
        if hasattr(thing, "is_set"):
            hint = "an Event wakes threads alone; pass a Cancel, and call its cancel() for set()"
        raise bad_type("a member of procs", thing, hint)
    return opened(thing)


def _descriptor(thing: Any, name: str, number: Any) -> int:
    if not isinstance(number, int):
        raise bad_type(f"{name}() of {shown(thing)}", number, "it has to give a descriptor")
    if number < 0:
        raise bad_value("a member of procs", thing, "it is closed, pass one that is open")
    return number
