"""Ours from Python: `spill|bare lines|many …`, as src/bin/rust_slow.rs says."""

import os
import sys
import time

import procwright

from slow_subject import Flow, read_slowly, tell_slow

mode, case, number, *argv = sys.argv[1:]
overflow = {"spill": "spill", "bare": "block"}[mode]


def lines(pause, argv):
    child = procwright.spawn(argv, stderr=procwright.INHERIT, overflow=overflow)
    seen = read_slowly(child.stdout, pause)
    if child.wait() != 0:
        sys.exit("the child failed")
    tell_slow(argv[1], *seen, blocked_s=child.stdout.blocked_s)


def many(count, idle, argv):
    expected = int(argv[2]) * int(argv[3])
    flow = Flow()
    flow.before()
    gate, opener = os.pipe()
    children = [procwright.spawn(argv, stdin=gate, overflow=overflow) for _ in range(count)]
    os.close(gate)
    flow.spawned()
    for child in children:
        for stream in (child.stdout, child.stderr):
            while stream.figures.bytes_in < expected:
                time.sleep(0.01)
    flow.flowed()
    time.sleep(idle / 1e3)
    flow.rested()
    os.close(opener)
    size = 0
    for child in children:
        size += len(child.stdout.read()) + len(child.stderr.read())
        if child.wait() != 0:
            sys.exit("a child failed")
    flow.tell(size)


if case == "lines":
    lines(int(number) / 1e3, argv)
else:
    many(int(number), int(argv[0]), argv[1:])
