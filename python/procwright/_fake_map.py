"""A map that is played: one command after the other, in their order, in no time.

A clock of its own goes by: each command begins where the first of the places is free.
"""

from __future__ import annotations

import heapq
import os
import threading

from . import _core
from ._invalid import InvalidValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ._core import RawResult
    from ._types import RawEnded


class FakeMap:
    """What stands in for the core's map.

    `check` refuses the options of a command as the core would; `ask` answers it: its place, its
    options.
    """

    def __init__(
        self,
        rules: Mapping[str, Any],
        next: Callable[[], dict[str, Any]],
        check: Callable[[dict[str, Any]], None],
        ask: Callable[[int, dict[str, Any]], RawResult],
    ) -> None:
        self._rules = rules
        self._next = next
        self._check = check
        self._ask = ask
        # Commands are answered one at a time, whatever thread asks.
        self._one = threading.RLock()
        self._taken = 0
        self._succeeded = 0
        self._failed = 0
        self._all_taken = False
        self._closed = False
        #: When each place is free, a heap.
        self._free = [0.0] * (rules["parallel"] or os.cpu_count() or 1)
        self._stopped_by: str | None = None

    def take_cause(self) -> None:
        """None is under way when another fails."""

    def next(self) -> RawEnded | None:
        with self._one:
            cancel = self._rules["cancel"]
            if cancel is not None and cancel.cancelled:
                self._stopped_by = self._stopped_by or "cancel"
            deadline = self._rules["deadline"]
            if deadline is not None and self._free[0] >= max(deadline, 0.0):
                self._stopped_by = self._stopped_by or "deadline"
            if self._closed or self._all_taken or self._stopped_by is not None:
                return None
            try:
                options = self._next()
            except StopIteration:
                self._all_taken = True
                return None
            except BaseException:
                self._stopped_by = "error"
                raise
            index = self._taken
            self._taken += 1
            if deadline is not None:
                left = deadline - self._free[0]
                timeout = options["timeout"]
                options["timeout"] = left if timeout is None else min(timeout, left)
            return self._answered(index, options)

    def _answered(self, index: int, options: dict[str, Any]) -> RawEnded:
        try:
            self._check(options)
        except InvalidValue as error:
            return self._not_started(index, error)
        except BaseException:
            # As a descriptor that is not open, for which no command was to blame.
            self._stopped_by = "error"
            raise
        try:
            raw = self._ask(index, options)
        except (InvalidValue, OSError) as error:
            return self._not_started(index, error)
        heapq.heapreplace(self._free, self._free[0] + raw["duration_s"])
        status = raw["status"]
        self._count(raw["reason"] == "finished" and status[1] == 0 and raw["error"] is None)
        return index, "ran", raw, raw["summary"], None

    def _not_started(self, index: int, error: Exception) -> RawEnded:
        self._count(False)
        return index, "not_started", error, str(error), None

    def _count(self, ok: bool) -> None:
        self._succeeded += ok
        self._failed += not ok
        most = self._rules["stop_after_failures"]
        if most is not None and self._failed >= most:
            self._stopped_by = "failures"

    def stop(self) -> None:
        self._stopped_by = self._stopped_by or "cancel"

    def close(self) -> None:
        self._closed = True

    def progress(self) -> dict[str, Any]:
        return {
            "taken": self._taken,
            "running": 0,
            "succeeded": self._succeeded,
            "failed": self._failed,
            # None is under way when another fails.
            "stopped": 0,
            "succeeded_before": 0,
            "failed_before": 0,
            "unknown": 0,
            "all_taken": self._all_taken,
            "stopped_by": self._stopped_by,
        }


def really(options: dict[str, Any]) -> RawResult:
    """Runs a command of a map, or a stage, that a test lets through."""
    return _core.run(options)
