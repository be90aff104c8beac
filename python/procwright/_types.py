"""Names for what functions take: for type checkers, imported by nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar

from ._stream import _File

StrOrBytesPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Args = Sequence[StrOrBytesPath] | StrOrBytesPath
Data = bytes | bytearray | memoryview
File = TypeVar("File", bound=_File)


class HasFileno(Protocol):
    """A file of the system's, or a socket."""

    def fileno(self) -> int: ...


class IsInvitation(Protocol):
    """What the invitations of tokens and of queues have in common."""

    @property
    def fds(self) -> tuple[int, ...]: ...
    @property
    def ticket(self) -> str: ...
    def _send(self, fd: int) -> None: ...


class Readable(Protocol):
    """Where stdin may come from, read on a thread of its own."""

    def read(self, size: int, /) -> Any: ...


class Writable(Protocol):
    """Where a copy of the output may go."""

    def write(self, data: Any, /) -> object: ...


Stdin = (
    None
    | int
    | os.PathLike[str]
    | os.PathLike[bytes]
    | HasFileno
    | Readable
    | Iterable[Data]
    | Iterable[str]
)
Sink = None | int | StrOrBytesPath | HasFileno


class HasPid(Protocol):
    """What stands for a process: `subprocess.Popen` and its like."""

    @property
    def pid(self) -> int | None: ...
