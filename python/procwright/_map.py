"""`map()`: many commands, so many at a time."""

from __future__ import annotations

import os

from . import _core
from ._arguments import callback, instance, number, pairs, refuse_closed
from ._generic import Err, Generic, Out
from ._hinted import hinted
from ._invalid import InvalidValue, _WrongType, bad_type, bad_value, shown
from ._journal import Journal, journal_of
from ._options import RUN, argv, event_hook, given_args, translated
from ._outcome import raise_for, result_of
from ._piece import Order
from ._record import Record, Status
from ._result import AskOk, Result, no_truth
from ._run import run
from ._starting import audit, start
from ._stdio import captures, data_source, source, text_decoding
from ._timeout import seconds
from ._words import said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor
    from typing import Any, Literal, NoReturn

    from typing_extensions import Unpack

    from ._event import Event
    from ._keywords import MapCommand
    from ._late import LateCommand
    from ._map_lines import MapLines
    from ._types import Args, MaybeNone, RawEnded, Seconds, StrOrBytesPath, Tap

#: Options of `run` that the map has for all commands, or that need code for each.
_NOT_OF_ONE = (
    "tee",
    "on_line",
    "on_stdout_line",
    "on_stderr_line",
    "max_length",
    "too_long",
    "check",
    "on_timeout",
    "cancel",
    "on_event",
    "input_wanted",
    "explain_after",
)

#: What `run` does when it is not told otherwise.
_DEFAULTS: dict[str, Any] = dict(run.__kwdefaults__ or {})
_FIXED: dict[str, Any] = {name: _DEFAULTS.pop(name) for name in _NOT_OF_ONE}

_COMMANDS = "pass an iterable of commands, each a list of arguments or a mapping of options"


def map(
    commands: Iterable[Args | Mapping[str, Any] | LateCommand[Any]],
    *items: object,
    parallel: int | None = None,
    ordered: bool = False,
    ahead: int | None = None,
    stop_after_failures: int | None = None,
    deadline: Seconds | None = None,
    journal: StrOrBytesPath | Journal | None = None,
    executor: Executor | None = None,
    cancel: _core.Cancel | None = None,
    on_line: Callable[[Any, Any, int], object] | None = None,
    on_event: Callable[[Event], object] | None = None,
    **options: Unpack[MapCommand],
) -> Map[Any, Any, Any]:
    """Runs many commands, so many at a time: an iterator of what became of each.

    commands
        What to run: each a list of arguments as `run` takes it, or a mapping of options of
        `run` with `args` among them, which come on top of `options`; or a `Command`. The
        iterable may be endless, and may block: it is asked when there is a place for its next
        command, on a thread of the map. What it raises ends the map, and is raised by the
        iterator.
    parallel
        How many run at a time; None for as many as there are processors.
    ordered
        Give results in the order of the commands, and not as they end.
    ahead
        How many results may wait to be taken before nothing more is started: 100, or
        `parallel` if that is more, unless said.
    stop_after_failures
        Stop when so many have failed: nothing more is started, and what runs is stopped, with
        the failure as its `cause`. None runs all.
    deadline
        Seconds for all of it, or a `timedelta`. Nothing is started after them, and what runs
        then is stopped with the reason "timeout". `timeout` is that of each command.
    journal
        A file, or a `Journal`, by which a later map knows what has been done.
    executor
        Where commands run, a `concurrent.futures.Executor`, in place of the map's own threads:
        `parallel` is then as many as it has workers unless said, and it is not shut down. What
        runs in a `ThreadPoolExecutor` is stopped as ever; elsewhere, as in other processes, it
        goes on until it ends or its timeout comes, and the end of the map waits for it.
        The interpreter's exit waits for what runs in an executor, as for all work of one:
        close the map, or use it in a `with` block.
    cancel
        A `Cancel` that ends the map.
    on_line
        Called with each line while it comes, its end with it, the stream ("stdout" or
        "stderr"), and the place of its command, from 0 on: one line at a time, on threads of
        the map. What it raises stops that command, and is `error` of its `Ended`.
    on_event
        Called with what the runs have to tell while they go on; the default logs a warning.
    options
        Options of `run`, for every command: `cwd`, `env`, `timeout`, `text`, ... A command
        that fails or is stopped is an ordinary result.

    Commands run while results are taken: `wait()` of what this gives runs all of them. A map
    that is dropped before its end leaves out what has not run, and warns of it with a
    `ResourceWarning`.

    Leaving a `with` block, `close()`, and Ctrl-C end the map, and return when all of its
    commands have ended: each is stopped by its `stop`. So does the end of the iterator object,
    which in CPython is that of its last reference.

    Raises `InvalidValue` and `JournalError`, before anything is started.
    """
    if items:
        from ._unknown import items_behind

        raise items_behind(commands, items)
    common = _checked(dict(options))
    every = {**_DEFAULTS, **common}
    _refuse_one_file(commands, common)
    _stdin_of(every, text_decoding(every["text"], every["encoding"], every["errors"]))
    callback("on_line", on_line, ("line", "stream", "index"))
    ends_after = seconds(deadline, "deadline")
    rules = {
        "parallel": _count("parallel", parallel, 100_000),
        "ahead": None if ahead is None else number("ahead", ahead, 0, 2**31 - 1, _AHEAD),
        "ordered": bool(ordered),
        "stop_after_failures": _count("stop_after_failures", stop_after_failures, 2**63 - 1),
        "deadline": ends_after,
        "journal": None if journal is None else journal_of(journal).raw(),
        "cancel": cancel,
        "on_event": event_hook(on_event),
    }
    if cancel is not None:
        instance("cancel", cancel, _core.Cancel, "pass a Cancel")
    if executor is not None:
        from ._executed import check

        check(executor, journal, on_line)
    if isinstance(commands, (str, bytes, bytearray)) or hasattr(commands, "items"):
        raise bad_type("commands", commands, _COMMANDS)
    if isinstance(commands, (list, tuple)) and not common.get("shell"):
        _refuse_one_command(commands)
    refuse_closed("commands", commands)
    if hasattr(commands, "__aiter__"):
        hint = "the iterable is asked on a thread: pass [one async for one in commands], or a def"
        raise bad_type("commands", commands, hint)
    try:
        iterator = iter(commands)
    except TypeError:
        raise bad_type("commands", commands, _COMMANDS) from None
    lines = None
    if on_line is not None:
        from ._map_lines import MapLines

        lines = MapLines(on_line)
    given = _Given(iterator, common, lines, ends_after)
    given_rules = {"parallel": parallel, "deadline": deadline}

    def begin(raw: dict[str, Any]) -> Any:
        if executor is None:
            return _core.map(raw, given)
        from ._executed import ExecutedMap

        return ExecutedMap(raw, given, executor)

    native = start("map", begin, rules, {**given_rules, "next": given})
    sized: Any = commands
    return Map(native, given, len(sized) if hasattr(sized, "__len__") else None)


