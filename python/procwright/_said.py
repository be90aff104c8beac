"""Commands and pipelines as values: how they are made, joined, compared and shown. What starts them
is in `_command` and `_aio_command`."""

from __future__ import annotations

import os

from . import _late_calls
from ._arguments import encoded
from ._fan import Fan
from ._generic import How
from ._hinted import hinted
from ._invalid import InvalidValue, bad_type, shown
from ._late import LateCommand, LatePipeline
from ._options import quoted, text_hint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, ClassVar, Self, overload

    from typing_extensions import Unpack

    from ._keywords import CommandOptions, OpenCommandOptions, OpenPipelineOptions
    from ._types import Fixed


_OUR_OWN = ".run(stdin=INHERIT, stdout=INHERIT, stderr=INHERIT)"
#: What stands for `command & way` of plumbum.
_WAYS = {
    "BG": ".spawn(), which returns at once",
    "FG": _OUR_OWN,
    "NOHUP": ".spawn(detach=True)",
    "RETCODE": ".run().returncode",
    "TEE": ".run(tee=True)",
    "TF": ".run().ok",
}
_ANY_WAY = f".spawn(), which returns at once; in the foreground {_OUR_OWN}; or .run(tee=True)"


class _Said:
    """What a command and a pipeline have: values that start nothing."""

    __slots__ = ()

    _options: dict[str, Any]
    #: The names of the options that it may have.
    _known: ClassVar[frozenset[str]]
    #: Whether it is one of `procwright.aio`.
    _is_awaited: ClassVar[bool] = False

    @property
    def options(self) -> dict[str, Any]:
        """The options that it was given."""
        return _frozen(self._options)

    def _value(self) -> tuple[Any, ...]:
        raise NotImplementedError

    @classmethod
    def _pipeline_of(cls, stages: tuple[Any, ...]) -> Any:
        raise NotImplementedError

    if not TYPE_CHECKING:

        def __or__(self, other):
            return self._joined(self, other)

        def __ror__(self, other):
            return self._joined(other, self)

        def __gt__(self, other):
            raise _redirected(self, f".run(stdout={shown(other)})")

        def __ge__(self, other):
            raise _redirected(self, f".run(stderr={shown(other)})")

        def __rshift__(self, other):
            raise _redirected(self, f".run(stdout=open({shown(other)}, 'ab'))")

        def __lt__(self, other):
            raise _redirected(self, f".run(stdin=pathlib.Path({shown(other)}))")

        def __lshift__(self, other):
            as_text = ", text=True" if isinstance(other, str) else ""
            raise _redirected(self, f".run(input={shown(other)}{as_text})")

        def __and__(self, other):
            # plumbum has an object for each way.
            way = type(other).__name__.strip("_")
            raise _redirected(self, _WAYS.get(way, _ANY_WAY))

        def __call__(self, *words, **options):
            more = f".with_args({', '.join(map(shown, words))})" if words else ""
            raise TypeError(f"{shown(self)} is not called: use {more}.run()")

        def __getitem__(self, words):
            listed = words if isinstance(words, tuple) else (words,)
            raise TypeError(
                f"{shown(self)} has no items: use .with_args({', '.join(map(shown, listed))})"
            )

        def __bool__(self):
            raise TypeError(
                f"a {type(self).__name__} is neither true nor false, and has not run: "
                "ask for run().ok"
            )

        def __iter__(self):
            raise TypeError(
                f"a {type(self).__name__} is not iterable: use run(text=True).stdout.splitlines(), "
                "or iterate over stdout of spawn(text=True)"
            )

        def __enter__(self):
            raise TypeError(
                f"{shown(self)} has not run: use `with command.spawn() as child`; in front of "
                "another program it is command.with_args(*other.args)"
            )

        def __exit__(self, *_): ...

        def __getattr__(self, name):
            from ._missing import SAID, missing

            # As a word sh has it: git.status().
            word = f"a word of the program is with_args({name.replace('_', '-')!r})"
            raise missing(self, name, SAID, otherwise=word)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._value() == other._value() and self._options == other._options

    def __hash__(self) -> int:
        # Values of options may have no hash, as a dictionary.
        return hash((type(self).__name__, self._value(), frozenset(self._options)))

    def _joined(self, before: Any, behind: Any) -> Any:
        """A pipeline of both."""
        stages = [*_stages(self, before), *_stages(self, behind)]
        return self._pipeline_of(tuple(stages))


