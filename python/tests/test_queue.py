"""Queues within a process: what goes in comes out, and what is refused is told."""

from __future__ import annotations

import array
import ctypes
import errno
import mmap
import os
import pickle
import queue as standard
import signal
import socket
import threading
import traceback

import pytest

from procwright import InvalidValue, Process, queue, wait
from procwright.queue import Invitation, Receiver, Sender

#: Only against hanging.
LONG = 100

#: What a sender sleeps in, and nobody who waits for the interpreter lock.
FUTEX_WAITV = "449"


def test_what_is_sent_is_received():
    with Receiver() as receiver, receiver.sender() as sender:
        sender.send(b"one")
        assert sender.send_many([b"two", bytearray(b"three")]) == 2
        sender.try_send(b"")
        assert receiver.recv() == b"one"
        assert receiver.try_recv() == b"two"
        assert receiver.recv_many(10) == [b"three", b""]
        long = os.urandom(1 << 20)
        sender.send(long)
        assert receiver.recv(LONG) == long


@pytest.mark.parametrize(
    "data",
    [
        b"bytes",
        bytearray(b"bytearray"),
        memoryview(b"a slice of it")[2:7],
        array.array("d", [1.5, 2.5]),
        (ctypes.c_int * 3)(1, 2, 3),
        memoryview(bytes(range(12))).cast("B", (3, 4)),
        mmap.mmap(-1, 4096),
        array.array("B"),
        pickle.PickleBuffer(b"pickle"),
        os.urandom(100_000),
        bytearray(os.urandom(100_000)),
    ],
    ids=lambda data: type(data).__name__,
)
def test_whatever_has_bytes_in_one_piece(data):
    receiver = Receiver()
    sender = receiver.sender()
    sender.send(data)
    sender.try_send(data)
    assert sender.send_many([data]) == 1
    expected = memoryview(data).tobytes()
    assert receiver.recv_many(4) == [expected] * 3


@pytest.mark.parametrize(
    "data", ["text", 5, None, ["list"], memoryview(b"every other")[::2], {}], ids=repr
)
def test_what_has_not_is_refused(data):
    receiver = Receiver()
    sender = receiver.sender()
    for send in (sender.send, sender.try_send, lambda data: sender.send_many([b"x", data])):
        with pytest.raises(
            TypeError, match=r"^(data|messages\[1\]) is .*: .*(what has a buffer|one piece)"
        ):
            send(data)
    with pytest.raises(queue.Empty):
        receiver.try_recv()


def test_a_buffer_is_held_while_it_is_sent_and_no_longer():
    receiver = Receiver()
    sender = receiver.sender()
    data = bytearray(100)
    sender.send(data)
    with pytest.raises(TypeError):
        sender.send_many([data, "text"])
    data.append(1)  # BufferError, if somebody had it


def test_exceptions_are_those_of_the_standard_library_too():
    receiver = Receiver(first=4096, limit=4096)
    sender = receiver.sender(overflow="fail")
    with pytest.raises(standard.Empty) as caught:
        receiver.try_recv()
    assert type(caught.value) is queue.Empty
    for also in (TimeoutError, standard.Empty, queue.TimedOut, queue.QueueError):
        with pytest.raises(also):
            receiver.recv(0.001)
    with pytest.raises(queue.TooLarge) as caught:
        sender.send(bytes(5000))
    assert (caught.value.length, caught.value.most) == (5000, 4024)
    assert "a message of 5000 bytes is too long" in str(caught.value)
    sender.send(bytes(4024))
    for send in (sender.send, sender.try_send):
        with pytest.raises(standard.Full) as caught:
            send(b"x")
        assert type(caught.value) is queue.Full
    for also in (TimeoutError, standard.Full, queue.TimedOut):
        with pytest.raises(also):
            sender.send(b"x", timeout=0.001)
    receiver.close()
    with pytest.raises(BrokenPipeError) as caught:
        sender.send(b"x")
    assert isinstance(caught.value, queue.Closed)
    assert caught.value.errno == errno.EPIPE
    receiver = Receiver()
    receiver.sender().close()
    with pytest.raises(EOFError) as caught:
        receiver.recv()
    assert isinstance(caught.value, queue.Closed)


def everyone():
    return [getattr(queue, name) for name in queue.__all__]


