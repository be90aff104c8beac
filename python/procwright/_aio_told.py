"""What a call on a child raises whose program has gone, on an event loop: why, if known."""

from __future__ import annotations

from weakref import ref

from ._told import Patience

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Any, Protocol

    class _Asked(Protocol):
        """What was started, as far as an error of one of its streams or queues asks it."""

        async def _in_place_of(
            self, error: BaseException, patience: Patience, left: float | None
        ) -> BaseException: ...
        async def _why_stopped(self, error: BaseException) -> BaseException | None: ...


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
