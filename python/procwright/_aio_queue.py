"""Queues on event loops: `procwright.queue`, awaited."""

from __future__ import annotations

import sys
from contextlib import suppress

import anyio
from anyio.lowlevel import checkpoint

from . import _core
from ._aio_sleep import ThreadCall, first
from ._aio_stream import Turns
from ._arguments import instance, number
from ._hinted import hinted
from ._queue import _wait
from ._queue_errors import (
    Closed,
    Full,
    ReceiverDead,
    TimedOut,
    _EndOfQueue,
    _no_message_in_time,
    _no_room_in_time,
)
from ._timeout import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType
    from typing import Literal, Self, TypeAlias, TypeVar

    from _typeshed import ReadableBuffer

    from ._types import Seconds

    _T = TypeVar("_T")
    _Ask: TypeAlias = Callable[[BaseException, float | None], Awaitable[BaseException]]

#: How long a thread waits for room. The core looks after the receiver as often, so that longer
#: sleeps would not be fewer.
_ROOM_S = 1.0


@hinted
class _End:
    """What both ends have in common: the turns that tasks have at an end, which has room for one,
    and others of the loop beside those who never have to wait."""

    def __init__(self) -> None:
        self._lock = anyio.Lock(fast_acquire=True)
        self._turns = Turns()
        #: Gives the exception to raise for one which says that the other side has gone: of the
        #: queue of a child, that may know why.
        self._ask: _Ask | None = None

    async def _told(self, error: Exception, left: float | None) -> BaseException:
        return error if self._ask is None else await self._ask(error, left)

    async def _has_turn(self, deadline: Deadline) -> bool:
        """Waits for this task's turn at the end, which it then has until `_lock.release()`. False
        if the time comes first."""
        await self._turns.wait()
        try:
            self._lock.acquire_nowait()
        except anyio.WouldBlock:
            with anyio.move_on_after(deadline.left()) as scope:
                await self._lock.acquire()
            return not scope.cancelled_caught
        return True


@hinted
class Receiver(_End):
    """Receives from a queue on an event loop: a `queue.Receiver` whose waits are awaited.

    `receiver` is that `Receiver`. Any number of tasks may receive: each message comes to one of
    them. A cancelled call has taken nothing. No thread is started, and nothing polls.
    """

    def __init__(self, receiver: _core.Receiver) -> None:
        super().__init__()
        hint = "pass a procwright.queue.Receiver, such as Receiver() or Receiver.open(name)"
        instance("receiver", receiver, _core.Receiver, hint)
        #: The `queue.Receiver`.
        self.receiver = receiver

    async def recv(self, timeout: Seconds | None = None) -> bytes:
        """Receives a message: waits until there is one. Raises as `queue.Receiver.recv`."""
        until = Deadline(timeout)
        try:
            return await self._message(until)
        except Closed as error:
            told = await self._told(error, until.left())
            if told is error:
                raise
            raise told from told.__cause__

    async def _message(self, until: Deadline) -> bytes:
        found = await self._received(self.receiver._poll, until)
        self._turns.note(len(found))
        return found

    async def recv_many(self, most: int, timeout: Seconds | None = None) -> list[bytes]:
        """Waits for a message, and receives it and what has come besides: a list of one message
        to `most`. Raises as `queue.Receiver.recv_many`."""
        receiver = self.receiver
        most = number("most", most, 1, sys.maxsize, "pass 1 or more")

        def poll() -> list[bytes] | None:
            try:
                return receiver.recv_many(most, 0)
            except TimedOut:
                # After a look of this kind that finds nothing the descriptor tells of the next.
                message = receiver._poll()
                return None if message is None else [message]

        until = Deadline(timeout)
        try:
            found = await self._received(poll, until)
        except Closed as error:
            told = await self._told(error, until.left())
            if told is error:
                raise
            raise told from told.__cause__
        self._turns.note(sum(map(len, found)))
        return found

    async def _received(self, poll: Callable[[], _T | None], deadline: Deadline) -> _T:
        if not await self._has_turn(deadline):
            raise _no_message_in_time("no message within the time")
        try:
            return await _wait(self.receiver, poll, deadline.left())
        finally:
            self._lock.release()

    def try_recv(self) -> bytes:
        """Receives a message if there is one, else raises `queue.Empty`."""
        return self.receiver.try_recv()

    def invite(self) -> _core.Invitation:
        """A place at this queue for one process: see `queue.Receiver.invite`."""
        return self.receiver.invite()

    def sender(
        self,
        overflow: Literal["block", "fail", "drop_newest"] = "block",
        limit: int | str | None = None,
    ) -> Sender:
        """A sender in this process."""
        return Sender(self.receiver.sender(overflow, limit))

    def readiness_fd(self) -> int:
        """The descriptor of the `queue.Receiver`."""
        return self.receiver.readiness_fd()

    async def aclose(self) -> None:
        """Closes it: senders are told so, and what was not received is lost. A task that waits
        for a message gets `queue.EndClosed`."""
        self.close()
        await checkpoint()

    def close(self) -> None:
        """Closes it as `aclose` does. Never blocks, and may be called from any thread."""
        self.receiver.close()

    @property
    def closed(self) -> bool:
        """True once it is closed."""
        return self.receiver.closed

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await self._message(Deadline(None))
        except _EndOfQueue:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        self.receiver.__enter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return _shown(self, self.receiver.closed)


