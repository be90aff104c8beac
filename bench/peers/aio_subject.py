"""One way to have programs run on an event loop, and one case: `aio_subject.py WAY CASE NUMBER`.

Prints seconds, and those of the processor that this process has had, as JSON. The cases:
at_once, so many programs that end at once, all of them together; bounded, 200 of them at a time;
chunks and lines, a stream of so many MiB; exit, from a SIGKILL until the wait for it is over;
cancel, from a cancellation until the awaiting task is told, with the program gone.
"""

import json
import resource
import sys
import time

PROGRAM = ["true"]
SLEEPER = ["sleep", "1000"]
AT_A_TIME = 200


def spent():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return time.perf_counter(), usage.ru_utime + usage.ru_stime


class Peer:
    """A way to do it. Each is on anyio's task groups, or on what its library has for that."""

    async def run(self):
        """Runs a program, and has both of its outputs."""
        raise NotImplementedError

    async def pieces(self, argv):
        """The pieces of a program's stdout."""
        raise NotImplementedError

    async def lines(self, argv):
        raise NotImplementedError

    async def exit(self):
        """Seconds from the kill of a program until its wait is over."""
        raise NotImplementedError

    async def sleeper(self, started):
        """Runs a program until it is cancelled, and ends it then."""
        raise NotImplementedError


class Procwright(Peer):
    async def run(self):
        from procwright import aio

        assert (await aio.run(PROGRAM)).returncode == 0

    async def pieces(self, argv):
        from procwright import aio

        size = 0
        async with aio.spawn(argv, stderr=None) as child:
            import anyio

            try:
                while True:
                    size += len(await child.stdout.receive())
            except anyio.EndOfStream:
                return size

    async def lines(self, argv):
        from procwright import aio

        size = 0
        async with aio.spawn(argv, stderr=None) as child:
            async for line in child.stdout:
                size += len(line)
        return size

    async def exit(self):
        from procwright import aio

        async with aio.spawn(SLEEPER, stdout=None, stderr=None) as child:
            return await timed_kill(child)

    async def sleeper(self, started):
        from procwright import aio

        started()
        await aio.run(SLEEPER)


class Asyncio(Peer):
    """asyncio.subprocess, as its users write it."""

    def __init__(self):
        import asyncio.subprocess

        self.module = asyncio.subprocess

    async def started(self, argv, **more):
        pipe = self.module.PIPE
        options = {"stdin": self.module.DEVNULL, "stdout": pipe, "stderr": pipe, **more}
        return await self.module.create_subprocess_exec(*argv, **options)

    async def run(self):
        process = await self.started(PROGRAM)
        await process.communicate()
        assert process.returncode == 0

    async def pieces(self, argv):
        process = await self.started(argv, stderr=None)
        size = 0
        while piece := await process.stdout.read(65536):
            size += len(piece)
        await process.wait()
        return size

    async def lines(self, argv):
        process = await self.started(argv, stderr=None)
        size = 0
        async for line in process.stdout:
            size += len(line)
        await process.wait()
        return size

    async def exit(self):
        return await timed_kill(await self.started(SLEEPER, stdout=None, stderr=None))

    async def sleeper(self, started):
        process = await self.started(SLEEPER)
        started()
        try:
            await process.communicate()
        except BaseException:
            process.kill()
            await process.wait()
            raise


class AsyncioSubprocess(Asyncio):
    def __init__(self):
        from procwright import asyncio_subprocess

        self.module = asyncio_subprocess


class Anyio(Peer):
    async def run(self):
        import anyio

        assert (await anyio.run_process(PROGRAM)).returncode == 0

    async def pieces(self, argv):
        import anyio

        size = 0
        async with await anyio.open_process(argv, stderr=None) as process:
            async for piece in process.stdout:
                size += len(piece)
        return size

    async def lines(self, argv):
        import anyio
        from anyio.streams.buffered import BufferedByteReceiveStream

        size = 0
        async with await anyio.open_process(argv, stderr=None) as process:
            stream = BufferedByteReceiveStream(process.stdout)
            try:
                while True:
                    size += len(await stream.receive_until(b"\n", 65536)) + 1
            except (anyio.EndOfStream, anyio.IncompleteRead):
                return size

    async def exit(self):
        import anyio

        async with await anyio.open_process(SLEEPER, stdin=None, stdout=None, stderr=None) as one:
            return await timed_kill(one)

    async def sleeper(self, started):
        import anyio

        started()
        await anyio.run_process(SLEEPER)


