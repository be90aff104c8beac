"""The options of `run` and `spawn`: one table of how each becomes what the core takes.

An option is written here, in the signature of the function that has it, and in
`src/options.rs`, whose field has its name. A test holds the three together. Those of the
set-up are in `_setup.py`.
"""

from __future__ import annotations

import os

from . import _core
from ._arguments import callback, encoded, instance, items, number, pairs, size, word
from ._invalid import InvalidValue, bad_type, bad_value, shown
from ._process import as_stop
from ._setup import translated_setup
from ._stdio import refuse_same_file, stderr_sink, stdout_sink, terminal
from ._timeout import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Final, NoReturn, TypeAlias, TypeVar

    from ._event import Event
    from ._types import StrOrBytesPath

    _Table: TypeAlias = Mapping[str, Callable[[Any], object]]
    _T = TypeVar("_T")


def _env(env: Any) -> list[tuple[bytes, bytes]] | None:
    return None if env is None else _variables("env", pairs("env", env, _MAPPING))


def _extra_env(env: Any) -> list[tuple[bytes, bytes | None]]:
    if env is None:
        return []
    given = pairs("extra_env", env, _MAPPING)
    removed = [(_variable("extra_env", key), None) for key, value in given if value is None]
    return [*removed, *_variables("extra_env", [one for one in given if one[1] is not None])]


_MAPPING = "pass a mapping of names to values, each a str, bytes or a path"


def _variables(name: str, variables: list[tuple[Any, Any]]) -> list[tuple[bytes, bytes]]:
    return [
        (_variable(name, key), encoded(f"{name}[{key!r}]", value, text_hint(value)))
        for key, value in variables
    ]


def _variable(name: str, key: Any) -> bytes:
    return encoded(f"a name in {name}", key)


def _cwd(path: Any) -> bytes | None:
    return (
        None if path is None else encoded("cwd", path, "pass a directory, a str, bytes or a path")
    )


def _ok_codes(codes: Any) -> list[int]:
    hint = "pass a list of exit codes from 0 to 255 that are no failure, such as [1]"
    if codes is None:
        return []
    if hasattr(codes, "__next__"):
        # One command of a map would take what is for each.
        raise bad_type("ok_codes", codes, f"it can be gone through but once: {hint}")
    if hasattr(codes, "keys"):
        raise bad_type("ok_codes", codes, f"codes by stage are those of a pipeline: {hint}")
    return [
        number(f"ok_codes[{place}]", code, 0, 255, hint)
        for place, code in enumerate(items("ok_codes", codes, hint))
    ]


def _keep_full(path: Any) -> bytes | None:
    return (
        None if path is None else encoded("keep_full", path, "pass a file, a str, bytes or a path")
    )


def _account(name: str, what: str) -> Callable[[Any], str | int | None]:
    def account(value: Any) -> str | int | None:
        hint = f"pass the name of a {what}, or a number from 0 to 4294967294"
        # The last of 32 bits, (uid_t)-1, means "no change" to the system.
        return value if value is None else _name_or_number(name, value, 2**32 - 2, hint)

    return account


def _name_or_number(name: str, value: Any, most: int, hint: str) -> str | int:
    if isinstance(value, str):
        encoded(name, value)
        return value
    return number(name, value, 0, most, hint)


def _extra_groups(groups: Any) -> list[str | int] | None:
    if groups is None:
        return None
    hint = "pass a list of names of groups, or of numbers from 0 to 4294967294"
    return [
        _name_or_number(f"extra_groups[{place}]", group, 2**32 - 2, hint)
        for place, group in enumerate(items("extra_groups", groups, hint))
    ]


def _umask(value: Any) -> int | None:
    hint = "pass permission bits from 0 to 0o777, such as 0o022, or None"
    # subprocess has -1 where there is nothing to set.
    if value is None or value == -1:
        return None
    return number("umask", value, 0, 0o777, hint)


def _nice(value: Any) -> int | None:
    hint = "pass a number to add to ours, such as 10, or None"
    return None if value is None else number("nice", value, -(2**31), 2**31 - 1, hint)


def _process_group(value: Any) -> int | None:
    hint = "pass 0 for a group of its own, or the number of a group"
    if value is None or value == -1:
        return None
    return number("process_group", value, 0, 2**31 - 1, hint)


def _rlimits(rlimits: Any) -> list[tuple[str, int, int]]:
    hint = 'pass a mapping of names to limits, such as {"nofile": 100} or {"core": (0, -1)}'
    limits = []
    for name, value in [] if rlimits is None else pairs("rlimits", rlimits, hint):
        if not isinstance(name, str):
            raise bad_type("a name in rlimits", name, hint)
        what = f"rlimits[{name!r}]"
        both = value if isinstance(value, (tuple, list)) else (value, value)
        if len(both) != 2:
            raise bad_value(what, value, _RLIMIT)
        encoded(what, name)
        limits.append((name, _rlimit(what, value, both[0]), _rlimit(what, value, both[1])))
    return limits


_RLIMIT = "pass a number from 0 on, -1 for no limit, or a pair of these, (soft, hard)"


