"""Peers: CPython's own streams: `subprocess` and `asyncio`."""

import asyncio
import subprocess

from streams_subject import CHUNK, Subjects, by_line, by_read1, by_readinto, reap

subjects = Subjects()


def with_popen(argv, read, **options):
    with subprocess.Popen(argv, stdout=subprocess.PIPE, **options) as child:
        seen = read(child.stdout)
    reap(child.returncode)
    return seen


@subjects.add
def subprocess_read1(argv):
    return with_popen(argv, by_read1)


@subjects.add
def subprocess_readinto(argv):
    return with_popen(argv, by_readinto)


@subjects.add
def subprocess_lines(argv):
    return with_popen(argv, by_line)


@subjects.add
def subprocess_text(argv):
    return with_popen(argv, by_line, text=True)


def with_asyncio(argv, read):
    async def go():
        child = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
        seen = await read(child.stdout)
        reap(await child.wait())
        return seen

    return asyncio.run(go())


@subjects.add
def asyncio_read(argv):
    async def read(stream):
        size = 0
        while data := await stream.read(CHUNK):
            size += len(data)
        return size, 0

    return with_asyncio(argv, read)


@subjects.add
def asyncio_lines(argv):
    async def read(stream):
        size = lines = 0
        while line := await stream.readline():
            lines += 1
            size += len(line)
        return size, lines

    return with_asyncio(argv, read)


subjects.main()
