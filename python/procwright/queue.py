"""Messages between processes, in memory that they share: many senders, one receiver.

>>> from procwright.queue import Receiver
>>> receiver = Receiver()
>>> sender = receiver.sender()  # or, in another process, Sender.attach(receiver.invite())
>>> sender.send(b"hello")
>>> receiver.recv()
b'hello'
"""

from __future__ import annotations

from ._core import Invitation, Receiver, Reservation, Sender, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._queue_errors import (
        Busy,
        Closed,
        Damaged,
        Empty,
        EndClosed,
        Forked,
        Full,
        NameTaken,
        NoChannel,
        NoLane,
        NoParent,
        NoQueue,
        QueueError,
        ReceiverAlive,
        ReceiverDead,
        TimedOut,
        TooLarge,
        Unsupported,
        WrongVersion,
    )
    from ._queue_objects import ObjectReceiver, ObjectSender
    from ._queue_stat import LaneStat, ReceiverStat, Stat, names, stat

__all__ = [
    "Busy",
    "Closed",
    "Damaged",
    "Empty",
    "EndClosed",
    "Forked",
    "Full",
    "Invitation",
    "LaneStat",
    "NameTaken",
    "NoChannel",
    "NoLane",
    "NoParent",
    "NoQueue",
    "ObjectReceiver",
    "ObjectSender",
    "QueueError",
    "Receiver",
    "ReceiverAlive",
    "ReceiverDead",
    "ReceiverStat",
    "Reservation",
    "Sender",
    "Stat",
    "TimedOut",
    "TooLarge",
    "Unsupported",
    "View",
    "WrongVersion",
    "names",
    "stat",
]

#: Modules of the names that are imported when they are needed, but for the exceptions.
_ELSEWHERE = {
    **dict.fromkeys(("ObjectReceiver", "ObjectSender"), "._queue_objects"),
    **dict.fromkeys(("LaneStat", "ReceiverStat", "Stat", "names", "stat"), "._queue_stat"),
}


def __getattr__(name: str) -> object:
    # The exceptions derive from those of the standard library's queue, and objects need
    # pickle: both wait until they are asked for.
    if name in __all__:
        import importlib

        module = _ELSEWHERE.get(name, "._queue_errors")
        value: object = getattr(importlib.import_module(module, __package__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
