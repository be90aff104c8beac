"""`Process`: any process, whoever started it."""

from __future__ import annotations

import os

from . import _core
from ._result import Status, Survivor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, NoReturn

    from ._types import HasPid


class Process:
    """A process, whoever started it.

    `process` is a number, the text "PID:INODE" that `id` gives, or an object that
    stands for a process: `subprocess.Popen`, `multiprocessing.Process`,
    `asyncio.subprocess.Process`, `psutil.Process`, another `Process`.

    It stays this process: when that has ended and its number has gone to another,
    this still names the one that has ended, and signals nobody. It never reaps: a
    child of a `Popen` stays that `Popen`'s to wait for, with its status.

    Raises `NoSuchProcess` if it is gone, `InvalidValue` for what cannot be one.

    >>> import subprocess, procwright
    >>> child = subprocess.Popen(["sh", "-c", "exit 3"])
    >>> procwright.Process(child).wait(timeout=60).code
    3
    >>> child.wait()
    3
    """

    __slots__ = ("__weakref__", "_handle")

    def __init__(self, process: int | str | HasPid | Process) -> None:
        handle = _opened(process)
        if handle is None:
            _ended(process)
        self._handle: _core.Handle = handle

    @classmethod
    def from_pidfd(cls, fd: int) -> Process:
        """The process that a pidfd names. The descriptor stays the caller's."""
        return cls._of(_core.Handle.of_pidfd(fd))

    @classmethod
    def _of(cls, handle: _core.Handle) -> Process:
        process = cls.__new__(cls)
        process._handle = handle
        return process

    @property
    def pid(self) -> int:
        """Its number. Once it is reaped, the number may be another's."""
        return self._handle.pid

    @property
    def id(self) -> str:
        """Number and inode, "1234:5678": no other process of this boot has it.

        Only the number where the system has no such inodes (before Linux 6.9).
        """
        return self._handle.id

    def is_alive(self) -> bool:
        """Whether it runs or may run: a zombie is not alive, one that is stopped is."""
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

    def wait(
        self, timeout: float | None = None, event: Literal["exited", "reaped"] = "exited"
    ) -> Status:
        """Waits until it has ended, or until its parent has reaped it.

        Sleeps all the while. Raises `WaitTimeout`, which is a
        `subprocess.TimeoutExpired` and a `TimeoutError`, if the time comes first.
        A child of ours that nobody reaps is never "reaped".
        """
        from ._wait import wait

        if not wait([self], "all", event, timeout).done:
            self._too_late(timeout)
        return self._status()

    async def wait_async(
        self, timeout: float | None = None, event: Literal["exited", "reaped"] = "exited"
    ) -> Status:
        """As `wait`, for asyncio and trio."""
        from ._wait import wait_async

        if not (await wait_async([self], "all", event, timeout)).done:
            self._too_late(timeout)
        return self._status()

    def _too_late(self, timeout: float | None) -> NoReturn:
        from ._errors import WaitTimeout

        raise WaitTimeout(f"process {self.id}", timeout, (self,))

    def _status(self) -> Status:
        return self.exit or Status("unknown", why="still_running")

    def signal(self, sig: int | str) -> None:
        """Sends a signal, by number or name, to it and to no other process.

        Raises `NoSuchProcess` if it has ended, `PermissionError` if it is another
        user's.
        """
        if not isinstance(sig, (int, str)):
            raise TypeError(f"signal is {sig!r}: pass a number or a name")
        self._handle.signal(sig)

    def terminate(self) -> None:
        """Sends SIGTERM. Raises as `signal`."""
        self._handle.terminate()

    def kill(self) -> None:
        """Sends SIGKILL. Raises as `signal`."""
        self._handle.kill()

    def stop(self, stop: _core.Stop | None = None) -> list[Survivor]:
        """Ends it, with its descendants unless `stop` says otherwise.

        Gives back who could not be ended. Blocks for the grace and 2 s at most.
        Signal handlers run meanwhile; if one raises, as Ctrl-C does, whoever is left
        is killed at once, and then the exception goes on. Raises as `signal`.
        """
        survivors = self._handle.stop(_core.Stop() if stop is None else stop)
        return [Survivor(*survivor) for survivor in survivors]

    def name(self) -> str:
        """The name that it goes by: its program's, cut to 15 bytes."""
        return self._handle.name()

    def exe(self) -> str:
        """The file of its program. " (deleted)" stands behind one that is gone."""
        return os.fsdecode(self._handle.exe())

    def start_time(self) -> float:
        """When it was started, in seconds since 1970, to 0.01 s.

        For telling people. To recognise a process by there is `id`.
        """
        return self._handle.start_time()

    def readiness_fd(self) -> int:
        """Its pidfd, which is readable once it has ended. It stays this object's.

        Raises `io.UnsupportedOperation`, an `OSError`, where none could be had.
        """
        fd = self._handle.pidfd()
        if fd is None:
            import io

            raise io.UnsupportedOperation(f"process {self.id} could not be had a pidfd of")
        return fd

    def __repr__(self) -> str:
        status = self.exit
        return f"<procwright.Process {self.id}, {_state(status)}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Process):
            return NotImplemented
        return self._handle.same(other._handle)

    def __hash__(self) -> int:
        # Only the number: of two equal ones, one may have been made where no
        # inode was to be had.
        return hash((Process, self._handle.pid))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Process cannot be pickled: pass its id, and make another of that")


