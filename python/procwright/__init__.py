"""Runs programs and knows when they end or die: without deadlocks, polling or lost output.

>>> import procwright
>>> procwright.run(["echo", "hello"], text=True).stdout
'hello\n'
"""

# The modules of this package, highest first. Each imports only from lines below its own, at its
# top, in functions and for type checkers; python/tests/test_layers.py sees to it.
#
#   __init__                             the names that users import
#   queue, testing, aio                  those that they import from modules
#   asyncio_subprocess                   asyncio.subprocess on the core
#   _asyncio_transport                   transports of asyncio's for a child and its pipes
#   _cassette                            runs that were recorded, and are replayed
#   _fake                                programs that a test plays
#   _fake_map, _fake_child               many of them; one that is spawned
#   _fake_pipeline                       some that are joined by pipes
#   _fake_run, _fake_judgement           a run that is played; what the ends of some mean
#   _fake_check                          what no program would be started for
#   _fake_calls, _fake_reply             what was asked; what is played
#   _stand_in                            a program of its own, which is what is spawned
#   _aio_command                         cmd of event loops
#   _command                             programs that are said now and started later
#   _overloads, _aio_overloads           run, spawn, map, pipeline as type checkers see them
#   _aio_run, _aio_pipeline              run and spawn of event loops; joined programs
#   _aio_pipeline_child                  those that one holds, on an event loop
#   _aio_pipeline_streams                their streams, for type checkers alone
#   _aio_child                           a child on an event loop
#   _aio_child_streams                   its streams, for type checkers alone
#   _aio_told                            what a call raises whose program has gone
#   _aio_queue, _aio_liveness            queues on event loops; whether a peer lives
#   _aio_text                            text streams of event loops; both outputs as one
#   _aio_stream, _aio_wait               binary streams of event loops; waiting for many there
#   _aio_map, _aio_whole                 many commands; a whole call of the core's on a thread
#   _aio_held                            who holds the outputs of a program that has ended
#   _aio_errors, _aio_sleep              exceptions of anyio's; sleeps of event loops
#   _spawn, _queue_objects, _queue_stat  starting a child; objects over queues; a queue from outside
#   _spawn_pipeline                      starting programs joined by pipes
#   _pipeline_child                      those that one holds
#   _said                                commands and pipelines as values
#   _of_either                           what an error knows of both, for type checkers alone
#   _pipeline                            programs joined by pipes
#   _stage_function                      a function between two of them
#   _map                                 many commands, so many at a time
#   _executed, _map_lines                a map whose commands run in an executor; lines of a map
#   _child, _liveness                    a child that one holds; the Python half of liveness
#   _held                                a wait for its outputs that tells who holds them
#   _told                                what a call raises whose program has gone
#   _run, _wait, _wait_for, _budget      a whole run; waiting for many; for a text; memory of all
#   _late_calls                          what calls take a command for that was said before
#   _fan                                 several programs side by side
#   _opened                              streams of what was started
#   _starting                            the way to the core: audit events, and tests
#   _keeper                              a child that nobody keeps
#   _options, _outcome, _watched         options for the core; its results; what can be waited for
#   _keywords                            types of the options of run, spawn, map and pipeline
#   _refused, _unknown, _line            refused options; parameters of others; lines for lists
#   _run_errors, _queue                  exceptions of runs; Python half of queues
#   _pipeline_streams                    the streams of a pipeline, for type checkers alone
#   _child_streams                       the streams of a child, for type checkers alone
#   _child_before                        what wait_for passed over, for type checkers alone
#   _text, _merged, _callback            text streams; both as one; a thread that calls with lines
#   _setup                               options of what is set up before a program runs
#   _result, _event                      what became of a run; what it tells
#   _explained                           what a program waits for, and why it does not end
#   _holder                              a process that holds a pipe
#   _process                             any process
#   _tee                                 copies of output
#   _stdio, _stream, _taps               where a program reads and writes; files; callbacks of runs
#   _overflow                            output not read yet
#   _waiting, _invitations, _timed       one wait; invitations on their way; reads with a limit
#   _core                                the extension: src/lib.rs has its layers
#   _stream_errors                       exceptions of streams
#   _map_errors                          the exception of a map's journal
#   _journal                             the file by which a map knows what was done
#   _plain_file                          whether a descriptor has what its file reads or writes
#   _arguments, _timeout                 values of parameters; seconds
#   _pickled                             places of pickled invitations that nobody loads
#   _hinted                              methods that tell of parameters of others
#   _errors, _queue_errors, _invalid     exceptions; InvalidValue is light, the others are not
#   _words, _names                       seconds and exceptions in words; names of modules of others
#   _missing                             attributes that others have
#   _slip                                names that were mistyped
#   _record, _async                      values with parts; event loops
#   _captured                            what a result has of a stream, for type checkers alone
#   _piece                               pieces of both outputs in their order
#   _late                                commands that were said and are not started
#   _generic                             classes that take types, as Result[str]
#   _types                               types, for type checkers alone
#
# Native classes call their Python half by name, and return what that has made. Upward from _core:
# _liveness, _process, _queue, _run_errors, _unknown. Exceptions have results, whose modules make
# them: _errors and _run_errors name their types for type checkers by `procwright`, from above.

