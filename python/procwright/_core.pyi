from collections.abc import Callable, Coroutine, Iterable, Sequence
from signal import Signals
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, TypedDict, TypeVar, final, type_check_only

from _typeshed import ReadableBuffer, WriteableBuffer
from typing_extensions import disjoint_base

from ._liveness import LivenessGuarantee
from ._process import Process
from ._types import HasFileno, HasPid, RawDiagnosis, RawEnded, RawWaiting, Seconds

__all__ = [
    "Cancel",
    "Child",
    "ChildWait",
    "Communication",
    "Frame",
    "Invitation",
    "Limit",
    "LivenessClaim",
    "LivenessInvitation",
    "LivenessMonitor",
    "LivenessSleep",
    "LivenessToken",
    "Map",
    "Merged",
    "PipelineChild",
    "PipelineWait",
    "ProcessHandle",
    "Reader",
    "Receiver",
    "Reservation",
    "Sender",
    "StageStreams",
    "Stop",
    "Talk",
    "TextReader",
    "UntakenStreams",
    "View",
    "WaitSet",
    "Writer",
    "budget",
    "checked_signal",
    "checked_size",
    "explain_own",
    "linger",
    "map",
    "pipeline",
    "queue_names",
    "queue_stat",
    "run",
    "set_budget",
    "setup_fault",
    "setup_options",
    "shell_words",
    "spawn",
    "spawn_pipeline",
    "wait_stats",
]

@final
class Stop:
    """How a run is ended when it has to be."""

    def __new__(
        cls,
        signal: str | Signals = "TERM",
        grace: Seconds | None = 5.0,
        scope: Literal["process", "group", "tree"] = "tree",
    ) -> Stop: ...
    @property
    def signal(self) -> str: ...
    @property
    def grace(self) -> float: ...
    @property
    def scope(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[Stop], tuple[str, float, str]]: ...

@final
class Limit:
    """How much output of each stream is kept."""

    def __new__(cls, bytes: int | str, beyond: Literal["ends", "fail"] = "ends") -> Limit: ...
    @property
    def bytes(self) -> int: ...
    @property
    def beyond(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[Limit], tuple[int, str]]: ...

@final
class Cancel:
    """Ends runs from another thread. Can be waited for with `wait`."""

    def __new__(cls) -> Cancel: ...
    def cancel(self) -> None:
        """Stops every run that has this handle. Returns at once."""

    @property
    def cancelled(self) -> bool: ...
    def readiness_fd(self) -> int:
        """The descriptor that is readable once `cancel()` has been called."""

@final
class LivenessToken:
    """Says that this process lives, to all that were invited to watch."""

    def __new__(cls, holder: Literal["process", "thread"] = "process") -> LivenessToken: ...
    def invite(self) -> LivenessInvitation:
        """An invitation for a process that is to watch: to be sent, pickled or inherited."""

    def guarantee(self) -> LivenessGuarantee:
        """The promise of monitors of it."""

    def release(self) -> None:
        """Gives the token back. May be called again: only the first call does anything."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class LivenessSleep:
    """A call that sleeps on a word of a monitor, and that another thread can end."""

    def wait(self, timeout: float | None) -> bool: ...
    def claim(self, timeout: float | None) -> LivenessClaim: ...
    def leave(self) -> None: ...

@final
class LivenessClaim:
    """The answer to asking for the right to clean up after a peer that has died."""

    @property
    def kind(self) -> Literal["ours", "theirs", "done", "alive", "released"]:
        """The answer: where the right is, or why there is none."""

    def done(self) -> None:
        """Says that there is nothing left to clean up."""

    def give_back(self) -> None:
        """Lets another have the right, which then is the only one."""

    def __bool__(self) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class LivenessInvitation:
    """A token, as it is handed to another process: descriptors and a few bytes."""

    def __new__(cls, fds: Iterable[int], ticket: str) -> LivenessInvitation: ...
    @property
    def fds(self) -> tuple[int, ...]:
        """The descriptors, which stay this object's."""

    @property
    def ticket(self) -> str:
        """The text that has to be told beside the descriptors."""

    def send(self, sock: HasFileno | int) -> None:
        """Sends it over a connected Unix socket, or a connection of multiprocessing."""

    @staticmethod
    def receive(sock: HasFileno | int) -> LivenessInvitation:
        """Receives one from a connected Unix socket, or a connection of multiprocessing."""

    def _send(self, fd: int) -> None: ...
    @staticmethod
    def _receive(fd: int) -> LivenessInvitation: ...

