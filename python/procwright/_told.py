"""What a call on a child raises whose program has gone: why, if that is known."""

from __future__ import annotations

from ._timeout import Deadline, sooner

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
        def _stop_reason(self) -> BaseException | None: ...
        def _past_result(self) -> Any: ...


#: Seconds for which a program is waited for that has let go of its end of a pipe or queue: it may
#: be about to end. As long as `wait_for` waits for one that has closed its output.
ABOUT_TO_END_S = 1.0


class Patience:
    """For how long the calls of one end of a pipe or queue wait for the end of the program. One
    wait does for all: who calls again and again is not held up each time by a program that has
    closed its end and lives on."""

    __slots__ = ("_has_waited",)

    def __init__(self) -> None:
        self._has_waited = False

    def waits(self, core: _Core, left: float | None) -> Iterator[float | None]:
        """For how many seconds the program is to be waited for, one after the other, by a call that
        has so many left: None until the stop that goes on is over."""
        if left == 0 or self._has_waited:
            return
        self._has_waited = True
        until = Deadline(left)
        if not core.is_stopping():
            yield sooner(ABOUT_TO_END_S, until.left())
        if core.is_stopping():
            yield until.left()


def asking(
    child: Callable[[], _Asked | None],
) -> Callable[[BaseException, float | None], BaseException]:
    """What gives the exception to raise for an error of a stream or queue, within the seconds that
    the call has left. `child` is a reference that keeps nobody."""
    patience = Patience()

    def ask(error: BaseException, left: float | None) -> BaseException:
        asked = child()
        return error if asked is None else in_place_of(asked, error, patience, left)

    return ask


def in_place_of(
    child: _Asked, error: BaseException, patience: Patience, left: float | None
) -> BaseException:
    """The exception to raise for `error`, which says that the program has let go of its end. Waits
    for the end of a program that is about to end, or is being stopped, for `left` seconds at most:
    with 0 what is known now is told."""
    core = child._core
    if core.is_ours():
        for timeout in patience.waits(core, left):
            try:
                core.wait(timeout)
            except Exception as failed:
                # Such as Stalled: whoever waits next is told.
                del failed
                break
    return told(child, error)


def told(child: _Asked, error: BaseException) -> BaseException:
    """The exception to raise for `error`: of a child that was stopped for a limit what `wait`
    raises, with the error as its cause; of one that has failed the error, which says how, with the
    failure as its cause.

    Takes nothing from the child: whoever else asks, and the end of a block, is told as well, as
    this may be another thread than that which has the block.
    """
    from ._run_errors import CalledProcessError, RunError

    try:
        reason = reason_of_end(child, error)
        result = child._past_result() if reason is None and child._core.is_ours() else None
        if isinstance(reason, RunError):
            reason.__cause__ = error
            return reason
        if reason is not None:
            # What a function of the caller's has raised is one object for all who are told.
            say(error, f"{type(reason).__name__}: {reason}")
            error.__cause__ = reason
        elif result is not None and not result.ok:
            # That of a stream begins with the command.
            words = result.outcome if isinstance(error, BrokenPipeError) else result.summary
            failure = CalledProcessError(result, result.explanation)
            say(error, words)
            error.__cause__ = failure
    except Exception:
        # An error that asking raises says less than the one at hand.
        return error
    return error


#: The attribute of an error by which the block of its child knows it: the id of the child, since a
#: reference would keep that, and be pickled with the error.
_OF_CHILD = "_of_child"


def reason_of_end(child: _Asked, error: BaseException) -> BaseException | None:
    """Why the other side of `error` has gone, if the child was stopped for a limit, or for what a
    function of a pipeline has raised. None while the stop goes on: the end of a block tells."""
    if not child._core.is_ours():
        return None
    vars(error)[_OF_CHILD] = id(child)
    try:
        return child._stop_reason()
    except Exception:
        # As in `told`.
        return None


def raise_reason(child: _Asked, error: BaseException | None) -> None:
    """Raises what the child was stopped for, if its block is left by the error of a call that did
    not know yet, or may not raise that itself. For the end of a block, once all is over."""
    from ._run_errors import RunError

    if error is None or vars(error).get(_OF_CHILD) != id(child):
        return
    reason = reason_of_end(child, error)
    if isinstance(reason, RunError):
        error.__cause__ = None
        raise reason from error
    if reason is not None:
        # What a function has raised keeps the cause that it has.
        error.__cause__ = None
        raise reason


def say(error: BaseException, words: str) -> None:
    """Has the text of an error go on with how the program has ended."""
    if isinstance(error, OSError):
        error.strerror = f"{error.strerror}: {words}"
        # By which it is pickled.
        error.args = (error.errno, error.strerror)
    else:
        error.args = (f"{error}: {words}" if error.args else words,)
