"""Waiting for many: any of them, all, or the first few."""

from __future__ import annotations

import enum
import signal
from typing import Generic, TypeVar

from . import _core
from ._arguments import callback as checked_callback
from ._arguments import items
from ._errors import WaitTimeout
from ._invalid import InvalidValue, bad_type, bad_value
from ._record import Status
from ._timeout import seconds
from ._waiting import Waiting
from ._watched import watched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator
    from typing import Any, Literal

    from ._types import Seconds

# No bound: the type of a list of different things is `object` to checkers,
# which is in none.
T = TypeVar("T")


class Waited(tuple[list[T], list[T]]):
    """The result of a wait: `done, pending = wait(...)`.

    Both have the very objects that were given: `done` in the order in which they
    ended, `pending` in the order in which they were given.
    """

    # A NamedTuple cannot say of what its lists are before Python 3.11.
    __slots__ = ()
    __match_args__ = ("done", "pending")

    def __new__(cls, done: list[T], pending: list[T]) -> Waited[T]:
        return tuple.__new__(cls, (done, pending))

    def __getnewargs__(self) -> tuple[list[T], list[T]]:
        return self[0], self[1]

    @property
    def done(self) -> list[T]:
        """Those that have ended."""
        return self[0]

    @property
    def pending(self) -> list[T]:
        """Those that have not."""
        return self[1]

    def __repr__(self) -> str:
        return f"Waited(done={self.done!r}, pending={self.pending!r})"


def wait(
    procs: Iterable[T],
    mode: Literal["any", "all"] | int = "all",
    event: Literal["exited", "reaped"] = "exited",
    timeout: Seconds | None = None,
    callback: Callable[[T], object] | None = None,
) -> Waited[T]:
    """Waits until all of them have ended, or any, or so many. Never polls.

    procs
        Processes: a `Process`, or what can be made one (see there). Besides, all
        that has `readiness_fd()`, such as a `Cancel`, or `fileno()`, such as a
        socket or a connection of multiprocessing: done once it is readable.
    mode
        "all", "any" (one, and those that have ended by then), or how many (all, if there
        are fewer).
    event
        "exited", or "reaped": their parent has collected their status. A child of
        ours that is not reaped lasts until the timeout.
    timeout
        Seconds. 0 or less has expired, infinity and None never do. When the time
        is up, the result has those that have ended; nothing is raised.
    callback
        Called with each of them when it has ended. What it raises ends the wait.

    A process that has ended before counts, and what is given twice counts once. An
    object whose process was reaped before, such as a `Popen`, has ended. A bare number
    that no process has raises `NoSuchProcess`: it does not tell whether there ever was
    one.

    To be called from any thread. Signal handlers run as usual on the main one: if
    one raises, as Ctrl-C does, that ends the wait; else it goes on, until the same
    deadline.
    """
    checked_callback("callback", callback)
    waiting = Waiting(procs, watched, mode, event, timeout)
    waiting.complete(callback)
    return _waited(waiting)


async def wait_async(
    procs: Iterable[T],
    mode: Literal["any", "all"] | int = "all",
    event: Literal["exited", "reaped"] = "exited",
    timeout: Seconds | None = None,
) -> Waited[T]:
    """Waits as `wait` does, for asyncio and trio.

    Cancelling it leaves nothing behind: no reader with the loop, no descriptor.
    """
    return await wait_async_calling(procs, mode, event, timeout, None)


async def wait_async_calling(
    procs: Iterable[T],
    mode: Literal["any", "all"] | int,
    event: Literal["exited", "reaped"],
    timeout: Seconds | None,
    callback: Callable[[T], object] | None,
) -> Waited[T]:
    """`wait_async`, with a callback."""
    waiting = Waiting(procs, watched, mode, event, timeout)
    await waiting.complete_async(callback)
    return _waited(waiting)


def _waited(waiting: Waiting) -> Waited[Any]:
    done = [waiting.objects[place] for place in waiting.done]
    return Waited(done, waiting.pending())


def as_completed(
    procs: Iterable[T],
    event: Literal["exited", "reaped"] = "exited",
    timeout: Seconds | None = None,
) -> Iterator[T]:
    """Iterates over them as they end.

    They are watched from this call on, and the timeout runs from it. When it has
    come before all have ended, the next step raises `WaitTimeout`, a `TimeoutError`
    with the others in `pending`, and so does every later one.
    """
    return _Completed(Waiting(procs, watched, "any", event, timeout), timeout)


def as_completed_async(
    procs: Iterable[T],
    event: Literal["exited", "reaped"] = "exited",
    timeout: Seconds | None = None,
) -> AsyncIterator[T]:
    """Iterates as `as_completed` does, for `async for` on asyncio and trio.

    Once a step was cancelled, it is over.
    """
    return _CompletedAsync(Waiting(procs, watched, "any", event, timeout), timeout)


