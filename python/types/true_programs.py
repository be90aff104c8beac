"""Programs without a mistake in their types: no type checker has a word to say.

`ci/check_types.py` sees to it, and runs none of it.
"""

import datetime
import io
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Any, assert_type

from anyio.abc import ByteReceiveStream, ByteSendStream

import procwright
from procwright import (
    CAPTURE,
    DEVNULL,
    INHERIT,
    PIPE,
    STDOUT,
    CalledProcessError,
    Child,
    Gap,
    Merged,
    MergedLine,
    Piece,
    Reader,
    Result,
    StreamInfo,
    TextReader,
    TextWriter,
    Writer,
    aio,
    queue,
)
from procwright.testing import Fake

LS = ["ls", "/"]


def captured() -> None:
    assert_type(procwright.run(LS).stdout, bytes)
    assert_type(procwright.run(LS).stderr, bytes)
    assert_type(procwright.run(LS, text=True).stdout, str)
    assert_type(procwright.run(LS, encoding="latin-1").stderr, str)
    assert_type(procwright.run(LS, errors="strict").stdout, str)
    assert_type(procwright.run(LS, text=True, encoding="utf-8", errors="strict").stdout, str)
    assert_type(procwright.run(LS, stdout=CAPTURE, stderr=PIPE).stderr, bytes)
    assert_type(procwright.run("ls | wc", shell=True, text=True).stdout, str)
    assert_type(procwright.run(["ls", pathlib.Path("/")]).stdout, bytes)
    assert_type(procwright.run(LS).stdout_bytes, bytes)
    assert_type(procwright.run(LS, text=True).stderr_bytes, bytes)
    assert_type(procwright.run(LS).stdout_info, StreamInfo)


def elsewhere() -> None:
    both = procwright.run(LS, text=True, stderr=STDOUT)
    assert_type(both.stdout, str)
    assert_type(both.stderr, None)
    assert_type(both.stderr_info, None)
    assert_type(both.stdout_info.bytes, int)
    with open(os.devnull, "wb") as file:
        assert_type(procwright.run(LS, stdout=file).stdout, None)
        assert_type(procwright.run(LS, stdout=file).stderr, bytes)
    assert_type(procwright.run(LS, stdout=INHERIT, stderr=None, text=True).stdout, None)
    assert_type(procwright.run(LS, stdout="/dev/null", text=True).stderr, str)
    assert_type(procwright.run(LS, stdout=DEVNULL, stderr=DEVNULL).stderr_bytes, None)
    assert_type(procwright.run(LS, pty=True, text=True).stdout, str)
    assert_type(procwright.run(LS, pty=(24, 80)).stderr, None)


def on_a_terminal_or_not(
    line: str, pty: bool, size: tuple[int, int] | bool
) -> Result[str, str | None]:
    done = procwright.run(line, shell=True, text=True, pty=pty)
    assert_type(done, Result[str, str | None, None])
    assert_type(procwright.run(LS, pty=size, stderr=STDOUT), Result[bytes, None, None])
    with procwright.spawn(line, shell=True, text=True, pty=pty, stdin=PIPE) as child:
        assert_type(child, procwright.Child[str, str | None, str, None])
        assert_type(child.stdout, TextReader)
        return child.result()


async def on_a_terminal_or_not_in_a_loop(
    line: str, *, warn: bool, pty: bool
) -> Result[str, str | None]:
    async with aio.spawn(line, shell=True, text=True, pty=pty) as child:
        assert_type(child, aio.Child[str, str | None, None, None])
        assert_type(await child.stdout.readline(), str)
    return await aio.run(line, shell="/bin/bash", text=True, check=not warn, pty=pty)


def in_order() -> None:
    merged = procwright.run(LS, merged=True)
    for stream, piece in merged.merged:
        assert_type(piece, bytes)
        print(stream.upper())
    for one in procwright.run(LS, text=True, merged=True).merged:
        assert_type(one, Piece[str])
        assert_type(one.data, str)
        assert_type(one.ambiguous, bool)
    assert_type(procwright.run(LS).merged, None)


