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

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        import procwright

        from ._names import AIO, unknown

        ours = {one: f"procwright.{one}" for one in procwright.__all__}
        raise unknown(__name__, name, sys._getframe(1), {**ours, **AIO})


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
