"""Who holds the outputs of a program that has ended, told while an event loop goes on."""

from __future__ import annotations

import contextlib
import sys
import threading

from ._aio_sleep import ThreadCall, first, undisturbed
from ._timeout import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds for who is just being told, when what waits for the outputs is over.
_TOLD_WITHIN_S = 0.5


class Held:
    """Tells who holds the outputs of a program that has ended, on a thread: the look takes a
    while, and so may what it is told to. Nothing is told any more once the wait for them is over.

    `tell` looks, and tells if what it is called with then says so.
    """

    def __init__(self, tell: Callable[[Callable[[], bool]], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._is_over = self._is_telling = False
        self._call: ThreadCall | None = None
        # Where no thread or descriptor can be had, nobody is told.
        with contextlib.suppress(OSError):
            self._call = ThreadCall("procwright-held", self._look)

    def _begins(self) -> bool:
        """Whether it is still to be told, which then is waited for."""
        with self._lock:
            self._is_telling = not self._is_over
        return self._is_telling

    def _look(self) -> None:
        try:
            self._tell(self._begins)
        except Exception:
            # As of any thread: a run that goes on has nobody to raise it to.
            told = threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread()))
            threading.excepthook(told)

    def silence(self) -> bool:
        """Has no telling begin any more. True if one is under way, or was."""
        with self._lock:
            self._is_over = True
            return self._is_telling

    async def end(self) -> None:
        """Has nothing be told any more: what is being told is waited for, past a cancellation,
        which comes then. Not for ever: a listener that blocks holds up no deadline."""
        call = self._call
        if not self.silence() or call is None or call.over.cancelled:
            return
        time = Deadline(_TOLD_WITHIN_S)
        cancelled = None
        # Where the event loop has no place for it nobody waits.
        with contextlib.suppress(OSError):
            cancelled = await undisturbed(lambda: first([call.over], time.left()))
        if cancelled is not None:
            raise cancelled