def known_when_it_runs(text: bool, encoding: str | None, fd: int) -> None:
    assert_type(procwright.run(LS, encoding=encoding).stdout, str | bytes | None)
    assert_type(procwright.run(LS, stdout=fd).stdout, bytes | None)
    assert_type(procwright.run(LS, stdout=fd, text=True).stderr, str | None)
    # The numbers of subprocess are taken, and have no more type than there.
    assert_type(procwright.run(LS, stderr=subprocess.STDOUT).stdout, bytes | None)
    output = procwright.run(LS, text=text).stdout
    if isinstance(output, str):
        output.encode()


def first_line(result: Result[str]) -> str:
    return result.stdout.partition("\n")[0]


def size(result: Result) -> int:
    return len(result.stdout or b"")


def listed() -> Result[str, None]:
    return procwright.run(LS, text=True, stderr=STDOUT)


def results() -> None:
    first_line(procwright.run(LS, text=True))
    size(procwright.run(LS))
    size(listed())


def options() -> None:
    procwright.run(LS, input=b"x", stdin=None)
    procwright.run(LS, input="x", text=True)
    # Bytes are bytes, and come to the program as they are.
    procwright.run(LS, input=b"x", text=True)
    procwright.run(LS, stdin=[b"a", b"b"])
    procwright.run(LS, stdin=(str(n) for n in range(3)), text=True)
    procwright.run(LS, env=os.environ, extra_env={"A": None, "B": "x"})
    procwright.run(LS, env={b"A": b"x"}, cwd=pathlib.Path("/"))
    procwright.run(LS, on_line=lambda line: print(line.decode()))
    procwright.run(LS, on_line=lambda line: print(line.encode()), text=True)
    procwright.run(LS, on_stdout_line=sys.stdout.write, text=True)
    procwright.run(LS, on_stderr_line=sys.stderr.buffer.write)
    procwright.run(LS, tee=sys.stdout)
    procwright.run(pathlib.Path("/bin/true"), timeout=datetime.timedelta(minutes=1))
    procwright.run(LS, stop="KILL", limit="64KiB")
    procwright.run(LS, stop=signal.SIGINT, idle_timeout=5, limit=procwright.Limit("1MiB", "fail"))
    procwright.run(LS, stop=procwright.Stop("TERM", grace=datetime.timedelta(seconds=2)))
    procwright.spawn(LS).stop("KILL")


def fakes() -> None:
    with Fake() as fake:
        listed = fake.register(re.compile("ls .*"), stdout="x")
        fake.allow(re.compile("cp .*"), times=1)
        assert_type(listed.call_count, int)


def failures() -> None:
    try:
        procwright.run(LS, check=True, timeout=60)
    except CalledProcessError as error:
        assert_type(error.stdout, str | bytes | None)
        assert_type(error.stderr, str | bytes | None)
        assert_type(error.cmd, Any)
        print(list(error.cmd) == list(LS))
        # Of a run, and of a pipeline.
        assert_type(error.result.pid, int)
        assert_type(error.result.stages[0].argv, list[str])
        print(error, error.returncode, error.result.reason, error.result.survivors)
    except procwright.TimeoutExpired as error:
        assert_type(error.cmd, Any)
        if isinstance(error.stdout, bytes):
            error.stdout.decode()


def streams() -> None:
    child = procwright.spawn(LS)
    assert_type(child.stdin, None)
    assert_type(child.stdout, Reader)
    assert_type(child.stderr, Reader)
    assert_type(child.merged, None)
    for line in child.stdout:
        assert_type(line, bytes)
    text = procwright.spawn(LS, stdin=PIPE, text=True, stderr=STDOUT)
    assert_type(text.stdin, TextWriter)
    assert_type(text.stdout, TextReader)
    assert_type(text.stderr, None)
    text.stdin.write("x\n")
    text.stdin.buffer.write(b"x\n")
    for one in text.stdout.lines():
        if not isinstance(one, Gap):
            assert_type(one, str)
    assert_type(procwright.spawn(LS, stdin=PIPE).stdin, Writer)
    assert_type(procwright.spawn(LS, stdin=PIPE, stdout=INHERIT, stderr=None).stdin, Writer)
    terminal = procwright.spawn(LS, stdin=PIPE, pty=True, text=True)
    assert_type(terminal.stdin, TextWriter)
    assert_type(terminal.stderr, None)


