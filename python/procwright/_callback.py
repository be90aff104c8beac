"""Callbacks of a child: the thread that calls back with each line, and what they raise."""

from __future__ import annotations

import threading

from . import _core
from ._words import said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from typing import Any

    from ._timeout import Deadline


def log_raised(callback: str, error: BaseException, outcome: str) -> None:
    """Logs what a callback has raised, with its traceback; `outcome` says what follows."""
    import logging

    logging.getLogger("procwright").error(
        "%s has raised %s%s",
        callback,
        said(error),
        outcome,
        exc_info=(type(error), error, error.__traceback__),
    )


class Failures:
    """What the callbacks of a child have raised, until a call of that tells it.

    No call of the host's is under way where a callback runs, and perhaps none follows. So it
    is logged at once, and raised by the next call that asks how the child does.
    """

    __slots__ = ("_command", "_errors")

    def __init__(self, command: str) -> None:
        self._command = command
        # A list is appended to and taken from by one step each.
        self._errors: list[BaseException] = []

    def add(self, callback: str, error: BaseException, outcome: str) -> None:
        """Notes what `callback` has raised; `outcome` says what follows."""
        # First: who has seen it in the log has it raised by the next call.
        self._errors.append(error)
        log_raised(f"{callback} of {self._command}", error, outcome)

    def raise_next(self) -> None:
        """Raises the first that no call has told."""
        if self._errors:
            raise self._errors.pop(0)

    def of_tee(self, tap: Callable[[Any], object]) -> Callable[[Any], object]:
        """The tap of a copy, whose exception is noted here and ends it."""
        has_failed = False

        def noting(chunk: Any) -> None:
            nonlocal has_failed
            if has_failed:
                return
            try:
                tap(chunk)
            except BaseException as error:
                has_failed = True
                self.add("tee", error, "; the file gets no more")

        return noting

    def of_event_hook(self, hook: Callable[[Any], object]) -> Callable[[Any], object]:
        """The hook for events, whose exceptions are noted here."""

        def noting(event: Any) -> None:
            try:
                hook(event)
            except BaseException as error:
                self.add("on_event", error, "; it is called with the next event as before")

        return noting


#: Seconds without a line, once the child has ended: other processes hold its output then.
_GRACE_S = 1.0


class LineCaller:
    """A thread that reads a stream and calls back with each line.

    It is started before the program whose stream it will be: a program must not run without
    anybody to read its output because no thread can be had.
    """

    def __init__(
        self,
        name: str,
        callback: Callable[[Any], object],
        max_length: int | None,
        too_long_fails: bool,
        failures: Failures,
    ) -> None:
        #: The stream, None before `begin`.
        self.stream: Any = None
        self._name = name
        self._callback = callback
        self._failures = failures
        self._max_length = max_length
        self._fails = too_long_fails
        self._lines = 0
        self._calling = False
        #: Whether it has read and called for the last time.
        self._is_over = False
        self._over: _core.Cancel | None = None
        self._begun = threading.Event()
        # The thread ends with the stream. The interpreter does not wait for a daemon.
        self._thread = threading.Thread(target=self._run, daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            # Python does not say why, and the system has one reason.
            raise _no_thread() from None

    def begin(self, stream: Any) -> None:
        """Has it read this stream."""
        self.stream = stream
        self._thread.name = stream.name
        self._begun.set()

    def leave(self) -> None:
        """Has it end, for the program did not start."""
        self._begun.set()

    def over(self) -> _core.Cancel:
        """Cancelled, which wakes whoever waits for it, once it has called for the last time."""
        if self._over is None:
            self._over = _core.Cancel()
        # Looked at behind the assignment, as the thread looks at that behind its own: one of
        # both sees the other.
        if self._is_over:
            self._over.cancel()
        return self._over

    def _run(self) -> None:
        try:
            self._call_with_all()
        finally:
            self._is_over = True
            if self._over is not None:
                self._over.cancel()

    def _call_with_all(self) -> None:
        self._begun.wait()
        if self.stream is None:
            return
        try:
            for line in self._read_lines():
                self._calling = True
                self._callback(line)
                self._calling = False
                self._lines += 1
        except BaseException as error:
            from ._stream_errors import StreamClosed

            # The child learns so that its output is not read any more.
            closed = self.stream.closed
            self.stream.close()
            if not (isinstance(error, StreamClosed) and closed):
                outcome = "; the stream is closed, and no further line is called with"
                self._failures.add(self._name, error, outcome)

    def _read_lines(self) -> Iterator[Any]:
        longest = self._max_length
        if longest is None:
            yield from self.stream
            return
        # One more tells a line that is too long from one that just fits.
        most = longest + 1 if self._fails else longest
        while line := self.stream.readline(most):
            if len(line) > longest:
                from ._stream_errors import LineTooLong

                raise LineTooLong(self.stream.name, longest)
            yield line

    def finish(self, deadline: Deadline) -> bool:
        """Waits until all lines were called back with.

        Once the child has ended it does not wait for other processes that hold the output
        and write nothing. False if the time comes first. A call does not wait for its own end.
        """
        steps = self.finishing(deadline)
        try:
            while True:
                self._thread.join(next(steps))
        except StopIteration as over:
            is_over: bool = over.value
            return is_over

    def finishing(self, deadline: Deadline) -> Generator[float, None, bool]:
        """`finish` without its sleeps, which are asked for: for so many seconds at most."""
        here = threading.current_thread()
        # A fork has not that thread.
        while not self._is_over and self._thread.is_alive() and self._thread is not here:
            before = self._lines
            left = deadline.left()
            yield _GRACE_S if left is None else min(left, _GRACE_S)
            if left is not None and left < _GRACE_S and not self._is_over:
                return False
            figures = self.stream.figures
            lag = 0 if figures is None else figures.lag_bytes
            came = before != self._lines or self._calling
            if not came and lag == 0 and not self.stream._is_held():
                break
        return True


def _no_thread() -> OSError:
    import errno
    import os

    from ._errors import _spawn_error

    reason = os.strerror(errno.EAGAIN)
    return _spawn_error(
        errno.EAGAIN,
        reason,
        "",
        "pthread_create",
        f"cannot call back with lines: pthread_create: {reason}\n  hint: this user, or the "
        "container, has as many processes and threads as it may: raise RLIMIT_NPROC (ulimit -u) "
        "or pids.max, or end some",
    )
