"""Timeouts: seconds as the core takes them, and what is left of them."""

from __future__ import annotations

import time

from ._invalid import bad_type, bad_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._types import Seconds


def seconds(timeout: Any, name: str = "timeout") -> float | None:
    """The seconds as the core takes them, None without a limit.

    `name` is what the caller calls them. An int too large for a float becomes an infinity.
    """
    if timeout is None:
        return None
    hint = "pass seconds as a number or a timedelta, or None for no limit"
    if isinstance(timeout, (bool, str, bytes)):
        # float() takes these as well.
        raise bad_type(name, timeout, hint)
    try:
        value = float(as_number(timeout))
    except OverflowError:
        return float("inf") if timeout > 0 else 0.0
    except TypeError:
        raise bad_type(name, timeout, hint) from None
    if value != value:
        raise bad_value(name, timeout, hint)
    return value


def as_number(timeout: Any) -> Any:
    """The seconds of a timedelta, as a number; else what was given."""
    total = getattr(timeout, "total_seconds", None)
    return timeout if total is None else total()


class Deadline:
    """The moment at which a timeout is over."""

    __slots__ = ("_end",)

    def __init__(self, timeout: Seconds | None) -> None:
        left = seconds(timeout)
        self._end = None if left is None else time.monotonic() + left

    def left(self) -> float | None:
        """The seconds until then, 0 once it is over, None without a limit."""
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)


class Earlier(Deadline):
    """The earlier of two moments, of which one may not be known yet."""

    __slots__ = ("_both",)

    def __init__(self, one: Deadline, other: Deadline) -> None:
        super().__init__(None)
        self._both = one, other

    def left(self) -> float | None:
        one, other = self._both
        return sooner(one.left(), other.left())


def sooner(seconds: float | None, left: float | None) -> float | None:
    """The lesser of both, of which None is more than any."""
    if seconds is None or left is None:
        return left if seconds is None else seconds
    return min(seconds, left)