class _CompletedBase(Generic[T]):
    """Hands out those that have ended, one after the other."""

    # Generators are not used: an asynchronous one that is left before its end keeps its
    # descriptors until the loop gets round to it.
    __slots__ = ("_given", "_is_late", "_timeout", "_waiting")

    def __init__(self, waiting: Waiting, timeout: Seconds | None) -> None:
        self._waiting = waiting
        self._timeout = timeout
        self._given = 0
        self._is_late = False

    def _over(self) -> bool:
        over = self._given == len(self._waiting.objects)
        if over:
            self._waiting.close()
        return over

    def _has_next(self) -> bool:
        return self._given < len(self._waiting.done)

    def _give(self) -> T:
        self._given += 1
        one: T = self._waiting.objects[self._waiting.done[self._given - 1]]
        return one

    def _timeout_error(self) -> WaitTimeout:
        # Later steps are too late as well. So nothing is kept open, also where the exception
        # is kept, and with it this object.
        self._is_late = True
        self._waiting.close()
        pending = self._waiting.pending()
        what = f"{len(pending)} of {len(self._waiting.objects)} processes"
        return WaitTimeout(what, self._timeout, tuple(pending))


class _Completed(_CompletedBase[T]):
    __slots__ = ()

    def __iter__(self) -> _Completed[T]:
        return self

    def __next__(self) -> T:
        if not self._has_next():
            if self._over():
                raise StopIteration
            if self._is_late or not self._waiting.sleep(by_one=True):
                raise self._timeout_error()
            self._waiting.linger(self._waiting.done[self._given :])
        return self._give()


class _CompletedAsync(_CompletedBase[T]):
    __slots__ = ()

    def __aiter__(self) -> _CompletedAsync[T]:
        return self

    async def __anext__(self) -> T:
        from ._async import checkpoint

        await checkpoint()
        if not self._has_next():
            if self._over():
                raise StopAsyncIteration
            if self._is_late:
                raise self._timeout_error()
            try:
                in_time = await self._waiting.sleep_async()
                await self._waiting.linger_async(self._waiting.done[self._given :])
            except BaseException:
                # Cancelled. The traceback would keep every descriptor open.
                self._waiting.close()
                raise
            if not in_time:
                raise self._timeout_error()
        return self._give()


# Checkers of types know enums whose members are written out.
_enum: Any = enum.IntEnum
#: The `returncode` after a signal, as psutil sets it: -15 that shows itself as SIGTERM.
Negsignal: Any = _enum(
    "Negsignal", {one.name: -one.value for one in signal.Signals}, module=__name__
)


def wait_procs(
    procs: Iterable[T],
    timeout: Seconds | None = None,
    callback: Callable[[T], object] | None = None,
) -> tuple[list[T], list[T]]:
    """`psutil.wait_procs`, without polling: `gone, alive = wait_procs(procs)`.

    Waits until all have ended, or for the timeout. Each that is gone gets the
    attribute `returncode`, and then `callback` is called with it.

    Other than psutil's: a zombie is gone; `returncode` is known for strangers too
    (Linux 6.15), so is None less often; nothing is reaped that is not the object's
    own, so a child of ours stays a zombie until its starter waits for it; and
    both lists keep an order: of ending, and as given.
    """
    left = seconds(timeout)
    if left is not None and left < 0:
        raise bad_value("timeout", timeout, "pass 0 or more seconds, or None")
    checked_callback("callback", callback)
    waiting = Waiting(_hashed(procs), watched, "all", "exited", timeout)
    called = 0
    try:
        waiting.poll()
        while True:
            news = waiting.done[called:]
            waiting.linger(news)
            for place in news:
                called += 1
                one = waiting.objects[place]
                _note(one, waiting.handle(place))
                if callback is not None:
                    callback(one)
            if waiting.enough() or not waiting.sleep(by_one=True):
                break
    finally:
        waiting.close()
    gone, alive = _waited(waiting)
    return gone, alive


def _note(process: Any, handle: _core.ProcessHandle | None) -> None:
    """Sets `returncode`, as psutil does."""
    if not hasattr(process, "is_running"):
        # A Popen: it sets its own, by reaping, and would never reap if we did.
        poll = getattr(process, "poll", None)
        if poll is not None:
            poll()
        return
    status = None if handle is None else handle.exit()
    if status is not None:
        process.returncode = _named(Status(*status).returncode)
    elif getattr(process, "returncode", None) is None:
        # The process was reaped before. What was noted then stays, and psutil itself keeps
        # the status of a process that it has reaped under this name.
        kept = getattr(process, "_exitcode", None)
        process.returncode = kept if isinstance(kept, int) else None


def _named(returncode: int | None) -> int | None:
    """The exit code of psutil's: a signal that has a name is a member of an enum."""
    try:
        return returncode if returncode is None else Negsignal(returncode)
    except ValueError:
        return returncode


def _hashed(procs: Any) -> list[Any]:
    """Each of them once: psutil's are equal if they are of one process."""
    hint = "pass a list of processes"
    try:
        return list(dict.fromkeys(items("procs", procs, hint)))
    except InvalidValue:
        raise
    except TypeError:
        # One that has no hash is no process.
        raise bad_type("procs", procs, hint) from None
