"""What a call that receives many meets behind what it gives back: the next one is told."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import pickle
import signal
import weakref

import pytest
from test_queue_objects import REACHED, Large, Nosy, pair
from test_queue_processes import in_a_fork

from procwright import queue, wait
from procwright.queue import ObjectReceiver, ObjectSender, Receiver

#: Where the first lane says how far it has come, as docs/reference/queue-format.md has it.
TAIL = 1_310_720
NONSENSE = (0x7FFF_FFFF_0000_0003).to_bytes(8, "little")


def awaited(waits):
    async def main():
        return await waits()

    return asyncio.run(main())


def viewed(view):
    with view as message:
        return bytes(message)


RECEIVES = {
    "recv": lambda receiver: receiver.recv(),
    "try_recv": lambda receiver: receiver.try_recv(),
    "recv_many": lambda receiver: receiver.recv_many(5),
    "recv_view": lambda receiver: viewed(receiver.recv_view()),
    "try_recv_view": lambda receiver: viewed(receiver.try_recv_view()),
    "recv_async": lambda receiver: awaited(receiver.recv_async),
    "iterating": lambda receiver: next(receiver),
    "iterating asynchronously": lambda receiver: awaited(receiver.__anext__),
    "object": lambda receiver: ObjectReceiver(receiver).recv(),
    "objects": lambda receiver: ObjectReceiver(receiver).recv_many(5),
    "object if there is one": lambda receiver: ObjectReceiver(receiver).try_recv(),
    "await object": lambda receiver: awaited(ObjectReceiver(receiver).recv_async),
    "iterating over objects": lambda receiver: next(ObjectReceiver(receiver)),
}


def damaged():
    """Two senders, of whom one has sent something, and the other's lane is nonsense."""
    receiver = Receiver()
    bad, good = receiver.sender(), receiver.sender()
    invitation = receiver.invite()
    bad.send(b"x")
    assert receiver.recv() == b"x"
    # Its lane is the one that is looked at first from here on.
    good.send(b"x")
    assert receiver.recv() == b"x"
    bad.send(b"lost")
    with open(invitation.fds[0], "r+b", buffering=0, closefd=False) as file:
        os.pwrite(file.fileno(), NONSENSE, TAIL)
    return receiver, bad, good


@pytest.mark.parametrize("what", RECEIVES)
def test_damage_behind_messages_is_told_by_the_next_call(what):
    receiver, _bad, good = damaged()
    good.send(b"y")
    assert receiver.recv_many(5) == [b"y"]
    good.send(b"z")
    assert wait([receiver]).done == [receiver]
    with pytest.raises(queue.Damaged) as caught:
        RECEIVES[what](receiver)
    assert (caught.value.lane, caught.value.peer) == (0, os.getpid())
    # Once, and nothing is lost over it.
    assert receiver.recv() == b"z"
    with pytest.raises(queue.Empty):
        receiver.try_recv()


def test_damage_behind_objects():
    receiver, _bad, good = damaged()
    sender, objects = ObjectSender(good), ObjectReceiver(receiver)
    sender.send("y")
    assert objects.recv_many(5) == ["y"]
    # Without another message: who waits or watches is told that there is something.
    assert wait([objects], timeout=0).done == [objects]
    with pytest.raises(queue.Damaged):
        objects.recv()
    assert wait([objects], timeout=0).done == []


class Bad:
    """Cannot be unpickled; which one it was, what that raises says."""

    def __init__(self, what) -> None:
        self.what = what

    def __reduce__(self):
        return fail, (self.what,)


def fail(what):
    REACHED.append(what)
    raise ValueError(what)


@pytest.fixture
def reached():
    yield REACHED
    REACHED.clear()


def test_what_has_come_at_once():
    sender, receiver = pair()
    long = ["x" * 100_000, Large(bytearray(b"y" * 100_000))]
    for sent in [None, (1, "a", 0.5), long, [], "last"]:
        sender.send(sent)
    got = receiver.recv_many(4)
    assert (got[:2], got[3:]) == ([None, (1, "a", 0.5)], [[]])
    assert (got[2][0], bytes(got[2][1].data)) == (long[0], long[1].data)
    assert receiver.recv_many(4, timeout=0) == ["last"]
    with pytest.raises(TimeoutError):
        receiver.recv_many(4, timeout=0)
    sender.close()
    with pytest.raises(EOFError):
        receiver.recv_many(4)


@pytest.mark.parametrize("padding", ["", "x" * 100_000])
def test_what_cannot_be_unpickled_loses_nothing_else(reached, padding):
    sender, receiver = pair()
    for sent in [1, 2, Bad("third" + padding), 4, Bad("fifth" + padding)]:
        sender.send(sent)
    sender.sender.send(b"no object")
    assert receiver.recv_many(9) == [1, 2]
    assert wait([receiver], timeout=0).done == [receiver]
    with pytest.raises(ValueError, match="third") as caught:
        receiver.recv_many(9)
    assert caught.traceback[-1].name == "fail"
    assert receiver.recv_many(9) == [4]
    with pytest.raises(ValueError, match="fifth"):
        receiver.try_recv()
    # As the first of a batch.
    with pytest.raises(pickle.UnpicklingError, match="no ObjectSender"):
        receiver.recv_many(9)
    with pytest.raises(queue.Empty):
        receiver.try_recv()
    # Each was tried once.
    assert [what[:5] for what in reached] == ["third", "fifth"]