def test_every_exception_survives_a_pickle():
    from procwright import _queue_errors as errors

    made = [
        errors.Empty("e"),
        errors._NoMessageInTime("t"),
        errors._NoRoomInTime("r"),
        errors._EndOfQueue("c"),
        errors._BrokenQueue("b"),
        errors.ReceiverDead("dead"),
        errors.TooLarge("large", 3, 2),
        errors.Damaged("damaged", 1, None),
        errors.NameTaken("taken", "name", 7),
        errors.ReceiverAlive("alive", 7),
        errors.NoQueue("none"),
        errors.NoLane("lanes"),
    ]
    for error in made:
        error.sent = 3
        again = pickle.loads(pickle.dumps(error))
        assert type(again).__mro__ == type(error).__mro__
        assert str(again) == str(error)
        assert vars(again) == vars(error)
    for one in everyone():
        assert one.__module__ == "procwright.queue", one


def test_bad_values():
    for shape in ({"lanes": 0}, {"lanes": 5000}, {"lanes": -1}, {"first": 1 << 40}):
        with pytest.raises(InvalidValue, match=next(iter(shape))):
            Receiver(**shape)
    receiver = Receiver()
    with pytest.raises(InvalidValue, match="overflow is 'never'"):
        receiver.sender(overflow="never")
    for call in (receiver.recv, receiver.recv_view):
        with pytest.raises(InvalidValue, match=r"^timeout is nan: "):
            call(float("nan"))
    invitation = receiver.invite()
    with pytest.raises(InvalidValue, match="no ticket"):
        Invitation(invitation.fds, "pwq1")
    with pytest.raises(InvalidValue, match=r"^fds is "):
        Invitation(invitation.fds[:1], invitation.ticket)
    for one in (receiver, receiver.sender()):
        with pytest.raises(TypeError, match=r"receiver.invite\(\)"):
            pickle.dumps(one)


def test_lanes_run_out():
    receiver = Receiver(lanes=1)
    sender = receiver.sender()
    with pytest.raises(queue.NoLane) as caught:
        sender.clone()
    assert caught.value.errno == errno.EBUSY
    invitation = receiver.invite()
    with pytest.raises(queue.NoLane):
        Sender.attach(invitation)
    # It was not used up.
    sender.close()
    with pytest.raises(queue.Empty):
        receiver.try_recv()
    sender = Sender.attach(invitation)
    assert invitation.closed
    with pytest.raises(ValueError, match="used up"):
        Sender.attach(invitation)


def test_lanes_of_those_that_left_are_free():
    receiver = Receiver(lanes=2)
    kept = receiver.sender()
    for number in range(200):
        with kept.clone() as sender:
            if number % 2:
                sender.send(b"x")
                receiver.recv()


def test_waiting_for_a_lane():
    receiver = Receiver(lanes=1)
    kept = receiver.sender()
    invitation = receiver.invite()
    for call in (
        lambda: kept.clone(wait=0.02),
        lambda: Sender.attach(invitation, wait=0.02),
    ):
        with pytest.raises(queue.TimedOut, match="lanes") as caught:
            call()
        assert isinstance(caught.value, TimeoutError)
    with pytest.raises(queue.NoLane):
        Sender.attach(invitation)
    with pytest.raises(InvalidValue, match="wait"):
        kept.clone(wait=float("nan"))
    came = []

    def attach():
        came.append(Sender.attach(invitation, wait=None))

    thread = threading.Thread(target=attach)
    thread.start()
    kept.close()
    thread.join()
    assert not came[0].closed


def test_a_signal_ends_the_wait_for_a_lane(tmp_path, monkeypatch):
    monkeypatch.setenv("PROCWRIGHT_QUEUE_DIR", str(tmp_path / "queues"))

    def ring(number, frame):
        raise KeyboardInterrupt

    def rung(call):
        # It may ring at once.
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        call()

    before = signal.signal(signal.SIGALRM, ring)
    receiver = Receiver(lanes=1)
    kept = receiver.sender()
    try:
        for call in (lambda: kept.clone(wait=None), lambda: Sender.open("none", wait=None)):
            with pytest.raises(KeyboardInterrupt):
                rung(call)
    finally:
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(queue.TimedOut, match=str(tmp_path)):
        Sender.open("none", wait=0.02)


