"""Sleeps of event loops: until something has come, and past a cancellation."""

from __future__ import annotations

import errno
import threading

import anyio

from . import _core
from ._async import readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Any, TypeVar

    _T = TypeVar("_T")


async def first(members: Iterable[_core._Member], seconds: float | None) -> list[int]:
    """Sleeps until one of `members` has come or the time is up. The places of those that have.

    Others of the loop always have their turn: a child that never stops talking must not have
    the loop to itself.
    """
    waiting = _core.WaitSet(seconds)
    done: list[int] = []
    try:
        for place, member in enumerate(members):
            waiting.add(place, member, "exited")
        while True:
            await readable(waiting.fileno(), waiting.remaining())
            if waiting.poll(0, done) or waiting.remaining() == 0:
                return done
    finally:
        waiting.close()


async def undisturbed(wait: Callable[[], Awaitable[object]]) -> BaseException | None:
    """Awaits what `wait` gives, again and again if it is cancelled, until it is done.

    For what is over soon in any case, and may be awaited again. Gives the cancellation that came
    meanwhile, which the caller has to raise: no scope of anyio's shields from asyncio's own.
    """
    cancelled: BaseException | None = None
    is_over = False
    with anyio.CancelScope(shield=True):
        while not is_over:
            try:
                await wait()
                is_over = True
            except anyio.get_cancelled_exc_class() as error:
                cancelled = error
    return cancelled


class ThreadCall:
    """A call on a thread of its own, for what has to block.

    The thread is none of the event loop's pools, where it might have to wait for its turn. Raises
    `OSError` where none can be had: in its place the loop would stand still, perhaps for ever.
    """

    def __init__(self, name: str, call: Callable[[], Any]) -> None:
        self._call = call
        self._value: Any = None
        self._error: BaseException | None = None
        #: True while somebody waits by the descriptor of `over`.
        self._is_watched = False
        #: Cancelled, which wakes whoever waits for it, once the call is over.
        self.over = _core.Cancel()
        # The interpreter does not wait for a daemon.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            raise OSError(
                errno.EAGAIN,
                "no thread can be had: this process, its user or the container has as many as it "
                "may",
                name,
            ) from None

    def _run(self) -> None:
        try:
            self._value = self._call()
        except BaseException as error:
            self._error = error
        finally:
            self.over.cancel()

    async def wait(self) -> None:
        """Waits until it is over. May be cancelled, and called again; the call goes on."""
        while not self.over.cancelled:
            if self._is_watched:
                # An event loop has room for one who waits for a descriptor.
                await first([self.over], None)
                continue
            self._is_watched = True
            try:
                await readable(self.over.readiness_fd(), None)
            finally:
                self._is_watched = False

    async def outlast(self) -> BaseException | None:
        """Waits until it is over, past cancellations: one that came, for the caller to raise.
        For a call that is over soon."""
        try:
            return await undisturbed(self.wait)
        except OSError:
            # The event loop has no place for it: it waits as a whole.
            self.join()
            return None

    def join(self) -> None:
        """Waits until it is over. Blocks."""
        if not self.over.cancelled:
            self._thread.join()

    def value(self) -> Any:
        """What the call gave. Raises what it raised."""
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self._value


async def in_thread(name: str, call: Callable[[], _T]) -> _T:
    """What `call` gives, which blocks and is over soon: a cancellation comes afterwards."""
    value, cancelled = await outlasted(name, call)
    if cancelled is not None:
        raise cancelled
    return value


async def outlasted(name: str, call: Callable[[], _T]) -> tuple[_T, BaseException | None]:
    """What `call` gives, which blocks and is over soon, and the cancellation that came
    meanwhile, which the caller has to raise."""
    try:
        thread = ThreadCall(name, call)
    except OSError:
        # No descriptor or thread can be had. A stop must come nevertheless: the loop waits for it,
        # by the grace and 2 s at most.
        return call(), None
    cancelled = await thread.outlast()
    try:
        return thread.value(), cancelled
    except BaseException as error:
        if cancelled is not None:
            raise cancelled from error
        raise
