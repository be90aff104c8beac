"""Waiting for processes on event loops."""

from __future__ import annotations

from . import _core, _process
from ._aio_sleep import in_thread
from ._arguments import callback as checked_callback
from ._hinted import hinted
from ._process import as_stop
from ._record import Survivor
from ._wait import as_completed_async, wait_async_calling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from signal import Signals
    from typing import Literal, TypeVar

    from ._record import Status
    from ._types import Seconds
    from ._wait import Waited

    _T = TypeVar("_T")


@hinted
class Process(_process.AnyProcess):
    """A process, of this program or not: a `procwright.Process` whose waits and stops are
    awaited."""

    __slots__ = ()

    async def wait(
        self, timeout: Seconds | None = None, event: Literal["exited", "reaped"] = "exited"
    ) -> Status:
        """Waits until it has ended, or until its parent has reaped it.

        Raises `WaitTimeout` if the time comes first. Cancelled, it leaves nothing behind.
        """
        waiting = self._waiting(timeout, event)
        await waiting.complete_async()
        return self._waited(waiting, timeout)

    async def stop(self, stop: _core.Stop | str | Signals | None = None) -> list[Survivor]:
        """Ends it, with its descendants unless `stop` says otherwise: on a thread, for the grace
        and 2 s at most. A cancellation comes when that is over.

        Gives back the processes that could not be ended.
        """
        policy = _core.Stop() if stop is None else as_stop(stop)
        survivors = await in_thread("procwright-stop", lambda: self._handle.stop(policy))
        return [Survivor(*survivor) for survivor in survivors]


async def wait(
    procs: Iterable[_T],
    mode: Literal["any", "all"] | int = "all",
    event: Literal["exited", "reaped"] = "exited",
    timeout: Seconds | None = None,
    callback: Callable[[_T], object] | None = None,
) -> Waited[_T]:
    """Waits until all of them have ended, or any, or so many: `procwright.wait`, awaited.

    Cancelled, it changes nothing, and leaves nothing behind.
    """
    checked_callback("callback", callback)
    return await wait_async_calling(procs, mode, event, timeout, callback)


def as_completed(
    procs: Iterable[_T],
    event: Literal["exited", "reaped"] = "exited",
    timeout: Seconds | None = None,
) -> AsyncIterator[_T]:
    """Iterates over them as they end, by `async for`: `procwright.as_completed`.

    Once a step was cancelled, it is over.
    """
    return as_completed_async(procs, event, timeout)
