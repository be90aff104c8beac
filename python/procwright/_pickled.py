"""Descriptors of invitations that were pickled, until somebody loads them.

multiprocessing keeps the descriptors of what is pickled by hand, or put into a queue, until
it is loaded, which may be never: the process that got the pickle has died, or nobody asked for
it. A receiver would take such an invitation for a sender for ever. So here they are kept for a
time, and one pair for all pickles of an invitation.

*Not for as long as the invitation is there:* mostly nobody has the object any more when it
is loaded, and its documentation says to close it once it was handed over.
"""

from __future__ import annotations

import os
import threading
import time
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

#: Seconds for which a pickle that nobody loads keeps its place.
UNLOADED_FOR = 600.0

_HERE, _GONE = b"here", b"gone"


class Place:
    """The descriptors of an invitation, for all its pickles that were not loaded yet."""

    def __init__(self, fds: Sequence[int]) -> None:
        self.fds: list[int] = []
        try:
            for fd in fds:
                self.fds.append(os.dup(fd))
        except BaseException:
            self.close()
            raise
        self.pickles = 0
        self.until = 0.0

    def close(self) -> None:
        while self.fds:
            os.close(self.fds.pop())


class Keeper:
    """The places of this process, by ticket, and a thread that lets go of those in the end."""

    def __init__(self) -> None:
        self.places: dict[str, Place] = {}
        self.changed = threading.Condition()
        self.has_thread = False

    def add(self, ticket: str, fds: Sequence[int]) -> Pickled:
        with self.changed:
            place = self.places.get(ticket)
            if place is None:
                place = self.places[ticket] = Place(fds)
            place.pickles += 1
            place.until = time.monotonic() + UNLOADED_FOR
            if not self.has_thread:
                thread = threading.Thread(
                    target=self.expire, name="procwright-pickles", daemon=True
                )
                thread.start()
                self.has_thread = True
            self.changed.notify()
        return shared(self, ticket, len(fds))

    def take(self, ticket: str) -> list[int]:
        """Duplicates of the descriptors, for one pickle that is being loaded; none if gone."""
        with self.changed:
            place = self.places.get(ticket)
            if place is None:
                return []
            fds = [os.dup(fd) for fd in place.fds]
            place.pickles -= 1
            if not place.pickles:
                self.places.pop(ticket).close()
            return fds

    def expire(self) -> None:
        with self.changed:
            while self.places:
                now = time.monotonic()
                for ticket, place in list(self.places.items()):
                    if place.until <= now:
                        self.places.pop(ticket).close()
                if self.places:
                    first = min(place.until for place in self.places.values())
                    # As a lock may not wait for longer than some centuries.
                    self.changed.wait(min(max(first - now, 0), threading.TIMEOUT_MAX))
            self.has_thread = False


class Pickled(NamedTuple):
    """A pickle's half: where to ask for the descriptors."""

    #: What multiprocessing finds the process and the entry by.
    ident: Any
    length: int

    def detach(self) -> list[int]:
        """The descriptors, now the caller's.

        Raises `InvalidValue` if they were let go of.
        """
        from multiprocessing import AuthenticationError
        from multiprocessing.reduction import recv_handle

        try:
            connection = sharer().get_connection(self.ident)
        except AuthenticationError:
            from ._invalid import InvalidValue

            # Who asks for descriptors has to know the key of who has them, which multiprocessing
            # gives to the processes that it starts.
            raise InvalidValue(
                "the invitation was pickled by a process that multiprocessing has not started, "
                "nor started this one: no descriptors come from there. Pass them to a program by "
                "spawn(..., pass_fds=invitation.fds) and invitation.ticket, or by "
                "invitation.send(sock)"
            ) from None
        with connection:
            if connection.recv_bytes() != _HERE:
                from ._invalid import InvalidValue

                raise InvalidValue(
                    "nobody has loaded this pickle of an invitation in time, or it was loaded "
                    f"before: it keeps its place for {UNLOADED_FOR:g} s; make another invitation"
                )
            fds: list[int] = []
            try:
                for _ in range(self.length):
                    fds.append(recv_handle(connection))
            except BaseException:
                for fd in fds:
                    os.close(fd)
                raise
            return fds


def sharer() -> Any:
    """The thread of multiprocessing's that is asked for what was pickled by hand.

    It is what `multiprocessing.reduction.DupFd` goes by, in every CPython since 3.3, and keeps
    a function for each pickle. `DupFd` itself keeps a descriptor with it.
    """
    from multiprocessing import resource_sharer

    module: Any = resource_sharer
    return module._resource_sharer


def shared(keeper: Keeper, ticket: str, count: int) -> Pickled:
    from multiprocessing.reduction import send_handle

    def send(connection: Any, pid: int) -> None:
        fds = keeper.take(ticket)
        try:
            connection.send_bytes(_HERE if fds else _GONE)
            for fd in fds:
                send_handle(connection, fd, pid)
        finally:
            for fd in fds:
                os.close(fd)

    # What it keeps for a pickle that is never loaded is this function, and no descriptor.
    return Pickled(sharer().register(send, lambda: None), count)


_keeper = Keeper()


def keep(ticket: str, fds: Sequence[int]) -> Pickled:
    return _keeper.add(ticket, fds)


def _forget() -> None:
    """In a fork: it has copies of the descriptors, and nobody asks it for them."""
    global _keeper
    places, _keeper = _keeper.places, Keeper()
    for place in list(places.values()):
        place.close()


os.register_at_fork(after_in_child=_forget)
