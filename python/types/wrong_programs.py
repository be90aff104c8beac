"""Programs with mistakes of bytes and str, and of what is not there.

Each line that is marked is complained about by every type checker, and no other line is:
`ci/check_types.py` sees to it, and runs none of it.
"""

import json
import pathlib
import sys
import threading
from typing import Any

import procwright
from procwright import DEVNULL, PIPE, STDOUT, CalledProcessError, Child, Result, aio

LS = ["ls", "/"]


def stops() -> None:
    child = procwright.spawn(LS)
    child.stop(grace=1)  # wrong
    child.terminate(force=True)  # wrong
    aio.spawn(LS).stop(timeout=3)  # wrong


def outputs() -> None:
    procwright.run(LS).stdout.encode()  # wrong
    procwright.run(LS, text=True).stdout.decode()  # wrong
    procwright.run(LS).stdout.split("\n")  # wrong
    procwright.run(LS, text=True).stderr.startswith(b"x")  # wrong
    procwright.run(LS, encoding="utf-8").stdout + b"x"  # wrong
    procwright.run(LS, errors="strict").stdout.hex()  # wrong
    procwright.run(LS, text=True, stderr=STDOUT).stderr.strip()  # wrong
    procwright.run(LS, stdout=DEVNULL).stdout.strip()  # wrong
    procwright.run(LS, pty=True).stderr.strip()  # wrong
    procwright.run(LS, pty=bool(LS)).stderr.strip()  # wrong
    procwright.run(LS, stdout="/dev/null").stdout_info.bytes  # wrong
    "x" in procwright.run(LS).stdout  # wrong
    pathlib.Path("/tmp/x").write_text(procwright.run(LS).stdout)  # wrong
    sys.stdout.write(procwright.run(LS).stdout)  # wrong
    print("\n".join(procwright.run(LS).stdout.splitlines()))  # wrong
    json.loads(procwright.run(LS, stdout=DEVNULL).stdout)  # wrong
    for _, piece in procwright.run(LS, text=True, merged=True).merged:
        piece.decode()  # wrong
    for _ in procwright.run(LS).merged:  # wrong
        pass


class Lines:
    def write(self, line: str) -> None:
        pass


class Chunks:
    def write(self, chunk: bytes) -> None:
        pass


def copies() -> None:
    procwright.run(LS, tee=Lines())  # wrong
    procwright.run(LS, text=True, tee=Chunks())  # wrong
    procwright.spawn(LS, encoding="utf-8", tee={"stderr": Chunks()})  # wrong


def behind_a_truth(error: procwright.Cancelled, ended: procwright.Ended) -> None:
    if error.result and error.result.nothing:  # wrong
        pass
    if ended.result is not None and ended.result.nothing:  # wrong
        pass


def slips() -> None:
    procwright.run(LS, timout=3)  # wrong
    procwright.spawn(LS, stdin=PIPE, txt=True)  # wrong
    procwright.map([LS], paralel=3)  # wrong
    procwright.map([{"args": LS}], timeout="3")  # wrong
    procwright.run(5)  # wrong


def called_with_one(line: str) -> None:
    print(line)


def one_callback() -> None:
    child = procwright.spawn(LS, text=True, on_stderr_line=called_with_one)
    child.stderr.read()  # wrong
    child.stdout.read().decode()  # wrong


def what_came_until_then() -> None:
    try:
        procwright.run(LS, timeout=5)
    except procwright.TimeoutExpired as error:
        error.stdout.splitlines()  # wrong
        print(error.result.nothing)  # wrong


def known_when_it_runs(text: bool) -> None:
    procwright.run(LS, text=text).stdout.splitlines()  # wrong


def first_line(result: Result[str]) -> str:
    return result.stdout.partition("\n")[0]


def results() -> None:
    first_line(procwright.run(LS))  # wrong
    first_line(procwright.run(LS, text=True, stdout=DEVNULL))  # wrong