_AHEAD = "pass how many results may wait, from 0 on, or None"


def _count(name: str, value: Any, most: int) -> int | None:
    hint = "pass a number from 1 on, or None"
    return None if value is None else number(name, value, 1, most, hint)


def _refuse_one_command(commands: list[Any] | tuple[Any, ...]) -> None:
    """Refuses the arguments of one command in the place of many commands."""
    if not commands or not all(isinstance(one, (str, bytes)) for one in commands):
        return
    shell = f"lines for the shell: map({shown(commands)}, shell=True)"
    hint = f"pass a list of commands: map([{shown(list(commands))}]), or {shell}"
    if any(len(os.fsdecode(one).split()) > 1 for one in commands):
        from ._line import words

        hint = f"pass a list for each: map({shown([words(one) for one in commands])}), or {shell}"
    raise bad_type("commands", commands, hint)


def _refuse_one_file(commands: Any, common: dict[str, Any]) -> None:
    """Refuses a file that each command would write anew, over what others have written."""
    if hasattr(commands, "__len__") and len(commands) < 2:
        return
    for name in ("stdout", "stderr", "keep_full"):
        path: Any = common.get(name)
        if not (isinstance(path, (str, bytes)) or hasattr(path, "__fspath__")):
            continue
        if os.path.exists(path) and not os.path.isfile(path):
            # Such as /dev/null.
            continue
        hint = f"give each a file of its own: map([{{'args': [...], '{name}': 'a.txt'}}, ...])"
        if name != "keep_full":
            hint += f"; or pass an open file, map(..., {name}=file), and they write into that"
        raise bad_value(name, path, f"each command would overwrite it: {hint}")


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    for name, value in options.items():
        if name not in _DEFAULTS:
            from ._unknown import refusal

            known = [*(map.__kwdefaults__ or {}), *_DEFAULTS]
            raise refusal("map", {name: value}, known, (), options.get("shell"))
    return _of_a_run(options)


