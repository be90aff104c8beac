"""Ours from Python: `close()` of a child's streams. See src/streams/close.rs.

`MODE CASE NUMBER…`. Two streams a child: it has no more, and a process may have
so many descriptors. `count` says how many there could be.
"""

import json
import os
import resource
import struct
import sys
import threading
import time

import procwright

mode, case = sys.argv[1:3]
overflow = {"spill": "spill", "bare": "block"}[mode]
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
threading.stack_size(128 << 10)
CHILDREN = []


class Begun:
    def __init__(self):
        self.count = 0
        self.lock = threading.Lock()

    def one(self):
        with self.lock:
            self.count += 1

    def settle(self, count):
        while self.count < count:
            time.sleep(0.002)
        time.sleep(0.02 + count / 20_000)


def blocked(stream, begun):
    """A thread that blocks in a read, which is to fail by the close."""

    def read():
        begun.one()
        try:
            stream.read(1)
        except procwright.StreamClosed:
            return
        raise AssertionError("a read did not fail")

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


def quiet():
    """The streams of a child that says nothing."""
    child = procwright.spawn(["sleep", "1000"], overflow=overflow)
    return child, [child.stdout, child.stderr]


def others(count, samples):
    begun, places = Begun(), []
    while len(places) < count:
        child, streams = quiet()
        CHILDREN.append(child)
        places += [[stream, blocked(stream, begun)] for stream in streams]
    begun.settle(len(places))
    closes = []
    for sample in range(samples):
        place = sample % 10 * (count // 10)
        stream, reader = places[place]
        started = time.perf_counter_ns()
        stream.close()
        closes.append((time.perf_counter_ns() - started) / 1e3)
        reader.join()
        # Another in its place, of a child whose other stream rests.
        child, [stream, other] = quiet()
        other.close()
        CHILDREN.append(child)
        places[place] = [stream, blocked(stream, begun)]
        time.sleep(0.002)
    return {"close_us": closes, "count": count}


def waiters(count, samples):
    closes, lasts = [], []
    for _ in range(samples):
        begun = Begun()
        child, [stream, _] = quiet()
        readers = [blocked(stream, begun) for _ in range(count)]
        begun.settle(count)
        started = time.perf_counter_ns()
        stream.close()
        closes.append((time.perf_counter_ns() - started) / 1e3)
        for reader in readers:
            reader.join()
        lasts.append((time.perf_counter_ns() - started) / 1e3)
        child.kill()
    return {"close_us": closes, "last_us": lasts, "count": count}


def epipe(samples, argv):
    late = []
    for _ in range(samples):
        child = procwright.spawn(argv, stderr=procwright.INHERIT, overflow=overflow)
        if child.stdout.read(2) != b"r\n":
            raise SystemExit("no first line")
        begun = Begun()
        reader = blocked(child.stdout, begun)
        begun.settle(1)
        closed = time.monotonic_ns()
        child.stdout.close()
        reader.join()
        if child.wait() != 0:
            raise SystemExit("the child failed")
        with open(argv[1], "rb") as note:
            (learned,) = struct.unpack("q", note.read())
        late.append(max(0, learned - closed) / 1e3)
    return {"epipe_us": late, "count": samples}


def failed(args):
    """A reader's failure is the subject's."""
    print(args.exc_value, file=sys.stderr, flush=True)
    os._exit(1)


threading.excepthook = failed
if case == "epipe":
    found = epipe(int(sys.argv[3]), sys.argv[4:])
else:
    found = {"others": others, "waiters": waiters}[case](int(sys.argv[3]), int(sys.argv[4]))
print(json.dumps(found), flush=True)
# The end of the children must not be seen by those who are still blocked.
threading.excepthook = lambda args: None
for child in CHILDREN:
    child.kill()
os._exit(0)
