"""Runs programs and knows when they end or die: without deadlocks, polling or lost output.

>>> import procwright
>>> procwright.run(["echo", "hello"], text=True).stdout
'hello\n'
"""

from __future__ import annotations

from ._core import (
    Cancel,
    Limit,
    LivenessClaim,
    LivenessInvitation,
    LivenessMonitor,
    LivenessToken,
    Stop,
    wait_stats,
)
from ._options import CAPTURE, DEVNULL, INHERIT, PIPE, STDOUT
from ._result import Event, Holder, Result, Status, StreamInfo, Survivor
from ._run import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._budget import Budget, budget, set_budget
    from ._child import Child
    from ._errors import (
        CalledProcessError,
        Cancelled,
        IdleTimeout,
        InvalidValue,
        LivenessError,
        NoSuchProcess,
        OutputLimitExceeded,
        RunError,
        SpawnError,
        SystemFailure,
        TimeoutExpired,
        WaitTimeout,
    )
    from ._liveness import LivenessGuarantee
    from ._merged import Merged, MergedLine
    from ._overflow import Overflow
    from ._process import Process
    from ._spawn import spawn
    from ._stream import Figures, Gap, Reader, Writer
    from ._stream_errors import (
        EndedBeforeMatch,
        LineTooLong,
        MatchTimeout,
        Stalled,
        StreamClosed,
        StreamForked,
        StreamLost,
        StreamOverflow,
    )
    from ._text import TextReader, TextWriter
    from ._wait import (
        Waited,
        as_completed,
        as_completed_async,
        wait,
        wait_async,
        wait_procs,
    )

__all__ = [
    "CAPTURE",
    "DEVNULL",
    "INHERIT",
    "PIPE",
    "STDOUT",
    "Budget",
    "CalledProcessError",
    "Cancel",
    "Cancelled",
    "Child",
    "EndedBeforeMatch",
    "Event",
    "Figures",
    "Gap",
    "Holder",
    "IdleTimeout",
    "InvalidValue",
    "Limit",
    "LineTooLong",
    "LivenessClaim",
    "LivenessError",
    "LivenessGuarantee",
    "LivenessInvitation",
    "LivenessMonitor",
    "LivenessToken",
    "MatchTimeout",
    "Merged",
    "MergedLine",
    "NoSuchProcess",
    "OutputLimitExceeded",
    "Overflow",
    "Process",
    "Reader",
    "Result",
    "RunError",
    "SpawnError",
    "Stalled",
    "Status",
    "Stop",
    "StreamClosed",
    "StreamForked",
    "StreamInfo",
    "StreamLost",
    "StreamOverflow",
    "Survivor",
    "SystemFailure",
    "TextReader",
    "TextWriter",
    "TimeoutExpired",
    "WaitTimeout",
    "Waited",
    "Writer",
    "as_completed",
    "as_completed_async",
    "budget",
    "run",
    "set_budget",
    "spawn",
    "wait",
    "wait_async",
    "wait_procs",
    "wait_stats",
]

#: Imported when the first of their names is needed.
_LATER = {
    "Budget": "_budget",
    "Stalled": "_stream_errors",
    "Merged": "_merged",
    "MergedLine": "_merged",
    "MatchTimeout": "_stream_errors",
    "EndedBeforeMatch": "_stream_errors",
    "Child": "_child",
    "Figures": "_stream",
    "Gap": "_stream",
    "LineTooLong": "_stream_errors",
    "LivenessGuarantee": "_liveness",
    "Overflow": "_overflow",
    "Process": "_process",
    "Reader": "_stream",
    "StreamClosed": "_stream_errors",
    "StreamForked": "_stream_errors",
    "StreamLost": "_stream_errors",
    "StreamOverflow": "_stream_errors",
    "TextReader": "_text",
    "TextWriter": "_text",
    "Waited": "_wait",
    "as_completed": "_wait",
    "as_completed_async": "_wait",
    "budget": "_budget",
    "set_budget": "_budget",
    "Writer": "_stream",
    "spawn": "_spawn",
    "wait": "_wait",
    "wait_async": "_wait",
    "wait_procs": "_wait",
}

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # The exceptions derive from those of subprocess, whose import costs more
    # than all of this package: it waits until one of them is asked for. So does
    # what `run` does not need.
    if name == "queue":
        import importlib

        return importlib.import_module(".queue", __name__)
    if name in __all__:
        import importlib

        module = importlib.import_module("." + _LATER.get(name, "_errors"), __name__)
        value: object = getattr(module, name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
