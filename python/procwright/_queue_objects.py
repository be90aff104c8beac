"""Objects of Python's over a queue: pickled, their large buffers not copied on the way.

A message is a header, the pickle, and behind it the buffers that pickle gave out of band
(protocol 5), each where memory of this kind usually begins: at a multiple of 16.
"""

from __future__ import annotations

import pickle
import struct

from . import _core
from ._queue import _wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self

#: What it is, and how many buffers there are.
_HEADER = struct.Struct("<4sI")
_MAGIC = b"pwo1"
#: Of each buffer: where it begins, its length, and whether it may be written to.
_BUFFER = struct.Struct("<QQ?7x")
_ALIGNMENT = 16


def _parts(obj: object) -> list[bytes | memoryview]:
    """The pieces of the message, to be laid one behind the other."""
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(obj, protocol=5, buffer_callback=buffers.append)
    header = [_HEADER.pack(_MAGIC, len(buffers))]
    at = _HEADER.size + _BUFFER.size * len(buffers) + len(pickled)
    behind: list[bytes | memoryview] = []
    for buffer in buffers:
        raw = buffer.raw()
        padding = -at % _ALIGNMENT
        behind += [bytes(padding), raw]
        at += padding
        header.append(_BUFFER.pack(at, raw.nbytes, not raw.readonly))
        at += raw.nbytes
    return [b"".join(header), pickled, *behind]


def _loaded(view: _core.View) -> Any:
    with view as message:
        magic, count = _HEADER.unpack_from(message) if len(message) >= _HEADER.size else (b"", 0)
        if magic != _MAGIC:
            raise pickle.UnpicklingError("this message is no object: no ObjectSender has sent it")
        at = _HEADER.size + count * _BUFFER.size
        table = list(_BUFFER.iter_unpack(message[_HEADER.size : at]))
        try:
            # Out of the queue, whose memory is wanted for others: the one copy.
            copies = [memoryview(view._copy(begin, length)) for begin, length, _ in table]
        except MemoryError:
            view._put_back()
            raise
        buffers = [
            copy if is_writable else copy.toreadonly()
            for copy, (_, _, is_writable) in zip(copies, table, strict=True)
        ]
        return pickle.loads(message[at:], buffers=buffers)


class ObjectSender:
    """Sends objects by a `Sender`, which stays the caller's to close, or is closed by this.

    They are pickled. Large data of those that support it, such as arrays of numpy, goes
    straight into the queue: pickle protocol 5, out of band. `sender` is that `Sender`.
    """

    __slots__ = ("__weakref__", "sender")

    def __init__(self, sender: _core.Sender) -> None:
        if not isinstance(sender, _core.Sender):
            raise TypeError(f"{sender!r} is no Sender: pass Sender.attach(invitation)")
        self.sender = sender

    def send(self, obj: object, timeout: float | None = None) -> None:
        """Sends an object. Raises as `Sender.send`, and what pickling it raises."""
        self.sender._send_joined(_parts(obj), timeout, True)

    def try_send(self, obj: object) -> None:
        """The same if there is room now; else raises `Full`."""
        self.sender._send_joined(_parts(obj), None, False)

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
    once. As everywhere, unpickle only what comes from those whom you trust. `receiver` is
    that `Receiver`.
    """

    __slots__ = ("__weakref__", "receiver")

    def __init__(self, receiver: _core.Receiver) -> None:
        if not isinstance(receiver, _core.Receiver):
            raise TypeError(f"{receiver!r} is no Receiver: pass Receiver()")
        self.receiver = receiver

    def recv(self, timeout: float | None = None) -> Any:
        """Receives an object: waits until there is one. Raises as `Receiver.recv`."""
        return _loaded(self.receiver.recv_view(timeout))

    def try_recv(self) -> Any:
        """The same if there is one; else raises `Empty`."""
        return _loaded(self.receiver.try_recv_view())

    async def recv_async(self, timeout: float | None = None) -> Any:
        """As `recv`, for asyncio and trio. One task at a time."""
        return _loaded(await _wait(self.receiver, self.receiver._look_view, timeout))

    def readiness_fd(self) -> int:
        """That of the `Receiver`."""
        return self.receiver.readiness_fd()

    def close(self) -> None:
        """Closes the `Receiver`."""
        self.receiver.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        from ._queue_errors import _EndOfQueue

        try:
            return self.recv()
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
