"""Runs programs and knows when they end or die: without deadlocks, polling or lost output.

>>> import procwright
>>> procwright.run(["echo", "hello"], text=True).stdout
'hello\n'
"""

from __future__ import annotations

from ._core import Cancel, Limit, Stop
from ._result import Event, Holder, Result, Status, StreamInfo, Survivor
from ._run import CAPTURE, DEVNULL, INHERIT, PIPE, STDOUT, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._errors import (
        CalledProcessError,
        Cancelled,
        IdleTimeout,
        InvalidValue,
        OutputLimitExceeded,
        RunError,
        SpawnError,
        SystemFailure,
        TimeoutExpired,
    )

__all__ = [
    "CAPTURE",
    "DEVNULL",
    "INHERIT",
    "PIPE",
    "STDOUT",
    "CalledProcessError",
    "Cancel",
    "Cancelled",
    "Event",
    "Holder",
    "IdleTimeout",
    "InvalidValue",
    "Limit",
    "OutputLimitExceeded",
    "Result",
    "RunError",
    "SpawnError",
    "Status",
    "Stop",
    "StreamInfo",
    "Survivor",
    "SystemFailure",
    "TimeoutExpired",
    "run",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # The exceptions derive from those of subprocess, whose import costs more
    # than all of this package: it waits until one of them is asked for.
    if name in __all__:
        from . import _errors

        value: object = getattr(_errors, name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