@final
class LivenessMonitor:
    """Knows whether a peer lives."""

    def __new__(
        cls, peer: LivenessInvitation | Process | HasPid | int | str
    ) -> LivenessMonitor: ...
    @staticmethod
    def of_parent() -> LivenessMonitor:
        """The parent's, in a program that it has spawned with `liveness=True`."""

    def alive(self) -> bool:
        """True if the peer lives: one load from memory while it does, no system call."""

    def state(self) -> Literal["alive", "released", "died"]:
        """The state: alive, has given its token back, or died."""

    def confirm(self) -> Literal["alive", "released", "died"]:
        """The `state`, for which the kernel is asked as well where the word says "alive"."""

    def wait(self, timeout: Seconds | None = None) -> Literal["released", "died"]:
        """Waits until the peer does not live any more. Raises `WaitTimeout`."""

    def _sleep(self) -> LivenessSleep: ...
    def wait_async(
        self, timeout: Seconds | None = None
    ) -> Coroutine[Any, Any, Literal["released", "died"]]:
        """Waits as `wait` does, for asyncio and trio."""

    def wait_gone(self, timeout: Seconds | None = None) -> None:
        """Waits until the process of the peer is gone with all its threads."""

    def claim(self, timeout: Seconds | None = 0.0) -> LivenessClaim:
        """Asks for the right to clean up after the peer, when it has died."""

    def readiness_fd(self) -> int:
        """A descriptor that is readable once the peer does not live any more."""

    @property
    def process(self) -> Process | None:
        """The `Process` of the peer, None where it cannot be seen from here."""

    def guarantee(self) -> LivenessGuarantee:
        """The promise of this monitor."""

    def __reduce__(self) -> tuple[type[LivenessMonitor], tuple[str]]: ...

@type_check_only
class RawStats(TypedDict):
    served: dict[str, int]
    looks: int

_RawStatus: TypeAlias = tuple[
    Literal["exited", "signaled", "unknown"],
    int | None,
    int | None,
    str | None,
    bool | None,
    str | None,
]

@final
class ProcessHandle:
    """One process, for good."""

    @staticmethod
    def of_pid(pid: int) -> ProcessHandle: ...
    @staticmethod
    def of_id(id: str) -> ProcessHandle: ...
    @staticmethod
    def of_identity(pid: int, start: int, inode: int | None) -> ProcessHandle: ...
    @staticmethod
    def of_pidfd(fd: int) -> ProcessHandle: ...
    @property
    def pid(self) -> int: ...
    @property
    def id(self) -> str: ...
    def is_alive(self) -> bool: ...
    def exit(self) -> _RawStatus | None: ...
    def signal(self, signal: int | str) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...
    def stop(self, stop: Stop) -> list[tuple[int | None, str, str]]: ...
    def name(self) -> str: ...
    def exe(self) -> bytes: ...
    def start_time(self) -> float: ...
    def readiness_fd(self) -> int | None: ...
    def same(self, other: ProcessHandle) -> bool: ...

#: Things that the core can watch; None for one that is over.
_Watched: TypeAlias = ProcessHandle | Cancel | LivenessMonitor | Receiver | int | None
_Member: TypeAlias = ProcessHandle | Cancel | int

@final
class WaitSet:
    """Things to wait for until one deadline, which starts when this is made."""

    def __new__(cls, timeout: float | None) -> WaitSet: ...
    def add(
        self,
        place: int,
        item: ProcessHandle | Cancel | LivenessMonitor | Receiver | int,
        event: str,
    ) -> bool: ...
    def wait(self, want: int, done: list[int]) -> bool: ...
    def poll(self, want: int, done: list[int]) -> bool: ...
    def remaining(self) -> float | None: ...
    def fileno(self) -> int: ...
    def close(self) -> None: ...