def _rlimit(what: str, given: Any, value: Any) -> int:
    infinity = 2**64 - 1
    try:
        limit = number(what, value, -1, infinity, _RLIMIT)
    except InvalidValue as error:
        # The pair is shown, not its half.
        made = bad_type if isinstance(error, TypeError) else bad_value
        raise made(what, given, _RLIMIT) from None
    return infinity if limit == -1 else limit


def _death_signal(value: Any) -> str | int | None:
    if value is None or isinstance(value, bool):
        return "KILL" if value else None
    signal: str | int = _core.checked_signal("die_with_parent", value)
    return signal


def _pass_fds(fds: Any) -> list[int]:
    hint = "pass a list of open descriptors, each a number from 0 on"
    return [
        number(f"pass_fds[{place}]", fd, 0, 2**31 - 1, hint)
        for place, fd in enumerate(items("pass_fds", fds, hint))
    ]


def _limit(limit: Any) -> _core.Limit | None:
    if limit is None or isinstance(limit, _core.Limit):
        return limit
    if isinstance(limit, dict):
        raise bad_type("limit", limit, "it is for each of the two streams: pass one, for both")
    return _core.Limit(size("limit", limit, ", or a Limit, or None"))


def _stop(stop: Any) -> _core.Stop | None:
    return None if stop is None else as_stop(stop)


def _until(value: Any) -> str:
    if isinstance(value, str) and value.startswith("silent:"):
        return value
    return word("until", value, ("eof", "exit"), ', or "silent:" and a time, as "silent:2s"')


def _cancel(value: Any) -> Any:
    if value is not None:
        hint = "pass a Cancel, and call its cancel() to end the run"
        if hasattr(value, "is_set"):
            # Nothing but a thread can wait for one, for ever if nobody sets it.
            hint = "an Event wakes threads alone; pass a Cancel, and call its cancel() for set()"
        instance("cancel", value, _core.Cancel, hint)
    return value


def _channel(value: Any) -> str | None:
    words = ("from_child", "to_child")
    besides = ", or None"
    if value in ("both", "duplex", "bidirectional"):
        besides += (
            '; for both directions spawn(..., stdin=PIPE, channel="from_child"), or pass_fds with '
            "an invitation to a queue of your own"
        )
    return None if value is None else word("channel", value, words, besides)


def _seconds(name: str) -> Callable[[Any], float | None]:
    return lambda value: seconds(value, name)


def longest_line(length: Any) -> int | None:
    """The `max_length` of lines for callbacks."""
    hint = "pass a number of bytes, 1 or more, or None for no limit"
    return None if length is None else number("max_length", length, 1, 2**63 - 1, hint)


def too_long_fails(too_long: Any) -> bool:
    """Whether a line of more than `max_length` is an error."""
    return word("too_long", too_long, ("split", "fail")) == "fail"


def event_hook(hook: Callable[[Event], object] | None) -> Callable[..., object]:
    """What is called with the parts of an event."""
    if hook is None:
        return _log
    callback("on_event", hook, ("event",))
    from ._event import Event

    return lambda *parts: hook(Event(*parts))


def _log(kind: str, text: str, *_parts: object) -> None:
    import logging

    logging.getLogger("procwright").warning("%s", text)


def _overflow(policy: Any) -> tuple[str, int, int | None] | None:
    from ._overflow import as_overflow

    return as_overflow(policy)._raw()


#: The function that makes each option's value into the core's, or raises `InvalidValue`.
COMMON: Final[_Table] = {
    "env": _env,
    "extra_env": _extra_env,
    "cwd": _cwd,
    "user": _account("user", "user"),
    "group": _account("group", "group"),
    "extra_groups": _extra_groups,
    "umask": _umask,
    "rlimits": _rlimits,
    "nice": _nice,
    "process_group": _process_group,
    "start_new_session": bool,
    "pty": terminal,
    "die_with_parent": _death_signal,
    "pass_fds": _pass_fds,
    "liveness": bool,
    "stop": _stop,
    "timeout": _seconds("timeout"),
    "idle_timeout": _seconds("idle_timeout"),
    "until": _until,
    "limit": _limit,
    "cancel": _cancel,
    "stdout": stdout_sink,
    "stderr": stderr_sink,
    "merged": bool,
    "ok_codes": _ok_codes,
    "keep_full": _keep_full,
    "on_event": event_hook,
    "input_wanted": bool,
}

#: The options of `run` that the core takes.
RUN: Final[_Table] = {
    **COMMON,
    "explain_after": _seconds("explain_after"),
    "max_length": longest_line,
    "too_long": too_long_fails,
}

#: The options of `spawn` that the core takes.
SPAWN: Final[_Table] = {
    **COMMON,
    "overflow": _overflow,
    "stall_after": _seconds("stall_after"),
    "channel": _channel,
    "detach": bool,
}


def translated(table: _Table, given: Mapping[str, Any]) -> dict[str, object]:
    """The options of `table` and of the set-up for the core, out of the parameters of a call."""
    options = {name: translate(given[name]) for name, translate in table.items()}
    options["setup"] = translated_setup(given)
    refuse_same_file(given)
    return options


