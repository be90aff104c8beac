"""Values that cannot be used: told by name, before anything happens."""

from __future__ import annotations

import asyncio
import math

import pytest

from procwright import InvalidValue, queue
from procwright.queue import Receiver, Sender

TOO_MANY = 1 << 70

SIZES = {
    "lanes": lambda receiver, sender, n: Receiver(lanes=n),
    "first": lambda receiver, sender, n: Receiver(first=n),
    "limit": lambda receiver, sender, n: Receiver(limit=n),
    "keep": lambda receiver, sender, n: Receiver(keep=n),
    "limit of a sender": lambda receiver, sender, n: receiver.sender(limit=n),
    "limit by name": lambda receiver, sender, n: Sender.open("nobody", limit=n),
    "most": lambda receiver, sender, n: receiver.recv_many(n),
    "most objects": lambda receiver, sender, n: queue.ObjectReceiver(receiver).recv_many(n),
    "length": lambda receiver, sender, n: sender.reserve(n),
    "length to commit": lambda receiver, sender, n: sender.reserve(8).commit(n),
}

WAITS = {
    "recv": lambda receiver, sender, t: receiver.recv(t),
    "recv_many": lambda receiver, sender, t: receiver.recv_many(2, t),
    "recv_view": lambda receiver, sender, t: receiver.recv_view(t),
    "recv_async": lambda receiver, sender, t: asyncio.run(awaited(receiver, t)),
    "object": lambda receiver, sender, t: queue.ObjectReceiver(receiver).recv(t),
    "objects": lambda receiver, sender, t: queue.ObjectReceiver(receiver).recv_many(2, t),
    "await object": lambda receiver, sender, t: asyncio.run(
        awaited(queue.ObjectReceiver(receiver), t)
    ),
    "send": lambda receiver, sender, t: sender.send(b"", t),
    "reserve": lambda receiver, sender, t: sender.reserve(1, t),
    "send object": lambda receiver, sender, t: queue.ObjectSender(sender).send(Untouched(), t),
}


class Untouched:
    """Is not pickled for nothing."""

    def __reduce__(self):
        pytest.fail("it was pickled")


async def awaited(receiver, timeout):
    return await receiver.recv_async(timeout)


@pytest.fixture
def ends():
    receiver = Receiver()
    sender = receiver.sender()
    sender.send(b"there")
    yield receiver, sender
    # Nothing was received or sent.
    assert receiver.recv_many(9, 0) == [b"there"]


@pytest.mark.parametrize("number", [-1, -TOO_MANY, TOO_MANY])
@pytest.mark.parametrize("what", SIZES)
def test_sizes(ends, what, number):
    name = what.split()[0]
    with pytest.raises(InvalidValue, match=rf"^{name} is {number}: pass "):
        SIZES[what](*ends, number)


@pytest.mark.parametrize("what", SIZES)
def test_no_numbers(ends, what):
    is_optional = what in ("first", "limit of a sender", "limit by name", "length to commit")
    for wrong in ([8], 1.5, *([] if is_optional else [None])):
        with pytest.raises(TypeError):
            SIZES[what](*ends, wrong)


@pytest.mark.parametrize("what", SIZES)
def test_texts(ends, what):
    # A size may be one, as "64KiB"; a number of things may not.
    for wrong in ("8 pieces", ""):
        with pytest.raises(InvalidValue):
            SIZES[what](*ends, wrong)


def test_none_at_all(ends):
    with pytest.raises(InvalidValue, match=r"^most is 0: pass 1 or more"):
        ends[0].recv_many(0)


@pytest.mark.parametrize("what", WAITS)
def test_times(ends, what):
    with pytest.raises(InvalidValue, match=r"^timeout is nan: pass seconds"):
        WAITS[what](*ends, math.nan)
    with pytest.raises(TypeError):
        WAITS[what](*ends, "1")


@pytest.mark.parametrize("timeout", [0, -1, -math.inf, math.inf, None])
def test_whatever_the_time_is_what_needs_no_wait_is_done(timeout):
    receiver = Receiver()
    sender = receiver.sender()
    for _ in range(4):
        sender.send(b"x", timeout)
    sender.reserve(1, timeout).cancel()
    assert receiver.recv(timeout) == b"x"
    assert receiver.recv_many(1, timeout) == [b"x"]
    assert bytes(receiver.recv_view(timeout)) == b"x"
    assert asyncio.run(awaited(receiver, timeout)) == b"x"


def test_a_wrong_word_takes_no_place():
    receiver = Receiver(lanes=1)
    invitation = receiver.invite()
    with pytest.raises(InvalidValue, match="overflow is 'never'"):
        Sender.attach(invitation, overflow="never")
    with pytest.raises(InvalidValue, match="limit is -1"):
        Sender.attach(invitation, limit=-1)
    with Sender.attach(invitation) as sender:
        for use in (sender.clone, receiver.sender):
            # Before it is seen that there is no lane.
            with pytest.raises(InvalidValue, match="overflow"):
                use(overflow="never")


def test_a_lane_keeps_to_its_limit():
    for limit, most in ((4096, 4096), ("8KiB", 8192), (16384, 16384), ("1M", 1 << 20)):
        with Receiver(limit=limit) as receiver, receiver.sender("drop_newest") as sender:
            count = most // 100 + 1
            for _ in range(count):
                sender.send(b"x" * 100)
            assert most // 4 < 100 * (count - sender.dropped) < most
    with pytest.raises(InvalidValue, match=r"first is 1048576, and limit is 65536: .* at least"):
        Receiver(first="1MiB", limit="64KiB")
    with pytest.raises(InvalidValue, match=r"limit is 1024, .* at least 4096"):
        Receiver(limit=1024)