def communicated() -> None:
    with procwright.spawn(LS, stdin=PIPE) as child:
        assert_type(child.communicate(b"x"), tuple[bytes, bytes])
    with procwright.spawn(LS, stdin=PIPE, text=True) as child_of_text:
        assert_type(child_of_text.communicate("x", timeout=60), tuple[str, str])
    out, err = procwright.spawn(LS, errors="strict", stderr=STDOUT).communicate()
    assert_type(out, str)
    assert_type(err, None)
    assert_type(procwright.spawn(LS, text=True).result(), Result[str, str, None])


def called_back(seen: list[str]) -> None:
    child = procwright.spawn(LS, on_stdout_line=seen.append, text=True, stdin=PIPE)
    assert_type(child.stdin, TextWriter)
    # None is what the callback reads.
    assert_type(child.communicate(), tuple[str | None, str])


def both_as_one() -> None:
    child = procwright.spawn(LS, merged=True, text=True)
    assert_type(child.merged, Merged[str])
    assert_type(child.stdout, None)
    for item in child.merged:
        assert_type(item.line, str)
    assert_type(next(child.merged), MergedLine[str])
    for stream, line in child.merged:
        assert_type(line, str)
        assert stream == "stdout" or line.removesuffix("\n")
    for one in procwright.spawn(LS, merged=True).merged.lines(b"\0"):
        if not isinstance(one, Gap):
            assert_type(one.line, bytes)


def waited_for() -> None:
    assert_type(procwright.spawn(LS, text=True).wait_for("x").string, str)
    procwright.spawn(LS).wait_for(b"x")


def lines_of(child: Child[str]) -> Iterator[str]:
    yield from child.stdout
    if child.stdin is not None:
        child.stdin.write("x")


def pid_of(child: Child) -> int:
    return child.pid


def set_up() -> None:
    result = procwright.run(
        LS,
        text=True,
        blocked_signals=["TERM", signal.SIGINT],
        cpu_affinity=range(1),
        ionice="best-effort:7",
        cgroup=pathlib.Path("/sys/fs/cgroup/jobs"),
    )
    assert_type(result.stdout, str)
    assert_type(procwright.spawn(LS, no_new_privs=True, chroot="/srv").stdout, Reader)


def children() -> None:
    lines_of(procwright.spawn(LS, text=True))
    lines_of(procwright.spawn(LS, text=True, stdin=PIPE))
    pid_of(procwright.spawn(LS))
    pid_of(procwright.spawn(LS, merged=True, text=True))


def many() -> None:
    for ended in procwright.map([LS, ["ls", "/tmp"]], parallel=2, deadline=datetime.timedelta(1)):
        if ended.result is not None:
            assert_type(ended.result.stdout, bytes)
            assert_type(ended.result.stderr, bytes)
    running = procwright.map((["echo", word] for word in "ab"), text=True, journal="x")
    assert_type(running, procwright.Map[str, str, None])
    with running:
        first = next(running)
        assert first.result is not None
        assert_type(first.result.stdout, str)
        assert_type(first.stdout, str | Any)
        assert_type(first.returncode, int | Any)
        assert_type(first.outcome, str)
    seen: list[tuple[bytes, str, int]] = []

    def see(line: str, stream: str, index: int) -> None:
        seen.append((line.encode(), stream, index))

    progress = procwright.map([LS], text=True, on_line=see).wait()
    assert_type(progress.failed, int)
    procwright.map([LS], on_line=lambda line, stream, index: seen.append((line, stream, index)))
    apart = procwright.map([LS], encoding="utf-8", stderr=STDOUT)
    assert_type(apart, procwright.Map[str, None, None])
    own: list[list[str] | dict[str, object]] = [LS, {"args": LS, "text": True}]
    assert_type(procwright.map(own), procwright.Map[Any, Any, Any])
    blocks = ({"args": ["wc", "-l"], "input": block} for block in (b"1\n", b"2\n"))
    counted: list[int] = [int(ended.stdout) for ended in procwright.map(blocks, ordered=True)]
    as_text = procwright.map(({"args": ["wc", "-l"], "input": one} for one in "ab"), text=True)
    counted += [int(ended.check().stdout) for ended in as_text]