def text_hint(value: Any) -> str:
    """What would do for a string of the system's in the place of `value`."""
    hint = "pass a str, bytes or a path"
    if hasattr(value, "_is_late_command"):
        return f"{hint}; the words of a command are *command.args"
    if isinstance(value, (list, tuple)):
        return f"{hint}; with a star each of these is a word, *words"
    # True may be "1", "true" or "yes" to a program.
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return f"{hint}, here {str(value)!r}" if is_number else hint


_ARGS = "pass a list of the program and its arguments, each a str, bytes or a path"


def given_args(args: Any, name: str = "args") -> Any:
    """The arguments as the result shows them: what can be gone through but once as a list.
    `name` is what an error calls them."""
    if isinstance(args, (list, tuple)) or _is_one(args):
        return args
    return items(name, args, _ARGS)


def _shell(shell: Any) -> bytes | None:
    """The program that takes a line, None for none."""
    if shell is None or isinstance(shell, bool):
        return b"/bin/sh" if shell else None
    hint = 'pass True for /bin/sh, or the path of a shell that has -c, "/bin/bash"'
    program = encoded("shell", shell, hint)
    if not program:
        raise bad_value("shell", shell, hint)
    return program


#: Shells that make the words behind a line its $0, $1, ...: others, such as fish and csh, do not.
_TAKE_WORDS_FROM_0 = frozenset(
    (b"sh", b"ash", b"bash", b"busybox", b"dash", b"ksh", b"mksh", b"zsh")
)


def argv(function: str, args: Any, shell: bool | StrOrBytesPath | None) -> list[bytes]:
    """The arguments as bytes. `function` is what the user called, for the error."""
    program = _shell(shell)
    is_one = _is_one(args)
    is_path = hasattr(args, "__fspath__")
    if program is not None:
        if is_path:
            _refuse_path(function, args)
        # The items behind the line are the shell's $0, $1, ..., as in subprocess.
        words = [args] if is_one else items("args", args, _ARGS)
        line = _encoded(words)
        if len(line) > 1 and os.path.basename(program) in _TAKE_WORDS_FROM_0:
            _check_words(function, words, line)
        return [program, b"-c", *line]
    if is_path:
        # It names a program, where a str might be a line.
        args = [args]
    elif is_one:
        _refuse_line(function, args)
    return _encoded(items("args", args, _ARGS))


def quoted(args: Any) -> str:
    """The arguments as a line for a shell."""
    import shlex

    if _is_one(args):
        args = [args]
    return shlex.join(os.fsdecode(word) for word in args)


def quoted_pipeline(stages: Iterable[Any]) -> str:
    """The arguments of stages as a line for a shell."""
    return " | ".join(quoted(args) for args in stages)


def _is_one(args: Any) -> bool:
    return isinstance(args, (str, bytes)) or hasattr(args, "__fspath__")


def _encoded(args: Any) -> list[bytes]:
    return [encoded(f"args[{place}]", one, text_hint(one)) for place, one in enumerate(args)]


def _check_words(function: str, args: list[Any], line: list[bytes]) -> None:
    """Refuses words behind a line for the shell that it would drop."""
    use = _core.shell_words(line[0], line[1:])
    if use == "unused":
        hint = (
            f"the shell's line is {shown(args[0])}, which uses none of the words behind it ($0, "
            f"$1, $@): pass one line, {function}({shown(quoted(args))}, shell=True), or leave the "
            f"shell out, {function}({shown(args)})"
        )
        raise bad_value("args", args, hint)
    if use == "taken_for_one":
        last = len(line) - 1
        hint = (
            f"the first word behind the line is $0, so that ${last}, which the line uses, is "
            f"empty: put a name in front of the words, {function}("
            f"{shown([args[0], 'sh', *args[1:]])}, shell=True), or write ${{{last}-}} for one that "
            f"may be missing"
        )
        raise bad_value("args", args, hint)


def _refuse_line(function: str, args: Any) -> NoReturn:
    from ._line import as_arguments, programs

    in_shell = f"say that it is a line for the shell, {function}({shown(args)}, shell=True)"
    found = programs(args)
    if found is None:
        hint = in_shell
    elif len(found) == 1:
        hint = f"pass a list, {function}({as_arguments(found)}), or {in_shell}"
    else:
        several = "spawn_pipeline" if function == "spawn" else "pipeline"
        hint = f"pass its programs to {several}({as_arguments(found)}), or {in_shell}"
    raise bad_type("args", args, hint)


def _refuse_path(function: str, args: Any) -> NoReturn:
    program = quoted(args)
    hint = (
        f"a path names a program, not a line for the shell: leave the shell out, or pass the line, "
        f"{function}({program!r}, shell=True)"
    )
    raise bad_type("args", args, hint)


def call(
    native: Callable[[dict[str, Any]], _T], options: dict[str, Any], given: Mapping[str, Any]
) -> _T:
    """Calls the core. An option that it refuses is told of in Python's words."""
    try:
        return native(options)
    except InvalidValue as error:
        from ._refused import words

        error.args = (words(error, given),)
        raise
