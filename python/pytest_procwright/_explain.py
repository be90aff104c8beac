"""The option `--procwright-explain`: why a test takes so long, while it goes on.

`Clock` is the one thread, which sleeps until the time of the test that runs has come. `Explain`
begins and ends its time with each test, and writes what was found out.
"""

from __future__ import annotations

import math
import os
import select
import threading
import time
from contextlib import suppress

import pytest

from procwright._core import explain_own
from procwright._explained import Diagnosis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: The option, and the name in an ini file.
OPTION = "--procwright-explain"
INI = "procwright_explain"

#: For how long whoever reads stderr may take nothing of it. Nobody hangs by what is said of a test
#: that does.
_PATIENCE_MS = 5000


def seconds_of(config: pytest.Config) -> float | None:
    """The time after which a test is explained; None if it is not to be."""
    given = config.getoption("procwright_explain") or config.getini(INI)
    if not given:
        return None
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    # A lock waits for no longer.
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        raise pytest.UsageError(
            f"{OPTION} is a number of seconds, as in {OPTION}=30, and {given!r} is none"
        )
    return seconds


class Clock:
    """A thread that calls `ring` once for each test which takes longer than `seconds`."""

    def __init__(self, seconds: float, ring: Callable[[pytest.Item], None]) -> None:
        self._seconds = seconds
        self._ring = ring
        self._changed = threading.Condition()
        self._item: pytest.Item | None = None
        self._until = math.inf
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="procwright-explain", daemon=True)
        self._thread.start()

    def begin(self, item: pytest.Item) -> None:
        """Has the time of this test begin."""
        with self._changed:
            self._item, self._until = item, time.monotonic() + self._seconds
            self._changed.notify()

    def end(self) -> None:
        """Has no test be waited for."""
        with self._changed:
            # The thread is left asleep: when it wakes up, it finds nothing to tell.
            self._item = None

    def stop(self) -> None:
        """Ends the thread."""
        with self._changed:
            self._is_over = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while (item := self._next()) is not None:
            self._ring(item)

    def _next(self) -> pytest.Item | None:
        """The next test whose time has come; None when the thread is to end."""
        with self._changed:
            while not self._is_over:
                left = self._until - time.monotonic()
                if left > 0:
                    self._changed.wait(None if left == math.inf else left)
                    continue
                self._until = math.inf
                if self._item is not None:
                    return self._item
        return None


class Explain:
    """The hooks of a run of pytest with the option."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # The stderr of pytest itself, which is captured while a test runs. Hooks that configure
        # are called while it is not.
        self._stderr = os.dup(2)
        self._clock = Clock(seconds, self._tell)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """A test, with its fixtures."""
        self._clock.begin(item)
        yield
        self._clock.end()

    def pytest_unconfigure(self) -> None:
        """The end of all tests."""
        self._clock.stop()
        os.close(self._stderr)

    def _tell(self, item: pytest.Item) -> None:
        try:
            text = Diagnosis(*explain_own()).text
        except OSError as error:
            text = f"why could not be found out: {error}\n"
        head = f"{item.nodeid} has not ended after {self._seconds:g} s"
        # In the report of the test, if it fails.
        item.add_report_section("call", "procwright", f"{head}:\n{text}")
        # And at once, for whoever looks on, or ends all of it from outside.
        self._say(f"\n{head}:\n{text}".encode(errors="replace"))

    def _say(self, text: bytes) -> None:
        """Writes to stderr what that takes: it may have no reader, or one who does not read."""
        poll = select.poll()
        poll.register(self._stderr, select.POLLOUT)
        with suppress(OSError):
            while text and poll.poll(_PATIENCE_MS):
                # So much at once does not block.
                text = text[os.write(self._stderr, text[: select.PIPE_BUF]) :]
