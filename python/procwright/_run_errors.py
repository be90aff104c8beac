"""The exceptions of runs, each with the `Result`. Imported when the first one is needed."""

from __future__ import annotations

import os
import subprocess

from ._errors import TimeoutExpired
from ._invalid import bad_type
from ._timeout import as_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, TypeAlias

    import procwright

    from ._types import Args, MaybeNone, Seconds

    _Result: TypeAlias = procwright.Result[Any, Any, Any] | procwright.PipelineResult[Any]

_NOT_MADE = (
    "pass a Result, and a text. check_returncode() of a result raises the right one; in a test, "
    "a procwright.testing.Fake has a program fail; and subprocess.CalledProcessError(code, cmd) "
    "is made of a number"
)


class RunError(subprocess.SubprocessError):
    """A run that did not end as it should. `result` has all that came of it: a `Result`, or the
    `PipelineResult` of a pipeline."""

    #: To a type checker it has what either has.
    result: procwright._OfEither

    def __init__(self, result: _Result, text: str) -> None:
        if result is not None and not hasattr(result, "reason"):
            raise bad_type("result", result, _NOT_MADE)
        found: Any = result
        self.result = found
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        # The text has all output that is told; a result says it in a line.
        said = str(self).partition("\n")[0] if self.result is None else self.result.summary
        return f"{type(self).__name__}({said!r})"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            from ._missing import ERROR, missing
            from ._result import Result

            raise missing(self, name, ERROR, dir(Result), "result")

    # subprocess sets these in a constructor of its own.

    # Of a pipeline a list, of a map what it was given: whoever has called knows which. The errors
    # of subprocess have it so to type checkers, too.
    @property
    def cmd(self) -> Any:
        return self.result.args

    @property
    def output(self) -> str | bytes | None:
        return _output(self.result, "stdout")

    @property
    def stdout(self) -> str | bytes | None:
        return self.output

    @property
    def stderr(self) -> str | bytes | None:
        return _output(self.result, "stderr")


def _output(result: Any, name: str) -> str | bytes | None:
    try:
        data: str | bytes | None = getattr(result, name)
    except UnicodeError:
        # Strict decoding was asked for; an exception is no place to do it in.
        data = getattr(result, name + "_bytes").decode(errors="replace")
    return data


class RunTimeout(RunError, TimeoutExpired):  # type: ignore[misc, override]
    """The timeout came, and the run was stopped."""

    def __init__(self, result: _Result, text: str, timeout: Seconds | None) -> None:
        RunError.__init__(self, result, text)
        # OSError's constructor leaves it empty.
        self.args = (result, text, timeout)
        self.timeout = as_number(timeout)

    def __reduce__(self) -> tuple[object, ...]:
        return (_again, (type(self) is IdleTimeout, *self.args))


# Users see one class: that the timeout of a run is a RunError besides is a detail.
RunTimeout.__name__ = RunTimeout.__qualname__ = "TimeoutExpired"


class IdleTimeout(RunTimeout):
    """No output came for the idle timeout, and the run was stopped."""


def _again(idle: bool, result: _Result, text: str, timeout: Seconds | None) -> RunTimeout:
    return (IdleTimeout if idle else RunTimeout)(result, text, timeout)


class CalledProcessError(RunError, subprocess.CalledProcessError):
    """The program failed, and `check` was asked for."""

    if not TYPE_CHECKING:

        def __new__(cls, *made_of: object, **named: object) -> CalledProcessError:
            """Refuses what `subprocess` makes its own of, before a constructor counts it.

            Not so for all errors of runs: an OSError whose class has this takes its parts for
            `errno` and `filename`.
            """
            if named.keys() & {"returncode", "cmd", "output", "stdout", "stderr"} or (
                made_of and isinstance(made_of[0], int)
            ):
                raise bad_type("result", made_of[0] if made_of else None, _NOT_MADE)
            return super().__new__(cls, *made_of, **named)

    @property
    def returncode(self) -> int | MaybeNone:  # type: ignore[override]
        return self.result.returncode


class Cancelled(RunError):
    """The run was cancelled.

    `result` is None if it was cancelled before it was started: then nothing was.
    """

    #: To a type checker it is always there: whoever passes a `Cancel` that may be set before the
    #: call asks whether it is None.
    result: procwright._OfEither | MaybeNone

    @property
    def cmd(self) -> Any:
        return None if self.result is None else self.result.args

    @property
    def output(self) -> str | bytes | None:
        return None if self.result is None else _output(self.result, "stdout")

    @property
    def stderr(self) -> str | bytes | None:
        return None if self.result is None else _output(self.result, "stderr")


def _cancelled_before(text: str) -> Cancelled:
    return Cancelled(None, text)  # type: ignore[arg-type]


class _FailedBefore(CalledProcessError):
    """A command of a map that has failed when an earlier one ran it. The journal has its code;
    `result` and what else that has are None."""

    def __init__(self, cmd: Args, text: str, returncode: int | None) -> None:
        super().__init__(None, text)  # type: ignore[arg-type]
        self.args = (cmd, text, returncode)
        self._cmd = cmd
        self._returncode = returncode

    def __reduce__(self) -> tuple[object, ...]:
        return (failed_before, (self._cmd, self._text, self._returncode))

    @property
    def cmd(self) -> Any:
        return self._cmd

    @property
    def returncode(self) -> int | MaybeNone:  # type: ignore[override]
        return self._returncode

    @property
    def output(self) -> None:
        return None

    @property
    def stderr(self) -> None:
        return None


# Users see one class.
_FailedBefore.__name__ = _FailedBefore.__qualname__ = "CalledProcessError"


def failed_before(cmd: Args, text: str, returncode: int | None) -> CalledProcessError:
    """The error of a command that has failed when an earlier map ran it."""
    return _FailedBefore(cmd, text, returncode)


class OutputLimitExceeded(RunError):
    """More output came than the limit allows, and the run was stopped."""


class SystemFailure(RunError, OSError):
    """The system failed us while the program ran, and the run was stopped."""

    def __init__(self, result: _Result, text: str, errno: int | None = None) -> None:
        RunError.__init__(self, result, text)
        self.errno = errno or None
        self.strerror = os.strerror(errno) if errno else None


for _public in (
    RunError,
    RunTimeout,
    IdleTimeout,
    CalledProcessError,
    _FailedBefore,
    Cancelled,
    OutputLimitExceeded,
    SystemFailure,
):
    _public.__module__ = "procwright"
