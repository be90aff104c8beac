"""`procwright` for event loops: asyncio, with uvloop or without, and trio.

The same names with the same parameters, defaults, results and errors; what may wait is awaited.
It needs anyio: `pip install 'procwright[aio]'`.

>>> import asyncio
>>> from procwright import aio
>>> asyncio.run(aio.run(["echo", "hello"], text=True)).stdout
'hello\\n'
"""

from __future__ import annotations

import sys

try:
    import anyio as _anyio
except ImportError as _error:
    raise ImportError(
        "procwright.aio needs anyio, which comes with pip install 'procwright[aio]'",
        name="anyio",
    ) from _error

from ._aio_child import Child
from ._aio_command import Command, Pipeline, cmd
from ._aio_liveness import LivenessMonitor
from ._aio_map import Map
from ._aio_pipeline_child import PipelineChild
from ._aio_queue import Receiver, Sender
from ._aio_stream import Reader, Writer
from ._aio_text import Merged, TextReader, TextWriter
from ._aio_wait import Process, as_completed, wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._aio_overloads import map, pipeline, run, spawn, spawn_pipeline
else:
    from ._aio_map import map
    from ._aio_pipeline import pipeline
    from ._aio_pipeline_child import spawn_pipeline
    from ._aio_run import run, spawn

del _anyio

#: What does here what these names of others do there.
_OF_OTHERS = {
    "DEVNULL": "procwright.DEVNULL",
    "PIPE": "procwright.PIPE",
    "STDOUT": "procwright.STDOUT",
    "Popen": "aio.spawn(args)",
    "create_subprocess_exec": "aio.spawn([program, *args]), which is not awaited",
    "create_subprocess_shell": "aio.spawn(line, shell=True), which is not awaited",
    "to_process": "anyio.to_process: this is for programs",
    "open_process": "async with aio.spawn(args, stdin=PIPE) as child",
    "run_process": "await aio.run(args, check=True)",
    "ObjectReceiver": "procwright.queue.ObjectReceiver, whose recv_async is awaited",
    "ObjectSender": "procwright.queue.ObjectSender",
    "wait_async": "await aio.wait(procs)",
    "as_completed_async": "async for one in aio.as_completed(procs)",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        import procwright

        hint = _OF_OTHERS.get(name)
        if hint is None and name in procwright.__all__:
            hint = f"procwright.{name}"
        also = f": use {hint}" if hint else ""
        text = f"module {__name__!r} has no attribute {name!r}{also}"
        if hint and procwright._is_imported(sys._getframe(1)):
            # Python would put a text of its own in the place of that of an AttributeError.
            raise ImportError(text, name=__name__)
        raise AttributeError(text)


__all__ = [
    "Child",
    "Command",
    "LivenessMonitor",
    "Map",
    "Merged",
    "Pipeline",
    "PipelineChild",
    "Process",
    "Reader",
    "Receiver",
    "Sender",
    "TextReader",
    "TextWriter",
    "Writer",
    "as_completed",
    "cmd",
    "map",
    "pipeline",
    "run",
    "spawn",
    "spawn_pipeline",
    "wait",
]
