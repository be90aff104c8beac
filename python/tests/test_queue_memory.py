"""Messages in place: whose memory it is, how long it stays, and that all of it goes."""

from __future__ import annotations

import gc
import mmap
import os
import pickle
import weakref

import pytest
from conftest import comes_back, descriptors

from procwright import InvalidValue, queue
from procwright.queue import Receiver, Sender


def test_messages_made_in_place():
    receiver = Receiver()
    sender = receiver.sender()
    with sender.reserve(10) as message:
        assert not message.readonly
        message[:] = b"0123456789"
        with pytest.raises(queue.Busy, match="made in place"):
            sender.send(b"x")
        with pytest.raises(queue.Empty):
            receiver.try_recv()
    with pytest.raises(ValueError, match="released"):
        message[0] = 1
    assert receiver.recv() == b"0123456789"
    with pytest.raises(ZeroDivisionError), sender.reserve(10):
        raise ZeroDivisionError
    place = sender.reserve(10)
    with pytest.raises(InvalidValue, match="reserve more"):
        place.commit(11)
    memoryview(place)[:3] = b"abc"
    place.commit(3)
    with pytest.raises(ValueError, match="given back"):
        place.commit()
    place = sender.reserve(10)
    place.cancel()
    place.cancel()
    place = sender.reserve(10)
    del place
    sender.reserve(0).commit()
    assert receiver.recv_many(10) == [b"abc", b""]


def test_nothing_is_sent_that_can_still_be_written_to():
    receiver = Receiver()
    sender = receiver.sender()
    with pytest.raises(BufferError, match="still uses"), sender.reserve(8) as message:
        kept = message[2:4]
    with pytest.raises(queue.Empty):
        receiver.try_recv()
    with pytest.raises(queue.Busy):
        sender.send(b"x")
    kept[:] = b"ok"
    kept.release()
    # Nobody has the reservation any more: with that it was cancelled.
    sender.send(b"x")
    assert receiver.recv() == b"x"


def test_messages_read_in_place():
    receiver = Receiver()
    sender = receiver.sender()
    sender.send_many([b"first", b"second", b"third"])
    slices = []
    with receiver.recv_view() as message:
        assert message == b"first"
        assert message.readonly
        for use in (receiver.recv, receiver.try_recv, receiver.invite, receiver.readiness_fd):
            with pytest.raises(queue.Busy, match="read in place"):
                use()
    with pytest.raises(ValueError, match="released"):
        message[0]
    with pytest.raises(ZeroDivisionError), receiver.recv_view() as message:
        (lambda kept: slices.append(kept) or 1 / 0)(message[1:])
    (kept,) = slices
    # The block was left for another reason: it waits for the last that looks.
    assert kept == b"econd"
    with pytest.raises(queue.Busy):
        receiver.recv()
    kept.release()
    gc.collect()
    view = receiver.try_recv_view()
    assert (bytes(view), len(view)) == (b"third", 5)
    view.release()
    view.release()
    assert view.released
    with pytest.raises(ValueError, match="given back"):
        memoryview(view)
    with pytest.raises(queue.Empty):
        receiver.try_recv_view()


KEEPS = {
    "slice": lambda view, message: message[10:20],
    "cast": lambda view, message: message[:16].cast("Q"),
    "another": lambda view, message: memoryview(message),
    "pickle buffer": lambda view, message: pickle.PickleBuffer(message),
    "of the view": lambda view, message: memoryview(view),
}


@pytest.mark.parametrize("keep", KEEPS)
def test_a_view_that_is_used_keeps_its_memory(keep):
    receiver = Receiver(first=4096, limit=4096)
    sender = receiver.sender(overflow="fail")
    sender.send(b"a" * 4000)
    view = receiver.recv_view()
    message = view.__enter__()
    kept = KEEPS[keep](view, message)
    with pytest.raises(BufferError, match="let go of that first"):
        view.__exit__(None, None, None)
    with pytest.raises(BufferError, match="let go of that first"):
        view.release()
    # Its memory is nobody else's meanwhile, however hard the sender tries.
    with pytest.raises(queue.Full):
        sender.send(b"b" * 4000)
    assert set(memoryview(kept).tobytes()) == {ord("a")}
    watch = weakref.ref(view)
    del view, message
    assert watch() is not None
    assert set(memoryview(kept).tobytes()) == {ord("a")}
    with pytest.raises(queue.Busy):
        receiver.recv()
    del kept
    assert watch() is None
    # To the beginning of the ring; that, too, has to be read.
    with pytest.raises(queue.Full):
        sender.send(b"b" * 4000)
    with pytest.raises(queue.Empty):
        receiver.try_recv()
    sender.send(b"b" * 4000)
    assert receiver.recv() == b"b" * 4000


