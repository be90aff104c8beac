"""Ours from Python: `Process.wait`, `wait` and `wait_async`."""

import asyncio
import subprocess
import time

import procwright

from wait_subject import NEVER_MET, Task, hold, many, one


def has_ended(status):
    """What `Process.wait` gave: none, or an error, if time was up."""
    return status is not None


def by_process(process, timeout):
    try:
        return has_ended(process.wait(timeout=timeout))
    except (TimeoutError, subprocess.TimeoutExpired):
        return False


def by_wait(process, timeout):
    done, _ = procwright.wait([process], mode="all", timeout=timeout)
    return len(done) == 1


async def by_wait_async(process, timeout):
    done, _ = await procwright.wait_async([process], mode="all", timeout=timeout)
    return len(done) == 1


class Set:
    def __init__(self, pids):
        self.left = [procwright.Process(pid) for pid in pids]


def ended(prepared, timeout):
    done, pending = procwright.wait(prepared.left, mode="any", timeout=timeout)
    prepared.left = list(pending)
    return [process.pid for process in done]


def await_count(prepared, count, see):
    """All at once if all are to end, which is how one waits for all."""
    if count == len(prepared.left):
        done, _ = procwright.wait(prepared.left, mode="all")
        for process in done:
            see(process.pid)
        return
    seen = 0
    while seen < count:
        for pid in ended(prepared, None):
            see(pid)
            seen += 1


def main():
    task = Task()
    if task.mode == "async":
        runner = asyncio.new_event_loop()

        def by(process, timeout):
            return runner.run_until_complete(by_wait_async(process, timeout))

    else:
        by = {"process": by_process, "wait": by_wait}[task.mode]

    def wait_one(argv):
        child = subprocess.Popen(argv)
        if not by(procwright.Process(child.pid), NEVER_MET):
            raise SystemExit("it has ended")
        now = time.monotonic_ns()
        child.wait()
        return now

    def wait_in_vain(argv, timeout, meter):
        child = subprocess.Popen(argv)
        process = procwright.Process(child.pid)
        meter()
        if by(process, timeout):
            raise SystemExit("nothing ends")
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
