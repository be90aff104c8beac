"""Parameters of others, and what to write in their place. Imported when one was given."""

from __future__ import annotations

from ._invalid import _WrongType, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ._invalid import InvalidValue

_CAPTURED = "both outputs come to you unless said otherwise: leave it out"
#: Parameters of subprocess, and what does here what they do there.
_OF_SUBPROCESS = {
    "bufsize": "what is written is in the pipe, and what comes is there: leave it out",
    "capture_output": _CAPTURED,
    "close_fds": "the program gets no descriptors but its streams and pass_fds: leave it out",
    "creationflags": "it is for Windows: leave it out",
    "executable": "the first of args is what is run: pass the program there",
    "pipesize": "what comes is taken at once, whatever the size: leave it out",
    "preexec_fn": (
        "no Python runs between fork and exec: use umask, rlimits, nice, user, process_group, "
        "start_new_session or die_with_parent"
    ),
    "restore_signals": "signals are always restored: leave it out",
    "startupinfo": "it is for Windows: leave it out",
    "universal_newlines": "pass text=True, which leaves newlines as they are",
}
#: Parameters of `run` that a child has as methods.
_OF_A_CHILD = {
    "check": "call check_returncode() of the child's result()",
    "timeout": "pass it to wait(), communicate() or result() of the child",
}


def refusal(
    function: str, unknown: Mapping[str, object], known: Iterable[str], others: Iterable[str]
) -> InvalidValue:
    """The error for parameters that `function` does not have. `others` are those of its
    sibling."""
    name, value = next(iter(unknown.items()))
    known = [one for one in known if one != "unknown"]
    hint = _hint(function, name, known, others)
    return _WrongType(f"{name} is {shown(value)}, and {function}() has no such parameter: {hint}")


def _hint(function: str, name: str, known: list[str], others: Iterable[str]) -> str:
    import difflib

    if name in _OF_SUBPROCESS:
        return _OF_SUBPROCESS[name]
    if function == "spawn" and name in _OF_A_CHILD:
        return _OF_A_CHILD[name]
    if name in others:
        return f"{'run' if function == 'spawn' else 'spawn'}() has it"
    near = difflib.get_close_matches(name, known, 1)
    return f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}"