async def many_in_a_loop() -> list[int]:
    blocks = ({"args": ["wc", "-l"], "input": block} for block in (b"1\n", b"2\n"))
    return [int(ended.stdout) async for ended in aio.map(blocks, encoding="utf-8")]


def upper(file: IO[bytes]) -> list[bytes]:
    return [file.read().upper()]


def stripped(lines: IO[str]) -> Iterator[str]:
    for line in lines:
        yield line.strip()


def told_as_it_is(lines: io.TextIOWrapper) -> Iterator[str]:
    yield from lines


def bytes_as_they_are(file: io.BufferedReader) -> Iterator[bytes]:
    yield file.read1()


def lines_alone(lines: Iterable[str]) -> list[str]:
    return sorted(lines)


def with_what_a_function_gets() -> None:
    ls, cat = procwright.cmd("ls"), procwright.cmd("cat")
    assert_type((ls | told_as_it_is | cat | lines_alone | cat).run(text=True).stdout, str)
    assert_type((ls | bytes_as_they_are | cat).run().stdout, bytes)
    assert_type(procwright.pipeline(LS, told_as_it_is, LS, lines_alone, LS, text=True).stdout, str)
    assert_type(procwright.pipeline(LS, bytes_as_they_are, LS).stdout, bytes)


def joined() -> None:
    assert_type(procwright.pipeline(LS, ["head", "-1"]).stdout, bytes)
    text = procwright.pipeline(LS, {"args": ["wc"], "cwd": "/"}, text=True, ok_codes={1: [1]})
    assert_type(text, procwright.PipelineResult[str])
    assert_type(procwright.run(LS, check=True, ok_codes=[1], text=True).ok_codes, tuple[int, ...])
    procwright.spawn(LS, ok_codes={1, 2})
    procwright.map([LS], ok_codes=(1,))
    procwright.cmd("grep", "x", ok_codes=[1]).run(text=True, check=True)
    assert_type(text.returncode, int | None)
    assert_type(text.stages[0].stderr, str | Any)
    assert_type(text.stages[1].stdout, str | Any)
    assert_type(procwright.pipeline(LS, LS).stderr, bytes | Any)
    assert_type(procwright.pipeline(LS, upper, LS).stdout, bytes)
    assert_type(procwright.pipeline(LS, stripped, LS, text=True).stdout, str)
    procwright.pipeline(LS, lambda file: [file.read().upper()], LS)
    assert_type(procwright.pipeline(LS, stdout=DEVNULL, env={"A": "b"}, stop="KILL").stdout, None)
    fan = procwright.Fan(LS, {"args": ["wc"], "stdout": "x"})
    assert_type(procwright.pipeline(LS, fan, text=True).stages[1].fan, procwright.Figures | None)
    assert procwright.pipeline(LS, fan, text=True).stages[1].stdout.startswith("x")
    elsewhere = procwright.pipeline(LS, LS, stdout=DEVNULL, text=True)
    assert_type(elsewhere, procwright.PipelineResult[None, str])
    assert_type(elsewhere.stages[0].stderr, str | Any)
    buffered = procwright.pipeline(LS, LS, encoding="utf-8", elastic={0: procwright.Overflow()})
    assert_type(buffered, procwright.PipelineResult[str])
    with procwright.spawn_pipeline(LS, {"args": ["cat"]}, stdin=PIPE, text=True) as held:
        assert_type(held, procwright.PipelineChild[str, str, str])
        held.stdin.write("text")
        assert_type(held.stdout.readline(), str)
        assert_type(held.communicate("text"), tuple[str, str])
        assert_type(held.result(), procwright.PipelineResult[str])
        held.stderr[0].readline()
    assert_type(procwright.spawn_pipeline(LS, stderr=DEVNULL).communicate(), tuple[bytes, None])
    assert_type([stage.elastic for stage in buffered.stages], list[procwright.Figures | None])


