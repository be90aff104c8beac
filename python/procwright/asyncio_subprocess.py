"""`asyncio.subprocess` on procwright's core: a changed import.

`create_subprocess_exec` and `create_subprocess_shell` take what asyncio's take, and give asyncio's
own `Process` with its `StreamReader` and `StreamWriter`. No child watcher and no SIGCHLD handler
has a part in it, on any thread's loop, and the status is known where somebody else reaps.

>>> import asyncio
>>> from procwright import asyncio_subprocess as subprocess
>>> async def main():
...     process = await subprocess.create_subprocess_exec("echo", "hi", stdout=subprocess.PIPE)
...     return await process.communicate()
>>> asyncio.run(main())
(b'hi\\n', None)
"""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process, SubprocessStreamProtocol

from ._asyncio_transport import ChildTransport
from ._spawn import spawn
from ._stdio import INHERIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import IO, Any, TypeVar

    from ._types import StrOrBytesPath

    _Protocol = TypeVar("_Protocol", bound=asyncio.SubprocessProtocol)

__all__ = [
    "DEVNULL",
    "PIPE",
    "STDOUT",
    "Process",
    "create_subprocess_exec",
    "create_subprocess_shell",
]

#: The `limit` of asyncio's streams.
_LIMIT = 2**16


async def create_subprocess_exec(
    program: StrOrBytesPath,
    *args: StrOrBytesPath,
    stdin: int | IO[Any] | None = None,
    stdout: int | IO[Any] | None = None,
    stderr: int | IO[Any] | None = None,
    limit: int = _LIMIT,
    **options: Any,
) -> Process:
    """Starts a program: `asyncio.create_subprocess_exec`.

    `options` are those of `subprocess.Popen`, and, by their names, those of `procwright.spawn` that
    `Popen` has not, as `until="exit"`, `die_with_parent`, `timeout` and `stop`. `preexec_fn` and
    `executable` are refused, and `pipesize` says nothing. As with asyncio's, a program that writes
    more than is read waits; it does not with `overflow="spill"`, or what needs that, as `until`.

    Raises as asyncio's: ValueError and TypeError for what cannot be, OSError where the program
    cannot be started.
    """
    loop = asyncio.get_running_loop()

    def protocol() -> SubprocessStreamProtocol:
        return SubprocessStreamProtocol(limit=limit, loop=loop)

    streams: dict[str, Any] = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
    return Process(
        *await subprocess_exec(loop, protocol, program, *args, **streams, **options), loop
    )


async def create_subprocess_shell(
    cmd: str | bytes,
    stdin: int | IO[Any] | None = None,
    stdout: int | IO[Any] | None = None,
    stderr: int | IO[Any] | None = None,
    limit: int = _LIMIT,
    **options: Any,
) -> Process:
    """Starts a command of the shell: `asyncio.create_subprocess_shell`, as
    `create_subprocess_exec`. `executable` is another shell."""
    loop = asyncio.get_running_loop()

    def protocol() -> SubprocessStreamProtocol:
        return SubprocessStreamProtocol(limit=limit, loop=loop)

    streams: dict[str, Any] = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
    return Process(*await subprocess_shell(loop, protocol, cmd, **streams, **options), loop)


async def subprocess_exec(
    loop: asyncio.AbstractEventLoop,
    protocol_factory: Callable[[], _Protocol],
    program: StrOrBytesPath,
    *args: StrOrBytesPath,
    stdin: Any = PIPE,
    stdout: Any = PIPE,
    stderr: Any = PIPE,
    shell: bool = False,
    **options: Any,
) -> tuple[ChildTransport, _Protocol]:
    """Starts a program for a protocol: `loop.subprocess_exec`."""
    if shell:
        raise ValueError("shell must be False")
    streams = stdin, stdout, stderr
    return await _start(loop, protocol_factory, [program, *args], False, streams, options)


