"""What the Python subjects of the suite `streams` share; see src/subject_streams.rs."""

import json
import sys
import time

CHUNK = 64 << 10


class Subjects(dict):
    """`SUBJECT CHILD ARGUMENT…`: the functions by what they are called on the command line.

    Each starts the child, reads it to its end, reaps it, and gives (bytes, lines).
    """

    def add(self, function):
        self[function.__name__] = function
        return function

    def main(self):
        name, argv = sys.argv[1], sys.argv[2:]
        started = time.perf_counter()
        size, lines = self[name](argv)
        seconds = time.perf_counter() - started
        print(json.dumps({"seconds": seconds, "bytes": size, "lines": lines, "peak_rss_kb": peak_rss_kb()}))


def peak_rss_kb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


def by_read1(stream):
    size = 0
    while data := stream.read1(CHUNK):
        size += len(data)
    return size, 0


def by_readinto(stream):
    size, buffer = 0, bytearray(CHUNK)
    while n := stream.readinto(buffer):
        size += n
    return size, 0


def by_line(stream):
    """Bytes or characters; the child writes ASCII."""
    size = lines = 0
    for line in stream:
        lines += 1
        size += len(line)
    return size, lines


def reap(code):
    if code != 0:
        sys.exit(f"the child failed: {code}")
