"""The Python half of the classes for liveness, which are native.

A look at a peer costs no more than the call of a native method; whatever needs modules
of Python's is here, and is imported when it is needed.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeVar

from . import _core
from ._invalid import bad_type
from ._process import AnyProcess, Process, opened, raise_ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

T = TypeVar("T")


class LivenessGuarantee(NamedTuple):
    """The promise of a `LivenessToken` or `LivenessMonitor`."""

    #: The thing of whose end it tells: "image" (that of the program: an exec ends it), "process"
    #: (whatever programs it runs), or "thread".
    names: Literal["image", "process", "thread"]
    #: How it knows: "robust_word" (the kernel marks a word when the peer ends, before the
    #: end can be seen in any other way) or "watcher" (a thread of this process is told of
    #: the end, some microseconds later than the kernel knows).
    mechanism: Literal["robust_word", "watcher"]


LivenessGuarantee.__module__ = "procwright"


def _peer(peer: Any) -> _core.ProcessHandle:
    """The process that a monitor is to be of."""
    if isinstance(peer, _core.LivenessToken):
        raise bad_type("peer", peer, "a token is for the watched side, pass token.invite()")
    if isinstance(own := getattr(peer, "_handle", None), _core.ProcessHandle):
        # A process, or a child of ours.
        return own
    if isinstance(own := getattr(peer, "process", None), AnyProcess):
        # Another monitor.
        return own._handle
    if not isinstance(peer, (int, str)) and not hasattr(peer, "pid"):
        raise bad_type(
            "peer",
            peer,
            "pass a LivenessInvitation, or a process: its number, PID:INODE, or an object with a "
            "pid, such as subprocess.Popen",
        )
    handle = opened(peer)
    if handle is None:
        raise_ended(peer)
    return handle


def _process(handle: _core.ProcessHandle) -> Process:
    return Process._from_handle(handle)


def _timeout_error(
    monitor: _core.LivenessMonitor, timeout: float | None, pending: object = None
) -> Exception:
    """The error of a wait for the peer. `pending` is what was waited for, by default the
    monitor."""
    from ._errors import WaitTimeout

    process = monitor.process
    what = "the peer" if process is None else f"process {process.id}"
    return WaitTimeout(what, timeout, (monitor if pending is None else pending,))


async def _wait_async(
    monitor: _core.LivenessMonitor, timeout: float | None
) -> Literal["released", "died"]:
    from ._wait import wait_async

    if not (await wait_async([monitor], "all", "exited", timeout)).done:
        raise _timeout_error(monitor, timeout)
    return _over(monitor)


def _over(monitor: _core.LivenessMonitor) -> Literal["released", "died"]:
    state = monitor.confirm()
    assert state != "alive"
    return state


def process_seen(monitor: _core.LivenessMonitor) -> Process:
    """The process of the peer. Raises where it cannot be seen from here."""
    process = monitor.process
    if process is None:
        from ._errors import LivenessError

        raise LivenessError(
            "unsupported",
            "the process of the peer cannot be seen from here, as from another namespace: "
            "whether it is gone cannot be known",
        )
    return process


def _wait_gone(monitor: _core.LivenessMonitor, timeout: float | None) -> None:
    from ._wait import wait

    if not wait([process_seen(monitor)], "all", "exited", timeout).done:
        raise _timeout_error(monitor, timeout)
    # From here on the monitor must not say "alive": the thread that is told may be later.
    monitor.confirm()


def _claim(monitor: _core.LivenessMonitor, timeout: float | None) -> _core.LivenessClaim:
    sleep = monitor._sleep()
    claim = sleep.claim(0)
    if claim.kind != "theirs" or (timeout is not None and not timeout > 0):
        return claim
    return _off_main_thread(lambda: sleep.claim(timeout), sleep)


def _wait_elsewhere(monitor: _core.LivenessMonitor, timeout: float | None) -> bool:
    sleep = monitor._sleep()
    return _off_main_thread(lambda: sleep.wait(timeout), sleep)


def _off_main_thread(call: Callable[[], T], sleep: _core.LivenessSleep) -> T:
    """Calls what sleeps on a word, where no signal is heard: on another thread if need be.

    If a signal handler raises, that thread is made to leave its sleep. What it got just
    before is dropped with the list: a right is given back.
    """
    import threading

    if threading.current_thread() is not threading.main_thread():
        return call()
    came: list[T] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            came.append(call())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, name="procwright-asleep", daemon=True)
    try:
        thread.start()
        thread.join()
    except BaseException:
        # Also if it was raised before the thread began: then that finds nothing to do.
        sleep.leave()
        raise
    if failed:
        raise failed.pop()
    return came.pop()


def _send(invitation: _core.LivenessInvitation, sock: Any) -> None:
    from ._invitations import send

    send(invitation, sock)


def _receive(sock: Any) -> _core.LivenessInvitation:
    from ._invitations import receive

    return receive(_core.LivenessInvitation._receive, sock)


def _reduce_invitation(invitation: _core.LivenessInvitation) -> tuple[object, ...]:
    from ._invitations import reduced

    return reduced(invitation)
