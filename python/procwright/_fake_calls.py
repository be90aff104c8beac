"""What tested code has asked for, and patterns of it."""

from __future__ import annotations

import os
import re

from ._arguments import items
from ._invalid import bad_type, bad_value, shown
from ._options import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal, TypeAlias

    from ._core import Cancel
    from ._late import LateCommand
    from ._types import Args, StrOrBytesPath

    #: A list of words, each of which is text, a regular expression, `...` for any number, or
    #: whatever else is compared by `==`; a line for the shell; a path object; or a command.
    _Pattern: TypeAlias = Sequence[object] | StrOrBytesPath | re.Pattern[str] | LateCommand[Any]

_PATTERN = (
    "pass a list of words, each a str, bytes, a path, a compiled regular expression, ... for any "
    "number of words, or an object that is compared by ==; or a str, or an expression, for a line "
    "of shell=True"
)


class Call:
    """A call of `run`, `spawn`, `map` or `pipeline` for one program."""

    def __init__(
        self,
        function: Literal["run", "spawn", "map", "pipeline"],
        args: Args,
        options: Mapping[str, Any],
        given: Mapping[str, Any],
        stage: int | None = None,
    ) -> None:
        #: The function: "run", "spawn", "map" for a command of a map, "pipeline" for a stage.
        self.function = function
        #: The place of the stage in its pipeline, from 0; None of others.
        self.stage = stage
        #: The arguments as they were given.
        self.args = args
        #: The program and its arguments, with those of the shell for `shell=True`.
        self.argv: list[str] = [os.fsdecode(word) for word in options["argv"]]
        #: The parameters as they were given, defaults among them.
        self.parameters: dict[str, Any] = {
            name: value for name, value in given.items() if name not in ("args", "given", "unknown")
        }
        self._options = dict(options)
        self._input: bytes | None = None
        self._file: Any = None
        #: Why and when a stage is stopped with one before it, which has not ended.
        self._stopped: tuple[str, float] | None = None

    @property
    def shell(self) -> bool:
        """True if `args` is a line for the shell."""
        return bool(self.parameters.get("shell"))

    @property
    def cwd(self) -> StrOrBytesPath | None:
        """The directory as it was given, None for ours."""
        found: StrOrBytesPath | None = self.parameters.get("cwd")
        return found

    @property
    def env(self) -> dict[str, str]:
        """The environment that the program gets."""
        env = self._options.get("env")
        found = (
            dict(os.environ)
            if env is None
            else {os.fsdecode(name): os.fsdecode(value) for name, value in env}
        )
        for name, value in self._options.get("extra_env", ()):
            if value is None:
                found.pop(os.fsdecode(name), None)
            else:
                found[os.fsdecode(name)] = os.fsdecode(value)
        return found

    @property
    def input(self) -> bytes | None:
        """What the program has got on stdin; None if that is not known, as of an inherited one.

        Of a child, what its `In` steps have read so far; of a stage of a pipeline what the one
        before it has written, or the lines of all of a `Fan`, one program after the other.
        """
        file = self._file
        return self._input if file is None else _behind_plan(file.fileno())

    def _end(self) -> None:
        """Keeps what a stand-in has read, and lets go of its file."""
        file, self._file = self._file, None
        if file is not None:
            self._input = _behind_plan(file.fileno())
            file.close()

    @property
    def cancel(self) -> Cancel | None:
        """The `Cancel` of the call."""
        found: Cancel | None = self._options.get("cancel")
        return found

    def __repr__(self) -> str:
        return f"<Call {self}>"

    def __str__(self) -> str:
        shell = ", shell=True" if self.shell else ""
        if self.stage is not None:
            before, behind = ("..., ", "") if self.stage else ("", ", ...")
            return f"pipeline({before}{shown(self.args)}{behind}{shell})"
        return f"{self.function}({shown(self.args)}{shell})"


def surroundings(call: Call) -> str:
    """What a function that looks at a call may go by, beside the words."""
    names = ("cwd", "env", "extra_env", "input")
    given = [f"{name}={shown(call.parameters.get(name))}" for name in names]
    return f"the call has {', '.join(given)}"


