"""The exceptions, but for those of runs, streams and queues. Imported when one is needed."""

from __future__ import annotations

import errno
import subprocess

from ._words import shown_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    import procwright

    from ._types import Seconds


class NoSuchProcess(ProcessLookupError):
    """The process has ended, or there never was one.

    `pid` and `id` say which was meant; both are None where only a pidfd was given.
    """

    def __init__(self, pid: int | None, id: str | None, text: str) -> None:
        super().__init__(errno.ESRCH, text)
        self.pid = pid
        self.id = id

    def __str__(self) -> str:
        return str(self.strerror)

    def __reduce__(self) -> tuple[object, ...]:
        return (NoSuchProcess, (self.pid, self.id, self.strerror))


def _no_such_process(which: tuple[int, str] | None, text: str) -> NoSuchProcess:
    pid, id = which or (None, None)
    return NoSuchProcess(pid, id, text)


class TimeoutExpired(subprocess.TimeoutExpired, TimeoutError):
    """The timeout came: of `run`, which has stopped the program, or of a wait, which ends nothing.

    That of a run is a `RunError` besides, and has its `result`; that of a wait is a
    `WaitTimeout`, whose `result` is None.
    """

    if TYPE_CHECKING:
        #: The `Result` of a run, the `PipelineResult` of a pipeline, None of a wait. To a type
        #: checker it has what either has, and None is left out, which would have to be asked for
        #: each time: it is that of a `WaitTimeout`.
        result: procwright._OfEither
        # Those of subprocess are declared as bytes, and here they are text where that was asked
        # for.
        output: str | bytes | None
        stdout: str | bytes | None  # type: ignore[assignment]
        stderr: str | bytes | None  # type: ignore[assignment]
    else:
        result = None


class WaitTimeout(TimeoutExpired):
    """The timeout of a wait came first, as that of a child's `wait` or `communicate`.

    `timeout` is how long was waited; `cmd` is what was started, as it was given, or of what was not
    started here what was waited for, in words; `pending`, a tuple, has what has not ended. Nothing
    was stopped, and there is no result. That of a child says what its processes are doing, who
    holds its streams and what it wrote last to stderr, if it was waited for for 0.1 s at least.
    `output` and `stderr` of that of `communicate` are what has come: text where that was asked
    for, without a character of which a part is still on its way.
    """

    if TYPE_CHECKING:
        result: None  # type: ignore[assignment]

    def __init__(
        self,
        cmd: Any,
        timeout: Seconds | None,
        pending: tuple[object, ...] = (),
        text: str | None = None,
    ) -> None:
        total = getattr(timeout, "total_seconds", None)
        timeout = timeout if total is None else total()
        subprocess.TimeoutExpired.__init__(self, cmd, timeout)  # type: ignore[arg-type]
        # OSError's constructor leaves it empty.
        self.args = (cmd, timeout)
        self.pending = pending
        self._text = text

    def __str__(self) -> str:
        if self._text is not None:
            return self._text
        return f"{self.cmd} did not end within {shown_seconds(self.timeout)}"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            from ._missing import OF_A_WAIT, missing

            raise missing(self, name, OF_A_WAIT)

    def __reduce__(self) -> tuple[object, ...]:
        # `pending` is left out: it means something in this process alone.
        kept = {"output": self.output, "stderr": self.stderr, "_text": self._text}
        return (WaitTimeout, (self.cmd, self.timeout), kept)


class LivenessError(OSError):
    """A liveness token or monitor cannot be had. Where it can be asked, monitor the process.

    `reason` says why: "unsupported" (the kernel or a sandbox does not look after tokens),
    "full" (this process holds as many as it may), "stale" (the token is from before the
    machine was started, or its place is another's), "forked" (the token is that of the
    process which this one was forked from), "no_parent" (this program was not spawned with
    `liveness=True`), "not_main" (only the main thread may hold one itself).
    """

    def __init__(self, reason: str, text: str) -> None:
        number = _LIVENESS.get(reason)
        if number is None:
            super().__init__(text)
        else:
            super().__init__(number, text)
        self.reason = reason
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __reduce__(self) -> tuple[object, ...]:
        return (LivenessError, (self.reason, self._text))


_LIVENESS = {
    "unsupported": errno.ENOTSUP,
    "full": errno.EMFILE,
    "stale": errno.ESTALE,
}


class SpawnError(OSError):
    """The program could not be started, and nothing is left of it.

    Besides what every `OSError` has: `step`, the system call that failed
    ("exec", "chdir", ...). The common causes are also the built-in classes: a
    program that does not exist is a `FileNotFoundError`.
    """

    def __init__(self, errno: int, reason: str, filename: str, step: str, text: str) -> None:
        super().__init__(errno, reason, filename)
        self.step = step
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __reduce__(self) -> tuple[object, ...]:
        parts = (self.errno, self.strerror, self.filename, self.step, self._text)
        return (_spawn_error, parts)


class _NotFound(SpawnError, FileNotFoundError):
    pass


class _NotPermitted(SpawnError, PermissionError):
    pass


class _NotADirectory(SpawnError, NotADirectoryError):
    pass


class _IsADirectory(SpawnError, IsADirectoryError):
    pass


class _WouldBlock(SpawnError, BlockingIOError):
    pass


_KINDS: dict[type[OSError], type[SpawnError]] = {
    FileNotFoundError: _NotFound,
    PermissionError: _NotPermitted,
    NotADirectoryError: _NotADirectory,
    IsADirectoryError: _IsADirectory,
    BlockingIOError: _WouldBlock,
}
for _kind in _KINDS.values():
    # Users see one class: which built-in one it is as well is a detail.
    _kind.__name__ = _kind.__qualname__ = "SpawnError"


def _spawn_error(errno: int, reason: str, filename: str, step: str, text: str) -> SpawnError:
    kind = _KINDS.get(type(OSError(errno, reason)), SpawnError)
    return kind(errno, reason, filename, step, text)


for _public in (
    NoSuchProcess,
    TimeoutExpired,
    WaitTimeout,
    LivenessError,
    SpawnError,
    *_KINDS.values(),
):
    _public.__module__ = "procwright"