@hinted
class Sender(_End):
    """Sends to a queue on an event loop: a `queue.Sender` whose waits are awaited.

    `sender` is that `Sender`. Any number of tasks may send, each in its turn. A cancelled call
    has sent nothing.
    """

    def __init__(self, sender: _core.Sender) -> None:
        super().__init__()
        hint = "pass a procwright.queue.Sender, such as Sender.open(name)"
        instance("sender", sender, _core.Sender, hint)
        #: The `queue.Sender`.
        self.sender = sender
        #: A wait for room, which has the sender until it is over, whoever was cancelled.
        self._room: ThreadCall | None = None

    async def send(self, data: ReadableBuffer, timeout: Seconds | None = None) -> None:
        """Sends a message. Waits while the queue is full, where its policy is "block" or there is
        a timeout: on a thread, for a sender has no descriptor.

        Raises as `queue.Sender.send`.
        """
        until = Deadline(timeout)
        waits = timeout is not None or self.sender.overflow == "block"
        try:
            await self._send(data, until, waits)
        except (Closed, ReceiverDead) as error:
            told = await self._told(error, until.left() if waits else 0)
            if told is error:
                raise
            raise told from told.__cause__

    async def _send(self, data: ReadableBuffer, deadline: Deadline, waits: bool) -> None:
        if not await self._has_turn(deadline):
            raise _late()
        try:
            while self._room is not None or not self._has_sent(data, waits):
                left = deadline.left()
                if left == 0:
                    raise _late()
                await self._wait_for_room(data, left)
            self._turns.note(memoryview(data).nbytes)
        finally:
            self._lock.release()

    def _has_sent(self, data: ReadableBuffer, waits: bool) -> bool:
        """Sends it, unless that would wait."""
        if not waits:
            self.sender.send(data)
            return True
        try:
            self.sender.try_send(data)
        except Full:
            return False
        return True

    async def _wait_for_room(self, data: ReadableBuffer, seconds: float | None) -> None:
        """Waits until there may be room for the message, or the time is up."""
        if self._room is None:
            sender, size = self.sender, memoryview(data).nbytes
            self._room = ThreadCall("procwright-room", lambda: _wait_for_room(sender, size))
        room = self._room
        await first([room.over], seconds)
        if room.over.cancelled:
            self._room = None
            room.value()

    def try_send(self, data: ReadableBuffer) -> None:
        """Sends a message if there is room now; else raises `queue.Full`."""
        if self._room is not None:
            if not self._room.over.cancelled:
                raise Full("there is no room, for which another call waits")
            self._room = None
        self.sender.try_send(data)

    async def aclose(self) -> None:
        """Closes it: what was sent will be received."""
        self.close()
        await checkpoint()

    def close(self) -> None:
        """Closes it as `aclose` does. Never blocks, and may be called from any thread. A wait for
        room that was cancelled keeps it for a second at most."""
        self.sender.close()

    @property
    def closed(self) -> bool:
        """True once it is closed."""
        return self.sender.closed

    async def __aenter__(self) -> Self:
        self.sender.__enter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return _shown(self, self.sender.closed)


def _wait_for_room(sender: _core.Sender, size: int) -> None:
    """Sleeps until there is room for so many bytes, or a second has passed."""
    with suppress(TimedOut):
        # What is reserved is given up at once: the room stays, as nobody else sends there.
        sender.reserve(size, _ROOM_S).cancel()


def _late() -> TimedOut:
    return _no_room_in_time("no room within the time")


def _shown(end: object, closed: bool) -> str:
    return f"<procwright.aio.{type(end).__name__}{', closed' if closed else ''}>"
