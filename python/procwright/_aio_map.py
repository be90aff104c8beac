"""`aio.map`: many commands, so many at a time, on event loops."""

from __future__ import annotations

from anyio.lowlevel import checkpoint

from . import _map
from ._aio_sleep import ThreadCall, in_thread
from ._generic import Err, Generic, Out
from ._hinted import hinted
from ._piece import Order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType
    from typing import Any

    from ._late import LateCommand
    from ._map import Ended, Progress
    from ._types import Args


def map(
    commands: Iterable[Args | Mapping[str, Any] | LateCommand[Any]],
    *items: object,
    **options: Any,
) -> Map[Any, Any, Any]:
    """Runs many commands, so many at a time: `procwright.map`, whose parameters, defaults and
    errors it has, for `async for` and `async with`.

    The commands run on threads of the map, and their iterable is asked on one of these.
    """
    return Map(_map.map(commands, *items, **options))


# For help() and editors.
map.__wrapped__ = _map.map  # type: ignore[attr-defined]


@hinted
class Map(Generic[Out, Err, Order]):
    """A map under way: an asynchronous iterator of `Ended`, and an asynchronous context manager.

    A step that is cancelled loses nothing: the next one has what it would have given.
    """

    def __init__(self, of: _map.Map[Out, Err, Order]) -> None:
        self._map = of
        #: The wait for what comes next, while there is one. It has the core's map alone.
        self._next: ThreadCall | None = None
        self._is_awaited = False

    def __aiter__(self) -> Map[Out, Err, Order]:
        return self

    async def __anext__(self) -> Ended[Out, Err, Order]:
        if self._is_awaited:
            raise RuntimeError("a result of this map is being waited for already")
        self._is_awaited = True
        try:
            await checkpoint()
            if self._next is None:
                self._next = ThreadCall("procwright-map", self._map._native.next)
            call = self._next
            await call.wait()
        finally:
            self._is_awaited = False
        if self._next is not call:
            # Closed meanwhile.
            raise StopAsyncIteration
        self._next = None
        self._map._is_taken = True
        try:
            come = call.value()
        except BaseException:
            self._map._is_ended = True
            raise
        ended = self._map._ended(come)
        if ended is None:
            raise StopAsyncIteration
        return ended

    async def __aenter__(self) -> Map[Out, Err, Order]:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None and issubclass(kind, GeneratorExit):
            # Nothing can be awaited any more.
            self.stop()
            return
        left = self._map._left_untaken(kind)
        await self.aclose()
        if left is not None:
            self._map._warn(left)

    def __del__(self) -> None:
        # A thread that waits for the next result keeps the core's map.
        if getattr(self, "_next", None) is not None:
            try:
                self._map.__del__()
            finally:
                # Its warning may be an error.
                self.stop()

    async def wait(self) -> Progress:
        """Runs all that is left, and returns how many have succeeded and failed.

        Results that have not been taken are dropped.
        """
        async for _ in self:
            pass
        return self.progress

    def stop(self) -> None:
        """Starts nothing more, and stops what runs. Returns at once; results still come."""
        self._map.stop()

    async def aclose(self) -> None:
        """Stops what runs, and returns when it has ended. No more results come.

        On a thread; a cancellation comes when that is over.
        """
        self._map.stop()
        call, self._next = self._next, None
        if call is not None:
            await call.outlast()
        await in_thread("procwright-map", self._map.close)

    @property
    def progress(self) -> Progress:
        """How far it is."""
        return self._map.progress
