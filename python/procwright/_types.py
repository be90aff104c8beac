"""Names for what functions take: for type checkers, imported by nothing else."""

from __future__ import annotations

import datetime
import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any, Literal, Never, Protocol, TypeAlias, TypeVar

StrOrBytesPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Args = Sequence[StrOrBytesPath] | StrOrBytesPath
Data = bytes | bytearray | memoryview


class Fixed:
    """Of a command: whether what comes is text, and what comes to this process, may be among its
    options."""


class Open(Fixed):
    """Of a command: the call says that."""


#: A function between two programs of a pipeline: of bytes, of text, of either. What it gets is
#: named as it is, so that one may ask for that, for an `IO`, or for lines alone.
BytesStageFn = Callable[[io.BufferedReader], Iterable[Data] | None]
TextStageFn = Callable[[io.TextIOWrapper], Iterable[str | Data] | None]
StageFn = BytesStageFn | TextStageFn
#: None where that is so seldom that asking each time would be noise, as of an exit code that
#: nobody can know. A checker takes it for what is asked of it.
MaybeNone: TypeAlias = Any
#: Of what was started: a list of what a stage is, for a pipeline. As above, of a run nobody asks.
MaybeStages: TypeAlias = Any
#: The values of an environment. A `Mapping` is of one type of names, not of a union.
Env = Mapping[str, StrOrBytesPath] | Mapping[bytes, StrOrBytesPath]
#: What is set and, with None, removed.
ExtraEnv = Mapping[str, StrOrBytesPath | None] | Mapping[bytes, StrOrBytesPath | None]
#: A time: seconds, or what has them.
Seconds = float | datetime.timedelta
#: The stream, 1 or 2; whether it is called with lines, else with chunks and at last None; and
#: what is called.
Tap = tuple[int, bool, Callable[[Any], object]]


#: What is taken for a `NotTaken`: nothing is.
_T = TypeVar("_T", covariant=True)


class NotTaken(Protocol[_T]):
    """`NotTaken[Never]` is the type of what no parameter takes: no object is one."""

    def __sizeof__(self) -> _T: ...  # type: ignore[override]


Slip: TypeAlias = NotTaken[Never]


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


class WritesBytes(Protocol):
    """An object that a copy of an output in bytes may go to."""

    def write(self, data: bytes, /) -> object: ...


class WritesText(Protocol):
    """An object that a copy of an output in text may go to."""

    def write(self, data: str, /) -> object: ...


class TextFile(WritesText, Protocol):
    """A file that says that it takes text."""

    @property
    def encoding(self) -> object: ...


#: A place for a copy of the output, of bytes and of text. A file that says what it takes gets that.
_Place = bool | int | StrOrBytesPath
TeeTarget = _Place | WritesBytes | TextFile | IO[str]
TextTeeTarget = _Place | WritesText | io.RawIOBase | io.BufferedIOBase | IO[bytes]
#: What either gets, where only the running program knows which it is.
AnyTeeTarget = _Place | IO[str] | IO[bytes] | TextFile | io.RawIOBase | io.BufferedIOBase
#: The keys are "stdout" and "stderr", which is looked at when the program runs: a mapping that a
#: program makes is one of `str` to a checker.
Tee = (
    TeeTarget
    | Mapping[Literal["stdout", "stderr"], TeeTarget | None]
    | Mapping[str, TeeTarget | None]
)
TextTee = (
    TextTeeTarget
    | Mapping[Literal["stdout", "stderr"], TextTeeTarget | None]
    | Mapping[str, TextTeeTarget | None]
)
AnyTee = (
    AnyTeeTarget
    | Mapping[Literal["stdout", "stderr"], AnyTeeTarget | None]
    | Mapping[str, AnyTeeTarget | None]
)

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


#: The parts of a `Waiting`, as the core gives them.
RawWaiting = tuple[
    Literal["input", "output", "child", "lock", "timer", "peer", "nothing"],
    int,
    str,
    int | None,
    bool,
    list[tuple[int, str, tuple[int, int | None] | None]],
    str,
]
#: The parts of a `Diagnosis`, as the core gives them.
RawDiagnosis = tuple[
    Literal["proven", "possible", "stopped", "slow", "input", "busy", "healthy"],
    str,
    str | None,
    RawWaiting | None,
    str,
    str,
]
#: What has become of a command of a map, as the core gives it.
RawEnded = tuple[
    int,
    Literal["ran", "not_started", "before", "unknown", "taken"],
    Any,
    str,
    int | None,
]
