"""Invitations on their way to other processes: of liveness tokens and of queues."""

from __future__ import annotations

from typing import TypeVar

from ._invalid import bad_type, bad_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

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
    fileno = getattr(sock, "fileno", None)
    number = sock if fileno is None else fileno()
    if not isinstance(number, int) or isinstance(number, bool):
        raise bad_type("sock", sock, _SOCKET)
    if number < 0:
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
    # A process that is being started gets the descriptors with its start; others get them
    # from a thread of multiprocessing's, as those of its connections.
    from multiprocessing.reduction import DupFd

    fds = tuple(DupFd(fd) for fd in invitation.fds)
    return _rebuilt, (type(invitation), fds, invitation.ticket)


def _rebuilt(made: Callable[[Iterable[int], str], T], fds: tuple[Any, ...], ticket: str) -> T:
    import os

    taken: list[int] = []
    try:
        for fd in fds:
            taken.append(fd.detach())
        return made(taken, ticket)
    finally:
        for fd in taken:
            os.close(fd)
