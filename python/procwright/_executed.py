"""A map whose commands run in an executor: `map(..., executor=...)`.

It has what the core's map has: `next`, `take_cause`, `stop`, `close` and `progress`.
"""

from __future__ import annotations

import os
import threading
import time
from functools import partial

from . import _core
from ._arguments import instance
from ._invalid import InvalidValue
from ._wait import wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Executor, Future
    from typing import Any, Literal

    from ._types import RawEnded


def check(executor: Any, journal: object, on_line: object) -> None:
    """Refuses what cannot be an executor of a map."""
    from concurrent.futures import Executor, ThreadPoolExecutor

    instance("executor", executor, Executor, "pass a concurrent.futures.Executor, or None")
    if journal is not None:
        raise InvalidValue(
            "journal and executor are both given: a journal is kept by the map's own threads "
            "alone, so leave one of them out"
        )
    if on_line is not None and not isinstance(executor, ThreadPoolExecutor):
        raise InvalidValue(
            "on_line is called by threads of this process, and executor has others: pass a "
            "ThreadPoolExecutor, or leave one of them out"
        )


def run_there(options: dict[str, Any]) -> Any:
    """Runs a command where the executor has its workers."""
    return _core.run(options)


class ExecutedMap:
    """A map in an executor. Its end, with the last reference, is that of the map."""

    def __init__(
        self, rules: Mapping[str, Any], next: Callable[[], dict[str, Any]], executor: Executor
    ) -> None:
        self._shared = _Shared(rules, next, executor)
        # The caller's iterable may block for ever.
        threading.Thread(target=self._shared.feed, name="procwright-map", daemon=True).start()

    def next(self) -> RawEnded | None:
        return self._shared.take()

    def take_cause(self) -> RawEnded | None:
        return self._shared.cause()

    def stop(self) -> None:
        self._shared.end("cancel")

    def close(self) -> None:
        self._shared.close()

    def progress(self) -> dict[str, Any]:
        return self._shared.progress()

    def __del__(self) -> None:
        self._shared.end(None)