def later() -> None:
    ls = procwright.cmd("ls", "/", cwd="/", timeout=5)
    assert_type(ls.run(text=True), procwright.Result[str, str, None])
    assert_type(ls.run().stdout, bytes)
    assert_type(ls.run(stderr=STDOUT).stderr, None)
    assert_type(ls.with_args("x").with_options(nice=1).run(text=True).stdout, str)
    assert_type(ls.spawn(stdin=PIPE, text=True), Child[str, str, str, None])
    assert_type(procwright.run(ls, text=True).stdout, str)
    from_file = procwright.cmd("sort", stdin=pathlib.Path("in.txt"), tee=True)
    print(from_file.run(text=True, check=True).stdout.splitlines())
    nothing = procwright.cmd("cat", input="a").with_options(stdin=DEVNULL)
    print(nothing.run(text=True).stdout.upper())
    fixed = procwright.cmd(["ls"], text=True, stderr=STDOUT)
    assert_type(fixed.run(), procwright.Result)
    assert_type(ls.with_options(text=True).run(), procwright.Result)
    for ended in procwright.map([ls, ls], text=True):
        assert_type(ended.stdout, str | Any)
    both = ls | procwright.cmd("sort", stderr=STDOUT) | stripped | procwright.cmd("cat")
    assert_type(both.run(text=True), procwright.PipelineResult[str])
    assert_type(both.with_options(success="last").run().stdout, bytes)
    assert_type(both.spawn(stdin=PIPE), procwright.PipelineChild[bytes, bytes, bytes])
    assert_type(procwright.pipeline(ls, ["cat"], both).stdout, bytes)
    assert_type(upper | ls | procwright.Fan(ls), procwright.Pipeline)
    run_it(ls)
    run_it(fixed)


def run_it(command: procwright.Command) -> str:
    return command.run(text=True).stdout


async def later_awaited() -> None:
    ls = aio.cmd("ls", "/")
    assert_type(await ls.run(text=True), procwright.Result[str, str, None])
    assert_type(await (ls | aio.cmd("sort")).run(text=True), procwright.PipelineResult[str])
    async with ls.spawn(text=True) as child:
        assert_type(child, aio.Child[str, str, None, None])
    assert_type((await aio.run(procwright.cmd("ls"))).stdout, bytes)


