"""What a call on a child raises whose program has gone, on an event loop: why, if known."""

from __future__ import annotations

from weakref import ref

from ._timeout import Deadline
from ._told import Patience, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Any, Protocol

    from . import _told

    class _Asked(Protocol):
        """What was started, as far as an error of one of its streams or queues asks it."""

        async def _in_place_of(
            self, error: BaseException, patience: Patience, left: float | None
        ) -> BaseException: ...
        async def _why_stopped(self, error: BaseException) -> BaseException | None: ...


async def in_place_of(
    child: _told._Asked,
    gone: Callable[[Deadline], Awaitable[object]],
    error: BaseException,
    patience: Patience,
    left: float | None,
) -> BaseException:
    """The exception to raise for `error`: `_told.in_place_of`. `gone` waits for the end."""
    if child._core.is_ours():
        for timeout in patience.waits(child._core, left):
            if not await has_waited(gone, timeout):
                break
    return told(child, error)


async def has_waited(gone: Callable[[Deadline], Awaitable[object]], timeout: float | None) -> bool:
    """False if the wait fails, as by `Stalled`: whoever waits next is told."""
    try:
        await gone(Deadline(timeout))
    except Exception:
        return False
    return True


def tell(child: _Asked, writer: Any, readers: Iterable[Any]) -> None:
    """Has the streams of a child ask it, which they do not keep."""
    kept = ref(child)
    if writer is not None:
        binary = getattr(writer, "buffer", writer)
        binary._ask = asking(kept)
    for reader in readers:
        if reader is None:
            continue
        for one in {reader, getattr(reader, "buffer", reader)}:
            one._why = why(kept)


def asking(
    child: Callable[[], _Asked | None],
) -> Callable[[BaseException, float | None], Awaitable[BaseException]]:
    """What gives the exception to raise for an error of a stream or queue, within the seconds that
    the call has left. `child` is a reference that keeps nobody."""
    patience = Patience()

    async def ask(error: BaseException, left: float | None) -> BaseException:
        asked = child()
        return error if asked is None else await asked._in_place_of(error, patience, left)

    return ask


def why(
    child: Callable[[], _Asked | None],
) -> Callable[[BaseException], Awaitable[BaseException | None]]:
    """What gives the reason why the outputs of a child have ended, for the error that says so."""

    async def ask(error: BaseException) -> BaseException | None:
        asked = child()
        return None if asked is None else await asked._why_stopped(error)

    return ask