class _Shared:
    """What the consumer, the thread that takes commands and the workers share."""

    def __init__(
        self, rules: Mapping[str, Any], next: Callable[[], dict[str, Any]], executor: Executor
    ) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._next = next
        self._executor = executor
        workers = getattr(executor, "_max_workers", None) or os.cpu_count() or 1
        self._parallel: int = rules["parallel"] or workers
        ahead = rules["ahead"]
        self._ahead: int = max(self._parallel, 100) if ahead is None else ahead
        self._ordered: bool = rules["ordered"]
        self._most_failures: int | None = rules["stop_after_failures"]
        seconds = rules["deadline"]
        never = seconds is None or seconds == float("inf")
        self._deadline: float | None = None if never else time.monotonic() + seconds
        #: Ends runs, which only threads of this process can be given.
        self._own = _core.Cancel()
        self._in_this_process = isinstance(executor, ThreadPoolExecutor)
        # Taken again by a callback of a future that is cancelled under it.
        self._changed = threading.Condition(threading.RLock())
        self._results: dict[int, RawEnded] = {}
        self._futures: dict[int, Future[Any]] = {}
        self._next_end = self._next_out = 0
        self._taken = self._running = self._succeeded = self._failed = self._stopped = 0
        self._all_taken = self._ended = self._closed = False
        self._stopped_by: str | None = None
        #: Place of the failure for which it was stopped.
        self._cause: int | None = None
        self._error: BaseException | None = None
        if rules["cancel"] is not None:
            watch = partial(self._watch, rules["cancel"])
            threading.Thread(target=watch, name="procwright-map-cancel", daemon=True).start()

    def _watch(self, cancel: _core.Cancel) -> None:
        wait([cancel, self._own], mode="any")
        if cancel.cancelled:
            self.end("cancel")

    def feed(self) -> None:
        """Takes commands and has them run, on a thread of its own."""
        while self._wait_for_room():
            try:
                options = self._next()
            except StopIteration:
                with self._changed:
                    self._all_taken = True
                    self._changed.notify_all()
                break
            except BaseException as error:
                self._fail(error)
                break
            self._submit(options)
        # The iterable may hold what its owner waits for.
        del self._next

    def _wait_for_room(self) -> bool:
        with self._changed:
            while True:
                self._look_at_the_deadline()
                if self._ended:
                    return False
                waiting = self._running + len(self._results)
                if self._running < self._parallel and waiting < self._parallel + self._ahead:
                    return True
                self._changed.wait(self._left())

    def _left(self) -> float | None:
        """Seconds until the deadline, None for ever."""
        if self._deadline is None or self._ended:
            return None
        return max(self._deadline - time.monotonic(), 0.0)

    def _look_at_the_deadline(self) -> None:
        if self._left() == 0 and not self._is_over():
            # What runs has a timeout that comes no later.
            self._end("deadline", stop=False)

    def _submit(self, options: dict[str, Any]) -> None:
        with self._changed:
            if self._ended:
                # Asked for before the end, and come behind it.
                return
            left = self._left()
            if left is not None:
                own = options["timeout"]
                options["timeout"] = left if own is None else min(own, left)
            if self._in_this_process:
                options["cancel"] = self._own
            index = self._taken
            self._taken += 1
            self._running += 1
        try:
            # Without the lock: an executor that breaks calls `_done` with locks of its own held.
            future = self._executor.submit(run_there, options)
        except BaseException as error:
            with self._changed:
                self._taken -= 1
                self._running -= 1
            self._fail(error)
            return
        with self._changed:
            self._futures[index] = future
            if self._ended:
                future.cancel()
        future.add_done_callback(partial(self._done, index))

    def _done(self, index: int, future: Future[Any]) -> None:
        kind, parts, line = _outcome(future)
        ok = (
            kind == "ran"
            and parts["reason"] == "finished"
            and parts["status"][1] in (0, *parts["ok_codes"])
        )
        if kind == "ran":
            is_stopped = parts["reason"] == "cancelled"
        else:
            from ._run_errors import Cancelled

            is_stopped = isinstance(parts, Cancelled)
        with self._changed:
            self._futures.pop(index, None)
            self._running -= 1
            self._succeeded += ok
            self._stopped += is_stopped
            self._failed += not (ok or is_stopped)
            place = index if self._ordered else self._next_end
            self._next_end += 1
            if self._most_failures is not None and self._failed >= self._most_failures:
                if self._stopped_by is None and not self._is_over():
                    # Known before others end, as futures do in the call that stops them.
                    self._cause = index
                self._end("failures", stop=True)
            cause = self._cause if is_stopped or self._cause == index else None
            self._results[place] = index, kind, parts, line, cause
            self._changed.notify_all()

    def cause(self) -> RawEnded | None:
        """The failure for which it was stopped, if its turn has not come."""
        with self._changed:
            waiting = (one for one in self._results.values() if one[0] == self._cause)
            return next(waiting, None)

    def take(self) -> RawEnded | None:
        """Waits for the next result; None at the end."""
        with self._changed:
            while True:
                self._look_at_the_deadline()
                come = None if self._closed else self._results.pop(self._next_out, None)
                if come is not None:
                    self._next_out += 1
                    self._changed.notify_all()
                    return come
                if self._is_over():
                    error, self._error = self._error, None
                    if error is not None and not self._closed:
                        raise error
                    return None
                try:
                    self._changed.wait(self._left())
                except BaseException:
                    # A handler has raised, as that of Ctrl-C does.
                    self._end("cancel", stop=True)
                    self._wait_for_the_end()
                    raise

    def end(self, by: str | None) -> None:
        """Starts nothing more, and stops what can be stopped."""
        with self._changed:
            self._end(by, stop=True)

    def _end(self, by: str | None, stop: bool) -> None:
        if not self._is_over():
            self._stopped_by = self._stopped_by or by
        self._ended = True
        if stop:
            self._own.cancel()
        for future in list(self._futures.values()):
            # Does nothing to one that runs.
            future.cancel()
        self._changed.notify_all()

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._error = self._error or error
            self._end("error", stop=True)

    def _is_over(self) -> bool:
        return (self._ended or self._all_taken) and self._running == 0

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._end("cancel", stop=True)
            self._wait_for_the_end()

    def _wait_for_the_end(self) -> None:
        while self._running:
            self._changed.wait()

    def progress(self) -> dict[str, Any]:
        with self._changed:
            return {
                "taken": self._taken,
                "running": self._running,
                "succeeded": self._succeeded,
                "failed": self._failed,
                "stopped": self._stopped,
                "succeeded_before": 0,
                "failed_before": 0,
                "unknown": 0,
                "all_taken": self._all_taken,
                "stopped_by": self._stopped_by,
            }


def _outcome(future: Future[Any]) -> tuple[Literal["ran", "not_started"], Any, str]:
    """What became of a command: what it is, its parts, and its line."""
    if future.cancelled():
        from ._run_errors import _cancelled_before

        text = "cancelled before it was started"
        return "not_started", _cancelled_before(text), text
    error = future.exception()
    if error is not None:
        # It could not be started, or the place where it ran has failed.
        return "not_started", error, str(error) or type(error).__name__
    raw = future.result()
    return "ran", raw, raw["summary"]