def _redirected(of: Any, how: str) -> TypeError:
    return TypeError(f"{shown(of)} is a value, and no line of a shell: use {how}")


def _stages(of: Any, stage: Any) -> tuple[Any, ...]:
    """What stands on one side of a `|`."""
    if isinstance(stage, _Said):
        if stage._is_awaited != of._is_awaited:
            hint = "one is of procwright and one of procwright.aio: make both by cmd() of one"
            raise bad_type("a stage", stage, hint)
        if isinstance(stage, LatePipeline):
            _late_calls.refuse_options("a stage", stage)
            return stage._stages
        return (stage,)
    if isinstance(stage, Fan) or callable(stage):
        return (stage,)
    hint = "pass a command, cmd(program, ...), a function or a Fan"
    if isinstance(stage, (str, bytes)):
        from ._line import words

        made = ", ".join(map(repr, words(stage)))
        hint = f"pass cmd({made}), or as what is read run(input=...)"
    elif isinstance(stage, (list, tuple)):
        hint = f"pass cmd({', '.join(map(shown, stage))})"
    elif hasattr(stage, "__fspath__"):
        hint = "pass cmd() of the program; a file is run(stdin=path) or run(stdout=path)"
    raise bad_type("a stage", stage, hint)


def _frozen(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, without what their caller may change later."""
    return {name: _copied(value) for name, value in options.items()}


def _copied(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    # A Mapping, as os.environ is, without asking for that class.
    return dict(value) if hasattr(value, "keys") and hasattr(value, "items") else value


def _keywords(options: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value!r}" for name, value in options.items()]


@hinted
class SaidCommand(_Said, LateCommand[How]):
    """What a `Command` of `procwright` and one of `procwright.aio` have."""

    __slots__ = ()

    def __init__(self, args: Any, options: dict[str, Any]) -> None:
        self._args = args
        self._options = options

    @classmethod
    def _of(cls, words: tuple[Any, ...], options: Mapping[str, Any]) -> Self:
        """The command of a call of `cmd`."""
        _refuse_unknown("cmd", options, cls._known)
        is_list = bool(words) and isinstance(words[0], (list, tuple))
        if is_list:
            words = (*words[0], *words[1:])
        if not words:
            raise InvalidValue('cmd() has no program: name one, as cmd("sort", "-r")')
        first = words[0]
        if hasattr(first, "_is_late_command"):
            hint = "it is a command: with_args() and with_options() of it give another"
            raise bad_type("args[0]", first, hint)
        if callable(first):
            hint = 'a function is a stage as it is: cmd("cat") | function | cmd("sort")'
            raise bad_type("args[0]", first, hint)
        if not is_list and not options.get("shell"):
            _refuse_line(words)
        _check(words)
        return cls(_args(words, options), _frozen(options))

    @property
    def args(self) -> Any:
        """The program and its arguments, a tuple, or the line of `shell=True`."""
        return self._args

    def _words(self) -> tuple[Any, ...]:
        return self._args if isinstance(self._args, tuple) else (self._args,)

    def with_args(self, *words: Any) -> Self:
        """One with these words behind its own."""
        _check(words)
        return type(self)(_args((*self._words(), *words), self._options), self._options)

    if TYPE_CHECKING:

        @overload
        def with_options(self, **options: Unpack[OpenCommandOptions]) -> Self: ...
        @overload
        def with_options(self, **options: Unpack[CommandOptions]) -> SaidCommand[Fixed]: ...

    def with_options(self, **options: Any) -> Any:
        """One with these options on top of its own. None, or what else is the default of an
        option, takes one back."""
        _refuse_unknown("cmd", options, self._known)
        # Of a shell the words are a line.
        of_all = {**self._options, **_frozen(options)}
        return type(self)(_args(self._words(), of_all), of_all)

    def _value(self) -> tuple[Any, ...]:
        return self._words()

    def __repr__(self) -> str:
        return f"cmd({', '.join([*map(repr, self._words()), *_keywords(self._options)])})"

    def __str__(self) -> str:
        return _line_of(self)


def _args(words: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    return words[0] if options.get("shell") and len(words) == 1 else words


def _check(words: tuple[Any, ...]) -> None:
    """Refuses what is no word."""
    for place, word in enumerate(words):
        encoded(f"args[{place}]", word, text_hint(word))


def _refuse_line(words: tuple[Any, ...]) -> None:
    """Refuses a program that is a line: one whose name has a blank is a path."""
    line = words[0]
    if not isinstance(line, (str, bytes)) or not any(c.isspace() for c in os.fsdecode(line)):
        return
    from ._line import programs

    found = programs(line)
    in_shell = f"cmd({', '.join(map(shown, words))}, shell=True)"
    hint = f"say that it is a line for the shell, {in_shell}"
    if found is not None:
        found[-1] += [os.fsdecode(word) for word in words[1:]]
        made = " | ".join(f"cmd({', '.join(map(repr, one))})" for one in found)
        hint = f"pass each word, {made}, or {hint}"
    hint += f"; a program whose name has a blank is a path, pathlib.Path({shown(line)})"
    raise bad_type("args[0]", line, hint)


def _refuse_unknown(function: str, options: Mapping[str, Any], known: frozenset[str]) -> None:
    for name, value in options.items():
        if name not in known:
            from ._unknown import refusal

            raise refusal(function, {name: value}, known, ())


@hinted
class SaidPipeline(_Said, LatePipeline):
    """What a `Pipeline` of `procwright` and one of `procwright.aio` have."""

    __slots__ = ()

    def __init__(self, stages: tuple[Any, ...], options: dict[str, Any]) -> None:
        self._stages = stages
        self._options = options

    @property
    def stages(self) -> tuple[Any, ...]:
        """The commands, and the functions and `Fan` among them."""
        return self._stages

    def with_options(self, **options: Unpack[OpenPipelineOptions]) -> Self:
        """One with these options of `pipeline` on top of its own: those of the whole, and those
        of each stage. Such a pipeline is joined to nothing more."""
        _refuse_unknown("pipeline", options, self._known)
        return type(self)(self._stages, {**self._options, **_frozen(options)})

    def _value(self) -> tuple[Any, ...]:
        return self._stages

    @classmethod
    def _pipeline_of(cls, stages: tuple[Any, ...]) -> Self:
        return cls(stages, {})

    def __repr__(self) -> str:
        joined = " | ".join(_shown(stage) for stage in self._stages)
        if not self._options:
            return joined
        return f"({joined}).with_options({', '.join(_keywords(self._options))})"

    def __str__(self) -> str:
        return " | ".join(_line_of(stage) for stage in self._stages)


def _shown(stage: Any) -> str:
    """A stage as it is typed."""
    if isinstance(stage, Fan):
        return f"Fan({', '.join(map(repr, stage.programs))})"
    return repr(stage) if isinstance(stage, _Said) else _name(stage)


def _line_of(stage: Any) -> str:
    """A stage as a shell would have it, as far as it would."""
    if isinstance(stage, LateCommand):
        if not (shell := stage._options.get("shell")):
            return quoted(stage._args)
        program = "/bin/sh" if shell is True else os.fsdecode(shell)
        args = stage._args
        return quoted([program, "-c", *(args if isinstance(args, tuple) else [args])])
    if isinstance(stage, Fan):
        return f"{{{', '.join(map(_line_of, stage.programs))}}}"
    if hasattr(stage, "keys"):
        return quoted(stage["args"])
    return _name(stage) if callable(stage) else quoted(stage)


def _name(function: Any) -> str:
    return getattr(function, "__name__", None) or repr(function)