def inputs() -> None:
    procwright.run(LS, input="x")  # wrong
    procwright.run(LS, on_line=sys.stdout.write)  # wrong
    procwright.run(LS, on_line=sys.stdout.buffer.write, text=True)  # wrong
    procwright.run(LS, extra_env={"N": 1})  # wrong
    procwright.run(LS, stdin=b"x")  # wrong
    procwright.run(LS, capture_output=True)  # wrong
    procwright.run(LS, stop=9)  # wrong
    procwright.run(LS, cpu_affinity="0-3")  # wrong
    procwright.spawn(LS, ionice=("idle", 0))  # wrong
    procwright.run(LS, no_new_privs="yes")  # wrong
    procwright.run(LS, limit=1.5)  # wrong
    procwright.run(LS, cancel=threading.Event())  # wrong
    procwright.spawn(LS, universal_newlines=True)  # wrong


def failures() -> None:
    try:
        procwright.run(LS, check=True, text=True)
    except CalledProcessError as error:
        error.stderr.strip()  # wrong
        # It may be a pipeline's, or a run's, and has no more than either of these.
        print(error.result.nothing)  # wrong
    except procwright.OutputLimitExceeded as error:
        print(error.result.nothing)  # wrong


def streams() -> None:
    child = procwright.spawn(LS, stdin=PIPE)
    child.stdin.write("x")  # wrong
    child.stdout.readline().encode()  # wrong
    child.communicate("x")  # wrong
    out, _ = child.communicate()
    out + "x"  # wrong
    procwright.spawn(LS).stdin.write(b"x")  # wrong
    child.wait_for("x")  # wrong
    for line in procwright.spawn(LS, text=True).stdout:
        line.decode()  # wrong
    for one in procwright.spawn(LS, text=True).stdout.lines():
        one.strip()  # wrong
    text = procwright.spawn(LS, stdin=PIPE, text=True)
    text.stdin.write(b"x")  # wrong
    text.wait_for(b"x")  # wrong
    procwright.spawn(LS, stderr=STDOUT).stderr.read()  # wrong
    procwright.spawn(LS, merged=True).stdout.read()  # wrong
    for item in procwright.spawn(LS, merged=True).merged:
        item.line.encode()  # wrong
    procwright.spawn(LS, text=True).result().stdout.decode()  # wrong
    procwright.spawn(LS, on_stdout_line=sys.stdout.write)  # wrong


def lines_of(child: Child[str]) -> list[str]:
    return list(child.stdout)


def children() -> None:
    lines_of(procwright.spawn(LS))  # wrong


def many() -> None:
    for ended in procwright.map([LS], text=True):
        ended.result.stdout  # wrong
        if ended.result is not None:
            ended.result.stdout.decode()  # wrong
        sys.stdout.buffer.write(ended.stdout)  # wrong
        print(ended.argv + 1)  # wrong
        print(ended.cause and ended.cause.nothing)  # wrong
    for one in procwright.map([LS], stdout=DEVNULL):
        if one.result is not None:
            one.result.stdout.strip()  # wrong
    procwright.map([LS], input="text")  # wrong
    procwright.map([LS], on_line="print")  # wrong
    next(procwright.map([{"args": LS}])).returncode.strip()  # wrong
    procwright.map([{"args": LS}], input=5)  # wrong


def joined() -> None:
    procwright.pipeline(LS, ["wc"]).stdout.encode()  # wrong
    procwright.pipeline(LS, procwright.Fan(LS, LS)).stages[1].stdout.encode()  # wrong
    procwright.pipeline(LS, LS, text=True).stages[0].stderr.decode()  # wrong
    procwright.pipeline(LS, LS, text=True, stdout=DEVNULL).stages[0].stderr.decode()  # wrong
    procwright.pipeline(LS, LS, text=True).stderr.decode()  # wrong
    procwright.spawn_pipeline(LS, LS).result().stages[1].stdout.encode()  # wrong
    procwright.pipeline(LS, success="maybe")  # wrong
    procwright.pipeline(LS, pty=True)  # wrong
    procwright.pipeline(LS, LS, elastic="spill")  # wrong
    procwright.pipeline(LS, LS, input="text")  # wrong
    procwright.pipeline(LS, lambda file: 5, LS)  # wrong
    procwright.pipeline(LS, procwright.Fan(5))  # wrong
    procwright.pipeline(LS, procwright.Fan(LS, stdout="x"))  # wrong
    procwright.spawn_pipeline(LS, LS).stdin.write(b"x")  # wrong
    procwright.spawn_pipeline(LS, LS, overflow="block")  # wrong
    procwright.spawn_pipeline(LS, LS, check=True)  # wrong
    procwright.spawn_pipeline(LS, stdin=PIPE).communicate("text")  # wrong


