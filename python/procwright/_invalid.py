"""`InvalidValue`: alone, since the other exceptions import `subprocess`, which is slow."""

from __future__ import annotations

#: The core's names of options that have another name in Python.
_NAMES = {"argv": "args", "new_session": "start_new_session"}


class InvalidValue(ValueError):
    """A value that cannot be used. Nothing was done."""

    #: The option that the core has refused, by its name in Python; empty if it was Python.
    _option = ""


def refused_by_core(what: str, text: str) -> InvalidValue:
    """The core's refusal of the value that it calls `what`: `text` begins with that."""
    for name, ours in _NAMES.items():
        # "argv", or "argv[2]".
        if what == name or what.startswith(name + "["):
            text = ours + text.removeprefix(name)
            what = ours + what.removeprefix(name)
    error = InvalidValue(text)
    error._option = what
    return error


InvalidValue.__module__ = "procwright"
