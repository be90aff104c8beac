"""Timeouts: seconds as the core takes them, and what is left of them."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def seconds(timeout: Any) -> Any:
    """The seconds as the core takes them. An int too large for a float becomes an infinity."""
    if not isinstance(timeout, int):
        return timeout
    try:
        return float(timeout)
    except OverflowError:
        return float("inf") if timeout > 0 else 0.0


def checked_seconds(timeout: Any) -> float | None:
    """`seconds`, with a `TypeError` for what is no number."""
    value: Any = seconds(timeout)
    if value is None or hasattr(value, "__float__") or hasattr(value, "__index__"):
        return value  # type: ignore[no-any-return]
    raise TypeError(f"timeout is {timeout!r}: pass seconds as a number, or None for no limit")


class Deadline:
    """The moment at which a timeout is over."""

    __slots__ = ("_end",)

    def __init__(self, timeout: float | None) -> None:
        left = seconds(timeout)
        self._end = None if left is None else time.monotonic() + left

    def left(self) -> float | None:
        """The seconds until then, 0 once it is over, None without a limit."""
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)
