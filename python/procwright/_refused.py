"""The core's refusals in Python's words: its constants, and the values that were given.

Whether a value can be used the core alone decides. Its own words are shown where there are none
here.
"""

from __future__ import annotations

from ._stdio import named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def words(option: str, given: Mapping[str, Any]) -> str | None:
    """The text for an option that was refused, None for that of the core.

    `given` has the parameters of the call.
    """
    if given["pty"]:
        return _with_pty(option, given)
    if option == "merged" and "overflow" in given:
        return _merged_with(given["overflow"])
    return None


def _with_pty(option: str, given: Mapping[str, Any]) -> str | None:
    value = given.get(option)
    if option == "stdout":
        return (
            f"stdout is {named(value)}, and with pty it is the terminal: leave it out, "
            "or pass CAPTURE"
        )
    if option == "stderr":
        return (
            f"stderr is {named(value)}, and with pty it is the terminal: leave it out, and it "
            "comes with stdout; or send it to a file"
        )
    if option == "merged":
        return (
            "merged=True is for two streams, and a pty is one: leave it out, stdout has all "
            "of it in the order in which it was written"
        )
    if option == "process_group":
        return (
            f"process_group is {value!r}: a program on a pty leads a session and a "
            "group of its own, leave it out"
        )
    if option == "overflow":
        return 'overflow="block" is the bare pipe, and a pty is none: use "spill"'
    if option == "stdin":
        return (
            "stdin is INHERIT, and nobody would pass on what is typed there: use PIPE and write "
            "what is to be typed, or run()"
        )
    return None


def _merged_with(overflow: Any) -> str | None:
    from ._overflow import as_overflow

    policy = as_overflow(overflow).policy
    if policy not in ("drop_oldest", "block"):
        return None
    return (
        f'merged=True cannot be had with overflow="{policy}": use "spill", '
        '"drop_newest" or "fail", or read the two apart'
    )
