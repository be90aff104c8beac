"""The core's refusals in Python's words: its constants, and the values that were given.

Whether a value can be used the core alone decides. Its own words are shown where there are none
here.
"""

from __future__ import annotations

import re

from ._invalid import shown
from ._stdio import named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ._invalid import InvalidValue


def words(error: InvalidValue, given: Mapping[str, Any]) -> str:
    """The text for an option that was refused. `given` has the parameters of the call."""
    option = error._option
    text = None
    if given.get("detach") and (refused := _with_detach(option, given)) is not None:
        return refused
    if given.get("pty"):
        text = _with_pty(option)
    elif option == "merged" and "overflow" in given:
        text = _merged_with(given["overflow"])
    elif "overflow" in given:
        text = _of_a_child(option, error._problem, given)
    if text is None:
        # Some of the core's words have the value: the caller's own is shown.
        problem = re.sub(r"^is .*, which ", "", error._problem)
        text = f", which {problem}: {error._hint}"
    found = re.fullmatch(r"(\w+)(?:\[(\d+)\])?", option)
    if found is None or found[1] not in given:
        return str(error)
    value = given[found[1]]
    if found[2] is not None:
        value = list(value)[int(found[2])] if isinstance(value, (list, tuple)) else value
    return f"{option} is {shown(named(value))}{text}"


_BY_COMMAND = (
    'start it by ["procwright", "run", "--{flag}", TIME, "--", ...], or leave it or detach out'
)


def _with_detach(option: str, given: Mapping[str, Any]) -> str | None:
    why = {
        "stdout": "pass a file, DEVNULL, or INHERIT",
        "stderr": "pass a file, DEVNULL, INHERIT, or STDOUT",
        "stdin": "pass a path, a file, or nothing",
        "pty": "leave it out, and pass a file as stdout",
        "die_with_parent": "leave it or detach out",
        "channel": "leave it or detach out",
        "timeout": _BY_COMMAND.format(flag="timeout"),
        "idle_timeout": _BY_COMMAND.format(flag="idle-timeout"),
        "limit": 'pass rlimits={"fsize": n} for the file that it writes, or leave it or detach out',
        "keep_full": "pass it as stdout",
        "until": "leave it out, wait() is for the exit alone",
        "cancel": "leave it out, stop() of the child ends it, or leave detach out",
    }.get(option)
    if why is None:
        return None
    is_input = option == "stdin" and given["input"] is not None
    name = "input" if is_input else option
    value = shown(given["input"] if is_input else named(given[option]))
    return (
        f"{name} is {value}, which ends with us, and with detach=True the program lives on: {why}"
    )


def _with_pty(option: str) -> str | None:
    return {
        "stdout": (
            ", and with pty it is the terminal: leave it out, or pass CAPTURE; tee=True shows "
            "what is captured"
        ),
        "stderr": (
            ", and with pty it is the terminal: leave it out, and it comes with stdout; or send "
            "it to a file"
        ),
        "merged": (
            ", and a pty is one stream: leave it out, stdout has all of it in the order in which "
            "it was written"
        ),
        "process_group": (
            ", and a program on a pty leads a session and a group of its own: leave it out"
        ),
        "overflow": ', the bare pipe, and a pty is none: use "spill"',
        "stdin": (
            ", and nobody would pass on what is typed there: use PIPE and write what is to be "
            "typed, or run()"
        ),
    }.get(option)


def _of_a_child(option: str, problem: str, given: Mapping[str, Any]) -> str | None:
    if option == "limit" and problem.startswith("is for run()"):
        return (
            ", which keeps both ends, and what comes is yours to keep: bound what is not read by "
            'overflow, or stop the child by Limit(n, "fail")'
        )
    if option in ("idle_timeout", "limit", "keep_full", "until") and "read ahead" in problem:
        return (
            ', which needs output to be read ahead, and overflow="block" keeps none: use "spill", '
            '"drop_oldest", "drop_newest" or "fail"'
        )
    return None


def _merged_with(overflow: Any) -> str | None:
    from ._overflow import as_overflow

    policy = as_overflow(overflow).policy
    if policy not in ("drop_oldest", "block"):
        return None
    return (
        f', which cannot be had with overflow="{policy}": use "spill", "drop_newest" or "fail", '
        "or read the two apart"
    )
