"""Methods and attributes that say what to type in the place of those that there are not."""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType, MethodDescriptorType

from ._invalid import InvalidValue, _WrongType, shown
from ._slip import slip_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from inspect import Parameter
    from typing import Any, TypeVar

    _C = TypeVar("_C", bound=type)

#: The types of methods of native classes.
_NATIVE: tuple[type, ...] = (MethodDescriptorType, BuiltinFunctionType)
#: The flag of the code of `async def`.
_IS_AWAITED = 0x80
#: Those of the code of what takes `*args` or `**options`.
_TAKES_ANY = 0x04 | 0x08
#: Methods that are called for each line or message, or that are asked whether a peer lives: a call
#: more would be felt in some of these. And what has taken something out of a stream or a queue may
#: not pass through a frame of Python's: a handler of a signal that raises there would lose it.
_ARE_HOT = frozenset(
    (
        "alive",
        "peek",
        "read",
        "read1",
        "readinto",
        "readinto1",
        "readline",
        "receive",
        "recv",
        "recv_many",
        "recv_view",
        "send",
        "try_recv",
        "try_recv_view",
        "try_send",
        "write",
    )
)

_GRACE = 'pass Stop("TERM", grace=seconds): SIGKILL follows after that'
_AFTER_SIGNAL = "use stop(Stop(grace=seconds)), which sends SIGKILL after that"
_FIRST = "it is the first argument: stop('INT'), stop(Stop('INT', grace=2))"
_OF_TEXT = "spawn with text=True, or encoding=: the streams are of text then"
_ANSWER = "use answer: a Reply, a Result, an exception, or a function of the Call"
#: What to type in the place of a parameter, by method and parameter; "" stands for one too many.
HINTS: dict[str, dict[str, str]] = {
    "Cancel": {
        "": "one that comes by itself is a timeout: pass timeout=seconds to the call",
        "timeout": "pass it to the call: run(args, timeout=seconds)",
        "after": "one that comes by itself is a timeout: run(args, timeout=seconds)",
    },
    "Limit": {"lines": "lines are not counted: pass bytes"},
    "Overflow": {
        "size": "use memory, in bytes or as '64MiB'",
        "maxsize": "use memory, in bytes or as '64MiB'",
        "limit": "use memory, in bytes or as '64MiB'",
    },
    "Stop": {
        "timeout": "use grace, the seconds from the signal to SIGKILL",
        "kill_after": "use grace, the seconds from the signal to SIGKILL",
        "sig": "use signal, or pass it first: Stop('INT')",
    },
    "cancel": {"": "leave it out: the error says that it was cancelled"},
    "check": {"": "leave it out"},
    "communicate": {
        "encoding": _OF_TEXT,
        "text": _OF_TEXT,
        "check": "call check_returncode() behind it",
    },
    "kill": {
        "sig": "use send_signal('INT')",
        "signal": "use send_signal('INT')",
        "": "use send_signal('INT')",
        "force": "use stop(), which ends what it has started, too",
        "grace": _AFTER_SIGNAL,
        "timeout": _AFTER_SIGNAL + ", and waits",
    },
    "readlines": {"timeout": "readline(timeout=) has one, and communicate(timeout=) of the child"},
    "register": {
        "callback": _ANSWER,
        "code": "use returncode",
        "exit_code": "use returncode",
        "occurrences": "use times",
        "out": "use stdout",
        "output": "use stdout",
        "pid": "it is nobody's: leave it out",
        "return_value": _ANSWER,
        "side_effect": _ANSWER,
        "wait": "a pause is a step of the Reply: Reply([Pause(0.1), Out('text')])",
    },
    "result": {
        "check": "call check_returncode() of what it gives",
        "text": _OF_TEXT,
        "encoding": _OF_TEXT,
    },
    "stop": {
        "": _FIRST,
        "force": "leave it out: SIGKILL follows after the grace of the Stop; or stop('KILL')",
        "grace": _GRACE,
        "kill_after": _GRACE,
        "signal": _FIRST,
        "sig": _FIRST,
        "timeout": _GRACE + ", so that it takes that and little more",
    },
    "terminate": {
        "force": "use stop(), which sends SIGTERM, and SIGKILL after a grace",
        "grace": _AFTER_SIGNAL,
        "timeout": _AFTER_SIGNAL + ", and waits",
    },
    "to_json": {
        "sort_keys": "use json.dumps(x.to_dict(), sort_keys=True)",
        "ensure_ascii": "use json.dumps(x.to_dict(), ensure_ascii=True)",
    },
    "wait": {"check": "call check_returncode() behind it", "signal": "use stop(), which waits"},
    "wait_for": {
        "flags": "pass re.compile(pattern, flags)",
        "regex": "it is the first argument, pattern",
        "text": "it is the first argument, pattern: re.escape(text)",
        "streams": "use stream, 'stdout' or 'stderr'; without it both are searched",
    },
}
#: The `allow` of a `Fake` has parameters of its `register`.
HINTS["allow"] = HINTS["register"]


def hinted(cls: _C) -> _C:
    """Has the public methods of a class that take something, and its constructor where that is
    Python's, refuse arguments that they do not have with what to type, and not with a bare
    TypeError. Those that it has of a native class are among them."""
    methods: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base is cls:
            methods.update(vars(base))
        elif base.__module__.startswith("procwright"):
            # Those of another class of Python's are told of by that.
            methods.update(
                {name: one for name, one in vars(base).items() if isinstance(one, _NATIVE)}
            )
    for name, attribute in methods.items():
        if name in _ARE_HOT or (name.startswith("_") and name != "__init__"):
            continue
        is_static = isinstance(attribute, staticmethod)
        method = (
            attribute.__func__ if isinstance(attribute, (staticmethod, classmethod)) else attribute
        )
        if not isinstance(method, (FunctionType, *_NATIVE)):
            continue
        if name not in HINTS and _takes_none(method, not is_static):
            # Python's own words say as much, and the call costs nothing more: poll() and its like
            # are asked again and again.
            continue
        call: Any = _told(method, cls.__name__ if name == "__init__" else name, not is_static)
        setattr(cls, name, call if method is attribute else type(attribute)(call))
    return cls


