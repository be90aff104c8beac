"""Runs a program and proves that it hangs: `watch.py PROGRAM ARG...`.

The proof is not that it takes long. It is that some thread below is inside a read
or write of a pipe, that no other waits for a time to come, or for its turn on the
processor, and that none of them has run for two seconds. Then everything is killed and the exit code is 1. A program that ends by itself gives
its own exit code; one that neither ends nor stands still within two minutes, 2.
"""

import os
import pathlib
import signal
import subprocess
import sys
import time

STILL_S = 2
GIVE_UP_S = 120
#: Where the kernel has put a thread that it has not put to sleep.
READY = "0"
PLACES = {
    "pipe_write": "blocked writing to a full pipe",
    "pipe_read": "blocked reading from an empty pipe",
    "futex": "waiting for a lock",
    "do_wait": "waiting for its child",
    "poll": "waiting in poll for something to read",
}


def family(root):
    """The living processes below and with `root`."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            state, parent = stat.rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(entry.name)] = int(parent)
    found = [root] if root in parents else []
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def threads(pid):
    """For each thread: where the kernel has put it to sleep, and how often it ran."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        status = (task / "status").read_text().splitlines()
        runs = sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)
        yield task.name, (task / "wchan").read_text(), runs


def look(root):
    try:
        return {pid: sorted(threads(pid)) for pid in family(root)}
    except OSError:
        return {}


def explain(pid, seen):
    words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    texts = {name(place): None for _, place, _ in seen}
    return f"  {short(words)} (pid {pid}): {', '.join(texts)}"


def name(place):
    return next((text for part, text in PLACES.items() if part in place), place)


def short(words):
    return " ".join(os.path.basename(word) for word in words if word)


def main(argv):
    # A group of its own, so that one signal ends all of it.
    program = subprocess.Popen(argv, start_new_session=True)
    try:
        end = time.monotonic() + GIVE_UP_S
        before = {}
        while time.monotonic() < end:
            try:
                return program.wait(STILL_S)
            except subprocess.TimeoutExpired:
                pass
            now = look(program.pid)
            places = [place for seen in now.values() for _, place, _ in seen]
            blocked = any("pipe_" in place for place in places)
            blocked &= not any("nanosleep" in place for place in places)
            blocked &= READY not in places
            if blocked and now == before:
                print(f"{short(argv)} hangs: nothing has moved for {STILL_S} s:")
                for pid, seen in now.items():
                    print(explain(pid, seen))
                return 1
            before = now
        print(f"{short(argv)} neither ended nor stood still for {GIVE_UP_S} s")
        return 2
    finally:
        try:
            os.killpg(program.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        program.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
