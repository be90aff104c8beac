"""`run`, `spawn`, `map`, `pipeline` and `spawn_pipeline` of `aio`, as type checkers see them:
`_aio_overloads.pyi` has what they give.

Nothing imports this module when a program runs.
"""

from __future__ import annotations

from ._aio_map import map
from ._aio_pipeline import pipeline
from ._aio_pipeline_child import spawn_pipeline
from ._aio_run import run, spawn

__all__ = ["map", "pipeline", "run", "spawn", "spawn_pipeline"]