def test_what_overflow_says():
    receiver = Receiver(first=4096, limit=4096)
    sender = receiver.sender(overflow="drop_newest")
    assert sender.overflow == "drop_newest"
    assert sender.send_many([bytes(4024), b"x", b"y"]) == 1
    sender.send(b"z")
    assert sender.dropped == 3
    with pytest.raises(queue.Full):
        sender.reserve(1)
    other = sender.clone(overflow="fail")
    assert other.overflow == "fail"
    other.send(bytes(4024))
    with pytest.raises(queue.Full) as caught:
        other.send_many([b"x", b"y"])
    assert caught.value.sent == 0
    assert receiver.recv_many(10) == [bytes(4024)] * 2
    with pytest.raises(queue.TooLarge) as caught:
        other.send_many([b"a", b"b", bytes(5000)])
    assert caught.value.sent == 2
    assert receiver.recv_many(10) == [b"a", b"b"]


def test_many_wait_for_room():
    receiver = Receiver(first=4096, limit=4096)
    sender = receiver.sender()
    messages = [os.urandom(1000) for _ in range(200)]
    sent = []
    thread = threading.Thread(target=lambda: sent.append(sender.send_many(messages)))
    thread.start()
    assert [receiver.recv() for _ in messages] == messages
    thread.join()
    assert sent == [200]


def test_iterating_until_all_are_gone():
    receiver = Receiver()
    senders = [receiver.sender() for _ in range(3)]
    invitation = receiver.invite()
    for number, sender in enumerate(senders):
        sender.send(b"%d" % number)
        sender.close()
    got = [next(receiver) for _ in senders]
    assert sorted(got) == [b"0", b"1", b"2"]
    with pytest.raises(TimeoutError):
        receiver.recv(0.02)
    invitation.close()
    invitation.close()
    assert list(receiver) == []


def test_two_threads_in_one_receiver(when_asleep):
    receiver = Receiver()
    sender = receiver.sender()
    told = []

    def other():
        try:
            receiver.recv()
        except queue.Busy as error:
            told.append(str(error))
        try:
            receiver.try_recv_view()
        except queue.Busy as error:
            told.append(str(error))
        sender.send(b"go on")

    when_asleep(other)
    assert receiver.recv() == b"go on"
    assert len(told) == 2
    assert all("for one thread at a time" in text for text in told)


@pytest.mark.skipif(
    tuple(map(int, os.uname().release.split(".")[:2])) < (5, 16), reason="needs futex_waitv(2)"
)
def test_two_threads_in_one_sender():
    receiver = Receiver(first=4096, limit=4096)
    sender = receiver.sender()
    sender.send(bytes(4024))
    told = []

    def other():
        for use in (lambda: sender.send(b"x"), lambda: sender.reserve(1), sender.clone):
            try:
                use()
            except RuntimeError as error:
                told.append((type(error), "clone()" in str(error)))
        receiver.recv()

    def watch():
        path = f"/proc/self/task/{os.getpid()}/syscall"
        with open(path) as file:
            while FUTEX_WAITV not in file.read(4):
                os.sched_yield()
                file.seek(0)
        other()

    helper = threading.Thread(target=watch)
    helper.start()
    sender.send(b"after")
    helper.join()
    assert told == [(queue.Busy, True)] * 3
    assert receiver.recv() == b"after"


def test_threads_with_senders_of_their_own():
    receiver = Receiver()
    first = receiver.sender()

    def work(sender, number):
        with sender:
            for count in range(1000):
                sender.send(b"%d %d" % (number, count))

    threads = [threading.Thread(target=work, args=(first.clone(), n)) for n in range(4)]
    first.close()
    for thread in threads:
        thread.start()
    got = [tuple(map(int, message.split())) for message in receiver]
    for thread in threads:
        thread.join()
    for number in range(4):
        assert [count for who, count in got if who == number] == list(range(1000))


@pytest.mark.parametrize("main", [True, False], ids=["main thread", "another"])
def test_close_ends_a_recv(when_asleep, main):
    receiver = Receiver()
    invitation = receiver.invite()
    told = []

    def wait_for_it():
        when_asleep(receiver.close)
        try:
            receiver.recv()
        except queue.EndClosed as error:
            told.append(error)

    if main:
        wait_for_it()
    else:
        thread = threading.Thread(target=wait_for_it)
        thread.start()
        thread.join()
    assert len(told) == 1
    with pytest.raises(queue.Closed):
        Sender.attach(invitation)


