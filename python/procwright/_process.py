"""`Process`: any process, of this program or not."""

from __future__ import annotations

import os

from . import _core
from ._hinted import hinted
from ._invalid import InvalidValue, bad_argument, bad_type, bad_value, shown
from ._record import Status, Survivor
from ._waiting import Waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from signal import Signals
    from typing import Any, Literal, NoReturn, Self

    from ._types import HasPid, Seconds


#: In the place of a process that was not passed.
_NOT_GIVEN: Any = object()


@hinted
class AnyProcess:
    """What a `Process` has, here and on event loops: all but its waits and stops."""

    __slots__ = ("__weakref__", "_handle")

    _handle: _core.ProcessHandle

    if TYPE_CHECKING:

        def __init__(self, process: int | str | HasPid | AnyProcess) -> None: ...

    else:

        def __init__(self, process=_NOT_GIVEN):
            if process is _NOT_GIVEN:
                raise missing_process(type(self).__name__)
            handle = opened(process)
            if handle is None:
                raise_ended(process)
            self._handle = handle

    @classmethod
    def from_pidfd(cls, fd: int) -> Self:
        """The process that a pidfd names. The descriptor stays the caller's."""
        return cls._from_handle(_core.ProcessHandle.of_pidfd(fd))

    @classmethod
    def _from_handle(cls, handle: _core.ProcessHandle) -> Self:
        process = cls.__new__(cls)
        process._handle = handle
        return process

    @classmethod
    def _of_identity(cls, pid: int, start: int, inode: int | None) -> Self:
        return cls._from_handle(_core.ProcessHandle.of_identity(pid, start, inode))

    @property
    def pid(self) -> int:
        """The number. Once the process is reaped, that may be another's."""
        return self._handle.pid

    @property
    def id(self) -> str:
        """Number and inode, "1234:5678": no other process of this boot has it.

        Only the number where the system has no such inodes (before Linux 6.9).
        """
        return self._handle.id

    def is_alive(self) -> bool:
        """True if it runs or may run: a zombie is not alive, a stopped process is."""
        return self._handle.is_alive()

    @property
    def exit(self) -> Status | None:
        """How it ended, None while it is alive. Neither waits nor reaps.

        Unknown only with the reason in `why`, and then perhaps known later: a
        stranger's status is told once it is reaped, since Linux 6.15.
        """
        parts = self._handle.exit()
        return None if parts is None else Status(*parts)

    @property
    def returncode(self) -> int | None:
        """The exit code, -N after signal N, None while it is alive or if unknown."""
        status = self.exit
        return None if status is None else status.returncode

    def _waiting(self, timeout: Seconds | None, event: str) -> Waiting:
        return Waiting([self], lambda process: process._handle, "all", event, timeout)

    def _waited(self, waiting: Waiting, timeout: Seconds | None) -> Status:
        if not waiting.done:
            from ._errors import WaitTimeout

            raise WaitTimeout(f"process {self.id}", timeout, (self,))
        return self.exit or Status("unknown", why="still_running")

    def send_signal(self, sig: int | str) -> None:
        """Sends a signal, by number or name, to it and to no other process.

        Raises `NoSuchProcess` if it has ended, `PermissionError` if it is another
        user's.
        """
        self._handle.signal(_core.checked_signal("sig", sig))

    def terminate(self) -> None:
        """Sends SIGTERM. Raises as `send_signal`."""
        self._handle.terminate()

    def kill(self) -> None:
        """Sends SIGKILL. Raises as `send_signal`."""
        self._handle.kill()

    def name(self) -> str:
        """The name that it goes by: its program's, cut to 15 bytes."""
        return self._handle.name()

    def exe(self) -> str:
        """The file of its program. " (deleted)" stands behind one that is gone."""
        return os.fsdecode(self._handle.exe())

    def start_time(self) -> float:
        """The time of its start, in seconds since 1970, to 0.01 s.

        It is for people to read. A process is recognised by its `id`.
        """
        return self._handle.start_time()

    def readiness_fd(self) -> int:
        """A descriptor that is readable once it has ended: its pidfd. It stays this object's.

        Raises `io.UnsupportedOperation`, an `OSError`, where none could be had.
        """
        fd = self._handle.readiness_fd()
        if fd is None:
            import io

            raise io.UnsupportedOperation(
                f"no pidfd of process {self.id} can be had: this kernel, or what confines this "
                "process, has none to give; use wait()"
            )
        return fd

    def __repr__(self) -> str:
        status = self.exit
        return f"<procwright.Process {self.id}, {_state(status)}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AnyProcess):
            return NotImplemented
        return self._handle.same(other._handle)

    def __hash__(self) -> int:
        # The inode is left out: of two equal ones, one may have been made where no
        # inode was to be had.
        return hash((AnyProcess, self._handle.pid))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            from ._missing import PROCESS, missing

            raise missing(self, name, PROCESS)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Process cannot be pickled: pass its id, and make another of that")