def linger(ended: list[ProcessHandle]) -> None: ...
def wait_stats() -> RawStats:
    """The mechanisms by which this process has waited so far.

    `served` counts the waits that each mechanism has brought to an end, `looks`
    how often a process had to be looked at because nothing tells of its end.
    """

@type_check_only
class RawInfo(TypedDict):
    bytes: int
    kept_bytes: int
    dropped_bytes: int
    dropped_at: int | None
    blocked_s: float | None
    complete: bool
    held_by: list[tuple[int, str, tuple[int, int | None] | None]]
    held_by_complete: bool
    kept_at: bytes | None
    kept_error: str | None
    undelivered_bytes: int

@type_check_only
class RawResult(TypedDict):
    argv: tuple[str, ...]
    pid: int
    status: _RawStatus
    reason: Literal["finished", "timeout", "idle_timeout", "cancelled", "output_limit"]
    ok_codes: tuple[int, ...]
    duration_s: float
    cpu_user_s: float | None
    cpu_system_s: float | None
    max_rss_bytes: int | None
    survivors: list[tuple[int | None, str, str]]
    processes: list[str]
    stdout: bytes | None
    stderr: bytes | None
    stdout_info: RawInfo | None
    stderr_info: RawInfo | None
    merged: list[tuple[int, int, bool, float]] | None
    error: BaseException | None
    io_error: tuple[int, str] | None
    outcome: str
    why: str | None
    summary: str
    explanation: str

@type_check_only
class RawStage(RawResult):
    judgement: Literal["success", "forgiven", "ignored", "failed", "collateral"]
    elastic: RawFigures | None
    fan: RawFigures | None
    function: tuple[str, str] | None

@type_check_only
class RawPipeline(TypedDict):
    stages: list[RawStage]
    success: bool
    rule: Literal["forgiving", "strict", "last"]
    reason: Literal["finished", "timeout", "idle_timeout", "cancelled", "output_limit"]
    outcome: str
    summary: str
    duration_s: float
    explanation: str
    error: BaseException | None
    io_error: tuple[int, str] | None

@type_check_only
class RawFigures(TypedDict):
    bytes_in: int
    bytes_out: int
    lag_bytes: int
    lag_s: float
    peak_bytes: int
    memory_bytes: int
    memory_peak_bytes: int
    disk_bytes: int
    disk_peak_bytes: int
    spilled_bytes: int
    dropped_bytes: int
    lost_bytes: int
    blocked_s: float | None

@final
class Child:
    """A program that was started."""

    def receiver(self) -> Receiver: ...
    def sender(self, timeout: float | None) -> Sender: ...
    def is_ours(self) -> bool: ...
    def close_sender(self) -> None: ...
    def process(self) -> ProcessHandle: ...
    def handle(self) -> ProcessHandle: ...
    def streams(self) -> UntakenStreams: ...
    def poll(self) -> _RawStatus | None: ...
    def wait(self, timeout: float | None) -> _RawStatus | None: ...
    def wait_step(self) -> _RawStatus | None: ...
    def stop(self, stop: Stop | None) -> list[tuple[int | None, str, str]]: ...
    def open_outputs(self) -> tuple[bool, bool]: ...
    def is_alive(self) -> bool: ...
    def begin_wait(self, writing: bool) -> ChildWait: ...
    def stop_in_background(self) -> bool: ...
    def explain_timeout(self, waited: float, stdout: bytes | None, stderr: bytes | None) -> str: ...
    def explain_silence(self, waited: float) -> str: ...
    def command_line(self) -> str: ...
    def is_stopping(self) -> bool: ...
    def stopped_for(self) -> str | None: ...
    def held(self) -> str | None: ...
    def tell_held(self, begins: Callable[[], bool] | None) -> None: ...
    def has_terminal(self) -> bool: ...
    def type_end(self) -> None: ...
    def waiting_for(self) -> RawWaiting: ...
    def explain(self) -> RawDiagnosis: ...
    def resize(self, rows: int, columns: int) -> None: ...
    def report(self, stdout: bytes | None, stderr: bytes | None) -> RawResult | None: ...

