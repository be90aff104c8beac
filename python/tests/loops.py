"""What the tests of event loops share."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys

import anyio
from conftest import is_alive

#: Only against hanging.
LONG = 100


class CancelsAt:
    """Awaits a coroutine, and calls `cancel` at its n-th suspension."""

    def __init__(self, coroutine, cancel, n):
        #: How many suspensions come before that one; 0 and less once it has come.
        self.coroutine, self.cancel, self.left = coroutine, cancel, n or sys.maxsize

    def __await__(self):
        steps = self.coroutine.__await__()
        step, value = steps.send, None
        while True:
            try:
                yielded = step(value)
            except StopIteration as over:
                return over.value
            self.left -= 1
            if self.left == 0:
                self.cancel()
            try:
                step, value = steps.send, (yield yielded)
            except BaseException as error:
                step, value = steps.throw, error


def interrupt():
    """Has a Ctrl-C come once all tasks sleep. Neither loop hands it to a task that runs."""
    try:
        import trio

        soon = trio.lowlevel.current_trio_token().run_sync_soon
    except (ImportError, RuntimeError):
        soon = asyncio.get_running_loop().call_soon
    soon(signal.raise_signal, signal.SIGINT)


@contextlib.asynccontextmanager
async def cancelled_once(there):
    """Cancels its block, once `there()` is true; gives the scope."""
    with anyio.CancelScope() as scope:

        async def cancels():
            while not there():
                await anyio.sleep(0.01)
            scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancels)
            yield scope


def descendants() -> set[int]:
    """The processes that this one has started, and theirs, also those of other sessions."""
    mark = f"PROCWRIGHT_TEST_OF={os.getpid()}".encode()
    found = set()
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if mark in file.read().split(b"\0") and is_alive(int(name)):
                        found.add(int(name))
            except OSError:
                continue
    return found


class Turns:
    """Counts the turns that others of the loop have."""

    def __init__(self, tasks):
        self.number = 0
        tasks.start_soon(self._count)

    async def _count(self):
        while True:
            self.number += 1
            await anyio.lowlevel.checkpoint()


async def has_read(stream, size):
    """Returns once so much has been taken from the child: what comes then waits for nothing."""
    while stream.figures.lag_bytes < size:
        await anyio.sleep(0.01)


class NoDescriptors:
    """Has this process use up its descriptors, until the end of the block."""

    def __init__(self):
        self.taken = []

    def take(self):
        import resource

        self.limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        highest = max(int(name) for name in os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, self.limits[1]))
        with contextlib.suppress(OSError):
            while True:
                self.taken.append(os.dup(0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        import resource

        for fd in self.taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, self.limits)


def is_over(pid: int) -> None:
    """Returns once the process is gone or a zombie. Else the watchdog comes."""
    while is_alive(pid):
        os.sched_yield()


def without_a_loop(coroutine):
    """Runs a coroutine that waits for nothing but in calls that block."""
    try:
        coroutine.send(None)
    except StopIteration as over:
        return over.value
    raise AssertionError("it has awaited what needs an event loop")


def awaited(blocking, *names):
    """An object that has the methods of another, of which those of these names are awaited: so
    one test is that of the calls that block, and of those of event loops."""

    class Awaited:
        def __getattr__(self, name):
            call = getattr(blocking, name)
            if name not in names:
                return call

            async def awaits(*arguments):
                return call(*arguments)

            return awaits

        async def __aiter__(self):
            for one in blocking:
                yield one

    return Awaited()