def _checked_own(options: dict[str, Any]) -> dict[str, Any]:
    """The options of one command."""
    for name, value in options.items():
        if name in (map.__kwdefaults__ or {}):
            raise _WrongType(
                f"{name} is {shown(value)}, and a command has no such option: it is that of all, "
                f"map(..., {name}={shown(value)})"
            )
        if name not in _DEFAULTS:
            from ._unknown import refusal

            raise refusal("a command", {name: value}, _DEFAULTS, (), options.get("shell"))
    return _of_a_run(options)


def _of_a_run(options: dict[str, Any]) -> dict[str, Any]:
    # Found before anything runs, and not with the first command.
    every = {**_DEFAULTS, **options}
    text_decoding(every["text"], every["encoding"], every["errors"])
    translated(RUN, {**every, **_FIXED})
    return options


def _stdin_of(options: dict[str, Any], decoding: tuple[str, str] | None) -> tuple[str, object]:
    """What a command reads, for the core."""
    data, stdin = options["input"], options["stdin"]
    if data is not None and stdin is not None:
        raise InvalidValue("stdin and input are both given: input is what the program reads")
    found = source(stdin, decoding) if data is None else data_source(data, decoding)
    if found[0] == "iterator":
        hint = "a command of a map reads no iterable: pass input, a path or a file"
        raise bad_type("stdin", stdin, hint)
    return found


class _Given:
    """The commands, in the form that the core takes. Called by one thread at a time."""

    def __init__(
        self,
        iterator: Iterator[Any],
        common: dict[str, Any],
        lines: MapLines | None,
        deadline: float | None,
    ) -> None:
        self._iterator = iterator
        #: The deadline of the map, the timeout of a command that has none of its own.
        self.deadline = deadline
        self._common = common
        self._lines = lines
        self._next = 0
        #: Of commands without a result yet: parameters, how their output is decoded, and words.
        self.waiting: dict[int, tuple[dict[str, Any], tuple[str, str] | None, list[bytes]]] = {}

    def __call__(self) -> dict[str, object]:
        given = next(self._iterator)
        own: dict[str, Any] = {}
        if hasattr(given, "_is_late_command") or hasattr(given, "_is_late_pipeline"):
            from ._late_calls import of_one

            given, own = of_one("map", given, (), {})
        elif hasattr(given, "items"):
            own = dict(pairs("a command", given, _COMMANDS))
            if "args" not in own:
                raise InvalidValue(f"a command is {given!r}, which has no args: {_COMMANDS}")
            given = own.pop("args")
        options = {**_DEFAULTS, **self._common, **_checked_own(own)}
        decoding = text_decoding(options["text"], options["encoding"], options["errors"])
        stdin = _stdin_of(options, decoding)
        args = given_args(given)
        if isinstance(args, (str, bytes)) and not options["shell"]:
            raise bad_type(
                "a command",
                args,
                "pass a list of arguments for each: map([['ls', 'a'], ['ls', 'b']]), or lines "
                "for the shell: map(['ls a', 'ls b'], shell=True)",
            )
        taps = [] if self._lines is None else self._taps(self._lines, options, decoding)
        raw: dict[str, Any] = {
            "argv": argv("map", args, options["shell"]),
            **translated(RUN, {**options, **_FIXED}),
            "stdin": stdin,
            "tee": [],
            "taps": taps,
        }
        audit("map", raw, options)
        self.waiting[self._next] = {**options, "args": args}, decoding, raw["argv"]
        self._next += 1
        return raw

    def _taps(
        self, lines: MapLines, options: dict[str, Any], decoding: tuple[str, str] | None
    ) -> list[Tap]:
        captured = [n for n, name in ((1, "stdout"), (2, "stderr")) if captures(options[name])]
        if options["pty"] and 2 in captured:
            captured.remove(2)
        if not captured:
            raise InvalidValue("on_line needs a captured stream: capture stdout or stderr")
        return lines.taps(self._next, captured, decoding)