@final
class PipelineChild:
    """A pipeline that was started."""

    def is_ours(self) -> bool: ...
    def is_alive(self) -> bool: ...
    def is_stopping(self) -> bool: ...
    def begin_wait(self, writing: bool) -> PipelineWait: ...
    def wait_step(self) -> bool: ...
    def readiness_fd(self) -> int: ...
    def pids(self) -> list[int]: ...
    def streams(self) -> list[UntakenStreams]: ...
    def wait(self, timeout: float | None) -> bool: ...
    def stop(self, at_once: bool) -> None: ...
    def begin_stop(self, at_once: bool) -> None: ...
    def stop_in_background(self) -> bool: ...
    def explain_timeout(self, waited: float | None) -> str: ...
    def explain_silence(self, waited: float) -> str: ...
    def report(
        self, stdout: bytes | None, stderr: Sequence[bytes | None]
    ) -> RawPipeline | None: ...

@final
class PipelineWait:
    """A wait for a pipeline, or for room in its stdin, on an event loop."""

    def sleep(self) -> tuple[bool, list[int], float | None]: ...

@final
class ChildWait:
    """A wait for a child, or for room in its stdin, on an event loop."""

    def sleep(self) -> tuple[bool, list[int], float | None]: ...

@final
class UntakenStreams:
    """The streams of a child that were not taken yet."""

    @property
    def has_stdin(self) -> bool: ...
    @property
    def has_stdout(self) -> bool: ...
    @property
    def has_stderr(self) -> bool: ...
    @property
    def has_merged(self) -> bool: ...

@final
class Frame:
    """How `lines()` cuts a stream."""

    def __new__(
        cls, separator: bytes | None, max_length: int | None, fails: bool, keep_ends: bool
    ) -> Frame: ...

