"""What is set up before a program's first instruction: parameters of `run`, `spawn` and `map`
whose kinds and hints are those of the core's table.

One is written there, and in the signatures.
"""

from __future__ import annotations

from . import _core
from ._arguments import encoded, items, number
from ._invalid import InvalidValue, bad_type, bad_value, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Final


def _number(name: str, value: Any, hint: str) -> int:
    return number(name, value, -(2**31), 2**31 - 1, hint)


def _numbers(name: str, value: Any, hint: str) -> list[int]:
    given = enumerate(items(name, value, hint))
    return [number(f"{name}[{place}]", one, 0, 2**31 - 1, hint) for place, one in given]


def _text(name: str, value: Any, hint: str) -> str:
    if not isinstance(value, str):
        raise bad_type(name, value, hint)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise bad_value(name, value, hint) from None
    return value


def _signals(name: str, value: Any, hint: str) -> list[str | int]:
    given = enumerate(items(name, value, hint))
    return [_core.checked_signal(f"{name}[{place}]", one) for place, one in given]


_OF_KIND: dict[str, Callable[[str, Any, str], object]] = {
    "flag": lambda _name, value, _hint: bool(value),
    "number": _number,
    "numbers": _numbers,
    "text": _text,
    "signals": _signals,
    "path": encoded,
}

#: Kind, hint and default of each, by its name.
SETUP: Final = {
    name: (kind, hint, False if kind == "flag" else None)
    for name, kind, hint in _core.setup_options()
}


def translated_setup(given: Mapping[str, Any]) -> list[tuple[str, object]]:
    """Those that were given, for the core, out of the parameters of a call."""
    names = [name for name, (_, _, default) in SETUP.items() if given[name] is not default]
    return [(name, _translated(name, given[name])) for name in names]


def _translated(name: str, value: Any) -> object:
    kind, hint, _ = SETUP[name]
    translated = _OF_KIND[kind](name, value, hint)
    fault = _core.setup_fault(name, translated)
    if fault is not None:
        import re

        problem, hint = fault
        # Some of the core's words have the value: the caller's own is shown.
        problem = re.sub(r"^is .*, which ", "", problem)
        raise InvalidValue(f"{name} is {shown(value)}, which {problem}: {hint}")
    return translated