def _state(status: Status | None) -> str:
    if status is None:
        return "alive"
    if status.kind == "unknown":
        return "ended"
    return f"returncode {status.returncode}"


def _ended(process: object) -> NoReturn:
    from ._errors import NoSuchProcess

    pid = getattr(process, "pid", None)
    raise NoSuchProcess(pid, str(pid), f"the process of {process!r} has ended and was reaped")


def _opened(process: Any) -> _core.Handle | None:
    """The handle of whatever stands for a process; None if that was reaped.

    A bare number that nobody has is an error, also where an object that has ended
    is none: nobody can tell whether it ever was one.
    """
    if isinstance(process, Process):
        return process._handle
    if isinstance(process, bool):
        raise TypeError(f"{process!r} is no process: pass its number")
    if isinstance(process, int):
        return _of_pid(process)
    if isinstance(process, str):
        return _core.Handle.of_id(process)
    if not hasattr(process, "pid"):
        raise TypeError(
            f"{process!r} is no process: pass its number, PID:INODE, "
            "or an object with a pid, such as subprocess.Popen"
        )
    return _of_object(process)


def _of_pid(pid: int) -> _core.Handle:
    if not 0 < pid < 2**31:
        _refuse(f"{pid} is no process number")
    return _core.Handle.of_pid(pid)


def _of_object(process: Any) -> _core.Handle | None:
    pid = process.pid
    if pid is None:
        _refuse(f"{process!r} has not been started")
    if not isinstance(pid, int) or isinstance(pid, bool):
        raise TypeError(f"{process!r} is no process: its pid is {pid!r}")
    try:
        handle = _of_pid(pid)
    except ProcessLookupError:
        return None
    except OSError:
        # Perhaps it is somebody else's by now, whom we may not look at.
        if _is_over(process):
            return None
        raise
    # The number may have been reaped, and even be another's, long before. That
    # the object still vouches for it proves that it was not when we opened it. To
    # ask before would prove nothing, and psutil takes 15 µs to answer.
    return None if _is_over(process) else handle


def _is_over(process: Any) -> bool:
    """Whether the number of this object's process may be another's by now."""
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
    """Whether the server of the method "forkserver", whose child it is, reaped it.

    Nobody here takes note of that before somebody asks; the sentinel knows.
    """
    if getattr(popen, "method", None) != "forkserver":
        return False
    from multiprocessing.connection import wait

    return bool(wait([popen.sentinel], 0))


def _refuse(text: str) -> NoReturn:
    from ._errors import InvalidValue

    raise InvalidValue(text)
