"""`InvalidValue`: alone, since the other exceptions import `subprocess`, which is slow."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The core's names of options that have another name in Python.
_NAMES = {"argv": "args", "new_session": "start_new_session"}
#: Characters of a value that an error shows.
_SHOWN = 200


class InvalidValue(ValueError):
    """A value that cannot be used. Nothing was done.

    The text says which parameter it was, its value, and what would do. A value of a type
    that the parameter does not take is also a `TypeError`, and the name of an encoding that
    there is not a `LookupError`.
    """

    #: The option that the core has refused, by its name in Python; empty if it was Python.
    _option = ""
    #: What is wrong with it, and what would do, in the core's words.
    _problem = ""
    _hint = ""

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (_KINDS.index(type(self)), self.args)


class _WrongType(InvalidValue, TypeError):
    pass


class _UnknownName(InvalidValue, LookupError):
    pass


_KINDS: tuple[type[InvalidValue], ...] = (InvalidValue, _WrongType, _UnknownName)
for _kind in _KINDS:
    # Users see one class: which built-in one it is as well is a detail.
    _kind.__name__ = _kind.__qualname__ = "InvalidValue"
    _kind.__module__ = "procwright"


def _again(kind: int, args: tuple[Any, ...]) -> InvalidValue:
    return _KINDS[kind](*args)


def shown(value: Any) -> str:
    """The value as an error shows it: its `repr`, of what is long the beginning."""
    if isinstance(value, (str, bytes, bytearray)) and len(value) > _SHOWN:
        return repr(value[:_SHOWN]) + "..."
    try:
        text = repr(value)
        if text.startswith("PosixPath("):
            # As one types it.
            text = text.removeprefix("Posix")
    except Exception:
        return f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def bad_value(name: str, value: Any, hint: str) -> InvalidValue:
    """The error for a value of the parameter `name`. `hint` says what would do."""
    return InvalidValue(f"{name} is {shown(value)}: {hint}")


def bad_type(name: str, value: Any, hint: str) -> InvalidValue:
    """The error for a value of a type that the parameter `name` does not take."""
    return _WrongType(f"{name} is {shown(value)}: {hint}")


def bad_argument(text: str) -> InvalidValue:
    """The error for arguments of which one is missing or one too many."""
    return _WrongType(text)


def unknown_name(name: str, value: Any, hint: str) -> InvalidValue:
    """The error for a name, the value of the parameter `name`, that nothing has."""
    return _UnknownName(f"{name} is {shown(value)}: {hint}")


def refused_by_core(what: str, problem: str, hint: str) -> InvalidValue:
    """The core's refusal of the value that it calls `what`."""
    for name, ours in _NAMES.items():
        # "argv", or "argv[2]".
        if what == name or what.startswith(name + "["):
            what = ours + what.removeprefix(name)
    error = InvalidValue(f"{what} {problem}: {hint}")
    error._option, error._problem, error._hint = what, problem, hint
    return error
