"""Commands and pipelines that were said and are not started: how calls know one.

A plain call looks for the attributes that are named here, and imports nothing of this.
"""

from __future__ import annotations

from ._generic import Generic, How

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LateCommand(Generic[How]):
    """A program, its arguments and its options."""

    __slots__ = ("_args", "_options")

    _args: Any
    _options: dict[str, Any]
    #: That a call is given one of these.
    _is_late_command = True


class LatePipeline:
    """Stages, and the options of the whole."""

    __slots__ = ("_options", "_stages")

    _stages: tuple[Any, ...]
    _options: dict[str, Any]
    #: That a call is given one of these.
    _is_late_pipeline = True