@hinted
class Map(Generic[Out, Err, Order]):
    """A map under way: an iterator of `Ended`, and a context manager."""

    def __init__(self, native: _core.Map, given: _Given, count: int | None = None) -> None:
        self._native = native
        self._given = given
        #: How many commands there are, None if that is not known.
        self._count = count
        #: True once its end has come, or has been asked for.
        self._is_ended = False
        #: True once a result has been asked for.
        self._is_taken = False
        #: The command whose failure has ended it, once it or one that it has stopped was given.
        self._cause: Ended[Out, Err, Order] | None = None
        #: The same for those that were stopped for it.
        self._shown_cause: Cause[Out, Err, Order] | None = None
        self._process = os.getpid()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            from ._missing import MAP, missing

            raise missing(self, name, MAP)

    def __iter__(self) -> Map[Out, Err, Order]:
        return self

    def __next__(self) -> Ended[Out, Err, Order]:
        self._is_taken = True
        try:
            come = self._native.next()
        except BaseException:
            self._is_ended = True
            raise
        ended = self._ended(come)
        if ended is None:
            raise StopIteration
        return ended

    def _ended(self, come: RawEnded | None) -> Ended[Out, Err, Order] | None:
        """What has become of a command, of what has come from the core; None at the end of all."""
        if come is None:
            self._is_ended = True
            return None
        index, kind, parts, line, caused_by = come
        if self._cause is not None and self._cause.index == index:
            # It was taken before its turn.
            return self._cause
        cause = None
        if caused_by is not None and caused_by != index:
            if self._cause is None and (taken := self._native.take_cause()) is not None:
                self._ended(taken)
            cause = self._shown_cause
        given, decoding, words = self._given.waiting.pop(index)
        args = given["args"]
        result = error = before = None
        if kind == "ran":
            result = result_of(args, parts, decoding)
            error = _error_of(result, parts)
        elif kind == "not_started":
            error = parts
            if isinstance(error, InvalidValue):
                from ._refused import words as words_of

                error.args = (words_of(error, given),)
                line = str(error)
        else:
            started_at, well, duration_s, outcome, raw = parts
            status = None if raw is None else Status(*raw)
            before = Past(started_at, well, duration_s, outcome, status)
        own = given["timeout"]
        limits = self._given.deadline if own is None else own, given["idle_timeout"]
        argv = [os.fsdecode(word) for word in words]
        nothing = ("", "") if decoding else (b"", b"")
        wrote = [
            data if kind == "not_started" and captures(given[name]) else None
            for name, data in zip(("stdout", "stderr"), nothing, strict=True)
        ]
        if given["pty"]:
            wrote[1] = None
        ended: Ended[Out, Err, Order] = Ended(
            index, args, result, error, before, line, limits, cause, argv, wrote
        )
        if caused_by == index:
            self._cause = ended
            self._shown_cause = Cause(ended)
        return ended

    def __enter__(self) -> Map[Out, Err, Order]:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        left = self._left_untaken(kind)
        self.close()
        if left is not None:
            self._warn(left)

    def __del__(self, getpid: Callable[[], int] = os.getpid) -> None:
        # An exception of the constructor leaves nothing to look at; a fork has no map. Names of
        # modules may be gone with the interpreter.
        if getattr(self, "_process", None) != getpid():
            return
        left = self._left()
        if left is not None:
            self._warn(left)

    def _left_untaken(self, kind: type[BaseException] | None) -> str | None:
        """What the end of a block is to tell of."""
        return None if kind is not None or self._is_taken else self._left()

    def _left(self) -> str | None:
        """What has not run, in words; None if all has, or if its end was asked for."""
        if self._is_ended:
            return None
        progress = self._native.progress()
        done = progress["taken"] - progress["running"]
        if progress["stopped_by"] is not None or done == self._count:
            return None
        if progress["all_taken"] and progress["running"] == 0:
            return None
        if self._count is not None:
            return f"{self._count - done} of {self._count} commands have not run to their end"
        return f"{done} commands have run to their end, and what came behind them has not"

    def _warn(self, left: str) -> None:
        try:
            import warnings
        except ImportError:
            # The interpreter goes down.
            return
        warnings.warn(
            f"the end of a map came early: {left}; call wait(), or take all results",
            ResourceWarning,
            stacklevel=3,
            source=self,
        )

    def wait(self) -> Progress:
        """Runs all that is left, and returns how many have succeeded and failed.

        Results that have not been taken are dropped.
        """
        for _ in self:
            pass
        return self.progress

    def stop(self) -> None:
        """Starts nothing more, and stops what runs. Returns at once; results still come."""
        self._is_ended = True
        self._native.stop()

    def close(self) -> None:
        """Stops what runs, and returns when it has ended. No more results come."""
        self._is_ended = True
        self._native.close()

    @property
    def progress(self) -> Progress:
        """How far it is."""
        return Progress(**self._native.progress())


