"""Whether a peer lives, on event loops: `procwright.LivenessMonitor`, awaited."""

from __future__ import annotations

from contextlib import suppress

from . import _core
from ._aio_sleep import ThreadCall
from ._aio_wait import Process, wait
from ._errors import LivenessError
from ._hinted import hinted
from ._liveness import _over, _timeout_error, process_seen
from ._timeout import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from ._liveness import LivenessGuarantee
    from ._types import Seconds


@hinted
class LivenessMonitor:
    """Knows whether a peer lives: a `procwright.LivenessMonitor` whose waits are awaited.

    `peer` is what that takes, or such a monitor itself. Any number of tasks may wait, and a wait
    that is cancelled changes nothing.
    """

    def __init__(self, peer: Any) -> None:
        is_one = isinstance(peer, _core.LivenessMonitor)
        #: The `procwright.LivenessMonitor`.
        self.monitor: _core.LivenessMonitor = peer if is_one else _core.LivenessMonitor(peer)

    @staticmethod
    def of_parent() -> LivenessMonitor:
        """The parent's, in a program that it has spawned with `liveness=True`."""
        return LivenessMonitor(_core.LivenessMonitor.of_parent())

    def alive(self) -> bool:
        """True if the peer lives: one load from memory while it does, no system call."""
        return self.monitor.alive()

    def state(self) -> Literal["alive", "released", "died"]:
        """The state: alive, has given its token back, or died."""
        return self.monitor.state()

    def confirm(self) -> Literal["alive", "released", "died"]:
        """The `state`, for which the kernel is asked as well where the word says "alive"."""
        return self.monitor.confirm()

    async def wait(self, timeout: Seconds | None = None) -> Literal["released", "died"]:
        """Waits until the peer does not live any more. Raises `WaitTimeout`."""
        if not (await wait([self.monitor], timeout=timeout)).done:
            raise _timeout_error(self.monitor, seconds(timeout), self)
        return _over(self.monitor)

    async def wait_gone(self, timeout: Seconds | None = None) -> None:
        """Waits until the process of the peer is gone with all its threads. Raises `WaitTimeout`,
        and `LivenessError` if it cannot be seen from here."""
        if not (await wait([process_seen(self.monitor)], timeout=timeout)).done:
            raise _timeout_error(self.monitor, seconds(timeout), self)
        # From here on the monitor must not say "alive": the thread that is told may be later.
        self.monitor.confirm()

    async def claim(self, timeout: Seconds | None = 0.0) -> _core.LivenessClaim:
        """Asks for the right to clean up after the peer, when it has died: see
        `procwright.LivenessMonitor.claim`.

        While another has it, waits for that on a thread. A right that came with a cancellation is
        given back.
        """
        limit = seconds(timeout)
        sleep = self.monitor._sleep()
        claim = sleep.claim(0)
        if claim.kind != "theirs" or (limit is not None and limit <= 0):
            return claim
        thread = ThreadCall("procwright-claim", lambda: sleep.claim(limit))
        try:
            await thread.wait()
        except BaseException:
            # The thread leaves its sleep at once.
            sleep.leave()
            await thread.outlast()
            with suppress(LivenessError):
                if came := thread.value():
                    came.give_back()
            raise
        late: _core.LivenessClaim = thread.value()
        return late

    def readiness_fd(self) -> int:
        """A descriptor that is readable once the peer does not live any more. It stays the
        monitor's."""
        return self.monitor.readiness_fd()

    @property
    def process(self) -> Process | None:
        """The `Process` of the peer, None where it cannot be seen from here."""
        process = self.monitor.process
        return None if process is None else Process._from_handle(process._handle)

    def guarantee(self) -> LivenessGuarantee:
        """The promise of this monitor."""
        return self.monitor.guarantee()

    def __repr__(self) -> str:
        return repr(self.monitor).replace("procwright.", "procwright.aio.", 1)

    def __reduce__(self) -> tuple[type[LivenessMonitor], tuple[_core.LivenessMonitor]]:
        return LivenessMonitor, (self.monitor,)