async def awaited() -> None:
    assert_type((await aio.run(LS)).stdout, bytes)
    assert_type((await aio.run(LS, text=True, stderr=STDOUT)).stderr, None)
    assert_type((await aio.run("ls | wc", shell=True, text=True, timeout=5)).stdout, str)
    assert_type(await aio.pipeline(LS, LS, elastic=True), procwright.PipelineResult[bytes])
    async with aio.spawn_pipeline(LS, LS, stdin=PIPE, text=True) as held:
        await held.stdin.send("text")
        assert_type(await held.stdout.readline(), str)
        assert_type(await held.result(), procwright.PipelineResult[str])
        assert_type((await held.result()).stages[0].stderr, str | Any)
    assert_type((await aio.pipeline(LS, LS)).stages[0].stdout, bytes | Any)
    async with aio.spawn(LS, stdin=PIPE, text=True) as child:
        assert_type(child, aio.Child[str, str, str, None])
        assert_type(child.stdin, aio.TextWriter)
        await child.stdin.send("x")
        assert_type(await child.stdout.readline(), str)
        assert_type(await child.stdout.receive(), str)
        assert_type([line async for line in child.stdout], list[str])
        assert_type([one async for one in child.stdout.lines()], list[str | Gap])
        assert_type(await child.communicate("x"), tuple[str, str])
        assert_type(await child.wait_for("x"), re.Match[str])
        assert_type((await child.result()).stderr, str)
        assert_type(await child.wait(timeout=1.5), int | Any)
    other = await aio.spawn(LS)
    assert_type(other.stdin, None)
    assert_type(other.stdout, aio.Reader)
    assert_type(await other.stdout.receive(10), bytes)
    assert_type([line async for line in other.stdout], list[bytes])
    async for item in aio.spawn(LS, merged=True, text=True).merged:
        assert_type(item.line, str)
    async for found in aio.spawn(LS, merged=True, text=True).merged.lines():
        if not isinstance(found, Gap):
            assert_type(found.line, str)
    assert_type(
        (await aio.wait([other], "all", timeout=5)).done, list[aio.Child[bytes, bytes, None, None]]
    )
    async for one in aio.as_completed([aio.Process(1)]):
        assert_type(await one.wait(), procwright.Status)
    procwright.run(["sort"], stdin=other.stdout)
    receiver = aio.Receiver(queue.Receiver())
    assert_type(procwright.queue.Receiver(), queue.Receiver)
    assert_type(await receiver.recv(timeout=1), bytes)
    assert_type(await receiver.recv_many(10), list[bytes])
    assert_type([message async for message in receiver], list[bytes])
    async with receiver.sender("fail") as sender:
        assert_type(sender, aio.Sender)
        await sender.send(bytearray(b"x"), timeout=1.5)
    assert_type(await other.receiver(), aio.Receiver)
    assert_type(await other.sender(), aio.Sender)
    assert_type(other.monitor(), aio.LivenessMonitor)
    assert_type(await aio.LivenessMonitor(1).wait(timeout=1) == "died", bool)


def streams_of_anyio() -> tuple[ByteReceiveStream, ByteSendStream]:
    child = aio.spawn(LS, stdin=PIPE)
    return child.stdout, child.stdin


def codes() -> int:
    result = procwright.run(LS)
    if result.returncode < 0 or result.status.returncode > 1:
        return 1
    with procwright.spawn(LS) as child:
        return child.wait() + child.returncode


class Lines:
    def write(self, line: str) -> None:
        print(line)


class Chunks:
    def write(self, chunk: bytes) -> None:
        print(chunk)


def copies(text: bool) -> None:
    procwright.run(LS, tee=Chunks())
    procwright.run(LS, text=True, tee=Lines())
    procwright.run(LS, tee=sys.stdout)
    procwright.run(LS, text=True, tee=sys.stdout.buffer)
    procwright.run(LS, text=text, tee=sys.stdout)
    procwright.spawn(LS, tee={"stderr": io.StringIO(), "stdout": io.BytesIO()})
    wanted = {"stdout": text, "stderr": True}
    made = {name: io.StringIO() for name, is_wanted in wanted.items() if is_wanted}
    assert_type(procwright.run(LS, text=True, input="x", tee=made or False).stdout, str)
    assert_type(procwright.run(LS, tee=made).stdout, bytes)
    procwright.spawn(LS, text=text, tee=made or False)
    with tempfile.NamedTemporaryFile("w") as file:
        procwright.run(LS, tee=file)
    with open("/dev/null", "wb") as null:
        procwright.run(LS, text=True, tee=null)


def one_callback(line: str) -> None:
    with procwright.spawn(LS, stdin=PIPE, text=True, on_stderr_line=one_callback) as child:
        assert_type(child.stdin, TextWriter)
        assert_type(child.stdout, TextReader)
        assert_type(child.stderr, TextReader | None)
        assert_type(child.communicate(), tuple[str, str | None])
    other = procwright.spawn(LS, text=True, on_stdout_line=one_callback)
    assert_type(other.stderr, TextReader)