def _error_of(result: Result[Any, Any, Any], raw: Any) -> BaseException | None:
    if raw["error"] is not None:
        error: BaseException = raw["error"]
        return error
    # One that was cancelled in its first moment was not started, with this error: when that was
    # must not decide what who asks for errors finds.
    if raw["io_error"] is not None or result.reason == "cancelled":
        try:
            raise_for(result, raw["io_error"], False, "return", None, None)
        except Exception as failure:
            return failure
    return None


def _is_cancelled(error: BaseException) -> bool:
    from ._run_errors import Cancelled

    return isinstance(error, Cancelled)


@hinted
class Ended(Generic[Out, Err, Order]):
    """A command of a map, and what became of it."""

    __slots__ = (
        "_limits",
        "_wrote",
        "args",
        "argv",
        "before",
        "cause",
        "error",
        "index",
        "result",
        "summary",
    )

    def __init__(
        self,
        index: int,
        args: Args,
        result: Result[Out, Err, Order] | None,
        error: BaseException | None,
        before: Past | None,
        summary: str,
        limits: tuple[Seconds | None, Seconds | None] = (None, None),
        cause: Cause[Out, Err, Order] | None = None,
        argv: Sequence[str] = (),
        wrote: Sequence[Any] = (None, None),
    ) -> None:
        #: Its place among the commands, from 0 on.
        self.index = index
        #: Its arguments, as they were given.
        self.args: Any = args
        #: The program and its arguments, as a `Result` has them.
        self.argv = list(argv)
        #: What it wrote to stdout and stderr, where it was not run.
        self._wrote = wrote
        #: The result of its run, None if it was not run.
        self.result = result
        #: Why it could not be started, or was broken off: what `on_line` has raised, what the
        #: system has refused, a `Cancelled` of one that was cancelled. None of one that has failed,
        #: or came to a limit of its own, as its `timeout`: `check()` raises that as well.
        self.error = error
        #: What the journal tells of it, if it was not run for that reason.
        self.before = before
        #: The command for whose failure this one was stopped (`stop_after_failures`), None of
        #: others. An `Ended` that is true, so that `one.cause and one.cause.summary` works.
        self.cause = cause
        #: What became of it, in a line.
        self.summary = without_hint(summary)
        #: `timeout` and `idle_timeout` of its run.
        self._limits = limits

    @property
    def ok(self) -> bool:
        """True if it ended by itself with exit code 0, or one of `ok_codes`, now or before."""
        if self.before is not None:
            return self.before.ok
        return self.error is None and self.result is not None and self.result.ok

    @property
    def stdout(self) -> Out | MaybeNone:
        """What it wrote to stdout, nothing of one that could not be started; None where nothing was
        captured, and of one that an earlier map has run (`before`)."""
        return self._wrote[0] if self.result is None else self.result.stdout

    @property
    def stderr(self) -> Err | MaybeNone:
        """What it wrote to stderr, as `stdout` has it."""
        return self._wrote[1] if self.result is None else self.result.stderr

    @property
    def returncode(self) -> int | MaybeNone:
        """Its exit code, or minus the signal that ended it, now or before; None if it could not be
        started, and where the journal does not tell."""
        if self.result is not None:
            return self.result.returncode
        return None if self.before is None else self.before.returncode

    @property
    def outcome(self) -> str:
        """What became of it, in a line without its arguments, whether or not it was run."""
        if self.result is not None:
            if self.error is not None and not _is_cancelled(self.error):
                # What a callback has raised, whose words alone say little: KeyError('x') is "x".
                return said(self.error)
            return self.result.outcome
        if self.error is not None:
            return without_hint(str(self.error)) or type(self.error).__name__
        known = None if self.before is None else self.before.outcome
        return known or "was started, and its end is not known"

    @property
    def unknown(self) -> bool:
        """True if it was started by an earlier map, and how it ended is not known."""
        return self.before is not None and self.before.outcome is None

    def check(self) -> Result[Out, Err, Order] | MaybeNone:
        """Gives back the `result`, or raises what `run(..., check=True)` would, unless it is `ok`.

        None if an earlier map has run it, and it has succeeded: ask for `before` where there is a
        journal. Raised are `CalledProcessError`, `TimeoutExpired`, `IdleTimeout`,
        `OutputLimitExceeded`, `Cancelled`, or what kept it from being started. Of one that has
        failed before, for whatever reason, or whose end is not known, a `CalledProcessError`
        without a result, whose `returncode` is that of `before`. Of one that was stopped for the
        failure of another it is that failure: what `check()` of its `cause` raises.
        """
        if self.cause is not None:
            self.cause.check()
        if self.error is not None:
            raise self.error
        if self.result is not None:
            raise_for(self.result, None, True, "raise", *self._limits)
        if not self.ok:
            from ._run_errors import failed_before

            raise failed_before(self.args, self.summary, self.returncode)
        return self.result

    def __bool__(self) -> AskOk:
        raise no_truth(self, "ok")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            from ._missing import ENDED, missing

            raise missing(self, name, ENDED, dir(Result), "ended.result")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.index}: {self.summary}>"


