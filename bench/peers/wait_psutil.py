"""Peer: psutil's `Process.wait` and `wait_procs`."""

import subprocess
import time

import psutil

from wait_subject import NEVER_MET, Task, hold, many, one


def by_process(process, timeout):
    process.wait(timeout)


def by_wait_procs(process, timeout):
    _, alive = psutil.wait_procs([process], timeout=timeout)
    if alive:
        raise psutil.TimeoutExpired(timeout)


class Set:
    def __init__(self, pids):
        self.left = [psutil.Process(pid) for pid in pids]


def ended(prepared, timeout):
    gone, prepared.left = psutil.wait_procs(prepared.left, timeout=timeout)
    return [process.pid for process in gone]


class Enough(Exception):
    pass


def await_count(prepared, count, see):
    """By its callback: it returns only when all have ended."""
    seen = 0

    def callback(process):
        nonlocal seen
        see(process.pid)
        seen += 1
        if seen == count:
            raise Enough

    try:
        psutil.wait_procs(prepared.left, timeout=NEVER_MET, callback=callback)
    except Enough:
        pass
    else:
        raise SystemExit("fewer have ended")


def main():
    task = Task()
    by = by_wait_procs if task.mode == "procs" else by_process

    def wait_one(argv):
        child = subprocess.Popen(argv)
        by(psutil.Process(child.pid), NEVER_MET)
        now = time.monotonic_ns()
        child.wait()
        return now

    def wait_in_vain(argv, timeout, meter):
        child = subprocess.Popen(argv)
        process = psutil.Process(child.pid)
        meter()
        try:
            by(process, timeout)
        except psutil.TimeoutExpired:
            meter()
        child.kill()
        child.wait()

    if task.case == "one":
        one(task, wait_one)
    elif task.case == "hold":
        hold(task, wait_in_vain)
    else:
        many(task, Set, ended, await_count)


main()
