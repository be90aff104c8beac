"""`aio.cmd()`: programs that are said now and started later, on event loops."""

from __future__ import annotations

from . import _command
from ._aio_pipeline import pipeline
from ._aio_pipeline_child import spawn_pipeline
from ._aio_run import run, spawn
from ._generic import How
from ._hinted import hinted
from ._late_calls import of_many, of_one
from ._said import SaidCommand, SaidPipeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, overload

    from typing_extensions import Unpack

    from . import _aio_overloads as typed
    from ._fan import Fan
    from ._keywords import CommandOptions, OpenCommandOptions
    from ._types import Args, Fixed, Open, StageFn


@hinted
class Command(SaidCommand[How]):
    """A `procwright.Command` for event loops: `run` is awaited, `spawn` gives an `aio.Child`."""

    __slots__ = ()

    _known = _command.OF_COMMAND
    _is_awaited = True
    if TYPE_CHECKING:
        run = typed.run
        spawn = typed.spawn

        def __or__(self, other: Command[Any] | Pipeline | StageFn | Fan) -> Pipeline: ...
        def __ror__(self, other: StageFn | Fan) -> Pipeline: ...
        @overload
        def with_options(self, **options: Unpack[OpenCommandOptions]) -> Self: ...
        @overload
        def with_options(self, **options: Unpack[CommandOptions]) -> Command[Fixed]: ...
        def with_options(self, **options: Any) -> Any: ...
    else:

        async def run(self, *words, **options):
            """`aio.run` of it, with these options on top of its own."""
            args, options = of_one("run", self, words, options)
            return await run(args, **options)

        def spawn(self, *words, **options):
            """`aio.spawn` of it, with these options on top of its own."""
            args, options = of_one("spawn", self, words, options)
            return spawn(args, **options)

    @classmethod
    def _pipeline_of(cls, stages: tuple[Any, ...]) -> Pipeline:
        return Pipeline(stages, {})


@hinted
class Pipeline(SaidPipeline):
    """A `procwright.Pipeline` for event loops: `run` is awaited, and `spawn` gives an
    `aio.PipelineChild`."""

    __slots__ = ()

    _known = _command.OF_PIPELINE
    _is_awaited = True
    if TYPE_CHECKING:
        run = typed.pipeline
        spawn = typed.spawn_pipeline

        def __or__(self, other: Command[Any] | Pipeline | StageFn | Fan) -> Pipeline: ...
        def __ror__(self, other: StageFn | Fan) -> Pipeline: ...
    else:

        async def run(self, **options):
            """`aio.pipeline` of it, with these options on top of its own."""
            stages, options = of_many((self,), options)
            return await pipeline(*stages, **options)

        def spawn(self, **options):
            """`aio.spawn_pipeline` of it, with these options on top of its own."""
            stages, options = of_many((self,), options)
            return spawn_pipeline(*stages, **options)


if TYPE_CHECKING:

    @overload
    def cmd(*words: Args, **options: Unpack[OpenCommandOptions]) -> Command[Open]: ...
    @overload
    def cmd(*words: Args, **options: Unpack[CommandOptions]) -> Command[Fixed]: ...


def cmd(*words: Any, **options: Any) -> Command[Any]:
    """A program that is started later, once or often: `procwright.cmd`, for event loops."""
    return Command._of(words, options)