async def subprocess_shell(
    loop: asyncio.AbstractEventLoop,
    protocol_factory: Callable[[], _Protocol],
    cmd: str | bytes,
    *,
    stdin: Any = PIPE,
    stdout: Any = PIPE,
    stderr: Any = PIPE,
    shell: bool = True,
    **options: Any,
) -> tuple[ChildTransport, _Protocol]:
    """Starts a command of the shell for a protocol: `loop.subprocess_shell`."""
    if not isinstance(cmd, (str, bytes)):
        raise ValueError("cmd must be a string")
    if not shell:
        raise ValueError("shell must be True")
    other = options.pop("executable", None)
    is_shell = True if other is None else other
    streams = stdin, stdout, stderr
    return await _start(loop, protocol_factory, cmd, is_shell, streams, options)


async def _start(
    loop: asyncio.AbstractEventLoop,
    protocol_factory: Callable[[], _Protocol],
    args: Any,
    shell: Any,
    streams: tuple[Any, Any, Any],
    options: Mapping[str, Any],
) -> tuple[ChildTransport, _Protocol]:
    translated = _translated(options)
    names = ("stdin", "stdout", "stderr")
    given: dict[str, Any] = {
        name: INHERIT if one is None else one for name, one in zip(names, streams, strict=True)
    }
    protocol = protocol_factory()
    transport = ChildTransport(loop, protocol, spawn(args, shell=shell, **given, **translated))
    transport.begin()
    try:
        # Whoever cancels a start has it ended.
        await asyncio.sleep(0)
    except BaseException:
        transport.close()
        await transport._wait()
        raise
    return transport, protocol


#: What asyncio says of parameters that ask for text, and of others that it has not.
_MUST_BE = {
    "universal_newlines": (False, "False"),
    "bufsize": (0, "0"),
    "text": (None, "False"),
    "encoding": (None, "None"),
    "errors": (None, "None"),
}
#: Options of `spawn` that have no place in asyncio's types.
_NOT_HERE = ("input", "merged", "on_stdout_line", "on_stderr_line", "pty", "channel", "detach")
#: Options of `spawn` for which output is read ahead, as it is not otherwise.
_READ_AHEAD = {"until", "idle_timeout", "limit", "tee", "keep_full"}
#: Parameters of `Popen` that are for Windows, with what they may be elsewhere.
_OF_WINDOWS = {"startupinfo": None, "creationflags": 0}


def _translated(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options for `spawn`."""
    given = dict(options)
    for name, (only, word) in _MUST_BE.items():
        value = given.pop(name, only)
        if value or (name == "bufsize" and value != 0) or (word == "None" and value is not None):
            raise ValueError(f"{name} must be {word}")
    for name in _NOT_HERE:
        if name in given:
            raise TypeError(f"{name} has no place in asyncio's types: use procwright.aio.spawn")
    for name, only in _OF_WINDOWS.items():
        if given.pop(name, only) != only:
            raise ValueError(f"{name} is only supported on Windows platforms")
    if given.get("preexec_fn", 0) is None:
        del given["preexec_fn"]
    if given.get("executable", 0) is None:
        del given["executable"]
    given.pop("pipesize", None)
    if not given.pop("restore_signals", True):
        # What Python ignores, and `subprocess` otherwise restores.
        given.setdefault("ignored_signals", ["SIGPIPE", "SIGXFSZ"])
    pass_fds = given.pop("pass_fds", ())
    if not given.pop("close_fds", True) and not pass_fds:
        pass_fds = _inheritable()
    given["pass_fds"] = pass_fds
    if given.get("process_group", 0) is None or given.get("process_group", 0) == -1:
        given.pop("process_group", None)
    if given.get("umask", 0) == -1:
        del given["umask"]
    given.setdefault("overflow", "spill" if given.keys() & _READ_AHEAD else "block")
    given.setdefault("stall_after", None)
    return given


def _inheritable() -> list[int]:
    """The descriptors that a program gets which is started with `close_fds=False`."""
    found = []
    for name in os.listdir("/dev/fd"):
        fd = int(name)
        try:
            if fd > 2 and os.get_inheritable(fd):
                found.append(fd)
        except OSError:
            # That of the listing itself.
            continue
    return found
