"""`cmd()`: programs that are said now and started later."""

from __future__ import annotations

from ._generic import How
from ._hinted import hinted
from ._late_calls import of_many, of_one
from ._pipeline import OF_EACH_STAGE, pipeline
from ._run import run
from ._said import SaidCommand, SaidPipeline
from ._spawn import spawn
from ._spawn_pipeline import spawn_pipeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, overload

    from typing_extensions import Unpack

    from . import _overloads as typed
    from ._fan import Fan
    from ._keywords import CommandOptions, OpenCommandOptions
    from ._types import Args, Fixed, Open, StageFn


#: The options that a command may have: those of `run` and of `spawn`.
OF_COMMAND = frozenset({**(run.__kwdefaults__ or {}), **(spawn.__kwdefaults__ or {})})
#: Those that a pipeline may have: of the whole, and those of each stage.
OF_PIPELINE = OF_EACH_STAGE.union(
    pipeline.__kwdefaults__ or {}, spawn_pipeline.__kwdefaults__ or {}
)


@hinted
class Command(SaidCommand[How]):
    """A program, its arguments and its options: a value that starts nothing, made by `cmd`.

    `a | b` is a `Pipeline`. Equal are two with equal words and options. To type checkers its
    `run(text=True)` gives a `Result[str]`, unless options by which that is chosen are its own. A
    function of yours takes a `Command`, without anything behind it.
    """

    __slots__ = ()

    _known = OF_COMMAND
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

        def run(self, *words, **options):
            """`run` of it, with these options on top of its own."""
            args, options = of_one("run", self, words, options)
            return run(args, **options)

        def spawn(self, *words, **options):
            """`spawn` of it, with these options on top of its own."""
            args, options = of_one("spawn", self, words, options)
            return spawn(args, **options)

    @classmethod
    def _pipeline_of(cls, stages: tuple[Any, ...]) -> Pipeline:
        return Pipeline(stages, {})


@hinted
class Pipeline(SaidPipeline):
    """Commands of which each is to write into the next one, joined by `|`, with functions and a
    `Fan` among them: a value that starts nothing."""

    __slots__ = ()

    _known = OF_PIPELINE
    if TYPE_CHECKING:
        run = typed.pipeline
        spawn = typed.spawn_pipeline

        def __or__(self, other: Command[Any] | Pipeline | StageFn | Fan) -> Pipeline: ...
        def __ror__(self, other: StageFn | Fan) -> Pipeline: ...
    else:

        def run(self, **options):
            """`pipeline` of it, with these options on top of its own."""
            stages, options = of_many((self,), options)
            return pipeline(*stages, **options)

        def spawn(self, **options):
            """`spawn_pipeline` of it, with these options on top of its own."""
            stages, options = of_many((self,), options)
            return spawn_pipeline(*stages, **options)


if TYPE_CHECKING:

    @overload
    def cmd(*words: Args, **options: Unpack[OpenCommandOptions]) -> Command[Open]: ...
    @overload
    def cmd(*words: Args, **options: Unpack[CommandOptions]) -> Command[Fixed]: ...


def cmd(*words: Any, **options: Any) -> Command[Any]:
    """A program that is started later, once or often: a `Command`.

    >>> from procwright import cmd
    >>> numbered = cmd("printf", "b\\\\na\\\\n") | cmd("sort") | cmd("cat", "-n")
    >>> numbered.run(text=True).stdout.split()
    ['1', 'a', '2', 'b']

    words
        The program and its arguments, each a str, bytes or a path object; or a list of them. With
        `shell=True` one line.
    options
        Options of `run` and `spawn`: `cwd`, `env`, `timeout`, ... A call that starts it may give
        more, and others in their place. As a stage it may have those of one, as `cwd`.

    Raises `InvalidValue`.
    """
    return Command._of(words, options)