@disjoint_base
class Reader:
    """Bytes and lines out of a child."""

    def __new__(cls, streams: UntakenStreams, number: int) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...
    def read(self, size: int | None = -1, /, *, timeout: Seconds | None = None) -> bytes:
        """Reads so many bytes, less at the end of all; with -1 or None to the end.

        With a timeout it raises `WaitTimeout` if they have not come by then; what has stays, and
        the call may be made again.
        """

    def read1(self, size: int | None = -1, /, *, timeout: Seconds | None = None) -> bytes:
        """Reads what has come, and waits only for the first byte; b"" at the end.

        With a timeout it raises `WaitTimeout` if nothing has come by then.
        """

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Reads until `buffer` is full or the stream ends. How many bytes."""

    def readinto1(self, buffer: WriteableBuffer, /) -> int:
        """Reads what is there, and waits only for the first byte. How many bytes."""

    def peek(self, size: int = 0, /) -> bytes: ...
    def readline(self, size: int | None = -1, /) -> bytes: ...
    def _next_in(self, frame: Frame) -> bytes | tuple[int, int] | None: ...
    def _next_now(self, frame: Frame) -> tuple[bytes | tuple[int, int] | None] | None: ...
    def _read_now(self, most: int) -> bytes | None: ...
    def _put_back(self, bytes: bytes) -> None: ...
    def _expect_end(self) -> None: ...
    def _peek_line(self, looked_at: int) -> tuple[Literal["line", "part", "end"], bytes | None]: ...
    def _gaps(self) -> list[tuple[int, int]]: ...
    def _figures(self) -> RawFigures | None: ...
    def _is_held(self) -> bool: ...
    def _alive(self) -> None: ...
    def _pipe(self) -> tuple[int | None, int]: ...
    @property
    def blocked_s(self) -> float | None:
        """Seconds at most for which the child could not write so far, its pipe being full."""

    def readiness_fd(self) -> int:
        """A descriptor that is readable once there is something to read."""

    def close(self, wait: bool = False) -> None:
        """Closes it, from any thread, any number of times. Returns at once."""

    @property
    def closed(self) -> bool: ...
    @property
    def label(self) -> str: ...

@disjoint_base
class Writer:
    """Bytes into a child."""

    def __new__(cls, streams: UntakenStreams) -> Self: ...
    def _write_all(self, data: bytes | bytearray) -> int: ...
    def _write_now(self, data: bytes | bytearray, offset: int) -> int: ...
    def _alive(self) -> None: ...
    def _pipe(self) -> int: ...
    def readiness_fd(self) -> int:
        """A descriptor that is readable once there is room to write."""

    @property
    def bytes_written(self) -> int: ...
    def close(self, wait: bool = False) -> None:
        """Closes it, so that the child comes to the end of its input."""

    @property
    def closed(self) -> bool: ...
    @property
    def label(self) -> str: ...

@disjoint_base
class TextReader:
    """Text out of a child."""

    def __new__(cls, buffer: Reader, encoding: str, errors: str) -> Self: ...
    @property
    def buffer(self) -> Reader: ...
    @property
    def encoding(self) -> str: ...
    @property
    def errors(self) -> str: ...
    @property
    def closed(self) -> bool: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> str: ...
    def read(self, size: int | None = -1, /) -> str: ...
    def readline(self, size: int | None = -1, /) -> str: ...

@final
class Communication:
    """The progress of one `communicate`."""

    def __new__(
        cls,
        started: Child | PipelineChild,
        stdin: Writer | None,
        input: bytes | bytearray | None,
        outputs: Sequence[Reader | None],
    ) -> Communication: ...
    def go_on(self, timeout: float | None) -> bool: ...
    def go_on_now(self) -> bool: ...
    def sleep(self) -> list[int] | None: ...
    def take(self) -> list[tuple[bytes, list[int]] | None]: ...
    def peek(self) -> list[bytes | None]: ...

@final
class Talk:
    """The steps of an event loop until all is written and read and the child has ended."""

    def __new__(cls, child: Child, communication: Communication) -> Talk: ...
    def step(self) -> tuple[bool, float | None]: ...
    def fileno(self) -> int: ...
    def close(self) -> None: ...

@disjoint_base
class Merged:
    """Lines of both streams of a child."""

    def __new__(cls, streams: UntakenStreams) -> Self: ...
    def _next(self, frame: Frame | None = None) -> tuple[int, float, Any, bool] | None: ...
    def _next_now(
        self, frame: Frame | None = None
    ) -> tuple[tuple[int, float, Any, bool] | None] | None: ...
    def _is_held(self) -> bool: ...
    def _figures(self) -> RawFigures | None: ...
    def readiness_fd(self) -> int:
        """A descriptor that is readable once there is something to read."""

    def close(self, wait: bool = False) -> None:
        """Closes both streams, from any thread: see `Reader.close`."""

    @property
    def closed(self) -> bool: ...
    @property
    def label(self) -> str: ...

_Overflow: TypeAlias = Literal["block", "fail", "drop_newest"]

@final
class Invitation:
    """A place at a queue, for one process, as it is handed there."""

    def __new__(cls, fds: Iterable[int], ticket: str) -> Invitation: ...
    @property
    def fds(self) -> tuple[int, ...]:
        """The descriptors, which stay this object's."""

    @property
    def ticket(self) -> str:
        """The text that has to be told beside the descriptors."""

    def send(self, sock: HasFileno | int) -> None:
        """Sends it over a connected Unix socket, or a connection of multiprocessing."""

    @staticmethod
    def receive(sock: HasFileno | int) -> Invitation:
        """Receives one from a connected Unix socket, or a connection of multiprocessing."""

    def close(self) -> None:
        """Gives the place back, unless another process has it as well."""

    @property
    def closed(self) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
    def _send(self, fd: int) -> None: ...
    @staticmethod
    def _receive(fd: int) -> Invitation: ...

