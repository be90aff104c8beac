"""Peer: CPython's own waits: `subprocess`, with and without a timeout, and `asyncio`."""

import asyncio
import subprocess
import time

from wait_subject import NEVER_MET, Task, hold, one


def plain(argv):
    subprocess.Popen(argv).wait()
    return time.monotonic_ns()


def with_timeout(argv):
    subprocess.Popen(argv).wait(timeout=NEVER_MET)
    return time.monotonic_ns()


def hold_with_timeout(argv, timeout, meter):
    child = subprocess.Popen(argv)
    meter()
    try:
        child.wait(timeout=timeout)
    except subprocess.TimeoutExpired:
        meter()
    child.kill()
    child.wait()


async def in_a_loop(task):
    async def wait(argv):
        child = await asyncio.create_subprocess_exec(*argv)
        await child.wait()
        return time.monotonic_ns()

    ends = [await wait(argv) for argv in task.exiters()]
    return iter(ends)


async def hold_in_a_loop(argv, timeout, meter):
    child = await asyncio.create_subprocess_exec(*argv)
    meter()
    try:
        await asyncio.wait_for(child.wait(), timeout)
    except asyncio.TimeoutError:
        meter()
    child.kill()
    await child.wait()


def main():
    task = Task()
    if task.case == "one":
        if task.mode == "asyncio":
            # One loop for all, as in a program; the slots are read afterwards.
            ends = asyncio.run(in_a_loop(task))
            one(task, lambda argv: next(ends))
        else:
            one(task, with_timeout if task.mode == "timeout" else plain)
    elif task.mode == "asyncio":
        hold(task, lambda *how: asyncio.run(hold_in_a_loop(*how)))
    else:
        hold(task, hold_with_timeout)


main()
