"""What a call on a child raises whose program has gone: why, if that is known."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Protocol, TypeAlias

    from . import _core

    _Core: TypeAlias = _core.Child | _core.PipelineChild

    class _Asked(Protocol):
        """What was started, as far as an error of one of its streams or queues asks it."""

        @property
        def _core(self) -> _Core: ...
        def _raise_if_stopped(self) -> None: ...
        def _past_result(self) -> Any: ...


#: Seconds for which a program is waited for that has let go of its end of a pipe or queue: it may
#: be about to end. As long as `wait_for` waits for one that has closed its output.
ABOUT_TO_END_S = 1.0


def asking(child: Callable[[], _Asked | None]) -> Callable[[BaseException], BaseException]:
    """What gives the exception to raise for an error of a stream or queue. `child` is a reference
    that keeps nobody."""

    def ask(error: BaseException) -> BaseException:
        asked = child()
        return error if asked is None else in_place_of(asked, error)

    return ask


def in_place_of(child: _Asked, error: BaseException) -> BaseException:
    """The exception to raise for `error`, which says that the program has let go of its end. Waits
    for the end of a program that is about to end, or is being stopped."""
    core = child._core
    if core.is_ours():
        for timeout in waits(core):
            try:
                core.wait(timeout)
            except Exception as failed:
                # Such as Stalled: whoever waits next is told.
                del failed
                break
    return told(child, error)


def waits(core: _Core) -> Iterator[float | None]:
    """For how long the program is to be waited for, one after the other: None until the stop that
    goes on is over."""
    stopping = getattr(core, "is_stopping", None)
    if stopping is None or not stopping():
        yield ABOUT_TO_END_S
    if stopping is not None and stopping():
        yield None


def told(child: _Asked, error: BaseException) -> BaseException:
    """The exception to raise for `error`: of a child that was stopped for a limit what `wait`
    raises, with the error as its cause; of one that has failed the error, which says how, with the
    failure as its cause."""
    from ._run_errors import CalledProcessError, RunError

    if not child._core.is_ours():
        return error
    try:
        child._raise_if_stopped()
    except RunError as reason:
        reason.__cause__ = error
        return reason.with_traceback(None)
    result = child._past_result()
    if result is not None and not result.ok:
        # That of a stream begins with the command.
        say(error, result.outcome if isinstance(error, BrokenPipeError) else result.summary)
        error.__cause__ = CalledProcessError(result, result.explanation)
    return error


def reason_of_end(child: _Asked) -> BaseException | None:
    """Why the outputs of a child have ended, if it was stopped for a limit."""
    from ._run_errors import RunError

    try:
        child._raise_if_stopped()
    except RunError as reason:
        return reason.with_traceback(None)
    return None


def say(error: BaseException, words: str) -> None:
    """Has the text of an error go on with how the program has ended."""
    if isinstance(error, OSError):
        error.strerror = f"{error.strerror}: {words}"
        # By which it is pickled.
        error.args = (error.errno, error.strerror)
    else:
        error.args = (f"{error}: {words}" if error.args else words,)
