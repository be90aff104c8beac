"""What an error knows of a run or a pipeline: for type checkers, imported by nothing else."""

from __future__ import annotations

from typing import Any

from ._pipeline import PipelineResult
from ._result import Result
from ._types import MaybeStages

TYPE_CHECKING = False
if TYPE_CHECKING:
    # No object is both.

    class _OfEither(  # type: ignore[misc, override]
        Result[Any, Any, Any], PipelineResult[Any]
    ):
        """The `Result` of a run, or the `PipelineResult` of a pipeline.

        Which it is knows whoever has called, so that a checker takes what either has. With a union
        it took nothing but what both have, and `error.result.status` of a run had to be asked for.
        """

        #: Of a run what it was given, of a pipeline a list of these.
        args: MaybeStages
