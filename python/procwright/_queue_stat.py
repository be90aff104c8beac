"""A queue seen from outside."""

from __future__ import annotations

from . import _core
from ._record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal


class ReceiverStat(Record):
    """The receiving end of a queue."""

    __slots__ = ("state", "pid", "asleep")

    def __init__(
        self,
        state: Literal["alive", "dead", "closed"],
        pid: int | None,
        asleep: Literal["word", "descriptor"] | None,
    ) -> None:
        #: "alive"; "dead": its process has died, and no other has taken over; "closed".
        self.state = state
        #: The process. None if that is unknown, or is in another pid namespace.
        self.pid = pid
        #: The thing it sleeps on: "word" if it was awake some milliseconds ago. None if it is
        #: awake.
        self.asleep = asleep


class LaneStat(Record):
    """A lane that a sender has, or had."""

    __slots__ = ("number", "state", "pid", "guest", "waiting", "block", "is_blocked")

    def __init__(
        self,
        number: int,
        state: Literal["taken", "left", "orphaned", "clearing", "damaged"],
        pid: int | None,
        guest: int,
        waiting: int | None,
        block: int | None,
        is_blocked: bool,
    ) -> None:
        #: The number, from 0 on.
        self.number = number
        #: "taken": a sender has it; "left", "orphaned": its sender has left or died, and
        #: what is in it is to be received yet; "clearing"; "damaged": it is not read.
        self.state = state
        #: The process of its sender, as that calls itself. None if it did not say.
        self.pid = pid
        #: The number of the invitation by which it has come, or that it has drawn.
        self.guest = guest
        #: The bytes between sender and receiver. None if what stands there makes no sense.
        self.waiting = waiting
        #: The size of the block that the sender is in.
        self.block = block
        #: True while the sender waits for room.
        self.is_blocked = is_blocked


class Stat(Record):
    """The state of a queue: see `stat`."""

    __slots__ = ("lanes", "first", "limit", "memory", "epoch", "claims", "receiver", "taken")

    def __init__(
        self,
        lanes: int,
        first: int,
        limit: int,
        memory: int,
        epoch: int,
        claims: int,
        receiver: ReceiverStat,
        taken: list[LaneStat],
    ) -> None:
        #: The number of senders for which it has room.
        self.lanes = lanes
        #: Bytes that a lane takes at first.
        self.first = first
        #: Bytes that a lane can take at most.
        self.limit = limit
        #: The memory that it takes now, the whole of it.
        self.memory = memory
        #: The number of times that receiving began, or went on in another thread.
        self.epoch = epoch
        #: Changes whenever a sender comes or leaves.
        self.claims = claims
        #: The receiving end.
        self.receiver = receiver
        #: The lanes that are not free.
        self.taken = taken


def stat(name: str) -> Stat:
    """Looks at the queue of that name, without taking part in it.

    The queue does not notice, and is not held up. All of it may be another a moment later,
    and each part is from another moment.

    Raises `NoQueue`, a `FileNotFoundError`, if there is none; `InvalidValue`,
    `WrongVersion`, `Unsupported`; `OSError` if the directory of the names cannot be used,
    or the processes that have the queue may not be looked into.
    """
    numbers, receiver, taken = _core.queue_stat(name)
    lanes = [LaneStat(*lane) for lane in taken]
    return Stat(*numbers, ReceiverStat(*receiver), lanes)


def names() -> list[str]:
    """The names of all queues of this user.

    Among them are queues that no process has any more: their `stat` raises `NoQueue`.
    """
    return _core.queue_names()


for _public in (Stat, ReceiverStat, LaneStat, stat, names):
    _public.__module__ = "procwright.queue"
