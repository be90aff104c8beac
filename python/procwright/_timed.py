"""Reads of a stream that have a time limit."""

from __future__ import annotations

from . import _core
from ._timeout import Deadline, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from ._types import Seconds

    _T = TypeVar("_T")


def within(
    timeout: Seconds | None, stream: Any, what: str, look: Callable[[bool], _T | None]
) -> _T:
    """What `look` gives: it is called with whether more has come, and gives None until it is
    content. Raises `WaitTimeout`, and what was looked at stays."""
    deadline = Deadline(timeout)
    found = look(False)
    while found is None:
        left = deadline.left()
        found = look(has_more(stream.readiness_fd(), left))
        if found is None and left == 0:
            from ._stream_errors import read_timeout

            look_at = look_at_child(stream, timeout)
            doing = "" if look_at is None else look_at()
            raise read_timeout(f"{what} from {stream.label}", timeout, stream, doing)
    return found


def look_at_child(stream: Any, timeout: Seconds | None) -> Callable[[], str] | None:
    """What gives the lines that say what the child of a stream waits for or does, whose reader has
    waited for so long in vain; None if nobody is to pay for a look."""
    keeper: Any = getattr(getattr(stream, "buffer", stream), "_keeper", None)
    look: Callable[[], str] | None = keeper and keeper.look(seconds(timeout))
    return look


def has_more(fd: int, left: float | None) -> bool:
    """Sleeps until there is more or the time is up."""
    waiting = _core.WaitSet(left)
    done: list[int] = []
    try:
        waiting.add(0, fd, "exited")
        waiting.wait(0, done)
    finally:
        waiting.close()
    return bool(done)


def line_within(stream: Any, peek_line: Callable[[int], tuple[str, Any]], timeout: Seconds) -> Any:
    """A line with its end, at the end of all the rest without one, and then None."""
    looked_at = 0

    def look(_has_more: bool) -> tuple[Any] | None:
        nonlocal looked_at
        kind, data = peek_line(looked_at)
        if kind != "part":
            return (data,)
        if data is not None:
            looked_at = len(data)
        return None

    return within(timeout, stream, "a line", look)[0]
