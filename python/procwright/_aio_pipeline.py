"""`aio.pipeline`: programs that are joined by pipes, on event loops."""

from __future__ import annotations

from anyio.lowlevel import checkpoint

from . import _core, _pipeline
from ._aio_whole import on_thread
from ._arguments import instance
from ._late_calls import of_many, on_top
from ._run_errors import RunError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ._fan import Fan
    from ._late import LateCommand, LatePipeline
    from ._pipeline import PipelineResult
    from ._types import Args, StageFn


async def pipeline(
    *stages: Args | Mapping[str, Any] | StageFn | Fan | LateCommand[Any] | LatePipeline,
    **options: Any,
) -> PipelineResult[Any]:
    """Runs programs of which each writes into the next one, and judges each:
    `procwright.pipeline`, whose parameters, defaults, results and errors it has, awaited.

    It has a thread for as long as it lasts. Cancelled, it stops all stages, as `stop` says, and
    reaps them; then the cancellation goes on, and its exception has the `result` where it can.
    """
    stages, options = of_many(stages, on_top(_pipeline.pipeline, options))
    theirs = options.get("cancel")
    if theirs is not None:
        instance("cancel", theirs, _core.Cancel, "pass a Cancel")
    await checkpoint()

    def call(own: _core.Cancel) -> PipelineResult[Any]:
        return _pipeline.pipeline(*stages, **{**options, "cancel": own})

    return await on_thread(call, theirs, _result)


def _result(told: Callable[[], PipelineResult[Any]]) -> PipelineResult[Any]:
    """What came of it: a cancelled one raises, unless it was over before."""
    try:
        return told()
    except RunError as error:
        if not isinstance(error.result, _pipeline.PipelineResult):
            # Nothing was started.
            raise
        return error.result


# For help() and editors.
pipeline.__wrapped__ = _pipeline.pipeline  # type: ignore[attr-defined]
