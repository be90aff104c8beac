"""A load under which cleanups hang: `aio_load.py [--workers N] [--rate N] [--minutes N]`.

In a pid namespace of its own, in a process that reaps whatever ends (pid 1, whose thread waits for
any child): so many workers run so many commands a minute on one event loop. Some commands leave
processes of other sessions that hold their pipes, some write much, some never end; a part of them
is cancelled at a random moment. Prints the latencies of each minute, and ends with 1 if a process,
a descriptor or a thread is left, or the last minute is slower than the first.

Needs root, or a system that lets a user make namespaces.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import statistics
import subprocess
import sys
import threading
import time

#: Commands, and whether they end by themselves.
COMMANDS = [
    ("true", True),
    ("echo said; echo err >&2", True),
    ("head -c 300000 /dev/zero", True),
    ("setsid sleep 5 & echo left", True),
    ("setsid sleep 1000 & sleep 1000", False),
    ("trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 1000' & sleep 1000", False),
]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=190)
    parser.add_argument("--rate", type=int, default=1000, help="commands a minute")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--backend", default="asyncio")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def reap_all():
    """What a supervisor does that is pid 1: whoever ends is waited for, whose child it may be."""
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            time.sleep(0.01)


class Load:
    def __init__(self, args):
        self.args = args
        self.began = time.monotonic()
        #: Seconds of each `true`, by the minute of its start.
        self.latencies = {}
        self.cancelled = 0
        self.ended = 0
        #: The most seconds from a cancellation to its end, and the command.
        self.latest = (0.0, "")
        #: The most seconds that a thread which sleeps has overslept: the machine's doing.
        self.overslept = 0.0
        threading.Thread(target=self.watch_the_machine, daemon=True).start()

    def watch_the_machine(self):
        while True:
            begin = time.monotonic()
            time.sleep(0.05)
            self.overslept = max(self.overslept, time.monotonic() - begin - 0.05)

    def minute(self):
        return int((time.monotonic() - self.began) // 60)

    async def main(self):
        import anyio

        pause = self.args.workers * 60 / self.args.rate
        async with anyio.create_task_group() as tasks:
            for number in range(self.args.workers):
                tasks.start_soon(self.worker, pause, pause * number / self.args.workers)

    async def worker(self, pause, delay):
        import anyio

        await anyio.sleep(delay)
        until = self.began + 60 * self.args.minutes
        while time.monotonic() < until:
            due = time.monotonic() + pause
            await self.one()
            await anyio.sleep(max(due - time.monotonic(), 0))

    async def one(self):
        import anyio

        from procwright import Stop, aio

        line, ends = random.choice(COMMANDS)
        minute, begin = self.minute(), time.monotonic()
        limit = None if ends and random.random() < 0.8 else random.uniform(0, 0.5)
        with anyio.CancelScope() if limit is None else anyio.move_on_after(limit) as scope:
            await aio.run(line, shell=True, until="exit", stop=Stop("TERM", grace=0.5))
        took = time.monotonic() - begin
        if scope.cancelled_caught:
            self.cancelled += 1
            self.latest = max(self.latest, (took - limit, line))
        else:
            self.ended += 1
            self.latencies.setdefault(minute, []).append(took)


def others():
    """The processes of this namespace but this one."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    found[int(name)] = file.read().replace(b"\0", b" ").decode()
            except OSError:
                continue
    return found


def inside(args):
    import anyio

    from procwright import aio

    threading.Thread(target=reap_all, daemon=True).start()

    async def first():
        await aio.run(["true"])

    anyio.run(first, backend=args.backend)
    time.sleep(0.5)
    gc.collect()
    load = Load(args)
    fds, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    anyio.run(load.main, backend=args.backend)
    print(f"{load.ended} ended by themselves, {load.cancelled} were cancelled")
    medians = []
    for minute, seconds in sorted(load.latencies.items()):
        middle, most = statistics.median(seconds), max(seconds)
        medians.append(middle)
        print(
            f"minute {minute + 1}: {len(seconds)}, median {middle * 1000:.1f} ms, most {most:.2f} s"
        )
    # Those that a run has left behind on purpose end by themselves.
    until = time.monotonic() + 20
    while others() and time.monotonic() < until:
        time.sleep(0.1)
    gc.collect()
    left = {
        "processes": others(),
        "descriptors": max(len(os.listdir("/proc/self/fd")) - fds, 0),
        "threads": max(threading.active_count() - threads, 0),
    }
    print(f"left: {left}")
    late, line = load.latest
    print(f"cancel to gone: {late:.2f} s at most, of {line!r}; a sleep: {load.overslept:.2f} s")
    # The grace, 2 s, and what a loaded machine takes besides, which has many turns in a stop.
    is_late = late > 2.5 + 5 + 20 * load.overslept
    is_flat = len(medians) < 3 or medians[-2] < 3 * max(medians[0], 0.005)
    return 1 if any(left.values()) or is_late or not is_flat else 0


def main():
    args = arguments()
    if args.inside:
        return inside(args)
    given = [word for word in sys.argv[1:] if word != "--inside"]
    argv = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, __file__]
    return subprocess.run([*argv, "--inside", *given]).returncode


if __name__ == "__main__":
    sys.exit(main())
