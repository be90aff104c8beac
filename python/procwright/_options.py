"""The options of `run` and `spawn`: one table of how each becomes what the core takes.

An option is written here, in the signature of the function that has it, and in
`src/options.rs`, whose field has its name. A test holds the three together.
"""

from __future__ import annotations

import os

from . import _core
from ._invalid import InvalidValue
from ._stdio import stderr_sink, stdout_sink, terminal
from ._timeout import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Final, NoReturn, TypeAlias, TypeVar

    from ._event import Event

    _Table: TypeAlias = Mapping[str, Callable[[Any], object] | None]
    _T = TypeVar("_T")


def _env(env: Mapping[Any, Any] | None) -> list[tuple[bytes, bytes]] | None:
    return None if env is None else _variables("env", env)


def _extra_env(env: Mapping[Any, Any] | None) -> list[tuple[bytes, bytes | None]]:
    if env is None:
        return []
    removed = [(os.fsencode(key), None) for key, value in env.items() if value is None]
    kept = {key: value for key, value in env.items() if value is not None}
    return [*removed, *_variables("extra_env", kept)]


def _variables(name: str, env: Mapping[Any, Any]) -> list[tuple[bytes, bytes]]:
    try:
        return [(os.fsencode(key), os.fsencode(value)) for key, value in env.items()]
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def _path(path: Any) -> bytes | None:
    return None if path is None else os.fsencode(path)


def _maybe_list(items: Iterable[_T] | None) -> list[_T] | None:
    return None if items is None else list(items)


def _unless_minus_one(number: int | None) -> int | None:
    """subprocess has -1 where there is nothing to set."""
    return None if number == -1 else number


def _rlimits(
    rlimits: Mapping[str, int | tuple[int, int]] | None,
) -> list[tuple[str, int, int]]:
    limits = []
    for name, value in (rlimits or {}).items():
        soft, hard = (value, value) if isinstance(value, int) else value
        limits.append((name, _rlimit(soft), _rlimit(hard)))
    return limits


def _rlimit(value: int) -> int:
    return 2**64 - 1 if value == -1 else value


def _death_signal(value: bool | str | int) -> str | int | None:
    if isinstance(value, bool):
        return "KILL" if value else None
    return value


def _limit(limit: int | _core.Limit | None) -> _core.Limit | None:
    return _core.Limit(limit) if isinstance(limit, int) else limit


def longest_line(length: int | None) -> int | None:
    """The `max_length` of lines for callbacks."""
    if length is not None and (not isinstance(length, int) or not 0 < length < 2**63):
        raise InvalidValue(f"max_length is {length!r}: a number of bytes, or None for no limit")
    return length


def too_long_fails(too_long: str) -> bool:
    """Whether a line of more than `max_length` is an error."""
    if too_long not in ("split", "fail"):
        raise InvalidValue(f'too_long is {too_long!r}: use "split" or "fail"')
    return too_long == "fail"


def _event_hook(hook: Callable[[Event], object] | None) -> Callable[..., object]:
    if hook is None:
        return _log
    from ._event import Event

    return lambda *parts: hook(Event(*parts))


def _log(kind: str, text: str, *_parts: object) -> None:
    import logging

    logging.getLogger("procwright").warning("%s", text)


def _overflow(policy: Any) -> tuple[str, int, int | None] | None:
    from ._overflow import as_overflow

    return as_overflow(policy)._raw()


#: The function that makes each option's value into the core's; None for one that is it already.
COMMON: Final[_Table] = {
    "env": _env,
    "extra_env": _extra_env,
    "cwd": _path,
    "user": None,
    "group": None,
    "extra_groups": _maybe_list,
    "umask": _unless_minus_one,
    "rlimits": _rlimits,
    "nice": None,
    "process_group": _unless_minus_one,
    "start_new_session": bool,
    "pty": terminal,
    "die_with_parent": _death_signal,
    "pass_fds": list,
    "liveness": bool,
    "stop": None,
    "stdout": stdout_sink,
    "stderr": stderr_sink,
    "merged": bool,
    "on_event": _event_hook,
}

#: The options of `run` that the core takes.
RUN: Final[_Table] = {
    **COMMON,
    "timeout": seconds,
    "idle_timeout": seconds,
    "until": None,
    "limit": _limit,
    "max_length": longest_line,
    "too_long": too_long_fails,
    "keep_full": _path,
    "cancel": None,
}

#: The options of `spawn` that the core takes.
SPAWN: Final[_Table] = {
    **COMMON,
    "overflow": _overflow,
    "stall_after": seconds,
    "channel": None,
}


def translated(table: _Table, given: Mapping[str, Any]) -> dict[str, object]:
    """The options of `table` for the core, out of the parameters of a call."""
    return {
        name: given[name] if translate is None else translate(given[name])
        for name, translate in table.items()
    }


def argv(function: str, args: Any, shell: bool) -> list[bytes]:
    """The arguments as bytes. `function` is what the user called, for the error."""
    is_one = _is_one(args)
    if shell:
        # The items behind the line are the shell's $0, $1, ..., as in subprocess.
        words = [args] if is_one else list(args)
        return [b"/bin/sh", b"-c", *_encoded(words)]
    if is_one:
        _refuse_line(function, args)
    return _encoded(args)


def quoted(args: Any) -> str:
    """The arguments as a line for a shell."""
    import shlex

    if _is_one(args):
        args = [args]
    return shlex.join(os.fsdecode(word) for word in args)


def _is_one(args: Any) -> bool:
    return isinstance(args, (str, bytes)) or hasattr(args, "__fspath__")


def _encoded(args: Any) -> list[bytes]:
    words = []
    for index, word in enumerate(args):
        try:
            words.append(os.fsencode(word))
        except TypeError:
            raise TypeError(
                f"args[{index}] is {word!r}, of type {type(word).__name__}: "
                "every argument is a str, bytes or a path"
            ) from None
    return words


def _refuse_line(function: str, args: Any) -> NoReturn:
    import shlex

    line = os.fsdecode(args)
    try:
        words = shlex.split(line)
    except ValueError:
        words = [line]
    raise TypeError(
        f"{function}({args!r}): args is one string. Pass a list, {function}({words!r}), "
        f"or say that it is a line for the shell, {function}({args!r}, shell=True)"
    )


def call(
    native: Callable[[dict[str, Any]], _T], options: dict[str, Any], given: Mapping[str, Any]
) -> _T:
    """Calls the core. An option that it refuses is told of in Python's words."""
    try:
        return native(options)
    except InvalidValue as error:
        from ._refused import words

        text = words(error._option, given)
        if text is not None:
            error.args = (text,)
        raise