@final
class Receiver:
    """Receives what the senders of a queue send, each one's messages in their order."""

    def __new__(
        cls,
        *,
        lanes: int = 64,
        first: int | str | None = None,
        limit: int | str = 67108864,
        keep: int | str = 16777216,
    ) -> Receiver: ...
    @staticmethod
    def open(
        name: str,
        *,
        lanes: int = 64,
        first: int | str | None = None,
        limit: int | str = 67108864,
        keep: int | str = 16777216,
    ) -> Receiver:
        """Makes a queue of that name, or takes it over from a receiver that has died."""

    @staticmethod
    def take_over(invitation: Invitation) -> Receiver:
        """Receives in the place of a receiver that has died."""

    @staticmethod
    def of_parent(
        *,
        lanes: int = 64,
        first: int | str | None = None,
        limit: int | str = 67108864,
        keep: int | str = 16777216,
    ) -> Receiver:
        """Receives from the process that has spawned this one with `channel="to_child"`."""

    def invite(self) -> Invitation:
        """A place at this queue for one process, which may have any number of senders."""

    def sender(self, overflow: _Overflow = "block", limit: int | str | None = None) -> Sender:
        """A sender in this process."""

    def recv(self, timeout: Seconds | None = None) -> bytes:
        """Receives a message: waits until there is one."""

    def try_recv(self) -> bytes:
        """Receives a message if there is one, else raises `Empty`."""

    def recv_many(self, most: int, timeout: Seconds | None = None) -> list[bytes]:
        """Waits for a message, and receives it and what has come besides."""

    def recv_view(self, timeout: Seconds | None = None) -> View:
        """Receives a message without a copy, to be read where it is."""

    def try_recv_view(self) -> View:
        """Receives a message without a copy if there is one, else raises `Empty`."""

    def recv_async(self, timeout: Seconds | None = None) -> Coroutine[Any, Any, bytes]:
        """Receives a message, as `recv` does, for asyncio and trio. One task at a time."""

    def readiness_fd(self) -> int:
        """A descriptor that is readable when there may be something to receive."""

    def _ask(self, ask: Callable[[BaseException, float | None], BaseException]) -> None: ...
    def close(self) -> None:
        """Closes it: senders are told so, and what was not received is lost."""

    @property
    def closed(self) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...
    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Coroutine[Any, Any, bytes]: ...
    def _poll(self) -> bytes | None: ...
    def _recv_object(self, timeout: Seconds | None) -> Any: ...
    def _try_recv_object(self) -> Any: ...
    def _next_object(self) -> Any: ...
    def _poll_object(self) -> tuple[Any] | None: ...
    def _recv_objects(self, most: int, timeout: Seconds | None) -> list[Any]: ...
    def _watch(self) -> int: ...
    def _await(self, waits: bool) -> None: ...

# The runtime shows these from Python 3.12 on, and has them before.
@type_check_only
class _HasBuffer:
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __release_buffer__(self, buffer: memoryview, /) -> None: ...

@final
class View(_HasBuffer):
    """A message in the queue's memory: see `Receiver.recv_view`."""

    def __enter__(self) -> memoryview: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
    def release(self) -> None:
        """The message has been received."""

    @property
    def released(self) -> bool: ...
    def __len__(self) -> int: ...