def passed_on(commands: list[list[str]], **options: Any) -> list[str]:
    output: str = procwright.run(LS, text=True, check=True, **options).stdout
    with procwright.spawn(LS, **options) as child:
        of_a_child: bytes = child.stdout.readline()
    of_both: str = procwright.pipeline(LS, ["wc"], text=True, **options).stdout
    read: tuple[str, str] = procwright.spawn_pipeline(LS, text=True, **options).communicate()
    found = [
        ended.check().stdout.rstrip("\n")
        for ended in procwright.map(commands, ordered=True, text=True, **options)
    ]
    return [*found, output, of_a_child.decode(), of_both, *read]


async def passed_on_in_a_loop(**options: Any) -> str:
    async with aio.spawn(LS, text=True, **options) as child:
        line: str = await child.stdout.readline()
    output: str = (await aio.run(LS, text=True, **options)).stdout
    return line + output


def options_of_each(line: str, stream: str, index: int) -> None:
    commands: list[dict[str, Any]] = [{"args": LS, "cwd": "/"}, {"args": LS, "timeout": 5}]
    procwright.map(commands, text=True, on_line=options_of_each).wait()
    for ended in procwright.map([LS], text=True):
        print(ended.check().stdout.strip())


def what_came_until_then() -> None:
    try:
        procwright.run(LS, timeout=5)
    except procwright.TimeoutExpired as error:
        assert_type(error.stdout, str | bytes | None)
        print(error.result.reason)
        if isinstance(error, procwright.WaitTimeout):
            assert_type(error.result, None)


def what_an_error_knows() -> None:
    try:
        procwright.run(LS, check=True)
    except CalledProcessError as error:
        assert_type(error.result.status, procwright.Status)
        assert_type(error.result.argv, list[str])
        print(error.result.reason, error.result.pid)
    try:
        procwright.pipeline(LS, ["wc"]).check_returncode()
    except CalledProcessError as error:
        print([stage.returncode for stage in error.result.stages])
        print(error.cmd == [LS, ["wc"]], list(error.result.args) == [LS, ["wc"]])
    try:
        procwright.run(LS, timeout=1)
    except procwright.TimeoutExpired as error:
        print(error.result.status, error.result.argv, error.result.processes)
    except procwright.Cancelled as error:
        print(error.result.reason, error.result.status)
        if error.result is not None:
            print(error.result.summary)


def what_became_of_many() -> None:
    for ended in procwright.map([LS], text=True):
        sys.stdout.write(ended.stdout)
        print(ended.stderr.splitlines(), ended.argv[-1].upper(), ended.returncode)
        print(ended.cause and ended.cause.summary)
        if ended.cause:
            assert_type(ended.cause.index, int)
    for one in procwright.map([LS]):
        sys.stdout.buffer.write(one.stdout)
    print({ended.args[-1]: ended.index for ended in procwright.map([LS])})
    print(procwright.run(LS).args[0], procwright.spawn(LS).args[0])


def values_of_any_type(job: dict[str, Any]) -> Result[str]:
    assert_type(procwright.run(LS, cwd=job["cwd"]), Result[bytes, bytes, None])
    assert_type(
        procwright.spawn(LS, timeout=job["timeout"], text=True), Child[str, str, None, None]
    )
    timeout, env = job.get("timeout"), job.get("env")
    return procwright.run(LS, text=True, timeout=timeout, extra_env=env, check=True)


def children_of_one_name() -> None:
    child: Child[bytes] = procwright.spawn(LS)
    child.wait()
    child = procwright.spawn(LS, stdin=PIPE)
    child.wait()
    log: list[str] = []
    told: Child[str, str | None] = procwright.spawn(
        LS, stdin=PIPE, text=True, on_stderr_line=log.append
    )
    told.check_returncode()


def an_error_that_is_made() -> None:
    raise CalledProcessError(procwright.run(LS), "no such list")
