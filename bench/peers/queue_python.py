"""Between two processes of Python: `SUBJECT trip|rate object|LENGTH SENDERS MS`.

Prints the microseconds of round trips, or how many messages a millisecond one receiver gets
from its senders. Every message is made for the occasion, and what comes is compared with what
must come, all of it.
"""

import ctypes
import importlib
import json
import multiprocessing
import os
import signal
import socket
import sys
import time

context = multiprocessing.get_context("fork")

PR_SET_PDEATHSIG = 1

#: So often is the clock looked at.
CHUNK = 32


def limit(length):
    """Room for a faster-fifo, as it has to be told: what is put at once must fit."""
    return max(1_000_000, 4 * CHUNK * length)


class Peer:
    """A queue that all have before they part: sends with `put`, gets with `get`."""

    def __init__(self, put, get, put_many=None, get_many=None):
        self.put, self.get = put, get
        self.put_many, self.get_many = put_many, get_many

    def sender(self, door):
        return self.put, self.put_many

    def receiver(self, doors):
        return self.get_many or (lambda: (self.get(),))


def queue(length):
    made = context.Queue()
    return Peer(made.put, made.get)


def simple_queue(length):
    made = context.SimpleQueue()
    return Peer(made.put, made.get)


def pipe(length):
    reader, writer = context.Pipe(duplex=False)
    # One at a time, as its documentation says.
    return Peer(locked(writer.send), reader.recv)


def pipe_bytes(length):
    reader, writer = context.Pipe(duplex=False)
    return Peer(locked(writer.send_bytes), reader.recv_bytes)


def locked(send):
    if SENDERS == 1:
        return send
    lock = context.Lock()

    def send_alone(message):
        with lock:
            send(message)

    return send_alone


def faster_fifo(length, many=False):
    made = importlib.import_module("faster_fifo").Queue(max_size_bytes=limit(length))
    forever = 1e6

    def get_many():
        return made.get_many(timeout=forever)

    def put(message):
        made.put(message, timeout=forever)

    def put_many(messages):
        made.put_many(messages, timeout=forever)

    def get():
        return made.get(timeout=forever)

    return Peer(put, get, put_many, get_many) if many else Peer(put, get)


class Ours:
    """An end is of the process that made it: senders are invited by their doors."""

    def __init__(self, are_objects=False, many=False):
        self.are_objects, self.many = are_objects, many

    def sender(self, door):
        queues = importlib.import_module("procwright.queue")
        sender = queues.Sender.attach(queues.Invitation.receive(door))
        if self.are_objects:
            # One at a time: only what has come is received together.
            return queues.ObjectSender(sender).send, None
        return sender.send, sender.send_many if self.many else None

    def receiver(self, doors):
        queues = importlib.import_module("procwright.queue")
        receiver = queues.Receiver()
        for door in doors:
            with receiver.invite() as invitation:
                invitation.send(door)
        if self.are_objects:
            receiver = queues.ObjectReceiver(receiver)
        if self.many:
            return lambda: receiver.recv_many(CHUNK)
        recv = receiver.recv
        return lambda: (recv(),)


SUBJECTS = {
    "procwright": lambda length: Ours(),
    "procwright-many": lambda length: Ours(many=True),
    "procwright-objects": lambda length: Ours(are_objects=True),
    "procwright-objects-many": lambda length: Ours(are_objects=True, many=True),
    "Queue": queue,
    "SimpleQueue": simple_queue,
    "Pipe": pipe,
    "Pipe-bytes": pipe_bytes,
    "faster-fifo": faster_fifo,
    "faster-fifo-many": lambda length: faster_fifo(length, many=True),
}


class Objects:
    """Small tuples."""

    @staticmethod
    def make(number):
        return (number, "a name", 0.5)

    @staticmethod
    def number(message):
        number, name, value = message
        assert (name, value) == ("a name", 0.5)
        return number


class Bytes:
    """Eight that count, and others that are always the same."""

    def __init__(self, length):
        self.rest = bytes(number % 251 for number in range(length - 8))

    def make(self, number):
        return number.to_bytes(8, "little") + self.rest

    def number(self, message):
        assert message[8:] == self.rest
        return int.from_bytes(message[:8], "little")


def part(party, doors):
    """Runs it in a process of its own, with the other end of a door to here."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for door in [*doors, ours]:
            door.close()
        status = 1
        try:
            party(theirs)
            status = 0
        finally:
            # Of a queue with a thread of its own all that was put was received.
            os._exit(status)
    theirs.close()
    doors.append(ours)
    return pid


def told(door):
    assert door.recv(1) == b"."


def trip(make, messages, ms):
    """There and back, in batches."""
    there, back = make(), make()
    last = 1 << 40

    def answer(door):
        receive = there.receiver([door])
        send, _ = back.sender(door)
        number = 0
        while number < last:
            (message,) = receive()
            number = messages.number(message)
            send(messages.make(number))
        told(door)

    doors = []
    children = [part(answer, doors)]
    send, _ = there.sender(doors[0])
    receive = back.receiver(doors)

    def once(number):
        send(messages.make(number))
        (message,) = receive()
        assert messages.number(message) == number

    for number in range(50):
        once(number)
    found = []
    end = time.monotonic() + ms / 1000
    while not found or time.monotonic() < end:
        began = time.perf_counter_ns()
        for number in range(CHUNK):
            once(number)
        found.append((time.perf_counter_ns() - began) / CHUNK / 1000)
    once(last)
    doors[0].send(b".")
    return children, {"trip_us": found}


def rate(make, messages, ms):
    """One way: all send for that long, and all that they sent is received."""
    made = make()
    last = 1 << 40

    def send_all(sender):
        def party(door):
            send, send_many = made.sender(door)
            door.send(b".")
            told(door)
            number = sender << 48
            end = time.monotonic() + ms / 1000
            while time.monotonic() < end:
                if send_many:
                    send_many([messages.make(number + more) for more in range(CHUNK)])
                else:
                    for more in range(CHUNK):
                        send(messages.make(number + more))
                number += CHUNK
            send(messages.make(number | last))
            told(door)

        return party

    doors, children = [], []
    for sender in range(SENDERS):
        children.append(part(send_all(sender), doors))
    receive = made.receiver(doors)
    for door in doors:
        told(door)
    for door in doors:
        door.send(b".")
    began = time.perf_counter()
    counts = [0] * SENDERS
    left = SENDERS
    while left:
        for message in receive():
            word = messages.number(message)
            sender, number = word >> 48, word & (last - 1)
            assert number == counts[sender], "another message should have come"
            counts[sender] += 1
            left -= word & last != 0
    took = time.perf_counter() - began
    for door in doors:
        door.send(b".")
    return children, {"per_ms": sum(counts) / took / 1000}


if __name__ == "__main__":
    subject, case, what, senders, ms = sys.argv[1:6]
    SENDERS = int(senders)
    length = 64 if what == "object" else int(what)
    messages = Objects() if what == "object" else Bytes(length)
    if "procwright" in subject:
        importlib.import_module("procwright.queue")
    # Who hangs is ended by the signal's default action, in whatever library.
    signal.alarm(30)
    run = trip if case == "trip" else rate
    children, found = run(lambda: SUBJECTS[subject](length), messages, int(ms))
    for child in children:
        _, status = os.waitpid(child, 0)
        if status != 0:
            raise SystemExit(f"a process ended with {status}")
    print(json.dumps(found))