@final
class Sender:
    """Sends messages to a queue's receiver."""

    @staticmethod
    def attach(
        invitation: Invitation,
        overflow: _Overflow = "block",
        limit: int | str | None = None,
        *,
        wait: Seconds | None = 0.0,
    ) -> Sender:
        """Takes a place at a queue."""

    @staticmethod
    def open(
        name: str,
        overflow: _Overflow = "block",
        limit: int | str | None = None,
        *,
        wait: Seconds | None = 0.0,
    ) -> Sender:
        """Takes a place at the queue of that name."""

    @staticmethod
    def of_parent(overflow: _Overflow = "block", limit: int | str | None = None) -> Sender:
        """Sends to the process that has spawned this one with `channel="from_child"`."""

    def send(self, data: ReadableBuffer, timeout: Seconds | None = None) -> None:
        """Sends a message."""

    def try_send(self, data: ReadableBuffer) -> None:
        """Sends a message if there is room now; else raises `Full`."""

    def send_many(self, messages: Iterable[ReadableBuffer]) -> int:
        """Sends many at the price of one, and says how many were sent."""

    def reserve(self, length: int, timeout: Seconds | None = None) -> Reservation:
        """Room for a message of `length` bytes, to be made in place, without a copy."""

    def clone(self, overflow: _Overflow | None = None, *, wait: Seconds | None = 0.0) -> Sender:
        """Another one for the same queue, in this process: for another thread."""

    @property
    def dropped(self) -> int:
        """How many messages were thrown away under "drop_newest"."""

    @property
    def overflow(self) -> str:
        """The policy for a message that finds no room."""

    def _ask(self, ask: Callable[[BaseException, float | None], BaseException]) -> None: ...
    def close(self) -> None:
        """Closes it: what was sent will be received."""

    @property
    def closed(self) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
    def _send_object(self, object: object, timeout: Seconds | None, waits: bool) -> None: ...

@final
class Reservation(_HasBuffer):
    """Room for a message in the queue's memory: see `Sender.reserve`."""

    def __enter__(self) -> memoryview: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
    def commit(self, length: int | None = None) -> None:
        """Sends it, or its first `length` bytes."""

    def cancel(self) -> None:
        """Sends nothing."""

    def __len__(self) -> int: ...

_Numbers: TypeAlias = tuple[int, int, int, int, int, int]
_Receiving: TypeAlias = tuple[
    Literal["alive", "dead", "closed"], int | None, Literal["word", "descriptor"] | None
]
_Lane: TypeAlias = tuple[
    int,
    Literal["taken", "left", "orphaned", "clearing", "damaged"],
    int | None,
    int,
    int | None,
    int | None,
    bool,
]

_Signal = TypeVar("_Signal")

def checked_signal(name: str, given: _Signal, /) -> _Signal:
    """The value of the parameter `name`, if it is that of a signal."""

def setup_options() -> list[tuple[str, str, str]]:
    """The options of the set-up: name, kind, and what would do."""

def setup_fault(name: str, value: object, /) -> tuple[str, str] | None:
    """What is wrong with a value of the right kind, and what would do."""

def shell_words(line: bytes, words: list[bytes], /) -> Literal["used", "unused", "taken_for_one"]:
    """What a line for a shell does with the words behind it."""

def checked_size(given: Any, /) -> int:
    """How much a file is to read, -1 for all."""

def queue_stat(name: str) -> tuple[_Numbers, _Receiving, list[_Lane]]: ...
def queue_names() -> list[str]: ...
def explain_own() -> RawDiagnosis: ...
def budget() -> tuple[int, int | None]: ...
def set_budget(memory: int | None, disk: int | None) -> None: ...

# Each dictionary has the options of a table of `_options.py`, and what its caller adds.
def spawn(options: dict[str, Any], /) -> Child: ...
def run(options: dict[str, Any], /) -> RawResult: ...
def pipeline(options: dict[str, Any], /) -> RawPipeline: ...
def spawn_pipeline(options: dict[str, Any], /) -> PipelineChild: ...

@final
class StageStreams:
    """What a function between two programs of a pipeline reads and writes."""

    def read(self, size: int) -> bytes: ...
    def write(self, data: bytes) -> None: ...

def map(options: dict[str, Any], next: Callable[[], dict[str, Any]], /) -> Map: ...

@final
class Map:
    """A map under way."""

    def next(self) -> RawEnded | None:
        """The next result: its place, what it is, its parts, its line, and the place of the
        failure that has ended the map, where it is that one or was stopped for it. None at the
        end."""

    def take_cause(self) -> RawEnded | None:
        """The failure that has ended the map, if its turn has not come: in that it comes once
        more, as "taken"."""

    def stop(self) -> None: ...
    def close(self) -> None: ...
    def progress(self) -> dict[str, Any]: ...
