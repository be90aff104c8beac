"""Peers: `subprocess lines …` and `asyncio many …`, as src/bin/rust_slow.rs says."""

import asyncio
import os
import subprocess
import sys

from slow_subject import Flow, read_slowly, tell_slow

_, case, number, *argv = sys.argv[1:]


def lines(pause, argv):
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as child:
        seen = read_slowly(child.stdout, pause)
    if child.returncode != 0:
        sys.exit("the child failed")
    tell_slow(argv[1], *seen)


async def many(count, idle, argv):
    """Each stream has a task that reads it, which is how one does not let it jam."""
    expected = 2 * count * int(argv[2]) * int(argv[3])
    flow = Flow()
    flow.before()
    gate, opener = os.pipe()
    size, whole = 0, asyncio.Event()

    async def read(stream):
        nonlocal size
        while data := await stream.read(1 << 16):
            size += len(data)
            if size == expected:
                whole.set()

    pipe = asyncio.subprocess.PIPE
    children, tasks = [], []
    for _ in range(count):
        child = await asyncio.create_subprocess_exec(*argv, stdin=gate, stdout=pipe, stderr=pipe)
        children.append(child)
        tasks += [asyncio.ensure_future(read(stream)) for stream in (child.stdout, child.stderr)]
    os.close(gate)
    flow.spawned()
    await whole.wait()
    flow.flowed()
    await asyncio.sleep(idle / 1e3)
    flow.rested()
    os.close(opener)
    for task in tasks:
        await task
    for child in children:
        if await child.wait() != 0:
            sys.exit("a child failed")
    flow.tell(size)


if case == "lines":
    lines(int(number) / 1e3, argv)
else:
    asyncio.run(many(int(number), int(argv[0]), argv[1:]))
