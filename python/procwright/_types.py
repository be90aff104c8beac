"""Names for what `run()` takes. For type checkers: nothing imports this at run time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, Union

StrOrBytesPath = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Args = Union[Sequence[StrOrBytesPath], StrOrBytesPath]
Data = Union[bytes, bytearray, memoryview]


class HasFileno(Protocol):
    """A file of the system's, or a socket."""

    def fileno(self) -> int: ...


class Readable(Protocol):
    """Where stdin may come from, read on a thread of its own."""

    def read(self, size: int, /) -> Any: ...


class Writable(Protocol):
    """Where a copy of the output may go."""

    def write(self, data: Any, /) -> object: ...


Stdin = Union[
    None,
    int,
    "os.PathLike[str]",
    "os.PathLike[bytes]",
    HasFileno,
    Readable,
    Iterable[Data],
    Iterable[str],
]
Sink = Union[None, int, StrOrBytesPath, HasFileno]
