"""The Python half of the classes for queues, which are native.

What is needed for each message is not here, but for that of event loops.
"""

from __future__ import annotations

from typing import TypeVar

from . import _core
from ._timeout import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._types import Seconds

T = TypeVar("T")


async def _wait(
    receiver: _core.Receiver, poll: Callable[[], T | None], timeout: Seconds | None
) -> T:
    """Waits until `poll` finds something, and returns that."""
    from time import monotonic

    from ._async import checkpoint, readable

    limit = seconds(timeout)
    until = None if limit is None else monotonic() + limit
    # An event loop has room for one task that waits for a descriptor.
    receiver._await(True)
    try:
        await checkpoint()
        while (found := poll()) is None:
            left = None if until is None else until - monotonic()
            if left is not None and left <= 0:
                raise _timeout_error()
            await readable(receiver._watch(), left)
        return found
    finally:
        receiver._await(False)


def _timeout_error() -> Exception:
    from ._queue_errors import _NoMessageInTime

    return _NoMessageInTime("no room or no message within the time")


async def _recv_async(receiver: _core.Receiver, timeout: Seconds | None) -> bytes:
    return await _wait(receiver, receiver._poll, timeout)


async def _next_async(receiver: _core.Receiver) -> bytes:
    from ._queue_errors import _EndOfQueue

    try:
        return await _recv_async(receiver, None)
    except _EndOfQueue:
        raise StopAsyncIteration from None


def _send(invitation: _core.Invitation, sock: Any) -> None:
    from ._invitations import send

    send(invitation, sock)


def _receive(sock: Any) -> _core.Invitation:
    from ._invitations import receive

    return receive(_core.Invitation._receive, sock)


def _reduce(invitation: _core.Invitation) -> tuple[object, ...]:
    from ._invitations import reduced

    return reduced(invitation)