class Trio(Peer):
    async def run(self):
        import trio

        done = await trio.run_process(PROGRAM, capture_stdout=True, capture_stderr=True)
        assert done.returncode == 0

    async def pieces(self, argv):
        import subprocess

        import trio

        size = 0
        async with trio.open_nursery() as nursery:
            process = await nursery.start(partial(trio.run_process, argv, stdout=subprocess.PIPE))
            async for piece in process.stdout:
                size += len(piece)
        return size

    async def exit(self):
        import trio

        return await timed_kill(await trio.lowlevel.open_process(SLEEPER))

    async def sleeper(self, started):
        import trio

        started()
        await trio.run_process(SLEEPER, capture_stdout=True, capture_stderr=True)


def partial(function, *args, **options):
    import functools

    return functools.partial(function, *args, **options)


async def timed_kill(process):
    begin = time.perf_counter()
    process.kill()
    await process.wait()
    return time.perf_counter() - begin


WAYS = {
    "procwright.aio, asyncio": (Procwright, "asyncio", False),
    "procwright.aio, uvloop": (Procwright, "asyncio", True),
    "procwright.aio, trio": (Procwright, "trio", False),
    "procwright.asyncio_subprocess": (AsyncioSubprocess, "asyncio", False),
    "asyncio.subprocess": (Asyncio, "asyncio", False),
    "asyncio.subprocess, uvloop": (Asyncio, "asyncio", True),
    "anyio": (Anyio, "asyncio", False),
    "trio": (Trio, "trio", False),
}


async def many(peer, number, limit):
    import anyio

    limiter = anyio.CapacityLimiter(limit)

    async def one():
        async with limiter:
            await peer.run()

    begin = spent()
    async with anyio.create_task_group() as tasks:
        for _ in range(number):
            tasks.start_soon(one)
    return since(begin)


def since(begin):
    (passed, cpu), (before, cpu_before) = spent(), begin
    return [passed - before], cpu - cpu_before


async def stream(read, argv, size):
    begin = spent()
    got = await read(argv)
    assert got == size, got
    return since(begin)


async def one_by_one(number, call):
    begin = spent()
    seconds = [await call() for _ in range(number)]
    return seconds, since(begin)[1]


async def cancelled(peer):
    import anyio

    begin = 0.0
    running = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(peer.sleeper, running.set)
        await running.wait()
        # It is there, and its task waits for it.
        await anyio.sleep(0.02)
        begin = time.perf_counter()
        tasks.cancel_scope.cancel()
    return time.perf_counter() - begin


async def case(peer, name, number):
    await peer.run()
    if name == "at_once":
        return await many(peer, number, number)
    if name == "bounded":
        return await many(peer, number, AT_A_TIME)
    if name == "chunks":
        size = number << 20
        return await stream(peer.pieces, ["head", "-c", str(size), "/dev/zero"], size)
    if name == "lines":
        size = (number << 20) // 100 * 100
        line = f"yes {'x' * 99} | head -c {size}"
        return await stream(peer.lines, ["sh", "-c", line], size)
    if name == "exit":
        return await one_by_one(number, peer.exit)
    assert name == "cancel"
    return await one_by_one(number, lambda: cancelled(peer))


def main():
    import anyio

    way, name, number = sys.argv[1:]
    make, backend, uses_uvloop = WAYS[way]
    options = {"use_uvloop": True} if uses_uvloop else {}
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        seconds, cpu = anyio.run(
            case, make(), name, int(number), backend=backend, backend_options=options
        )
    except NotImplementedError:
        sys.exit(77)
    print(json.dumps({"seconds": seconds, "cpu": cpu}))


if __name__ == "__main__":
    main()
