"""A child that is played: a stand-in is spawned, a process of its own that does what it is told.

So all that a `Child` can do is what it does for any program: streams, callbacks, waits of every
kind, signals, a stop. Nothing of it is imitated.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import sys

from ._errors import SpawnError
from ._fake_calls import command
from ._fake_check import not_started
from ._fake_reply import Err, Hang, In, Out, Pause
from ._invalid import InvalidValue
from ._options import SPAWN, translated
from ._record import Status
from ._setup import SETUP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._child import Child
    from ._fake_calls import Call
    from ._fake_reply import Reply
    from ._process import Process

#: Options that are set for the program itself, which the stand-in is not.
FOR_THE_PROGRAM = {
    "env",
    "extra_env",
    "cwd",
    "user",
    "group",
    "extra_groups",
    "umask",
    "rlimits",
    "nice",
}
#: Options that are ours, or by which the stand-in is as near as the program would be.
FOR_US = {
    "process_group",
    "start_new_session",
    "pty",
    "die_with_parent",
    "pass_fds",
    "liveness",
    "stop",
    "timeout",
    "idle_timeout",
    "until",
    "limit",
    "ok_codes",
    "cancel",
    "stdout",
    "stderr",
    "merged",
    "keep_full",
    "on_event",
    "input_wanted",
    "overflow",
    "stall_after",
    "channel",
    "detach",
}

_KINDS = {Out: "out", Err: "err", In: "in", Pause: "pause", Hang: "hang"}


def spawned(
    call: Call,
    reply: Reply,
    native: Callable[[dict[str, Any]], Child[Any, Any, Any, Any]],
) -> Child[Any, Any, Any, Any]:
    """Spawns a stand-in that plays the reply."""
    if not sys.executable:
        raise InvalidValue("a fake child is a Python program, and sys.executable has no path to it")
    file = _plan(reply)
    try:
        child = native(_options(call, file.fileno()))
    except SpawnError as error:
        file.close()
        path, why = os.fsencode(error.filename or ""), OSError(error.errno, error.strerror)
        raise not_started(call, error.step, path, why) from None
    except BaseException:
        file.close()
        raise
    call._file = file

    def tell(raw: Any) -> None:
        raw["argv"] = tuple(call.argv)
        status = Status(*raw["status"])
        predicate = f"was {status}" if status.kind == "signaled" else str(status)
        is_over = raw["reason"] == "finished"
        summary = f"{command(call)} {predicate if is_over else raw['outcome']}"
        raw["explanation"] = raw["explanation"].replace(raw["summary"], summary, 1)
        raw["summary"] = summary

    child._played = tell
    if child._keeper is not None:
        child._keeper.is_played = True
    return child


def _plan(reply: Reply) -> Any:
    import marshal
    import tempfile

    steps = []
    for step in reply.steps:
        value = getattr(step, "data", None)
        steps.append((_KINDS[type(step)], step.seconds if isinstance(step, Pause) else value))
    plan = marshal.dumps((steps, reply.returncode))
    # It is open for as long as the call may be asked for its input.
    file: Any = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
    file.write(len(plan).to_bytes(8, "little") + plan)
    return file


def _options(call: Call, fd: int) -> dict[str, Any]:
    """The options of the call, for the stand-in."""
    from ._spawn import spawn

    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(spawn).parameters.items()
        if name in FOR_THE_PROGRAM or name in SETUP
    }
    table = {name: SPAWN[name] for name in defaults if name not in SETUP}
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_stand_in.py")
    words = [sys.executable, "-I", "-S", program, str(fd)]
    return {
        **call._options,
        **translated(table, defaults),
        "argv": [os.fsencode(word) for word in words],
        "shown_as": command(call),
        "pass_fds": [*call._options["pass_fds"], fd],
    }


def end(process: Process) -> None:
    """Ends a stand-in that tested code has left running."""
    from ._errors import NoSuchProcess

    with contextlib.suppress(NoSuchProcess):
        process.stop("KILL")