class Cause(Ended[Out, Err, Order]):
    """The `Ended` for whose failure others were stopped, as these have it, which equals it.

    It is true, where an `Ended` is not: it has failed, and whoever asks wants to know whether there
    is one.
    """

    __slots__ = ("_given_out",)

    def __init__(self, ended: Ended[Out, Err, Order]) -> None:
        self._given_out = ended
        for name in Ended.__slots__:
            setattr(self, name, getattr(ended, name))

    def __bool__(self) -> Literal[True]:  # type: ignore[override]
        return True

    def __eq__(self, other: object) -> bool:
        other = other._given_out if isinstance(other, Cause) else other
        return self._given_out is other

    def __hash__(self) -> int:
        return hash(self._given_out)


def without_hint(words: str) -> str:
    """The words of an error without the line that says what to do."""
    return words.partition("\n  hint: ")[0]


class Past(Record):
    """What a journal tells of a command of an earlier map."""

    __slots__ = ("started_at", "ok", "duration_s", "outcome", "status")

    def __init__(
        self,
        started_at: float,
        ok: bool | None,
        duration_s: float | None,
        outcome: str | None,
        status: Status | None = None,
    ) -> None:
        #: Seconds since 1970 at its start.
        self.started_at = started_at
        #: True if it is known to have succeeded.
        self.ok = bool(ok)
        #: Seconds from its start to its end, None if that is not known.
        self.duration_s = duration_s
        #: How it ended, in words, None if that is not known.
        self.outcome = outcome
        #: How its program ended; None if that is not known, or if it could not be started.
        self.status = status

    @property
    def returncode(self) -> int | None:
        """Its exit code, or minus the signal that ended it; None where `status` is, and where that
        is unknown."""
        return None if self.status is None else self.status.returncode


class Progress(Record):
    """How far a map is."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            from ._missing import PROGRESS, missing

            raise missing(self, name, PROGRESS)

    __slots__ = (
        "taken",
        "running",
        "succeeded",
        "failed",
        "stopped",
        "succeeded_before",
        "failed_before",
        "unknown",
        "all_taken",
        "stopped_by",
    )

    def __init__(
        self,
        taken: int,
        running: int,
        succeeded: int,
        failed: int,
        stopped: int,
        succeeded_before: int,
        failed_before: int,
        unknown: int,
        all_taken: bool,
        stopped_by: Literal["failures", "deadline", "cancel", "error"] | None,
    ) -> None:
        #: Commands that were taken from the input.
        self.taken = taken
        #: Commands that run at this moment.
        self.running = running
        #: Commands that were run, and have succeeded.
        self.succeeded = succeeded
        #: Commands that were run and have failed, or could not be started.
        self.failed = failed
        #: Commands that the end of the map has stopped: by a cancel, or since others had failed.
        #: Those that the deadline has stopped have failed: they timed out.
        self.stopped = stopped
        #: Commands that were not run: the journal tells of their success.
        self.succeeded_before = succeeded_before
        #: Commands that were not run: the journal tells of their failure.
        self.failed_before = failed_before
        #: Commands that were not run: the journal tells of a start without an end.
        self.unknown = unknown
        #: True if there is no more input.
        self.all_taken = all_taken
        #: What has ended it before its time.
        self.stopped_by = stopped_by
