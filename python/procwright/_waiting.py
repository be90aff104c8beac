"""One wait for many things."""

from __future__ import annotations

from . import _core
from ._arguments import word
from ._invalid import bad_type, bad_value, shown
from ._timeout import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

#: The core's number for the first, and all that have ended by then.
ANY = 0
#: The core's number for every one.
ALL = -1


class Waiting:
    """One wait under way. Made for one call, and closed by it."""

    __slots__ = ("_handles", "_set", "_want", "done", "objects")

    def __init__(
        self,
        things: Iterable[Any],
        watched: Callable[[Any], _core._Watched],
        mode: Any,
        event: str,
        timeout: Any,
    ) -> None:
        """`watched` gives what the core watches for a thing."""
        self._want = _wanted(mode)
        word("event", event, ("exited", "reaped"))
        #: The things that were given, each once.
        self.objects = _each_once(things)
        #: The places in `objects` of those that have ended, in that order.
        self.done: list[int] = []
        #: The processes among them.
        self._handles: dict[int, _core.ProcessHandle] = {}
        self._set = _core.WaitSet(seconds(timeout))
        try:
            for place, thing in enumerate(self.objects):
                self._add(place, watched(thing), event)
        except BaseException:
            self.close()
            raise

    def _add(self, place: int, watched: _core._Watched, event: str) -> None:
        if watched is None:
            self.done.append(place)
            return
        if not self._set.add(place, watched, event):
            self.done.append(place)
        elif isinstance(watched, _core.ProcessHandle):
            self._handles[place] = watched

    def close(self) -> None:
        """Lets go of every descriptor, also where a traceback keeps this."""
        self._set.close()
        self._handles.clear()

    def enough(self) -> bool:
        """True if as many have ended as were wanted."""
        done, all_ = len(self.done), len(self.objects)
        if done == all_:
            return True
        if self._want == ALL:
            return False
        return done >= max(self._want, 1)

    def _left(self, by_one: bool) -> int:
        """The number of ends to ask the core for next."""
        if self._want <= 0:
            return ANY if by_one else self._want
        # No more than were wanted, though more may have ended.
        return 1 if by_one else self._want - len(self.done)

    def poll(self) -> bool:
        """Takes in those that have ended by now. True if there were any."""
        if self._want > 0 and self.enough():
            return False
        return self._set.poll(self._left(False), self.done)

    def sleep(self, by_one: bool = False) -> bool:
        """Waits for as many as are wanted, or for the next. False: the time is up."""
        return self._set.wait(self._left(by_one), self.done)

    async def sleep_async(self) -> bool:
        """Waits for the next, and those that have ended by then. False: the time is up."""
        from ._async import readable

        while not self.poll():
            left = self._set.remaining()
            if left == 0:
                return False
            await readable(self._set.fileno(), left)
        return True

    def complete(self, callback: Callable[[Any], object] | None = None) -> None:
        """Waits until enough have ended or the time is up, calls back with each, and closes."""
        called = 0
        try:
            self.poll()
            while True:
                if callback is not None:
                    while called < len(self.done):
                        called += 1
                        callback(self.objects[self.done[called - 1]])
                if self.enough() or not self.sleep(by_one=callback is not None):
                    break
            self.linger(self.done)
        finally:
            self.close()

    async def complete_async(self, callback: Callable[[Any], object] | None = None) -> None:
        """`complete`, for asyncio and trio."""
        from ._async import checkpoint

        called = 0
        try:
            await checkpoint()
            self.poll()
            while True:
                if callback is not None:
                    while called < len(self.done):
                        called += 1
                        callback(self.objects[self.done[called - 1]])
                if self.enough() or not await self.sleep_async():
                    break
            await self.linger_async(self.done)
        finally:
            self.close()

    def pending(self) -> list[Any]:
        """Those that have not ended, in the order in which they were given."""
        over = set(self.done)
        return [one for place, one in enumerate(self.objects) if place not in over]

    def handle(self, place: int) -> _core.ProcessHandle | None:
        """The process in this place, if one is there and not reaped before."""
        return self._handles.get(place)

    def _untold(self, places: list[int]) -> list[_core.ProcessHandle]:
        """The processes whose status only their reaping will tell."""
        handles = (self._handles.get(place) for place in places)
        return [one for one in handles if one and (one.exit() or ("",))[-1] == "not_reaped"]

    def linger(self, places: list[int]) -> None:
        """Gives the parents of those that have ended a moment to reap them."""
        if untold := self._untold(places):
            _core.linger(untold)

    async def linger_async(self, places: list[int]) -> None:
        """Lingers as `linger` does, without holding up the event loop."""
        untold = self._untold(places)
        if not untold:
            return
        again = Waiting((), _nothing, "all", "reaped", 0.01)
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


def _wanted(mode: Any) -> int:
    if mode == "any":
        return ANY
    if mode == "all":
        return ALL
    if isinstance(mode, int) and not isinstance(mode, bool) and mode > 0:
        # More than there can be processes is all of them.
        return min(mode, 2**31)
    is_kind = isinstance(mode, (int, str)) and not isinstance(mode, bool)
    raise (bad_value if is_kind else bad_type)(
        "mode", mode, 'use "any", "all" or how many, 1 or more'
    )


def _each_once(things: Any) -> list[Any]:
    # A child, a stream and a receiver are things to wait for, though some can be iterated over.
    if hasattr(things, "readiness_fd"):
        raise bad_type("procs", things, "pass [child], a list")
    if isinstance(things, (str, bytes)) or not hasattr(things, "__iter__"):
        raise bad_type("procs", things, f"pass [{shown(things)}], a list")
    found: dict[Any, Any] = {}
    for thing in things:
        # Numbers and text are equal without being the same object. Of the others
        # none ends before the last is here, which would free its id.
        found.setdefault(thing if isinstance(thing, (int, str)) else (id(thing),), thing)
    return list(found.values())


def _nothing(thing: Any) -> _core._Watched:
    return None
