"""Whole calls of the core's on event loops, each on a thread for as long as it lasts."""

from __future__ import annotations

import atexit
import contextlib
import os

from . import _core
from ._aio_sleep import ThreadCall, first
from ._errors import _spawn_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _T = TypeVar("_T")

#: The calls that are not over, by the `id` of each: the interpreter does not wait for a daemon, so
#: it has to stop these itself. A dictionary is changed and listed by one step each, whatever other
#: threads do.
_calls: dict[int, tuple[_core.Cancel, ThreadCall]] = {}


async def on_thread(
    call: Callable[[_core.Cancel], _T],
    theirs: _core.Cancel | None,
    result: Callable[[Callable[[], _T]], Any],
) -> _T:
    """What `call` gives, which is ended by the `Cancel` that it is called with, or by `theirs`.

    Cancelled, it is ended and waited for; then the cancellation goes on, with the `result` of what
    it gave or raised.
    """
    own = _core.Cancel()
    if theirs is not None and theirs.cancelled:
        # It was cancelled before it began: then nothing is started.
        own = theirs
    pid = os.getpid()
    try:
        work = ThreadCall("procwright-run", lambda: call(own))
    except BlockingIOError as error:
        # As the core says it of a thread that it cannot have.
        reason, name = str(error.strerror), str(error.filename)
        text = f"cannot run it on an event loop: thread: {reason}"
        raise _spawn_error(error.errno or 0, reason, name, "thread", text) from None
    _calls[id(work)] = own, work
    try:
        if theirs is not None and own is not theirs:
            while not (theirs.cancelled or work.over.cancelled):
                await first([theirs, work.over], None)
            if theirs.cancelled:
                own.cancel()
        await work.wait()
    except BaseException as error:
        if os.getpid() != pid:
            # A fork has no part in it, and not that thread.
            raise
        own.cancel()
        if not isinstance(error, GeneratorExit):
            await work.outlast()
            # What was not started has no result.
            with contextlib.suppress(Exception):
                attach(error, result(work.value))
        raise
    finally:
        for key, (_, one) in list(_calls.items()):
            if one.over.cancelled:
                _calls.pop(key, None)
    given: _T = work.value()
    return given


@atexit.register
def _stop_all() -> None:
    """At the end of the interpreter nobody is left who could await them."""
    calls = list(_calls.values())
    for own, _ in calls:
        own.cancel()
    for _, work in calls:
        work.join()


# A fork has none of the threads.
os.register_at_fork(after_in_child=_calls.clear)


def attach(error: BaseException, result: Any) -> None:
    """Has the exception of a cancellation bring the result."""
    try:
        error.result = result  # type: ignore[attr-defined]
    except AttributeError:
        # It is of a class that takes none.
        return
