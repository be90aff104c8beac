"""Invitations on their way to other processes: of liveness tokens and of queues."""

from __future__ import annotations

from typing import TypeVar

from ._arguments import refuse_closed
from ._invalid import bad_type, bad_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ._pickled import Pickled
    from ._types import IsInvitation


T = TypeVar("T")

_SOCKET = "pass a connected Unix socket, a connection of multiprocessing, or its descriptor"


def send(invitation: IsInvitation, sock: Any) -> None:
    _ready(sock, writing=True)
    invitation._send(_fileno(sock))


def receive(made: Callable[[int], T], sock: Any) -> T:
    """Calls `made`, which receives, once something is there to be received."""
    _ready(sock, writing=False)
    return made(_fileno(sock))


def _fileno(sock: Any) -> int:
    refuse_closed("sock", sock)
    fileno = getattr(sock, "fileno", None)
    number = sock if fileno is None else fileno()
    if not isinstance(number, int) or isinstance(number, bool):
        raise bad_type("sock", sock, _SOCKET)
    if not 0 <= number < 2**31:
        raise bad_value("sock", sock, _SOCKET + ", which is open")
    return number


def _ready(sock: Any, writing: bool) -> None:
    """Waits as the methods of the socket itself do, with signals and its timeout."""
    import select

    timeout = sock.gettimeout() if hasattr(sock, "gettimeout") else None
    if timeout == 0:
        return
    poll = select.poll()
    poll.register(_fileno(sock), select.POLLOUT if writing else select.POLLIN)
    if not poll.poll(None if timeout is None else timeout * 1000):
        raise TimeoutError("timed out")


def reduced(invitation: IsInvitation) -> tuple[object, ...]:
    from multiprocessing.context import get_spawning_popen

    fds, ticket = invitation.fds, invitation.ticket
    if get_spawning_popen() is None:
        from ._pickled import keep

        return _unpickled, (type(invitation), keep(ticket, fds), ticket)
    # A process that is being started gets the descriptors with its start.
    from multiprocessing.reduction import DupFd

    return _rebuilt, (type(invitation), tuple(DupFd(fd) for fd in fds), ticket)


def _unpickled(made: Callable[[Iterable[int], str], T], pickled: Pickled, ticket: str) -> T:
    return _made_of(made, pickled.detach(), ticket)


def _rebuilt(made: Callable[[Iterable[int], str], T], fds: tuple[Any, ...], ticket: str) -> T:
    taken: list[int] = []
    try:
        for fd in fds:
            taken.append(fd.detach())
    except BaseException:
        _close(taken)
        raise
    return _made_of(made, taken, ticket)


def _made_of(made: Callable[[Iterable[int], str], T], taken: list[int], ticket: str) -> T:
    try:
        return made(taken, ticket)
    finally:
        _close(taken)


def _close(fds: list[int]) -> None:
    import os

    for fd in fds:
        os.close(fd)