def later() -> None:
    ls = procwright.cmd("ls")
    ls.run().stdout.encode()  # wrong
    ls.run(text=True).stdout.decode()  # wrong
    ls.run(timout=5)  # wrong
    procwright.cmd("ls", timout=5)  # wrong
    procwright.cmd(5)  # wrong
    ls > "file"  # wrong
    ls | "sort"  # wrong
    ls | ["sort"]  # wrong
    ls()  # wrong
    ls.stdout  # wrong
    (ls | ls).run().stdout.encode()  # wrong
    (ls | ls).with_options(cwdd="/")  # wrong
    ls | aio.cmd("ls")  # wrong
    procwright.run(ls | ls)  # wrong
    for _ in ls:  # wrong
        pass


async def awaited() -> None:
    (await aio.run(LS)).stdout.strip("x")  # wrong
    aio.run(LS).stdout  # wrong
    await aio.run(LS, overflow="spill")  # wrong
    (await aio.pipeline(LS, LS)).stdout.encode()  # wrong
    (await aio.pipeline(LS, LS, text=True)).stages[0].stderr.decode()  # wrong
    await aio.pipeline(LS, succes="last")  # wrong
    await aio.run(LS, timout=5)  # wrong
    async with aio.spawn(LS, text=True) as child:
        child.stdin.send("x")  # wrong
        child.stdout.readline().strip()  # wrong
        await child.wait_for(b"x")  # wrong
        async for line in child.stdout:
            line.decode()  # wrong
        list(child.stdout)  # wrong
        (await child.receiver()).recv().decode()  # wrong
        await (await child.sender()).send("x")  # wrong


def of_others() -> None:
    procwright.run("ls", "-l")  # wrong
    for _ in procwright.spawn(LS):  # wrong
        pass
    procwright.run(LS).exit_code  # wrong
    procwright.spawn(LS).sendline  # wrong
    next(procwright.map([LS])).timed_out  # wrong
    procwright.check_output(LS)  # wrong
    procwright.Stop(5)  # wrong


def values_of_any_type(job: dict[str, Any]) -> None:
    procwright.run(LS, timeout=job["timeout"]).stdout.encode()  # wrong
    procwright.run(LS, cwd=job["cwd"], text=True).stdout.decode()  # wrong
    procwright.run(LS, stdin=job["stdin"], input=job["input"]).stderr.split("\n")  # wrong
    procwright.run(LS, extra_env=job["env"], text=True, stderr=STDOUT).stderr.strip()  # wrong
    procwright.spawn(LS, stop=job["stop"]).stdin.write(b"x")  # wrong
    procwright.spawn(LS, cwd=job["cwd"], text=True).stdout.readline().decode()  # wrong
    procwright.pipeline(LS, LS, timeout=job["timeout"]).stdout.encode()  # wrong
    procwright.spawn_pipeline(LS, LS, user=job["user"]).stdout.readline().encode()  # wrong
    next(procwright.map([LS], nice=job["nice"])).stdout.encode()  # wrong


async def awaited_of_any_type(job: dict[str, Any]) -> None:
    (await aio.run(LS, timeout=job["timeout"])).stdout.encode()  # wrong
    (await aio.pipeline(LS, LS, cwd=job["cwd"])).stdout.encode()  # wrong
    aio.spawn(LS, timeout=job["timeout"]).stdin.send(b"x")  # wrong


def errors_that_are_made() -> None:
    raise CalledProcessError(3, "ls")  # wrong
