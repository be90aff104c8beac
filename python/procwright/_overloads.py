"""`run`, `spawn`, `map`, `pipeline` and `spawn_pipeline`, as type checkers see them:
`_overloads.pyi` has what they give.

Nothing imports this module when a program runs.
"""

from __future__ import annotations

from ._map import map
from ._pipeline import pipeline
from ._run import run
from ._spawn import spawn
from ._spawn_pipeline import spawn_pipeline

__all__ = ["map", "pipeline", "run", "spawn", "spawn_pipeline"]
