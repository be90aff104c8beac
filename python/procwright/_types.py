"""Names for what functions take: for type checkers, imported by nothing else."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

StrOrBytesPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Args = Sequence[StrOrBytesPath] | StrOrBytesPath
Data = bytes | bytearray | memoryview
#: None where that is so seldom that asking each time would be noise, as of an exit code that
#: nobody can know. A checker takes it for what is asked of it.
MaybeNone: TypeAlias = Any
#: The values of an environment. A `Mapping` is of one type of names, not of a union.
Env = Mapping[str, StrOrBytesPath] | Mapping[bytes, StrOrBytesPath]
#: What is set and, with None, removed.
ExtraEnv = Mapping[str, StrOrBytesPath | None] | Mapping[bytes, StrOrBytesPath | None]
#: A time: seconds, or what has them.
Seconds = float | datetime.timedelta
#: The stream, 1 or 2; whether it is called with lines, else with chunks and at last None; and
#: what is called.
Tap = tuple[int, bool, Callable[[Any], object]]


class HasFileno(Protocol):
    """A file of the system's, or a socket."""

    def fileno(self) -> int: ...


class IsInvitation(Protocol):
    """An invitation, of a token or of a queue."""

    @property
    def fds(self) -> tuple[int, ...]: ...
    @property
    def ticket(self) -> str: ...
    def _send(self, fd: int) -> None: ...


class Readable(Protocol):
    """A source of stdin, which is read on a thread of its own."""

    def read(self, size: int, /) -> Any: ...


class Output(Protocol):
    """An output of an `aio.Child`, which is read on a thread of its own."""

    @property
    def _procwright_stream(self) -> Readable: ...


class Writable(Protocol):
    """A file that a copy of the output may go to."""

    def write(self, data: Any, /) -> object: ...


#: A place for a copy of the output.
TeeTarget = bool | int | StrOrBytesPath | Writable
Tee = TeeTarget | Mapping[Literal["stdout", "stderr"], TeeTarget | None]

Stdin = (
    None
    | int
    | os.PathLike[str]
    | os.PathLike[bytes]
    | HasFileno
    | Readable
    | Output
    | Iterable[Data]
    | Iterable[str]
)
Sink = None | int | StrOrBytesPath | HasFileno
#: `PIPE` and `CAPTURE`, to a type checker.
Pipe = Literal[-1]
#: Sources of stdin that are no pipe to write to. A number may be one: it may be `PIPE`.
NoPipe = (
    None
    | Literal[-3, -4]
    | os.PathLike[str]
    | os.PathLike[bytes]
    | HasFileno
    | Readable
    | Output
    | Iterable[Data]
    | Iterable[str]
)
#: Places for stdout and stderr that are not this process.
Elsewhere = None | Literal[-2, -3, -4] | StrOrBytesPath | HasFileno


class HasPid(Protocol):
    """An object that stands for a process: `subprocess.Popen` and its like."""

    @property
    def pid(self) -> int | None: ...
