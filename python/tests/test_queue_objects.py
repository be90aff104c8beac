"""Objects over queues, and what they cost in memory."""

from __future__ import annotations

import asyncio
import gc
import pickle
import tracemalloc

import pytest

from procwright import queue
from procwright.queue import ObjectReceiver, ObjectSender, Receiver

MIB = 1 << 20


class Large:
    """Like an array of numpy: its data goes out of band, if that is possible."""

    def __init__(self, data) -> None:
        self.data = data

    def __reduce_ex__(self, protocol):
        if protocol >= 5:
            return Large, (pickle.PickleBuffer(self.data),)
        return Large, (bytes(self.data),)


def pair(**shape):
    receiver = Receiver(**shape)
    return ObjectSender(receiver.sender()), ObjectReceiver(receiver)


@pytest.mark.parametrize("obj", [None, 5, "text", [1, {"a": (2, b"x")}], bytes(100_000), {1, 2}])
def test_what_can_be_pickled(obj):
    sender, receiver = pair()
    sender.send(obj)
    sender.try_send(obj)
    assert (receiver.recv(), receiver.try_recv()) == (obj, obj)
    with pytest.raises(queue.Empty):
        receiver.try_recv()
    with pytest.raises(TimeoutError):
        receiver.recv(0.001)


def test_what_cannot():
    sender, receiver = pair()
    with pytest.raises((pickle.PicklingError, AttributeError)):
        sender.send(lambda: None)
    with pytest.raises(queue.Empty):
        receiver.try_recv()
    sender.sender.send(b"what is this")
    with pytest.raises(pickle.UnpicklingError, match="no ObjectSender"):
        receiver.recv()
    sender.sender.send(b"")
    with pytest.raises(pickle.UnpicklingError):
        receiver.recv()
    # That was all of it.
    sender.send("fine")
    assert receiver.recv() == "fine"
    for kind, wrong in ((ObjectSender, receiver.receiver), (ObjectReceiver, sender.sender)):
        with pytest.raises(TypeError):
            kind(wrong)


@pytest.mark.parametrize("size", [0, 1, 1000, 5 * MIB + 3])
def test_buffers_out_of_band(size):
    sender, receiver = pair()
    one, other = bytearray(b"w" * size), b"r" * (size + 7)
    sender.send({"writable": Large(one), "not": Large(other), "last": Large(memoryview(other)[3:])})
    got = receiver.recv()
    views = [memoryview(got[key].data) for key in ("writable", "not", "last")]
    assert [view.tobytes() for view in views] == [bytes(one), other, other[3:]]
    assert [view.readonly for view in views] == [False, True, True]
    # They are the receiver's own: nobody else sees this.
    views[0][:] = b"x" * size
    sender.send(Large(one))
    assert bytes(receiver.recv().data) == b"w" * size


def test_one_copy_in_and_one_out():
    sender, receiver = pair(limit=512 * MIB)
    data = bytearray(64 * MIB)
    data[::4096] = bytes(range(256)) * 64
    large = Large(data)
    gc.collect()
    tracemalloc.start()
    try:
        sender.send(large)
        _, peak = tracemalloc.get_traced_memory()
        # Nothing of its size was made on the way in: it went from here to there.
        assert peak < MIB
        tracemalloc.reset_peak()
        got = receiver.recv()
        _, peak = tracemalloc.get_traced_memory()
        assert 64 * MIB <= peak < 65 * MIB
    finally:
        tracemalloc.stop()
    assert got.data == data
    assert isinstance(got.data, memoryview)


def test_no_room_for_objects():
    receiver = Receiver(first=4096, limit=4096)
    sender = ObjectSender(receiver.sender())
    with pytest.raises(queue.TooLarge):
        sender.send(bytes(5000))
    sender.send(bytes(3900))
    with pytest.raises(queue.Full):
        sender.try_send(bytes(3900))
    with pytest.raises(TimeoutError):
        sender.send(bytes(3900), timeout=0.001)
    dropping = ObjectSender(receiver.sender(overflow="drop_newest"))
    dropping.send(bytes(3900))
    dropping.send(bytes(3900))
    assert dropping.sender.dropped == 1
    failing = ObjectSender(receiver.sender(overflow="fail"))
    failing.send(bytes(3900))
    with pytest.raises(queue.Full):
        failing.send(bytes(3900))


def test_unpickling_cannot_get_into_the_receiver():
    sender, receiver = pair()
    REACHED.append(receiver)
    try:
        sender.send(Nosy())
        assert receiver.recv() == "told: Busy"
    finally:
        REACHED.clear()


REACHED: list = []


def look():
    try:
        return REACHED[0].recv()
    except queue.Busy as error:
        return f"told: {type(error).__name__}"


class Nosy:
    def __reduce__(self):
        return look, ()


def test_iterating_and_awaiting():
    sender, receiver = pair()
    with sender.clone() as clone:
        clone.send(1)
    sender.send(2)

    async def collect():
        assert {await receiver.recv_async() for _ in range(2)} == {1, 2}
        for timeout in (0, 0.01):
            with pytest.raises(TimeoutError):
                await receiver.recv_async(timeout)
        sender.send([3])
        sender.send([4])
        sender.close()
        return [one async for one in receiver]

    assert asyncio.run(collect()) == [[3], [4]]
    assert list(receiver) == []
    with receiver:
        pass
    assert receiver.receiver.closed
