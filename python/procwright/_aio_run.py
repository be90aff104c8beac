"""`aio.run` and `aio.spawn`."""

from __future__ import annotations

import contextlib

import anyio
from anyio.lowlevel import checkpoint

from . import _core, _run, _spawn, _starting
from ._aio_child import Child, talked
from ._aio_held import Held
from ._aio_sleep import outlasted, undisturbed
from ._aio_whole import attach, on_thread
from ._held import HeldAt
from ._keeper import Keeper, line_of_caller
from ._late_calls import is_late, of_one, on_top
from ._options import SPAWN, quoted
from ._run import RunCall
from ._starting import start
from ._stream import Reader
from ._timeout import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ._late import LateCommand, LatePipeline
    from ._result import Result
    from ._types import Args

#: What an event loop does itself. A run that is asked for anything else, which the core does on
#: the thread of its caller, has a thread.
_ON_A_THREAD = {
    "tee": False,
    "on_line": None,
    "on_stdout_line": None,
    "on_stderr_line": None,
    "keep_full": None,
    "merged": False,
    "limit": None,
    "on_event": None,
    "input_wanted": False,
    "explain_after": None,
}

#: What the core takes for a child, beside what it takes for a run. All that comes is read at
#: once, unless the event loop is busy: then it waits in memory and on disk.
_OF_A_CHILD = {
    "overflow": SPAWN["overflow"]("spill"),
    "stall_after": None,
    "channel": None,
    "detach": False,
    "on_event": lambda *_: None,
}


def spawn(
    args: Args | LateCommand[Any] | LatePipeline, *words: object, **options: Any
) -> Child[Any, Any, Any, Any]:
    """Starts a program and returns at once, with the child and its streams: `procwright.spawn`,
    whose parameters, defaults and errors it has, for event loops.

    Starting takes a millisecond or so, and waits for nothing, so it is not awaited:
    `async with aio.spawn(...) as child:`.
    """
    if is_late(args):
        args, options = of_one("spawn", args, words, on_top(_spawn.spawn, options))
    elif words:
        from ._unknown import words_behind

        raise words_behind("aio.spawn", args, words, options.get("shell"))
    return Child(_spawn.spawn(args, **options))


async def run(
    args: Args | LateCommand[Any] | LatePipeline, *words: object, **options: Any
) -> Result[Any, Any, Any]:
    """Runs a program, waits until the run is over, and returns all that came of it:
    `procwright.run`, whose parameters, defaults, results and errors it has, awaited.

    Cancelled, it stops the program and all of its processes as `stop` says, which takes the
    grace and 2 s at most, and reaps it; then the cancellation goes on. Its exception has the
    `result`, with what was read by then, where such an exception can have one.

    With `tee`, `on_line` and its like, `keep_full`, `merged`, `limit`, `on_event`,
    `input_wanted`, `explain_after` or `until="silent:..."` the run has a thread for as long as it
    lasts; without them it has none.
    """
    if is_late(args):
        args, options = of_one("run", args, words, on_top(_run.run, options))
    elif words:
        from ._unknown import words_behind

        raise words_behind("aio.run", args, words, options.get("shell"))
    given = {"args": args, **_DEFAULTS, **options}
    unknown = {name: value for name, value in options.items() if name not in _DEFAULTS}
    if unknown:
        from ._unknown import refusal

        known = ["args", *_DEFAULTS]
        raise refusal("run", unknown, known, SPAWN, options.get("shell"), "aio.")
    await checkpoint()
    call = RunCall(given)
    if _starting.answer is not None or _wants_thread(given):
        return await _on_thread(call, given)
    return await _on_loop(call, given)


#: The parameters of `run`, with their defaults.
_DEFAULTS: dict[str, Any] = _run.run.__kwdefaults__ or {}


# For help() and editors.
run.__wrapped__ = _run.run  # type: ignore[attr-defined]
spawn.__wrapped__ = _spawn.spawn  # type: ignore[attr-defined]


def _wants_thread(given: Mapping[str, Any]) -> bool:
    until = given["until"]
    return (isinstance(until, str) and until.startswith("silent:")) or any(
        given[name] is not default for name, default in _ON_A_THREAD.items()
    )


async def _on_thread(call: RunCall, given: Mapping[str, Any]) -> Result[Any, Any, Any]:
    """A whole run of the core's, on a thread."""

    def run(own: _core.Cancel) -> _core.RawResult:
        return start("run", _core.run, {**call.options, "cancel": own}, given)

    return call.outcome(await on_thread(run, given["cancel"], lambda raw: call.result(raw())))


async def _on_loop(call: RunCall, given: Mapping[str, Any]) -> Result[Any, Any, Any]:
    """A child whose outputs are read to their end."""
    options = {**call.options, **_OF_A_CHILD}
    # Made before the program is there: a signal handler that raises leaves none behind.
    keeper = Keeper(call.args, given["stop"], line_of_caller())
    core = start("run", keeper.start, options, given)
    streams = core.streams()
    stdout = Reader(streams, 1) if streams.has_stdout else None
    stderr = Reader(streams, 2) if streams.has_stderr else None
    talk = _core.Communication(core, None, None, [stdout, stderr])
    held = None
    try:
        # `run` has let others have their turn already.
        if not await talked(core, talk, HeldAt(core), is_begun=True):
            tell: Any = call.options["on_event"]
            held = Held(lambda begins: _tell(core, tell, begins))
            await talked(core, talk, Deadline(None), is_begun=True)
    except GeneratorExit:
        # Nothing can be awaited any more. The keeper goes with this, and stops the program.
        if held is not None:
            held.silence()
            held = None
        raise
    except BaseException as error:
        if not core.is_ours():
            # A fork has no part in it.
            held = None
            raise
        is_cancelled = isinstance(error, anyio.get_cancelled_exc_class())
        survivors, cancelled = await outlasted("procwright-stop", lambda: core.stop(None))
        if cancelled is not None and not is_cancelled:
            raise cancelled from error
        if is_cancelled:
            # Whatever becomes of its result, the cancellation goes on.
            with contextlib.suppress(Exception):
                last_words = Deadline(0 if survivors else _LAST_WORDS_S)
                await undisturbed(lambda: talked(core, talk, last_words, is_begun=True))
                raw = _raw(core, talk)
                if raw is not None:
                    attach(error, call.result(_as_cancelled(raw, given)))
        raise
    finally:
        for reader in (stdout, stderr):
            if reader is not None:
                reader.close()
        if held is not None:
            await held.end()
    raw = _raw(core, talk)
    assert raw is not None
    return call.outcome(raw)


#: Seconds for the end of the outputs of a program that was stopped: nobody is left to write them.
_LAST_WORDS_S = 0.5


def _tell(core: _core.Child, tell: Callable[..., object], begins: Callable[[], bool]) -> None:
    """Tells who holds the outputs, unless the run is over when that is known."""
    text = core.held()
    if text is not None and begins():
        tell("held", text)


def _raw(core: _core.Child, talk: _core.Communication) -> _core.RawResult | None:
    """What came of a child, None if it lives."""
    out, err = (None if read is None else read[0] for read in talk.take())
    return core.report(out, err)


def _as_cancelled(raw: _core.RawResult, given: Mapping[str, Any]) -> _core.RawResult:
    """The result of a run that was cancelled, as that of a `Cancel`."""
    line = f"{quoted(given['args'])} was cancelled after {raw['duration_s']:.3g} s"
    raw["reason"] = "cancelled"
    raw["explanation"] = "\n".join([line, *raw["explanation"].splitlines()[1:]])
    return raw