def test_closing_under_a_view():
    receiver = Receiver()
    sender = receiver.sender()
    sender.send(b"read in place")
    with receiver.recv_view() as message:
        receiver.close()
        assert receiver.closed
        assert message == b"read in place"
        sender.send(b"it is there still")
    with pytest.raises(queue.Closed):
        sender.send(b"x")
    with pytest.raises(queue.EndClosed):
        receiver.recv()
    receiver = Receiver()
    sender = receiver.sender()
    with sender.reserve(3) as message:
        sender.close()
        message[:] = b"yes"
    assert list(receiver) == [b"yes"]
    with pytest.raises(ValueError, match="closed in this process"):
        sender.send(b"x")


def rss() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE


def both():
    receiver = Receiver(lanes=4)
    with receiver.invite() as invitation:
        sender = Sender.attach(invitation)
    sender.send(b"x" * 3000)
    return receiver, sender


def closed():
    receiver, sender = both()
    sender.clone().close()
    assert len(receiver.recv()) == 3000
    receiver.close()
    sender.close()


def dropped():
    receiver, sender = both()
    with sender.reserve(100) as message:
        message[:] = bytes(100)
    del sender
    with receiver.recv_view():
        pass


def in_use():
    receiver, sender = both()
    view, place = receiver.recv_view(), sender.reserve(100)
    kept = memoryview(view), memoryview(place)
    with pytest.raises(BufferError):
        view.release()
    receiver.close()
    del receiver, sender, view, place
    assert len(kept[0]) == 3000


def garbage():
    receiver, sender = both()
    objects = queue.ObjectSender(sender)
    objects.send([1])
    circle = [receiver, objects, receiver.recv_view(), memoryview(sender.reserve(1))]
    circle.append(circle)


@pytest.mark.parametrize("leave", [closed, dropped, in_use, garbage])
def test_nothing_leaks(leave):
    def many(count):
        """By how much the memory grows."""
        gc.collect()
        before = rss()
        for number in range(count):
            leave()
            if number % 50 == 0:
                gc.collect()
        gc.collect()
        return rss() - before

    many(50)
    before, threads = descriptors(), len(os.listdir("/proc/self/task"))
    # One page of each would be more, each time: others have memory, too.
    assert any(many(500) < 500 * mmap.PAGESIZE for _ in range(3))
    comes_back(before)
    # Else the watchdog comes.
    while len(os.listdir("/proc/self/task")) > threads:
        os.sched_yield()


def test_waiting_leaks_nothing():
    receiver, sender = both()
    assert len(receiver.recv()) == 3000
    for number in range(60):
        if number == 10:
            before = descriptors()
        with pytest.raises(TimeoutError):
            receiver.recv(0.012)
    comes_back(before)
    del receiver, sender


NO_MEMORY = """
import asyncio, resource, sys
from procwright.queue import *

LONG = 1 << 26
receiver = Receiver(limit=1 << 30)
sender = receiver.sender()
message = b"x" * LONG
objects = ObjectReceiver(receiver)
# From here on the lane is there.
sender.send(b"")
assert receiver.recv() == b""


def without_memory(call):
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    # What it has, and some for the interpreter.
    resource.setrlimit(resource.RLIMIT_AS, (size + (LONG >> 1), before[1]))
    try:
        return call()
    except MemoryError:
        return "none"
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


async def awaited():
    return await receiver.recv_async()


class Large:
    def __init__(self, data):
        self.data = data

    def __reduce_ex__(self, protocol):
        import pickle

        return Large, (pickle.PickleBuffer(self.data),)


for call in (
    receiver.recv,
    receiver.try_recv,
    lambda: next(receiver),
    lambda: receiver.recv_many(3),
    lambda: asyncio.run(awaited()),
):
    sender.send(message)
    for _ in range(2):
        assert without_memory(call) == "none", call
    sender.send(b"next")
    assert receiver.recv() == message
    assert receiver.recv() == b"next"

# What there is memory for is given, and what not is kept.
sender.send(b"short")
sender.send(message)
assert without_memory(lambda: receiver.recv_many(3)) == [b"short"]
assert receiver.recv_many(3) == [message]

ObjectSender(sender).send([Large(message)])
assert without_memory(objects.recv) == "none"
(large,) = objects.recv()
assert large.data == message

sender = ObjectSender(sender)
sender.send("short")
sender.send([Large(message)])
assert without_memory(lambda: objects.recv_many(3)) == ["short"]
for _ in range(2):
    assert without_memory(lambda: objects.recv_many(3)) == "none"
((large,),) = objects.recv_many(3)
assert large.data == message
"""


def test_what_there_is_no_memory_for_stays(script):
    process = script(NO_MEMORY)
    assert process.communicate() == ("", "")
    assert process.returncode == 0