@hinted
class Process(AnyProcess):
    """A process, of this program or not.

    `process` is a number, the text "PID:INODE" that `id` gives, or an object that
    stands for a process: `subprocess.Popen`, `multiprocessing.Process`,
    `asyncio.subprocess.Process`, `psutil.Process`, another `Process`.

    It stays this process: when that has ended and its number has gone to another,
    this still names the one that has ended, and signals no other. It never reaps: a
    child of a `Popen` stays that `Popen`'s to wait for, with its status.

    Raises `NoSuchProcess` if it is gone, `InvalidValue` for what cannot be one.

    >>> import subprocess, procwright
    >>> child = subprocess.Popen(["sh", "-c", "exit 3"])
    >>> procwright.Process(child).wait(timeout=60).code
    3
    >>> child.wait()
    3
    """

    __slots__ = ()

    def wait(
        self, timeout: Seconds | None = None, event: Literal["exited", "reaped"] = "exited"
    ) -> Status:
        """Waits until it has ended, or until its parent has reaped it.

        Sleeps all the while. Raises `WaitTimeout`, which is a
        `subprocess.TimeoutExpired` and a `TimeoutError`, if the time comes first.
        A child of ours that is not reaped is never "reaped".
        """
        waiting = self._waiting(timeout, event)
        waiting.complete()
        return self._waited(waiting, timeout)

    async def wait_async(
        self, timeout: Seconds | None = None, event: Literal["exited", "reaped"] = "exited"
    ) -> Status:
        """Waits as `wait` does, for asyncio and trio."""
        waiting = self._waiting(timeout, event)
        await waiting.complete_async()
        return self._waited(waiting, timeout)

    def stop(self, stop: _core.Stop | str | Signals | None = None) -> list[Survivor]:
        """Ends it, with its descendants unless `stop` says otherwise.

        Gives back the processes that could not be ended. Blocks for the grace and 2 s at
        most. Signal handlers run meanwhile; if one raises, as Ctrl-C does, the rest is
        killed at once, and then the exception goes on. Raises as `send_signal`.
        """
        survivors = self._handle.stop(_core.Stop() if stop is None else as_stop(stop))
        return [Survivor(*survivor) for survivor in survivors]


def _state(status: Status | None) -> str:
    if status is None:
        return "alive"
    if status.kind == "unknown":
        return "ended"
    return f"returncode {status.returncode}"


def raise_ended(process: object) -> NoReturn:
    from ._errors import NoSuchProcess

    pid = getattr(process, "pid", None)
    raise NoSuchProcess(pid, str(pid), f"the process of {process!r} has ended and was reaped")


_PROCESS = (
    "pass its number, 1 or more, PID:INODE, or an object with a pid, such as subprocess.Popen; "
    "os.getpid() is the number of this one"
)


def missing_process(kind: str) -> InvalidValue:
    """The error for who has passed no process."""
    return bad_argument(f"{kind}() is of a process, and none was passed: {_PROCESS}")


def as_stop(stop: Any) -> _core.Stop:
    """The value of a parameter `stop`: a `Stop`, or the signal of one."""
    if isinstance(stop, _core.Stop):
        return stop
    hint = 'pass a signal, such as "KILL" or signal.SIGINT, or Stop("TERM", grace=5)'
    if type(stop) is int:
        # Who writes 5 may mean SIGTRAP, or seconds.
        raise bad_type("stop", stop, f"a number may be a signal or seconds; {hint}")
    if not isinstance(stop, (str, int)) or isinstance(stop, bool):
        raise bad_type("stop", stop, hint)
    signal: Any = stop
    try:
        return _core.Stop(signal)
    except InvalidValue:
        raise bad_value("stop", stop, hint) from None


def opened(process: Any) -> _core.ProcessHandle | None:
    """The handle of what stands for a process; None if that was reaped.

    A bare number that no process has is an error, though an object that has ended is
    none: the number does not tell whether it ever was a process.
    """
    if isinstance(process, AnyProcess):
        return process._handle
    if isinstance(process, bool):
        raise bad_type("process", process, _PROCESS)
    if isinstance(process, int):
        return _of_pid(process)
    if isinstance(process, str):
        if not process.isascii():
            # Its digits are those of ASCII; half a character no text of the core's can have.
            raise bad_value("process", process, _PROCESS)
        return _core.ProcessHandle.of_id(process)
    if not hasattr(process, "pid"):
        raise bad_type("process", process, _PROCESS)
    return _of_object(process)


def _of_pid(pid: int) -> _core.ProcessHandle:
    if not 0 < pid < 2**31:
        raise bad_value("process", pid, _PROCESS)
    return _core.ProcessHandle.of_pid(pid)


def _of_object(process: Any) -> _core.ProcessHandle | None:
    pid = process.pid
    if pid is None:
        raise bad_value("process", process, "it has not been started, start it first")
    if not isinstance(pid, int) or isinstance(pid, bool):
        raise bad_type(f"the pid of {shown(process)}", pid, "it has to be a number")
    try:
        handle = _of_pid(pid)
    except ProcessLookupError:
        return None
    except OSError:
        # The number may be that of another process by now, which may not be looked at.
        if _is_over(process):
            return None
        raise
    # The number may have been reaped, and even be another's, long before. That
    # the object still vouches for it proves that it was not when we opened it. To
    # ask before would prove nothing, and psutil takes 15 µs to answer.
    return None if _is_over(process) else handle


def _is_over(process: Any) -> bool:
    """True if the number of this object's process may be another's by now."""
    is_running = getattr(process, "is_running", None)
    if is_running is not None:
        # psutil compares the start time; a zombie is running.
        return not is_running()
    inner = getattr(process, "_popen", None)
    if inner is not None and hasattr(inner, "returncode"):
        # multiprocessing: its `exitcode` would reap.
        return inner.returncode is not None or _server_reaped(inner)
    return (
        getattr(process, "returncode", None) is not None
        or getattr(process, "exitcode", None) is not None
    )


def _server_reaped(popen: Any) -> bool:
    """True if the server of the method "forkserver", whose child it is, reaped it.

    multiprocessing notes that only when it is asked; the sentinel tells it at once.
    """
    if getattr(popen, "method", None) != "forkserver":
        return False
    from multiprocessing.connection import wait

    return bool(wait([popen.sentinel], 0))
