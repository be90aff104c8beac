"""Waiting for messages and for room: signals, asyncio and trio."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path

import pytest
from conftest import comes_back, descriptors

from procwright import InvalidValue, queue, wait_async
from procwright.queue import Receiver

#: Only against hanging.
LONG = 100


@pytest.fixture
def handler():
    """Sets handlers for the time of the test."""
    before = {}

    def install(number, call):
        before[number] = signal.signal(number, call)

    yield install
    for number, call in before.items():
        signal.signal(number, call)


@pytest.fixture
def when_blocked():
    """`when_blocked(calls, do)`: on another thread, once the main one sleeps in one of `calls`."""
    helpers = []
    is_over = threading.Event()
    path = f"/proc/self/task/{os.getpid()}/syscall"

    def start(calls, do):
        def watch():
            while Path(path).read_text().split()[0] not in calls:
                # It was skipped, or has failed.
                if is_over.is_set():
                    return
                os.sched_yield()
            do()

        # Its start is waited for with a lock, which is no sleep of ours.
        go = threading.Event()
        helper = threading.Thread(target=lambda: (go.wait(), watch()))
        helpers.append(helper)
        helper.start()
        go.set()

    yield start
    is_over.set()
    for helper in helpers:
        helper.join()


#: poll(2) and ppoll(2), on x86-64 and aarch64.
POLL = {"7", "271", "73"}
#: futex_waitv(2), from Linux 5.16 on: that of a wait for the interpreter lock is another.
TWO_WORDS = {"449"}

has_two_words = pytest.mark.skipif(
    tuple(map(int, os.uname().release.split(".")[:2])) < (5, 16), reason="needs futex_waitv(2)"
)


def full():
    receiver = Receiver(first=4096, limit=4096)
    sender = receiver.sender()
    sender.send(bytes(4024))
    return receiver, sender


RECEIVES = {
    "recv": lambda receiver: receiver.recv(),
    "with a timeout": lambda receiver: receiver.recv(LONG),
    "recv_view": lambda receiver: receiver.recv_view(),
    "recv_many": lambda receiver: receiver.recv_many(5),
    "iterating": lambda receiver: next(receiver),
    "object": lambda receiver: queue.ObjectReceiver(receiver).recv(),
    "objects": lambda receiver: queue.ObjectReceiver(receiver).recv_many(5),
}

SENDS = {
    "send": lambda sender: sender.send(b"x" * 100),
    "with a timeout": lambda sender: sender.send(b"x" * 100, LONG),
    "send_many": lambda sender: sender.send_many([b"x" * 100]),
    "reserve": lambda sender: sender.reserve(100),
    "objects": lambda sender: queue.ObjectSender(sender).send([b"x" * 100]),
}


@pytest.mark.parametrize("what", RECEIVES)
def test_ctrl_c_while_nothing_comes(when_blocked, what):
    receiver = Receiver()
    sender = receiver.sender()
    with pytest.raises(TimeoutError):
        receiver.recv(0.02)
    before = descriptors()
    when_blocked(POLL, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        RECEIVES[what](receiver)
    # What the next call needs is kept.
    assert len(descriptors()) <= len(before) + 2
    assert signal.set_wakeup_fd(-1) == -1
    # Nothing was lost, and nobody is thought to be inside.
    sender.send(b"after")
    assert receiver.recv() == b"after"


@has_two_words
@pytest.mark.parametrize("what", SENDS)
def test_ctrl_c_while_there_is_no_room(when_blocked, what):
    receiver, sender = full()
    when_blocked(TWO_WORDS, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        SENDS[what](sender)
    assert signal.set_wakeup_fd(-1) == -1
    assert receiver.recv() == bytes(4024)
    sender.send(b"after")
    assert receiver.recv() == b"after"


def test_a_handler_that_does_not_raise(when_blocked, handler):
    receiver, sender = full()
    ran = []

    def run(number, frame):
        ran.append(number)
        # Nobody gets in from here either.
        with pytest.raises(queue.Busy):
            receiver.recv(0)
        helper = threading.Thread(target=sender.send, args=(b"from the handler",))
        helper.start()
        helper.join()

    handler(signal.SIGUSR1, run)
    assert receiver.recv() == bytes(4024)
    when_blocked(POLL, lambda: os.kill(os.getpid(), signal.SIGUSR1))
    assert receiver.recv() == b"from the handler"
    assert ran == [signal.SIGUSR1]


@has_two_words
def test_a_handler_that_makes_room(when_blocked, handler):
    receiver, sender = full()
    got = []

    def run(number, frame):
        with pytest.raises(queue.Busy):
            sender.try_send(b"x")
        got.append(receiver.recv())

    handler(signal.SIGUSR1, run)
    when_blocked(TWO_WORDS, lambda: os.kill(os.getpid(), signal.SIGUSR1))
    sender.send(b"x" * 100)
    assert got == [bytes(4024)]
    assert receiver.recv() == b"x" * 100


def test_others_run_while_one_waits():
    """The interpreter lock is free: or none of this would end."""
    receiver, sender = full()
    got = []
    reader = threading.Thread(target=lambda: got.extend(receiver.recv() for _ in range(3)))
    sleeper = threading.Thread(target=sender.send, args=(b"x" * 100,))
    sleeper.start()
    reader.start()
    sleeper.join()
    sender.send(b"y")
    reader.join()
    assert got == [bytes(4024), b"x" * 100, b"y"]


def on_asyncio(main):
    return asyncio.run(main())


def on_trio(main):
    trio = pytest.importorskip("trio")
    return trio.run(main)


LOOPS = [on_asyncio, on_trio]


@pytest.mark.parametrize("run", LOOPS)
def test_awaiting(run):
    receiver = Receiver()
    sender = receiver.sender()

    async def main():
        sender.send(b"there")
        got = [await receiver.recv_async()]
        helper = threading.Thread(target=sender.send, args=(b"later",))
        helper.start()
        got.append(await receiver.recv_async())
        helper.join()
        for timeout in (0, -1, 0.01):
            with pytest.raises(queue.TimedOut):
                await receiver.recv_async(timeout)
        with pytest.raises(InvalidValue):
            await receiver.recv_async(float("nan"))
        closer = threading.Thread(target=lambda: (sender.send(b"last"), sender.close()))
        closer.start()
        got += [message async for message in receiver]
        closer.join()
        with pytest.raises(EOFError):
            await receiver.recv_async()
        return got

    assert run(main) == [b"there", b"later", b"last"]


def test_cancelling_on_asyncio():
    receiver = Receiver()
    sender = receiver.sender()

    async def main():
        for number in range(20):
            task = asyncio.ensure_future(receiver.recv_async())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            with pytest.raises(queue.Busy):
                await receiver.recv_async()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            sender.send(b"%d" % number)
            assert await receiver.recv_async() == b"%d" % number

    asyncio.run(main())
    before = descriptors()
    asyncio.run(main())
    comes_back(before)


@pytest.mark.parametrize("run", LOOPS)
def test_closing_wakes_who_awaits(run, when_blocked):
    receiver = Receiver()
    invitation = receiver.invite()
    # Those of the loops, on x86-64 and aarch64: epoll_wait(2), epoll_pwait(2).
    when_blocked({"232", "281", "22"}, receiver.close)

    async def main():
        with pytest.raises(queue.EndClosed):
            await receiver.recv_async(LONG)

    run(main)
    assert receiver.closed
    # It is gone, not only said to be.
    with pytest.raises(queue.Closed):
        queue.Sender.attach(invitation)


@pytest.mark.parametrize("run", LOOPS)
def test_closing_wakes_who_awaits_it_with_others(run, when_blocked):
    receiver, other = Receiver(), Receiver()
    kept = [receiver.invite(), other.invite()]
    when_blocked({"232", "281", "22"}, receiver.close)

    async def main():
        return await wait_async([other, receiver], "any", timeout=LONG)

    assert run(main).done == [receiver]
    with pytest.raises(queue.Closed):
        queue.Sender.attach(kept[0])


def test_cancelling_on_trio():
    trio = pytest.importorskip("trio")
    receiver = Receiver()
    sender = receiver.sender()

    async def main():
        for _ in range(5):
            with trio.move_on_after(0.01) as scope:
                await receiver.recv_async()
            assert scope.cancelled_caught
            sender.send(b"kept")
            assert await receiver.recv_async() == b"kept"

    trio.run(main)


def test_many_receivers_on_one_loop():
    receivers = [Receiver() for _ in range(5)]
    senders = [receiver.sender() for receiver in receivers]

    async def main():
        waiting = [asyncio.ensure_future(receiver.recv_async()) for receiver in receivers]
        await asyncio.sleep(0)
        for number, sender in enumerate(senders):
            sender.send(b"%d" % number)
        return await asyncio.gather(*waiting)

    assert asyncio.run(main()) == [b"0", b"1", b"2", b"3", b"4"]
