"""Queues on asyncio, asyncio with uvloop, and trio."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading

import pytest
from conftest import LOOPS, comes_back, descriptors, sleeps

from procwright import InvalidValue, queue

anyio = pytest.importorskip("anyio")
from loops import LONG, CancelsAt, Turns, awaited, without_a_loop  # noqa: E402

from procwright import aio  # noqa: E402


@pytest.fixture(params=["blocking", *LOOPS])
def ends(request):
    """Runs a function with the class of each end, which gives one whose waits are awaited: those
    of `procwright.queue` by themselves, and those of each event loop."""
    if request.param == "blocking":
        return lambda main: without_a_loop(
            main(
                lambda receiver: awaited(receiver, "recv", "recv_many"),
                lambda sender: awaited(sender, "send"),
            )
        )
    pytest.importorskip(request.param)
    return lambda main: anyio.run(main, aio.Receiver, aio.Sender, **LOOPS[request.param])


def test_messages_and_times_and_ends(ends):
    async def main(receiver_of, sender_of):
        plain = queue.Receiver(limit=4096)
        receiver, sender = receiver_of(plain), sender_of(plain.sender())
        await sender.send(b"one")
        assert await receiver.recv() == b"one"
        for message in (b"two", bytearray(b"three"), memoryview(b"four")):
            await sender.send(message)
        assert await receiver.recv_many(2) == [b"two", b"three"]
        assert await receiver.recv_many(100, LONG) == [b"four"]
        with pytest.raises(queue.Empty):
            receiver.try_recv()
        for timeout in (0, -1, 0.01):
            with pytest.raises(queue.TimedOut):
                await receiver.recv(timeout)
            with pytest.raises(queue.TimedOut):
                await receiver.recv_many(2, timeout)
        helper = threading.Thread(target=sender.try_send, args=(b"later",))
        helper.start()
        assert await receiver.recv() == b"later"
        helper.join()
        for bad in (float("nan"), "1"):
            with pytest.raises(InvalidValue):
                await receiver.recv(bad)
            with pytest.raises(InvalidValue):
                await sender.send(b"", bad)
        with pytest.raises(InvalidValue):
            await receiver.recv_many(0)
        with pytest.raises(InvalidValue):
            await sender.send(1)
        with pytest.raises(queue.TooLarge):
            await sender.send(bytes(10_000))
        await sender.send(b"last")
        sender.close()
        assert [message async for message in receiver] == [b"last"]
        with pytest.raises(EOFError):
            await receiver.recv()
        with pytest.raises(queue.EndClosed):
            await sender.send(b"")
        receiver.close()
        with pytest.raises(queue.EndClosed):
            await receiver.recv()

    ends(main)


async def fill(sender):
    """Sends until there is no room."""
    with contextlib.suppress(queue.TimedOut):
        while True:
            await sender.send(bytes(500), 0.01)


def test_a_full_queue(ends):
    async def main(receiver_of, sender_of):
        plain = queue.Receiver(limit=4096)
        receiver = receiver_of(plain)
        drops = plain.sender("drop_newest")
        while not drops.dropped:
            await sender_of(drops).send(bytes(500))
        ways = {way: sender_of(plain.sender(way)) for way in ("block", "fail", "drop_newest")}
        for way, sender in ways.items():
            await fill(sender)
            with pytest.raises(TimeoutError):
                await sender.send(bytes(500), 0.01)
            with pytest.raises(queue.Full):
                sender.try_send(bytes(500))
            if way == "fail":
                with pytest.raises(queue.Full):
                    await sender.send(bytes(500))
        # What waits for room is told that there will be none.
        with sleeps() as once_asleep:
            once_asleep(lambda: plain.close())
            with pytest.raises(BrokenPipeError):
                await ways["block"].send(bytes(500))
        assert receiver.closed

    ends(main)


def test_what_is_no_end():
    for made in (aio.Receiver, aio.Sender):
        with pytest.raises(InvalidValue):
            made(b"")


#: Some have room at once, and some do not.
MESSAGES = [b"%d" % number * (1 + 500 * (number % 3)) for number in range(20)]


def cancelled_at_every_suspension(on, at):
    """Cancels `at(n)` at its n-th suspension, for all n; nothing of it is left."""
    on(at, 0)
    gc.collect()
    before, threads = descriptors(), threading.active_count()
    n = 1
    while on(at, n):
        n += 1
        assert n < 1000
    assert n > 2
    comes_back(before)
    while threading.active_count() > threads:
        os.sched_yield()


@pytest.mark.parametrize("call", ["recv", "recv_many", "async for"])
def test_a_cancelled_receive_has_taken_nothing(on, call):
    async def at(n):
        got = []

        async def receives():
            try:
                while call == "recv":
                    got.append(await receiver.recv())
                while call == "recv_many":
                    got.extend(await receiver.recv_many(2, LONG))
            except EOFError:
                return
            async for message in receiver:
                got.append(message)

        async def sends(sender):
            for number, message in enumerate(MESSAGES):
                await sender.send(message)
                while len(got) <= number and not scope.cancel_called:
                    await anyio.sleep(0)
            await sender.aclose()

        async with aio.Receiver(queue.Receiver()) as receiver, anyio.create_task_group() as tasks:
            with anyio.CancelScope() as scope:
                tasks.start_soon(sends, receiver.sender())
                await CancelsAt(receives(), scope.cancel, n)
            got.extend([message async for message in receiver])
        assert got == MESSAGES
        return scope.cancel_called

    cancelled_at_every_suspension(on, at)


def test_a_cancelled_send_has_sent_nothing(on):
    async def at(n):
        sent, got = [], []

        async def sends():
            for message in MESSAGES:
                await sender.send(message)
                sent.append(message)

        async def receives():
            # Whoever sends has to wait for room.
            while sender._room is None and not is_over:
                await anyio.sleep(0)
            got.extend([message async for message in receiver])

        is_over = False
        receiver = aio.Receiver(queue.Receiver(limit=4096))
        sender = receiver.sender()
        async with receiver, anyio.create_task_group() as tasks, sender:
            tasks.start_soon(receives)
            with anyio.CancelScope() as scope:
                await CancelsAt(sends(), scope.cancel, n)
            is_over = True
            # The next one is not held up by one that was cancelled.
            await sender.send(b"last")
        assert got == [*sent, b"last"]
        return scope.cancel_called

    cancelled_at_every_suspension(on, at)


def test_many_tasks_have_turns(on):
    async def main():
        got = []
        receiver = aio.Receiver(queue.Receiver(limit=4096))
        sender = receiver.sender()

        async def sends(first):
            for message in MESSAGES:
                await sender.send(first + message)

        async def receives():
            async for message in receiver:
                got.append(message)

        async with receiver, anyio.create_task_group() as receiving:
            for _ in range(3):
                receiving.start_soon(receives)
            async with sender, anyio.create_task_group() as sending:
                for first in (b"a", b"b"):
                    sending.start_soon(sends, first)
        assert sorted(got) == sorted(first + one for first in (b"a", b"b") for one in MESSAGES)

    on(main)


def test_others_of_the_loop_have_turns(on):
    async def main():
        receiver = aio.Receiver(queue.Receiver())
        async with anyio.create_task_group() as tasks:
            turns = Turns(tasks)
            async with receiver.sender() as sender:
                await anyio.lowlevel.checkpoint()
                before = turns.number
                for _ in range(2000):
                    await sender.send(b"x")
                assert turns.number > before
            before = turns.number
            assert len([message async for message in receiver]) == 2000
            assert turns.number > before
            tasks.cancel_scope.cancel()

    on(main)


def test_closing_wakes_who_waits(on):
    async def main():
        receiver = aio.Receiver(queue.Receiver())
        invitation = receiver.invite()

        async def receives():
            with pytest.raises(queue.EndClosed):
                await receiver.recv()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receives)
            tasks.start_soon(receives)
            await anyio.wait_all_tasks_blocked()
            await receiver.aclose()
        with pytest.raises(queue.Closed):
            queue.Sender.attach(invitation)
        assert "closed" in repr(receiver)
        with pytest.raises(queue.EndClosed):
            async with receiver:
                pass

    on(main)


def test_it_is_waited_for_with_others(on):
    async def main():
        quiet, receiver = (aio.Receiver(queue.Receiver()) for _ in range(2))
        kept = quiet.sender(), receiver.sender()
        await kept[1].send(b"said")
        assert (await aio.wait([quiet, receiver], "any")).done == [receiver]

    on(main)


def test_ends_of_a_child(on):
    echo = """
from procwright import queue
with queue.Sender.of_parent() as sender:
    for number in range(3):
        sender.send(b"%d" % number)
"""

    async def main():
        async with aio.spawn([sys.executable, "-c", echo], channel="from_child") as child:
            receiver = await child.receiver()
            assert await child.receiver() is receiver
            assert [message async for message in receiver] == [b"0", b"1", b"2"]

    on(main)