def test_waiting_for_receivers_and_others(children):
    (child,) = children(1)
    quiet, other = Receiver(), Receiver()
    senders = [quiet.sender(), other.sender()]
    objects = queue.ObjectReceiver(other)
    everything = [quiet, objects, Process(child)]
    assert wait(everything, timeout=0.01).done == []
    senders[1].send(b"x")
    assert wait(everything, "any").done == [objects]
    # What is there is told of again and again, and was not received.
    assert wait(everything, "any").done == [objects]
    assert other.recv() == b"x"
    assert wait(everything, timeout=0.01).done == []
    senders[0].close()
    assert wait(everything, "any").done == [quiet]
    child.kill()
    assert len(wait(everything, 2).done) == 2
    receiver = Receiver()
    receiver.close()
    assert wait([receiver]).done == [receiver]


def test_close_ends_a_wait(when_asleep):
    receiver, other = Receiver(), Receiver()
    invitation, kept = receiver.invite(), other.invite()
    when_asleep(receiver.close)
    assert wait([other, receiver], "any").done == [receiver]
    with pytest.raises(queue.Closed):
        Sender.attach(invitation)
    # Also where that is not enough, and on a thread.
    third = Receiver()
    also_kept = third.invite()
    when_asleep(other.close)
    # It may be closed behind a wait, too.
    while not (done := wait([other, third], 2, timeout=0.02).done):
        pass
    assert done == [other]
    told = []
    thread = threading.Thread(target=lambda: told.append(wait([third]).done))
    thread.start()
    when_asleep(third.close, thread.native_id)
    thread.join()
    assert told == [[third]]
    for one in (kept, also_kept):
        with pytest.raises(queue.Closed):
            Sender.attach(one)


def test_a_descriptor_for_event_loops():
    import select

    receiver = Receiver()
    sender = receiver.sender()
    sender.send(b"before")
    poll = select.poll()
    poll.register(receiver.readiness_fd(), select.POLLIN)
    assert poll.poll()
    assert receiver.try_recv() == b"before"
    with pytest.raises(queue.Empty):
        receiver.try_recv()
    assert poll.poll(0) == []
    sender.send(b"after")
    assert poll.poll()
    assert receiver.try_recv() == b"after"
    with pytest.raises(queue.Empty):
        receiver.try_recv()
    sender.close()
    # First that it has left, then that nobody else is there.
    is_over = False
    while not is_over and poll.poll():
        try:
            receiver.try_recv()
        except queue.Empty:
            pass
        except queue.Closed:
            is_over = True
    assert is_over


def test_the_package_knows_it():
    import procwright

    assert procwright.queue is queue
    assert set(queue.__all__) <= set(dir(queue))
    with pytest.raises(AttributeError):
        queue.nothing  # noqa: B018
    assert repr(Receiver()) == "<procwright.queue.Receiver>"


def test_invitations_over_a_socket():
    ours, theirs = socket.socketpair()
    with Receiver() as receiver, ours, theirs:
        invitation = receiver.invite()
        invitation.send(ours)
        invitation.close()
        received = Invitation.receive(theirs)
        again = Invitation(received.fds, received.ticket)
        received.close()
        with Sender.attach(again) as sender:
            sender.send(b"over there")
        assert list(receiver) == [b"over there"]
        ours.send(b"nonsense")
        with pytest.raises(InvalidValue):
            Invitation.receive(theirs)


def test_no_thread_is_started():
    # Of this process: what other tests have started is there before.
    before = set(os.listdir("/proc/self/task"))
    receiver = Receiver()
    sender = receiver.sender()
    with pytest.raises(TimeoutError):
        receiver.recv(0.02)
    sender.send(b"x")
    assert receiver.recv() == b"x"
    # Those that stop what earlier tests have left come and go.
    while not set(os.listdir("/proc/self/task")) <= before:
        os.sched_yield()


def test_tracebacks_have_public_names() -> None:
    with Receiver() as receiver, receiver.sender(), pytest.raises(queue.TimedOut) as late:
        receiver.recv(timeout=0)
    with Receiver() as receiver, pytest.raises(queue.Closed) as over:
        receiver.recv()
    for caught, name in ((late, "TimedOut"), (over, "Closed")):
        (line,) = traceback.format_exception_only(caught.value)
        assert line.startswith(f"procwright.queue.{name}: ")
