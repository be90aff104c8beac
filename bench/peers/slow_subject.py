"""What the Python subjects with slow readers or many children share; see src/streams/slow.rs."""

import json
import os
import resource
import struct
import sys
import time


def seconds(path):
    """What floors/ticker.c has written down: its life, and that inside write."""
    with open(path, "rb") as note:
        return [nanoseconds / 1e9 for nanoseconds in struct.unpack("qq", note.read())]


def read_slowly(stream, pause):
    """(lines, bytes, seconds of pauses)."""
    lines = size = 0
    paused = 0.0
    for line in stream:
        if not line.startswith(b"%010d" % lines):
            sys.exit(f"line {lines} is another")
        lines += 1
        size += len(line)
        started = time.perf_counter()
        time.sleep(pause)
        paused += time.perf_counter() - started
    return lines, size, paused


def tell_slow(note, lines, size, paused, **more):
    life, held = seconds(note)
    print(
        json.dumps(
            {"child_s": life, "held_s": held, "lines": lines, "bytes": size, "paused_s": paused, **more}
        )
    )


def wakes():
    """How often each thread of this process has gone to sleep, the first one apart."""
    found = {}
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/status") as status:
            lines = [line for line in status if line.startswith("voluntary_ctxt_switches:")]
        found[int(task)] = int(lines[0].split()[1])
    return found.pop(os.getpid()), found


def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (usage.ru_utime + usage.ru_stime) * 1e3


class Flow:
    """`before()`, `spawned()` and `flowed()` in turn, `rested()` after a rest, then `tell(bytes)`."""

    def before(self):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.wakes, self.cpu, self.started = [wakes()], used(), time.perf_counter()

    def spawned(self):
        self.spawn_s = time.perf_counter() - self.started

    def flowed(self):
        self.seconds = time.perf_counter() - self.started
        self.cpu = used() - self.cpu
        self.wakes.append(wakes())

    def rested(self):
        self.wakes.append(wakes())

    def tell(self, size):
        (main, before), (main_then, then), (main_last, last) = self.wakes
        flowed = sum(count - before.get(task, 0) for task, count in then.items())
        rested = sum(count - then.get(task, 0) for task, count in last.items())
        mb = size / 1e6
        print(
            json.dumps(
                {
                    "spawn_s": self.spawn_s,
                    "seconds": self.seconds,
                    "bytes": size,
                    "threads": len(then),
                    "wakes_per_mb": flowed / mb,
                    "main_wakes_per_mb": (main_then - main) / mb,
                    "cpu_ms_per_mb": self.cpu / mb,
                    "idle_wakes": rested,
                    "main_idle_wakes": main_last - main_then,
                }
            )
        )