def _behind_plan(fd: int) -> bytes:
    begin = 8 + int.from_bytes(os.pread(fd, 8, 0), "little")
    return os.pread(fd, os.fstat(fd).st_size - begin, begin)


class Words:
    """A pattern of arguments."""

    def __init__(self, name: str, pattern: Any) -> None:
        self.line: str | re.Pattern[str] | None = None
        self._words: list[Any] = []
        if hasattr(pattern, "_is_late_command"):
            pattern = pattern._args
        if isinstance(pattern, re.Pattern):
            self.line = _of_text(name, pattern)
            return
        if isinstance(pattern, (str, bytes)):
            self.line = os.fsdecode(pattern)
            return
        if hasattr(pattern, "__fspath__"):
            pattern = [pattern]
        self._words = [
            os.fsdecode(word)
            if isinstance(word, (str, bytes)) or hasattr(word, "__fspath__")
            else word
            for word in items(name, pattern, _PATTERN)
        ]
        if not self._words:
            raise bad_value(name, pattern, _PATTERN)
        for place, word in enumerate(self._words):
            if word is None or isinstance(word, (bool, int, float)):
                raise bad_type(f"{name}[{place}]", word, _PATTERN)
            if isinstance(word, re.Pattern):
                _of_text(f"{name}[{place}]", word)

    def fits(self, call: Call) -> bool:
        """True if the call is of these words."""
        if self.line is not None:
            return call.shell and len(call.argv) == 3 and _is(self.line, call.argv[2])
        if call.shell and _fit(self._words, call.argv[2:]):
            # The line and the words behind it, without the shell.
            return True
        return _fit(self._words, call.argv)

    def difference(self, call: Call) -> str | None:
        """How a call of the same program differs, None if it is of another."""
        if self.line is not None:
            return None if call.shell else "it is a line for the shell, and the call has no shell"
        words = call.argv[2:] if call.shell else call.argv
        if not words or not _is(self._words[0], words[0]):
            return None
        for place, word in enumerate(self._words):
            if word is ...:
                return f"no words from args[{place}] on fit"
            if place == len(words):
                return f"args[{place}], {_shown(word)}, is missing"
            if not _is(word, words[place]):
                return f"args[{place}] is {shown(words[place])}, and not {_shown(word)}"
        return f"args[{len(self._words)}], {shown(words[len(self._words)])}, is one too many"

    def __str__(self) -> str:
        if self.line is not None:
            return f"{_shown(self.line)}, a line for the shell"
        return "[" + ", ".join(_shown(word) for word in self._words) + "]"


def _of_text(name: str, pattern: re.Pattern[Any]) -> re.Pattern[str]:
    if isinstance(pattern.pattern, bytes):
        raise bad_type(name, pattern, "pass an expression for text")
    return pattern


def _fit(pattern: list[Any], words: list[str]) -> bool:
    # Greedy, with one place to come back to: as a shell's `*`.
    at = place = 0
    star = mark = -1
    while at < len(words):
        if place < len(pattern) and pattern[place] is ...:
            star, mark = place, at
            place += 1
        elif place < len(pattern) and _is(pattern[place], words[at]):
            at, place = at + 1, place + 1
        elif star >= 0:
            mark += 1
            at, place = mark, star + 1
        else:
            return False
    return all(word is ... for word in pattern[place:])


def _is(word: Any, asked: str) -> bool:
    if isinstance(word, re.Pattern):
        return word.fullmatch(asked) is not None
    return bool(word == asked)


def _shown(word: Any) -> str:
    if word is ...:
        return "..."
    return f"re.compile({word.pattern!r})" if isinstance(word, re.Pattern) else shown(word)


class NotRegistered(AssertionError):
    """A program was asked for that a test has not registered. Nothing was started."""


class UnexpectedInput(AssertionError):
    """A fake program has got other input than its `In` steps say."""


NotRegistered.__module__ = UnexpectedInput.__module__ = "procwright.testing"


def command(call: Call) -> str:
    """The command as the core shows it: of a long one the beginning and the end."""
    line = quoted(call.argv)
    return line if len(line) <= 200 else f"{line[:120]} … {line[-60:]}"
