"""Objects of Python's over a queue: how they become messages is native."""

from __future__ import annotations

from . import _core
from ._arguments import instance
from ._queue import _wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self

    from ._types import Seconds


class ObjectSender:
    """Sends objects by a `Sender`, which stays the caller's to close, or is closed by this.

    They are pickled. Large data of those that support it, such as arrays of numpy, goes
    straight into the queue: pickle protocol 5, out of band. `sender` is that `Sender`.
    """

    __slots__ = ("__weakref__", "sender")

    def __init__(self, sender: _core.Sender) -> None:
        hint = "pass a Sender, such as receiver.sender(); of an aio.Sender its `sender`"
        instance("sender", sender, _core.Sender, hint)
        self.sender = sender

    def send(self, obj: object, timeout: Seconds | None = None) -> None:
        """Sends an object. Raises as `Sender.send`, and what pickling it raises."""
        self.sender._send_object(obj, timeout, True)

    def try_send(self, obj: object) -> None:
        """Sends an object if there is room now; else raises `Full`."""
        self.sender._send_object(obj, None, False)

    def clone(self) -> ObjectSender:
        """Another one for the same queue, in this process: for another thread."""
        return ObjectSender(self.sender.clone())

    def close(self) -> None:
        """Closes the `Sender`."""
        self.sender.close()

    def __enter__(self) -> Self:
        self.sender.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class ObjectReceiver:
    """Receives from a `Receiver` what each `ObjectSender` has sent.

    An object is received even if it cannot be unpickled: that raises what unpickling does,
    once. What is raised and is no `Exception`, such as `KeyboardInterrupt`, says nothing
    about the object, which stays. As everywhere, unpickle only what comes from
    senders that you trust. `receiver` is that `Receiver`.
    """

    __slots__ = ("__weakref__", "receiver")

    def __init__(self, receiver: _core.Receiver) -> None:
        hint = "pass a Receiver, such as Receiver(); of an aio.Receiver its `receiver`"
        instance("receiver", receiver, _core.Receiver, hint)
        self.receiver = receiver

    def recv(self, timeout: Seconds | None = None) -> Any:
        """Receives an object: waits until there is one. Raises as `Receiver.recv`."""
        return self.receiver._recv_object(timeout)

    def try_recv(self) -> Any:
        """Receives an object if there is one; else raises `Empty`."""
        return self.receiver._try_recv_object()

    def recv_many(self, most: int, timeout: Seconds | None = None) -> list[Any]:
        """Waits for an object, and receives it and what has come besides.

        A list of one object to `most`; each sender's are in their order. Of an object that
        cannot be unpickled those before it are given, and what that raises is raised by the
        next call that receives. Raises as `Receiver.recv`.
        """
        return self.receiver._recv_objects(most, timeout)

    async def recv_async(self, timeout: Seconds | None = None) -> Any:
        """Receives an object, as `recv` does, for asyncio and trio. One task at a time.

        At the end it raises `Closed` alone, also of a child that was stopped for a limit.
        """
        (found,) = await _wait(self.receiver, self.receiver._poll_object, timeout)
        return found

    def readiness_fd(self) -> int:
        """The descriptor of the `Receiver`."""
        return self.receiver.readiness_fd()

    def close(self) -> None:
        """Closes the `Receiver`."""
        self.receiver.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        from ._queue_errors import _EndOfQueue

        try:
            return self.receiver._next_object()
        except _EndOfQueue:
            raise StopIteration from None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        from ._queue_errors import _EndOfQueue

        try:
            return await self.recv_async()
        except _EndOfQueue:
            raise StopAsyncIteration from None

    def __enter__(self) -> Self:
        self.receiver.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


for _public in (ObjectSender, ObjectReceiver):
    _public.__module__ = "procwright.queue"