class Late:
    """Is interrupted the first time."""

    def __init__(self, what) -> None:
        self.what = what

    def __reduce__(self):
        return at_last, (self.what,)


def at_last(what):
    if what not in REACHED:
        REACHED.append(what)
        raise KeyboardInterrupt
    return what


@pytest.mark.parametrize("padding", ["", "x" * 100_000])
def test_an_interruption_is_told_at_once_and_loses_nothing(reached, padding):
    sender, receiver = pair()
    late = [name + padding for name in ("alone", "first", "third", "last")]
    for name, call in zip(late[:2], (receiver.recv, lambda: receiver.recv_many(9)), strict=True):
        sender.send(Late(name))
        with pytest.raises(KeyboardInterrupt):
            call()
        assert receiver.recv() == name
    for sent in [1, 2, Late(late[2]), 4]:
        sender.send(sent)
    with pytest.raises(KeyboardInterrupt):
        receiver.recv_many(9)
    assert wait([receiver], timeout=0).done == [receiver]
    assert receiver.recv_many(1) == [1]
    assert receiver.recv() == 2
    assert receiver.recv_many(9) == [late[2], 4]
    for sent in [1, 2, Late(late[3])]:
        sender.send(sent)
    with pytest.raises(KeyboardInterrupt):
        receiver.recv_many(9)
    assert awaited(receiver.recv_async) == 1
    assert receiver.recv_many(9) == [2]
    assert receiver.try_recv() == late[3]
    assert wait([receiver], timeout=0).done == []


class Alarm:
    """To unpickle it sets a timer, and runs no code of Python's."""

    def __reduce__(self):
        return signal.setitimer, (signal.ITIMER_REAL, 1e-6)


def test_signals_while_many_are_unpickled():
    class Rung(BaseException):
        pass

    def ring(number, frame):
        raise Rung

    sender, receiver = pair()
    sender.send(Alarm())
    most = 200_000
    for number in range(1, most):
        sender.send(number)
    before = signal.signal(signal.SIGALRM, ring)
    try:
        with pytest.raises(Rung):
            receiver.recv_many(most)
    finally:
        signal.signal(signal.SIGALRM, before)
    got = []
    while len(got) < most:
        got += receiver.recv_many(most, timeout=0)
    assert got[1:] == list(range(1, most))


class Closing:
    def __reduce__(self):
        return close, ()


def close():
    REACHED[0].close()
    return "closed"


def test_what_is_unpickled_can_close_the_receiver(reached):
    sender, receiver = pair()
    for sent in [1, Closing(), 3]:
        sender.send(sent)
    reached.append(receiver)
    assert receiver.recv_many(9) == [1, "closed"]
    with pytest.raises(queue.EndClosed):
        receiver.recv_many(9)
    with pytest.raises(queue.Closed):
        sender.send(4)


def test_what_is_unpickled_cannot_get_in(reached):
    sender, receiver = pair()
    for padding in ("", "x" * 100_000):
        sender.send([Nosy(), padding])
    reached.append(receiver)
    assert receiver.recv_many(9) == [["told: Busy", ""], ["told: Busy", "x" * 100_000]]


def test_what_is_kept_can_be_garbage(reached):
    def leave():
        sender, receiver = pair()
        sender.send(1)
        sender.send(Bad("second"))
        # What is raised has this frame, by those that it went through.
        assert receiver.recv_many(9) == [1]
        return weakref.ref(receiver.receiver)

    def leave_objects():
        sender, receiver = pair()
        reached.append(receiver)
        sender.send(Circle())
        sender.send(Late("late"))
        # `pytest.raises` would keep what has this frame.
        with contextlib.suppress(KeyboardInterrupt):
            pytest.fail(f"{receiver.recv_many(9)}")
        reached.clear()
        return weakref.ref(receiver.receiver)

    left = [leave(), leave_objects()]
    gc.collect()
    assert [reference() for reference in left] == [None, None]


class Circle:
    def __reduce__(self):
        return found, ()


def found():
    return list(REACHED)


def test_what_is_kept_is_not_a_forks(reached):
    sender, receiver = pair()
    told, other = pair()
    for sent in [1, Late("second")]:
        sender.send(sent)
    for sent in [1, Bad("second")]:
        told.send(sent)
    with pytest.raises(KeyboardInterrupt):
        receiver.recv_many(9)
    assert other.recv_many(9) == [1]

    def do():
        for one in (receiver, other):
            with pytest.raises(queue.Forked):
                one.recv_many(9)

    assert in_a_fork(do) == 0
    assert receiver.recv_many(9) == [1]
    with pytest.raises(ValueError, match="second"):
        other.recv()
