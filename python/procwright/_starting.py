"""The way of every start to the core: audit events, and what a test puts in its place."""

from __future__ import annotations

import os
import sys

from ._options import call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal, TypeAlias, TypeVar

    _T = TypeVar("_T")
    _Function: TypeAlias = Literal["run", "spawn", "map", "pipeline"]
    #: Answers a call in the place of the core: the function that was called, that of the core,
    #: the options for the core, and the parameters as they were given.
    _Player: TypeAlias = Callable[
        [_Function, Callable[[dict[str, Any]], Any], dict[str, Any], Mapping[str, Any]], Any
    ]

#: What answers calls, None for the core: set by `procwright.testing` alone.
answer: _Player | None = None


def audit(function: _Function, options: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raises the audit events of a start, before anything is done for it.

    `procwright.run`, `procwright.spawn`, `procwright.map` or, for each stage,
    `procwright.pipeline`, and `subprocess.Popen`, which hooks
    know: each with what CPython has for that, (executable, args, cwd, env). A hook that raises
    refuses the start.
    """
    argv = [os.fsdecode(word) for word in options["argv"]]
    if not argv:
        # The core is about to refuse it.
        return
    cwd = given["cwd"]
    env = _environment(given["env"], given["extra_env"])
    for event in (f"procwright.{function}", "subprocess.Popen"):
        sys.audit(event, argv[0], argv, cwd, env)


def _environment(env: Any, extra: Any) -> Any:
    """The environment that the program gets, None for ours."""
    if not extra:
        return env
    whole = {
        os.fsdecode(name): value for name, value in (os.environ if env is None else env).items()
    }
    for name, value in extra.items():
        if value is None:
            whole.pop(os.fsdecode(name), None)
        else:
            whole[os.fsdecode(name)] = value
    return whole


def start(
    function: _Function,
    native: Callable[[dict[str, Any]], _T],
    options: dict[str, Any],
    given: Mapping[str, Any],
) -> _T:
    """Starts what `options` say, by `native`, unless a test has an answer to it."""
    answering = answer
    if answering is None:
        return call(native, options, given)
    answered: _T = answering(function, native, options, given)
    return answered
