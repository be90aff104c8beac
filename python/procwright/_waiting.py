"""What all forms of waiting share."""

from __future__ import annotations

from . import _core
from ._options import _invalid
from ._options import _seconds as _as_float
from ._process import Process, _opened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

#: For the core: whoever is first, and whoever has ended by then.
ANY = 0
#: For the core: every one.
ALL = -1


class Waiting:
    """One wait under way. Made for one call, and closed by it."""

    __slots__ = ("_handles", "_set", "_want", "done", "objects")

    def __init__(self, things: Iterable[Any], mode: Any, event: str, timeout: Any) -> None:
        self._want = _wanted(mode)
        if event not in ("exited", "reaped"):
            raise _invalid(f'event is {event!r}: use "exited" or "reaped"')
        #: What was given, each once.
        self.objects = _each_once(things)
        #: Who has ended, in that order, by their places in `objects`.
        self.done: list[int] = []
        #: The processes among them.
        self._handles: dict[int, _core.Handle] = {}
        self._set = _core.WaitSet(_seconds(timeout))
        try:
            for place, thing in enumerate(self.objects):
                self._add(place, thing, event)
        except BaseException:
            self.close()
            raise

    def _add(self, place: int, thing: Any, event: str) -> None:
        watched = _watched(thing)
        if watched is None:
            self.done.append(place)
            return
        if not self._set.add(place, watched, event):
            self.done.append(place)
        elif isinstance(watched, _core.Handle):
            self._handles[place] = watched

    def close(self) -> None:
        """Lets go of every descriptor, also where a traceback keeps this."""
        self._set.close()
        self._handles.clear()

    def enough(self) -> bool:
        """Whether as many have ended as were wanted."""
        done, all_ = len(self.done), len(self.objects)
        if done == all_:
            return True
        if self._want == ALL:
            return False
        return done >= max(self._want, 1)

    def _left(self, by_one: bool) -> int:
        """What to ask the core for next."""
        if self._want <= 0:
            return ANY if by_one else self._want
        # No more than were wanted, whoever has ended besides.
        return 1 if by_one else self._want - len(self.done)

    def look(self) -> bool:
        """Takes in who has ended by now. Whether there was anybody."""
        if self._want > 0 and self.enough():
            return False
        return self._set.look(self._left(False), self.done)

    def sleep(self, by_one: bool = False) -> bool:
        """Waits for as many as are wanted, or for the next. False: the time is up."""
        return self._set.wait(self._left(by_one), self.done)

    async def sleep_async(self) -> bool:
        """Waits for the next, and whoever has ended by then. False: the time is up."""
        from ._async import readable

        while not self.look():
            left = self._set.remaining()
            if left == 0:
                return False
            await readable(self._set.fileno(), left)
        return True

    def pending(self) -> list[Any]:
        """Who has not ended, in the order in which they were given."""
        over = set(self.done)
        return [one for place, one in enumerate(self.objects) if place not in over]

    def handle(self, place: int) -> _core.Handle | None:
        """The process in this place, if one is there and not reaped before."""
        return self._handles.get(place)

    def _untold(self, places: list[int]) -> list[_core.Handle]:
        """Those whose status only their reaping will tell."""
        handles = (self._handles.get(place) for place in places)
        return [one for one in handles if one and (one.exit() or ("",))[-1] == "not_reaped"]

    def linger(self, places: list[int]) -> None:
        """Gives the parents of those that have ended a moment to reap them."""
        if untold := self._untold(places):
            _core.linger(untold)

    async def linger_async(self, places: list[int]) -> None:
        """As `linger`, without holding up the event loop."""
        untold = self._untold(places)
        if not untold:
            return
        again = Waiting((), "all", "reaped", 0.01)
        try:
            for handle in untold:
                again._set.add(len(again.objects), handle, "reaped")
                again.objects.append(handle)
            while not again.enough() and await again.sleep_async():
                pass
        except OSError:
            # No reap can be seen here: the status stays unknown.
            pass
        finally:
            again.close()


def _seconds(timeout: Any) -> float | None:
    seconds = _as_float(timeout)
    if seconds is None or hasattr(seconds, "__float__") or hasattr(seconds, "__index__"):
        return seconds
    raise TypeError(f"timeout is {timeout!r}: pass seconds as a number, or None for no limit")


def _wanted(mode: Any) -> int:
    if mode == "any":
        return ANY
    if mode == "all":
        return ALL
    if isinstance(mode, int) and not isinstance(mode, bool) and mode > 0:
        # More than there can be processes is all of them.
        return min(mode, 2**31)
    raise _invalid(f'mode is {mode!r}: use "any", "all" or how many, 1 or more')


def _each_once(things: Any) -> list[Any]:
    if isinstance(things, (str, bytes)) or not hasattr(things, "__iter__"):
        raise TypeError(f"{things!r} is no list of processes: pass [{things!r}]")
    found: dict[Any, Any] = {}
    for thing in things:
        # Numbers and text are equal without being the same object. Of the others
        # none ends before the last is here, which would free its id.
        found.setdefault(thing if isinstance(thing, (int, str)) else (id(thing),), thing)
    return list(found.values())


def _watched(
    thing: Any,
) -> _core.Handle | _core.Cancel | _core.LivenessMonitor | _core.Receiver | int | None:
    """What the core can watch; None for what is over."""
    if isinstance(thing, (Process, int, str)):
        return _opened(thing)
    if isinstance(thing, _core.LivenessMonitor):
        # One whose peer is gone needs no descriptor, which may not be had any more.
        return thing if thing.alive() else None
    if isinstance(thing, _core.Cancel):
        return thing
    if isinstance(receiver := getattr(thing, "receiver", thing), _core.Receiver):
        # Or an ObjectReceiver.
        return receiver
    if isinstance(own := getattr(thing, "process", None), Process):
        # A child of ours.
        return own._handle
    is_held = getattr(thing, "_is_held", None)
    if is_held is not None and (thing.closed or is_held()):
        # A stream of ours: what it has read already no descriptor tells of.
        return None
    for name in ("readiness_fd", "fileno"):
        number = getattr(thing, name, None)
        # A process that has a descriptor, too, is waited for as a process.
        if number is not None and not (name == "fileno" and hasattr(thing, "pid")):
            return _descriptor(thing, name, number())
    if not hasattr(thing, "pid"):
        raise TypeError(
            f"{thing!r} cannot be waited for: pass a process, "
            "or an object with readiness_fd() or fileno()"
        )
    return _opened(thing)


def _descriptor(thing: Any, name: str, number: Any) -> int:
    if not isinstance(number, int):
        raise TypeError(f"{name}() of {thing!r} gave {number!r}, no number")
    if number < 0:
        raise _invalid(f"{thing!r} is closed")
    return number
