"""What a call is refused for before its program starts: a fake refuses it too."""

from __future__ import annotations

import errno
import json
import os
import stat

from . import _core
from ._errors import SpawnError, _spawn_error
from ._fake_calls import command
from ._run_errors import Cancelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ._fake_calls import Call

#: Of a child the stand-in is given all else, and the core refuses it there.
_OF_A_CHILD = (
    "argv",
    "env",
    "extra_env",
    "cwd",
    "user",
    "group",
    "extra_groups",
    "umask",
    "rlimits",
    "nice",
    "setup",
)
_NULL = ("null", None)


def refuse_as_core(options: Mapping[str, Any]) -> None:
    """Raises what the core would for options of a `run`, before it starts or opens anything."""
    # Whether a value can be used the core alone decides, and it does before it looks at this.
    cancel = _core.Cancel()
    cancel.cancel()
    asked = {**options, "cancel": cancel, "tee": [], "taps": []}
    if asked["stdin"][0] == "iterator":
        asked["stdin"] = _NULL
    try:
        _core.run(asked)
    except Cancelled:
        return


def refuse_pipeline_as_core(options: Mapping[str, Any]) -> None:
    """Raises what the core would for options of a `pipeline`, before it starts anything."""
    cancel = _core.Cancel()
    cancel.cancel()
    first, *others = options["stages"]
    if first["stdin"][0] == "iterator":
        first = {**first, "stdin": _NULL}
    try:
        _core.pipeline({**options, "stages": [first, *others], "cancel": cancel})
    except (Cancelled, SpawnError):
        # A program that there is not is found behind all values, and before the cancel.
        return


def refuse_child_as_core(options: Mapping[str, Any]) -> None:
    """Raises what the core would for the options of a `spawn` that no stand-in is given."""
    from ._options import RUN, translated
    from ._run import run

    given = dict(run.__kwdefaults__ or {})
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), _NULL)
    own = {name: options[name] for name in _OF_A_CHILD}
    refuse_as_core({**translated(RUN, given), **streams, **own})


def refuse_directory(call: Call) -> None:
    """Raises the `SpawnError` of a `cwd` that the program could not go to."""
    path = call._options["cwd"]
    if path is None or any(name == "chroot" for name, _ in call._options["setup"]):
        # Behind a chroot it is another directory than ours.
        return
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise not_started(call, "chdir", path, error) from None
    if not stat.S_ISDIR(mode):
        why = NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        raise not_started(call, "chdir", path, why)


def not_started(call: Call, step: str, path: bytes, why: OSError, hint: str = "") -> SpawnError:
    """The error of a program that is not started since `step` fails for a path."""
    name = os.fsdecode(path)
    reason = f"{why.strerror} (os error {why.errno})"
    text = f"cannot run {command(call)}: {step} {json.dumps(name, ensure_ascii=False)}: {reason}"
    return _spawn_error(why.errno or 0, why.strerror or "", name, step, text + hint)