from __future__ import annotations

import sys

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
from ._holder import Holder
from ._invalid import InvalidValue
from ._piece import Piece
from ._record import Status, Survivor
from ._result import Result, StreamInfo
from ._stdio import CAPTURE, DEVNULL, INHERIT, PIPE, STDOUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import aio as aio
    from . import asyncio_subprocess as asyncio_subprocess
    from . import queue as queue
    from ._budget import Budget, budget, set_budget
    from ._child import Child
    from ._command import Command, Pipeline, cmd
    from ._errors import LivenessError, NoSuchProcess, SpawnError, TimeoutExpired, WaitTimeout
    from ._event import Event
    from ._explained import Diagnosis, Waiting
    from ._fan import Fan
    from ._journal import Journal
    from ._liveness import LivenessGuarantee
    from ._map import Ended, Map, Past, Progress
    from ._map_errors import JournalError
    from ._merged import Merged, MergedLine
    from ._of_either import _OfEither as _OfEither
    from ._overflow import Overflow
    from ._overloads import map, pipeline, run, spawn, spawn_pipeline
    from ._pipeline import PipelineResult, Stage
    from ._pipeline_child import PipelineChild
    from ._process import Process
    from ._run_errors import (
        CalledProcessError,
        Cancelled,
        IdleTimeout,
        OutputLimitExceeded,
        RunError,
        SystemFailure,
    )
    from ._stage_function import StageFunction
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
else:
    from ._run import run

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
    "Command",
    "Diagnosis",
    "Ended",
    "EndedBeforeMatch",
    "Event",
    "Fan",
    "Figures",
    "Gap",
    "Holder",
    "IdleTimeout",
    "InvalidValue",
    "Journal",
    "JournalError",
    "Limit",
    "LineTooLong",
    "LivenessClaim",
    "LivenessError",
    "LivenessGuarantee",
    "LivenessInvitation",
    "LivenessMonitor",
    "LivenessToken",
    "Map",
    "MatchTimeout",
    "Merged",
    "MergedLine",
    "NoSuchProcess",
    "OutputLimitExceeded",
    "Overflow",
    "Past",
    "Piece",
    "Pipeline",
    "PipelineChild",
    "PipelineResult",
    "Process",
    "Progress",
    "Reader",
    "Result",
    "RunError",
    "SpawnError",
    "Stage",
    "StageFunction",
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
    "Waiting",
    "Writer",
    "as_completed",
    "as_completed_async",
    "budget",
    "cmd",
    "map",
    "pipeline",
    "run",
    "set_budget",
    "spawn",
    "spawn_pipeline",
    "wait",
    "wait_async",
    "wait_procs",
    "wait_stats",
]

#: The other modules, which are imported when the first of their names is needed.
_LAZY = {
    "_budget": ("Budget", "budget", "set_budget"),
    "_child": ("Child",),
    "_command": ("Command", "Pipeline", "cmd"),
    "_errors": ("LivenessError", "NoSuchProcess", "SpawnError", "TimeoutExpired", "WaitTimeout"),
    "_event": ("Event",),
    "_explained": ("Diagnosis", "Waiting"),
    "_fan": ("Fan",),
    "_liveness": ("LivenessGuarantee",),
    "_journal": ("Journal",),
    "_map": ("Ended", "Map", "Past", "Progress", "map"),
    "_map_errors": ("JournalError",),
    "_merged": ("Merged", "MergedLine"),
    "_overflow": ("Overflow",),
    "_pipeline": ("PipelineResult", "Stage", "pipeline"),
    "_pipeline_child": ("PipelineChild",),
    "_process": ("Process",),
    "_run_errors": (
        "CalledProcessError",
        "Cancelled",
        "IdleTimeout",
        "OutputLimitExceeded",
        "RunError",
        "SystemFailure",
    ),
    "_spawn": ("spawn",),
    "_spawn_pipeline": ("spawn_pipeline",),
    "_stage_function": ("StageFunction",),
    "_stream": ("Figures", "Gap", "Reader", "Writer"),
    "_stream_errors": (
        "EndedBeforeMatch",
        "LineTooLong",
        "MatchTimeout",
        "Stalled",
        "StreamClosed",
        "StreamForked",
        "StreamLost",
        "StreamOverflow",
    ),
    "_text": ("TextReader", "TextWriter"),
    "_wait": ("Waited", "as_completed", "as_completed_async", "wait", "wait_async", "wait_procs"),
}
_MODULES = {name: module for module, names in _LAZY.items() for name in names}

__version__ = "0.1.0"


# Type checkers would take any name for right.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # A plain `run` needs none of these. The exceptions derive from those of subprocess,
        # whose import takes longer than that of this package.
        if name in ("queue", "aio", "asyncio_subprocess"):
            import importlib

            return importlib.import_module(f".{name}", __name__)
        if name in _MODULES:
            import importlib

            module = importlib.import_module("." + _MODULES[name], __name__)
            value: object = getattr(module, name)
            globals()[name] = value
            return value
        from ._names import unknown

        raise unknown(__name__, name, sys._getframe(1))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
