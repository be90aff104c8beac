"""The exceptions of queues. Imported when the first one is needed."""

from __future__ import annotations

import errno
import queue as standard


class QueueError(Exception):
    """Something went wrong with a queue. What all its exceptions have in common."""

    #: How many messages a `send_many` had sent.
    sent: int


class Empty(QueueError, standard.Empty):
    """No message is there now. A `queue.Empty` of the standard library."""


class Full(QueueError, standard.Full):
    """No room is left, and the lane may not grow or was told not to wait.

    A `queue.Full` of the standard library.
    """


class TimedOut(QueueError, TimeoutError):
    """The time is up. Nothing was sent or received, or no place at the queue was had.

    A `TimeoutError`; and as the standard library has it, `queue.Empty` for a
    receiver, `queue.Full` for a sender.
    """


class _NoMessageInTime(TimedOut, Empty):
    def __reduce__(self) -> tuple[object, ...]:
        return (_no_message_in_time, self.args, vars(self) or None)


def _no_message_in_time(text: str) -> TimedOut:
    return _NoMessageInTime(text)


class _NoRoomInTime(TimedOut, Full):
    def __reduce__(self) -> tuple[object, ...]:
        return (_no_room_in_time, self.args, vars(self) or None)


def _no_room_in_time(text: str) -> TimedOut:
    return _NoRoomInTime(text)


class Closed(QueueError):
    """The other side has left.

    For a receiver, an `EOFError`: every sender is gone, no invitation is left, and all
    that they had sent was received. For a sender, a `BrokenPipeError`: the receiver was
    closed.
    """


class _EndOfQueue(Closed, EOFError):
    def __reduce__(self) -> tuple[object, ...]:
        return (_end_of_queue, self.args, vars(self) or None)


def _end_of_queue(text: str) -> Closed:
    return _EndOfQueue(text)


class _WithNumber(QueueError, OSError):
    _number: int

    def __init__(self, text: str) -> None:
        super().__init__(self._number, text)

    def __str__(self) -> str:
        return str(self.strerror)

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.strerror,), vars(self) or None)


class _BrokenQueue(Closed, _WithNumber, BrokenPipeError):
    _number = errno.EPIPE

    def __reduce__(self) -> tuple[object, ...]:
        return (_broken_queue, (self.strerror,), vars(self) or None)


def _broken_queue(text: str) -> Closed:
    return _BrokenQueue(text)


class ReceiverDead(_WithNumber):
    """The receiver's process has died, or runs another program.

    What it had not received stays in the queue for as long as any process has that. Once
    another receiver has taken over, `send` goes on. An `OSError` with `errno.EOWNERDEAD`.
    """

    _number = errno.EOWNERDEAD


class NoLane(_WithNumber):
    """All lanes of the queue are taken: by senders, or by what those that left had sent.

    The latter come free as it is received. An `OSError` with `errno.EBUSY`.
    """

    _number = errno.EBUSY


class Unsupported(_WithNumber):
    """Queues are not supported here. An `OSError` with `errno.ENOTSUP`."""

    _number = errno.ENOTSUP


class TooLarge(QueueError, ValueError):
    """A message of `length` bytes does not fit, however empty the queue is.

    At most `most` do. Make the queue with a larger `limit`.
    """

    def __init__(self, text: str, length: int, most: int) -> None:
        super().__init__(text, length, most)
        self.length = length
        self.most = most

    def __str__(self) -> str:
        return str(self.args[0])


class Damaged(QueueError):
    """The memory that the other side has left makes no sense.

    That `lane` is not used any more; all others are. `peer` is the number of the process
    at its other end, as far as that is known.
    """

    def __init__(self, text: str, lane: int, peer: int | None) -> None:
        super().__init__(text, lane, peer)
        self.lane = lane
        self.peer = peer

    def __str__(self) -> str:
        return str(self.args[0])


class WrongVersion(QueueError):
    """The queue was made by a program that uses another version of the format."""


class ReceiverAlive(QueueError):
    """The queue has a receiver, which lives. `pid` is its process, as far as that is known."""

    def __init__(self, text: str, pid: int | None) -> None:
        super().__init__(text, pid)
        self.pid = pid

    def __str__(self) -> str:
        return str(self.args[0])


class NameTaken(QueueError):
    """A queue of that `name` has a receiver that lives, or is about to be made.

    `pid` is the receiver's process, as far as that is known.
    """

    def __init__(self, text: str, name: str, pid: int | None) -> None:
        super().__init__(text, name, pid)
        self.name = name
        self.pid = pid

    def __str__(self) -> str:
        return str(self.args[0])


class NoQueue(_WithNumber, FileNotFoundError):
    """No queue has that name, or no process has it any more. A `FileNotFoundError`."""

    _number = errno.ENOENT


class NoParent(QueueError):
    """The program was not spawned with such a channel, or that was taken before."""


class NoChannel(QueueError):
    """A child has no such channel, or none any more."""


class Forked(QueueError, RuntimeError):
    """The end of the queue is that of the process from which this one was forked.

    Attach anew, with an invitation that was made for the fork.
    """


class Busy(QueueError, RuntimeError):
    """Another call uses this end of the queue, or a message is still used in place."""


class EndClosed(QueueError, ValueError):
    """The end was closed in this process, before or while it was used.

    A `ValueError`, as with every file of Python's.
    """


_hidden: type[QueueError]
for _hidden, _shown in (
    (_NoMessageInTime, TimedOut),
    (_NoRoomInTime, TimedOut),
    (_EndOfQueue, Closed),
    (_BrokenQueue, Closed),
):
    # Users see one class: which of the standard library's it is as well is a detail. A
    # traceback has the qualified name, under which pickle would find another class.
    _hidden.__name__ = _hidden.__qualname__ = _shown.__name__
    _hidden.__module__ = "procwright.queue"

for _public in (
    QueueError,
    Empty,
    Full,
    TimedOut,
    Closed,
    ReceiverDead,
    NoLane,
    Unsupported,
    TooLarge,
    Damaged,
    WrongVersion,
    ReceiverAlive,
    NameTaken,
    NoQueue,
    NoParent,
    NoChannel,
    Forked,
    Busy,
    EndClosed,
):
    _public.__module__ = "procwright.queue"
