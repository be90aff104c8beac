"""`spawn_pipeline()`: starts programs that are joined by pipes and hands them over."""

from __future__ import annotations

from ._arguments import callback
from ._fan import Fan
from ._invalid import bad_value
from ._keeper import Keeper, line_of_caller
from ._late_calls import given_to, is_late, of_many
from ._options import quoted
from ._overflow import as_overflow
from ._pipeline import Plan
from ._pipeline_child import PipelineChild
from ._stdio import PIPE
from ._timeout import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Literal

    from typing_extensions import Unpack

    from . import _core
    from ._event import Event
    from ._keywords import Program
    from ._late import LateCommand, LatePipeline
    from ._overflow import Overflow
    from ._types import Args, Data, Seconds, Sink, StageFn, Stdin


def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | StageFn | Fan | LateCommand[Any] | LatePipeline,
    input: Data | str | None = None,
    stdin: Stdin = None,
    stdout: Sink = PIPE,
    stderr: Sink = PIPE,
    limit: int | str | _core.Limit | None = None,
    timeout: Seconds | None = None,
    idle_timeout: Seconds | None = None,
    success: Literal["forgiving", "strict", "last"] = "forgiving",
    ok_codes: Mapping[int, Iterable[int]] | None = None,
    elastic: bool | Overflow | Mapping[int, bool | Overflow] = False,
    text: bool = False,
    encoding: str | None = None,
    errors: str | None = None,
    overflow: Overflow | Literal["spill", "drop_oldest", "drop_newest", "fail"] = "spill",
    stall_after: Seconds | None = 30,
    on_timeout: Literal["raise", "return"] = "raise",
    cancel: _core.Cancel | None = None,
    on_event: Callable[[Event], object] | None = None,
    **options: Unpack[Program],
) -> PipelineChild[Any, Any, Any]:
    """Starts programs of which each writes into the next one, and returns at once, with their
    streams.

    All are started, or none. A thread looks after them until all are over, whether or not anybody
    waits: one for each pipeline.

    stages, success, ok_codes, elastic, options
        As of `pipeline`.
    input, stdin
        What the first reads, as of `spawn`: PIPE gives `child.stdin` to write to.
    stdout
        Where the last writes: PIPE gives `child.stdout` to read from. Each other of a `Fan` has to
        say its own, such as {"args": ..., "stdout": "copy"}.
    stderr
        Where each writes its errors: PIPE gives `child.stderr`, a stream for each stage, in a
        tuple; STDOUT sends both into the pipe.
    text, encoding, errors, overflow, stall_after, on_event
        As of `spawn`, for each stream. Not with overflow="block". `on_event` is called with what
        `pipeline` tells of a stage, too, as "held".
    limit, timeout, idle_timeout, cancel, on_timeout
        As of `spawn`, and all stages are stopped.

    Raises `InvalidValue`, and `SpawnError` (an `OSError`) that names the stage.
    """
    given = locals()
    if any(map(is_late, stages)):
        stages, of_all = of_many(stages, given_to(spawn_pipeline, given))
        return spawn_pipeline(*stages, **of_all)
    policy = as_overflow(overflow)._raw()
    if policy is None:
        hint = 'the outputs of a pipeline are read ahead: use "spill", "drop_oldest", '
        raise bad_value("overflow", overflow, f'{hint}"drop_newest" or "fail"')
    failures = None
    if on_event is not None:
        from ._callback import Failures

        callback("on_event", on_event, ("event",))
        failures = Failures(" | ".join(_words(stage) for stage in stages))
        given["on_event"] = failures.of_event_hook(on_event)
    stalls = seconds(stall_after, "stall_after")
    plan = Plan(spawn_pipeline, given)
    limits = on_timeout, timeout, idle_timeout
    # Made before the programs are there: a signal handler that raises leaves none behind.
    keeper = Keeper(plan.args, options.get("stop"), line_of_caller())
    try:
        core = plan.start(keeper.start_pipeline, overflow=policy, stall_after=stalls)
        return PipelineChild(plan.args, core, plan.decoding, keeper, failures, limits)
    except BaseException:
        # Nobody has seen it, and the traceback may be kept for long.
        keeper.stop()
        raise


def _words(stage: Any) -> str:
    """A stage for the log, before it is known to be one."""
    if isinstance(stage, Fan):
        return f"{{{', '.join(_words(program) for program in stage.programs)}}}"
    args = stage["args"] if hasattr(stage, "keys") and "args" in stage else stage
    try:
        return quoted(args)
    except TypeError:
        return repr(args)