def _takes_none(method: Any, has_self: bool) -> bool:
    """Whether a method has no parameters."""
    code = getattr(method, "__code__", None)
    if code is None:
        return method.__text_signature__ in ("($self)", "($self, /)")
    takes = code.co_argcount + code.co_kwonlyargcount + (code.co_flags & _TAKES_ANY)
    return bool(takes == has_self)


def _told(method: Any, name: str, has_self: bool) -> Any:
    """The method, whose calls are looked at once they have failed."""
    code = getattr(method, "__code__", None)

    def called(*args: Any, **options: Any) -> Any:
        try:
            # A mapping that is taken apart makes another.
            return method(*args, **options) if options else method(*args)
        except TypeError as error:
            found = _misfit(method, name, has_self, args, options, error)
            if found is None:
                raise
            raise found from None

    async def awaited(*args: Any, **options: Any) -> Any:
        return await called(*args, **options)

    call: Any = awaited if code is not None and code.co_flags & _IS_AWAITED else called
    for part in ("__module__", "__name__", "__qualname__", "__doc__"):
        if (value := getattr(method, part, None)) is not None:
            setattr(call, part, value)
    # Its signature, for help() and editors.
    call.__wrapped__ = method
    return call


def _misfit(
    method: Any,
    name: str,
    has_self: bool,
    args: Sequence[Any],
    options: Mapping[str, Any],
    error: TypeError,
) -> InvalidValue | None:
    """The error for arguments that do not fit the parameters; None if they do, and something else
    was wrong."""
    # What Python code has raised, it has raised behind the call that is here.
    at = error.__traceback__
    is_behind = isinstance(method, FunctionType) and at is not None and at.tb_next is not None
    if is_behind or isinstance(error, InvalidValue):
        return None
    import inspect

    try:
        signature = inspect.signature(method)
        signature.bind(*args, **options)
    except ValueError:
        return None
    except TypeError:
        parameters = list(signature.parameters.values())[has_self:]
        return _refusal_of(name, parameters, args[has_self:], options)
    return None


def _refusal_of(
    name: str, parameters: Sequence[Parameter], words: Sequence[Any], options: Mapping[str, Any]
) -> InvalidValue | None:
    """The error for the first argument that the method called `name` does not have. None if one is
    missing, which Python names."""
    named = [one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    known = [one.name for one in named]
    takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters)
    by_name = [one.name for one in named if one.kind is not one.POSITIONAL_ONLY]
    for option, value in () if takes_any else options.items():
        if option not in by_name:
            return unknown_of_method(name, option, value, known)
    by_place = [one.name for one in named if one.kind is not one.KEYWORD_ONLY]
    if len(words) <= len(by_place):
        return None
    rest = [one for one in known if one not in by_place and one not in options]
    return one_too_many(name, words[len(by_place)], by_place, rest)


def one_too_many(
    name: str, word: object, by_place: Sequence[str], by_name: Sequence[str]
) -> InvalidValue:
    """The error for an argument behind those that a method takes by their places."""
    hint = HINTS.get(name, {}).get("")
    if hint is None and by_name:
        hint = f"pass the others by name, {', '.join(f'{one}=' for one in by_name)}"
    takes = f"takes {', '.join(by_place)} alone" if by_place else "takes none"
    return _WrongType(
        f"{shown(word)} is an argument more than {name}() has, which {takes}"
        + (f": {hint}" if hint else "")
    )


def unknown_of_method(name: str, option: str, value: object, known: Sequence[str]) -> InvalidValue:
    """The error for a parameter that a method does not have."""
    # sh makes an option of the program of it.
    near = as_words(option, value) if name == "with_args" else _near(option, known)
    hint = HINTS.get(name, {}).get(option) or near
    return _WrongType(f"{option} is {shown(value)}, and {name}() has no such parameter: {hint}")


def as_words(option: str, value: object) -> str:
    """What to type in the place of an option of the program that was given as a keyword."""
    dashed = f"-{option}" if len(option) == 1 else f"--{option.replace('_', '-')}"
    words = [repr(dashed)]
    if value is not True:
        words.append(shown(value if type(value) is str else str(value)))
    return f"options of the program are words of it: {', '.join(words)}"


def _near(name: str, known: Sequence[str]) -> str:
    if meant := slip_of(name, known):
        return meant
    if name in known:
        return f"{name} is taken by its place: pass it without its name"
    return f"it has {', '.join(known)}" if known else "it has none"


def settable(hints: str, *names: str) -> Any:
    """A `__setattr__` that takes these attributes, those of the class and private ones.

    What others have set, as `child.timeout = 5`, would change nothing here, and say nothing:
    the error has what to type, of the table `hints` in `_missing`. A subclass has attributes of
    its own.
    """

    def __setattr__(self: Any, name: str, value: object) -> None:
        if name[0] == "_" or name in names:
            # Some twenty times for each child.
            self.__dict__[name] = value
            return
        kind = type(self)
        if not hasattr(kind, name) and "__setattr__" in vars(kind):
            from . import _missing

            raise _missing.not_set(self, name, getattr(_missing, hints))
        object.__setattr__(self, name, value)

    return __setattr__
