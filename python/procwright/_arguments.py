"""Values of parameters: each function gives what the core takes, or raises `InvalidValue`."""

from __future__ import annotations

import operator
import os
import sys

from ._invalid import bad_type, bad_value, unknown_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def number(name: str, value: Any, least: int, most: int, hint: str) -> int:
    """The whole number from `least` to `most`."""
    try:
        # True is no number here: it is the slip of who takes the parameter for a switch.
        found = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        found = None
    if found is None:
        raise bad_type(name, value, hint)
    if not least <= found <= most:
        raise bad_value(name, value, hint)
    return found


def flag(name: str, value: Any, besides: str = "") -> bool:
    """What is true or false. None is false, as what was not given. `besides` says what else
    would do."""
    if value is None or isinstance(value, bool):
        return bool(value)
    try:
        # Of other libraries' truths, such as those of numpy.
        is_truth = value in (0, 1)
    except Exception:
        is_truth = False
    if not is_truth:
        raise bad_type(name, value, f"pass True or False{besides}")
    return bool(value)


_UNITS = {"": 1, "b": 1}
for _shift, _unit in enumerate(("k", "m", "g", "t"), 1):
    _UNITS[_unit] = _UNITS[f"{_unit}ib"] = 1 << 10 * _shift


def size(name: str, value: Any, besides: str = "") -> int:
    """A number of bytes, or text with a unit. `besides` says what else would do."""
    hint = f'pass 0 or more bytes, as 65536, "64KiB", "64K" or "1GiB"{besides}'
    most = 2**63 - 1
    if not isinstance(value, str):
        return number(name, value, 0, most, hint)
    found = _bytes_in(value)
    if found is None or found > most:
        raise bad_value(name, value, hint)
    return found


def _bytes_in(text: str) -> int | None:
    import re

    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text, re.ASCII)
    unit = _UNITS.get(found[2].lower()) if found else None
    if found is None or unit is None:
        return None
    return int(float(found[1]) * unit) if "." in found[1] else int(found[1]) * unit


def word(name: str, value: Any, words: tuple[str, ...], besides: str = "") -> str:
    """The value, which is one of `words`. `besides` says what else would do."""
    if isinstance(value, str) and value in words:
        return value
    quoted = [f'"{one}"' for one in words]
    hint = f"use {', '.join(quoted[:-1])} or {quoted[-1]}{besides}"
    raise (bad_value if isinstance(value, str) else bad_type)(name, value, hint)


def callback(name: str, value: Any, gets: tuple[str, ...] | None = None, besides: str = "") -> None:
    """Refuses what cannot be called with what it `gets`, and is not None. `besides` says what
    else would do."""
    if value is None:
        return
    if not callable(value):
        raise bad_type(name, value, "pass something that can be called, or None")
    if is_async(value):
        # Its coroutine would be dropped, and nothing of it would ever run.
        raise bad_type(name, value, _NOT_AWAITED + (_BY_LINE if "line" in (gets or ()) else ""))
    takes = None if gets is None else _takes(value)
    if gets is not None and takes is not None and not takes[0] <= len(gets) <= takes[1]:
        call = f"def {name}({', '.join(gets)})"
        count = f"{len(gets)} argument{'s' if len(gets) != 1 else ''}"
        raise bad_type(name, value, f"it is called with {count}, as {call}{besides}")


#: What to do in the place of a callback that would have to be awaited.
_NOT_AWAITED = "it is called, and nobody would await it: pass an ordinary function"
_BY_LINE = (
    "; to await something for each line, async with aio.spawn(...) as child: async for line in "
    "child.stdout"
)


def is_async(function: Any) -> bool:
    """Whether a call gives something that has to be awaited before anything is done."""
    while type(function).__module__ == "functools" and hasattr(function, "func"):
        # A partial.
        function = function.func
    if type(function).__name__ not in ("function", "method"):
        function = type(function).__call__ if callable(function) else None
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    return code is not None and bool(code.co_flags & _GIVES_AWAITABLE)


#: The flags of `async def`: CO_COROUTINE, and CO_ASYNC_GENERATOR with a yield in it.
_GIVES_AWAITABLE = 0x80 | 0x200


def _takes(function: Any) -> tuple[int, float] | None:
    """How many arguments it takes by position, at least and at most; None if that is not known,
    as of what is not written in Python."""
    bound = getattr(function, "__self__", None) is not None
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if type(function).__name__ != "function" or code is None:
        return None
    own = code.co_argcount - bound
    defaults = len(function.__defaults__ or ())
    has_rest = code.co_flags & _HAS_REST
    return max(own - defaults, 0), float("inf") if has_rest else own


#: The flag of a function that has `*args`, CO_VARARGS.
_HAS_REST = 0x04


def instance(name: str, value: Any, kind: type, hint: str) -> None:
    """Refuses what is not of this class."""
    if not isinstance(value, kind):
        raise bad_type(name, value, hint)


def encoded(name: str, value: Any, hint: str = "pass a str, bytes or a path") -> bytes:
    """The bytes of a string of the system's."""
    try:
        return os.fsencode(value)
    except TypeError:
        raise bad_type(name, value, hint) from None
    except UnicodeEncodeError:
        hint = f"it has characters that {sys.getfilesystemencoding()} cannot say; pass bytes"
        raise bad_value(name, value, hint) from None


def file_name(name: str, value: Any, hint: str) -> bytes:
    """The bytes of a path, which the system ends by a NUL."""
    found = encoded(name, value, hint)
    if b"\0" in found:
        raise bad_value(name, value, "it contains a NUL byte, which no path can have")
    return found


def refuse_closed(name: str, value: Any) -> None:
    """Refuses a file that was closed: it would be found out when the program runs."""
    if getattr(value, "closed", False) is True:
        raise bad_value(name, value, "it is closed, pass one that is open")


def items(name: str, value: Any, hint: str) -> list[Any]:
    """What is in an iterable that is no text."""
    if isinstance(value, (str, bytes, bytearray)):
        raise bad_type(name, value, hint)
    refuse_closed(name, value)
    try:
        iterator = iter(value)
    except TypeError:
        raise bad_type(name, value, hint) from None
    return list(iterator)


def pairs(name: str, value: Any, hint: str) -> list[tuple[Any, Any]]:
    """The items of a mapping."""
    found = getattr(value, "items", None)
    if found is None or isinstance(value, type):
        raise bad_type(name, value, hint)
    return list(found())


def data(name: str, value: Any, hint: str) -> bytes | bytearray:
    """The bytes of what has a buffer."""
    if isinstance(value, (bytes, bytearray)):
        return value
    try:
        return bytes(memoryview(value))
    except (TypeError, BufferError):
        raise bad_type(name, value, hint) from None


def codec(encoding: Any, errors: Any) -> tuple[str, str]:
    """Encoding and error handler, which are looked up: not when everything has been run."""
    import codecs

    for name, value, look_up, default in (
        ("encoding", encoding, codecs.lookup, "utf-8"),
        ("errors", errors, codecs.lookup_error, "replace"),
    ):
        hint = f'use the name of one that Python knows, such as "{default}", or None for that'
        if not isinstance(value, (str, type(None))):
            raise bad_type(name, value, hint)
        try:
            found = look_up(value or default)
        except (LookupError, ValueError):
            # A ValueError is that of a name with a NUL.
            raise unknown_name(name, value, hint) from None
        # Such as "hex", which makes bytes of bytes.
        if not getattr(found, "_is_text_encoding", True):
            raise unknown_name(name, value, hint)
    return encoding or "utf-8", errors or "replace"
