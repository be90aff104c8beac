"""What the Python subjects of the suite `wait` share; see src/subject_wait.rs."""

import json
import os
import resource
import struct
import subprocess
import sys
import time

SLOTS = 4096
NEVER_MET = 60.0


def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (usage.ru_utime + usage.ru_stime) * 1e3, usage.ru_nvcsw


class Task:
    """`MODE HELPERS SLOTS CASE NUMBER…`"""

    def __init__(self):
        self.mode, self.helpers, self.slots, self.case = sys.argv[1:5]
        self.numbers = [int(word) for word in sys.argv[5:]]

    def exiters(self):
        count, least, most = self.numbers
        noise = 1
        for index in range(count):
            noise = (noise * 1664525 + 1013904223) % (1 << 32)
            yield self.exiter(index, least + (noise >> 8) % (most - least))

    def lasting(self):
        return self.exiter(0, (self.numbers[0] + 60) * 1_000_000)

    def exiter(self, index, life_us):
        return [os.path.join(self.helpers, "exiter"), self.slots, str(index), str(life_us)]

    def late_us(self, index, now):
        with open(self.slots, "rb") as slots:
            (ended,) = struct.unpack("Q", os.pread(slots.fileno(), 8, index % SLOTS * 8))
        if not 0 < ended <= now:
            sys.exit("the process has not ended")
        return (now - ended) / 1e3

    def hold(self):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return Strangers(self)


class Strangers:
    """Processes that are not ours, and their parent."""

    def __init__(self, task):
        count = task.numbers[0]
        self.holder = subprocess.Popen(
            [os.path.join(task.helpers, "holder"), task.slots, str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.pids = [int(word) for word in self.holder.stdout.readline().split()]
        if len(self.pids) != count:
            sys.exit("the holder started fewer")

    def tell(self, line):
        self.holder.stdin.write(line.encode() + b"\n")
        self.holder.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.holder.stdin.close()
        self.holder.wait()


def one(task, wait):
    """`wait(argv)` starts it, waits for it and says when that was over."""
    late = [task.late_us(index, wait(argv)) for index, argv in enumerate(task.exiters())]
    print(json.dumps({"latency_us": late}))


def hold(task, wait):
    """`wait(argv, timeout, meter)` starts it and waits so long between two `meter()`; nothing ends."""
    uses = []
    wait(task.lasting(), task.numbers[0], lambda: uses.append(used()))
    before, after = uses
    print(json.dumps({"cpu_ms": after[0] - before[0], "switches": after[1] - before[1]}))


def many(task, prepare, ended, await_count=None):
    """`ended(prepared, timeout)` gives the pids that have ended since the last call.

    A `prepared` is what `prepare(pids)` gave. `await_count(prepared, count, see)`
    is for who has callbacks instead of a return: `see(pid)` is called for each.
    """
    case = {"idle": _idle, "among": _among, "mass": _mass}[task.case]
    with task.hold() as strangers:
        print(json.dumps(case(task, strangers, prepare, ended, await_count or _calls(ended))))


def _calls(ended):
    def await_count(prepared, count, see):
        seen = 0
        while seen < count:
            for pid in ended(prepared, None):
                see(pid)
                seen += 1

    return await_count


def _idle(task, strangers, prepare, ended, _):
    count, seconds, look_ms = task.numbers
    started = time.perf_counter()
    prepared = prepare(strangers.pids)
    early = len(ended(prepared, 0))
    setup = time.perf_counter() - started
    # What a look costs belongs to the set-up of whoever begins anew at each call.
    looks, base, began = 0, [], time.perf_counter()
    while looks < 3 or time.perf_counter() - began < look_ms / 1e3:
        before = used()
        early += len(ended(prepared, 0))
        base.append([after - at_first for after, at_first in zip(used(), before)])
        looks += 1
    look_ns = (time.perf_counter() - began) / looks * 1e9
    before = used()
    early += len(ended(prepared, seconds))
    whole = [after - at_first for after, at_first in zip(used(), before)]
    if early:
        sys.exit("some ended")
    middle = [sorted(figures)[len(figures) // 2] for figures in zip(*base)]
    return {
        "setup_us": setup * 1e6 / count,
        "look_ns": look_ns,
        "cpu_ms": whole[0] - middle[0],
        "switches": whole[1] - middle[1],
    }


def _among(task, strangers, prepare, _, await_count):
    _, count, step_us = task.numbers
    place = {pid: index for index, pid in enumerate(strangers.pids)}
    late = []
    prepared = prepare(strangers.pids)
    strangers.tell(f"each {count} {step_us}")
    await_count(prepared, count, lambda pid: late.append(task.late_us(place[pid], time.monotonic_ns())))
    return {"latency_us": late}


def _mass(task, strangers, prepare, _, await_count):
    count = task.numbers[0]
    started = time.perf_counter()
    prepared = prepare(strangers.pids)
    setup = time.perf_counter() - started
    before = used()
    strangers.tell("all")
    await_count(prepared, count, lambda pid: None)
    now = time.monotonic_ns()
    cpu_ms, switches = (after - at_first for after, at_first in zip(used(), before))
    return {
        "setup_us": setup * 1e6 / count,
        "exit_us": task.late_us(0, now) / count,
        "cpu_us": cpu_ms * 1e3 / count,
        "switches": switches,
    }
