"""`map()`: many commands, so many at a time."""

from __future__ import annotations

from . import _core
from ._arguments import instance, number, pairs
from ._generic import Err, Generic, Order, Out
from ._invalid import InvalidValue, bad_type
from ._journal import Journal, journal_of
from ._options import RUN, argv, event_hook, given_args, translated
from ._outcome import raise_for, result_of
from ._record import Record
from ._run import run
from ._starting import audit, start
from ._stdio import data_source, source, text_decoding
from ._timeout import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from concurrent.futures import Executor
    from typing import Any, Literal

    from typing_extensions import Unpack

    from ._event import Event
    from ._keywords import MapCommand
    from ._result import Result
    from ._types import Args, Seconds, StrOrBytesPath

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
)

#: What `run` does when it is not told otherwise.
_DEFAULTS: dict[str, Any] = dict(run.__kwdefaults__ or {})
_FIXED: dict[str, Any] = {name: _DEFAULTS.pop(name) for name in _NOT_OF_ONE}

_COMMANDS = "pass an iterable of commands, each a list of arguments or a mapping of options"


def map(
    commands: Iterable[Args | Mapping[str, Any]],
    *,
    parallel: int | None = None,
    ordered: bool = False,
    ahead: int | None = None,
    stop_after_failures: int | None = None,
    deadline: Seconds | None = None,
    journal: StrOrBytesPath | Journal | None = None,
    executor: Executor | None = None,
    cancel: _core.Cancel | None = None,
    on_event: Callable[[Event], object] | None = None,
    **options: Unpack[MapCommand],
) -> Map[Any, Any, Any]:
    """Runs many commands, so many at a time: an iterator of what became of each.

    commands
        What to run: each a list of arguments as `run` takes it, or a mapping of options of
        `run` with `args` among them, which come on top of `options`. The iterable may be
        endless, and may block: it is asked when there is a place for its next command, on a
        thread of the map. What it raises ends the map, and is raised by the iterator.
    parallel
        How many run at a time; None for as many as there are processors.
    ordered
        Give results in the order of the commands, and not as they end.
    ahead
        How many results may wait to be taken before nothing more is started: 100, or
        `parallel` if that is more, unless said.
    stop_after_failures
        Stop when so many have failed: nothing more is started, and what runs is stopped.
        None runs all.
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
    cancel
        A `Cancel` that ends the map.
    on_event
        Called with what the runs have to tell while they go on; the default logs a warning.
    options
        Options of `run`, for every command: `cwd`, `env`, `timeout`, `text`, ... A command
        that fails or is stopped is an ordinary result.

    Leaving a `with` block, `close()`, and Ctrl-C end the map, and return when all of its
    commands have ended: each is stopped by its `stop`. So does the end of the iterator object,
    which in CPython is that of its last reference.

    Raises `InvalidValue` and `JournalError`, before anything is started.
    """
    common = _checked("map", dict(options))
    rules = {
        "parallel": _count("parallel", parallel, 100_000),
        "ahead": None if ahead is None else number("ahead", ahead, 0, 2**31 - 1, _AHEAD),
        "ordered": bool(ordered),
        "stop_after_failures": _count("stop_after_failures", stop_after_failures, 2**63 - 1),
        "deadline": seconds(deadline, "deadline"),
        "journal": None if journal is None else journal_of(journal).raw(),
        "cancel": cancel,
        "on_event": event_hook(on_event),
    }
    if cancel is not None:
        instance("cancel", cancel, _core.Cancel, "pass a Cancel")
    if executor is not None:
        from ._executed import check

        check(executor, journal)
    if isinstance(commands, (str, bytes, bytearray)) or hasattr(commands, "items"):
        raise bad_type("commands", commands, _COMMANDS)
    try:
        iterator = iter(commands)
    except TypeError:
        raise bad_type("commands", commands, _COMMANDS) from None
    given = _Given(iterator, common)
    given_rules = {"parallel": parallel, "deadline": deadline}

    def begin(raw: dict[str, Any]) -> Any:
        if executor is None:
            return _core.map(raw, given)
        from ._executed import ExecutedMap

        return ExecutedMap(raw, given, executor)

    native = start("map", begin, rules, {**given_rules, "next": given})
    return Map(native, given)


_AHEAD = "pass how many results may wait, from 0 on, or None"


def _count(name: str, value: Any, most: int) -> int | None:
    hint = "pass a number from 1 on, or None"
    return None if value is None else number(name, value, 1, most, hint)


def _checked(where: str, options: dict[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in _DEFAULTS:
            raise TypeError(f"{where}() got an unexpected keyword argument {name!r}")
    # Found before anything runs, and not with the first command.
    every = {**_DEFAULTS, **options}
    text_decoding(every["text"], every["encoding"], every["errors"])
    translated(RUN, {**every, **_FIXED})
    return options


class _Given:
    """The commands, in the form that the core takes. Called by one thread at a time."""

    def __init__(self, iterator: Iterator[Any], common: dict[str, Any]) -> None:
        self._iterator = iterator
        self._common = common
        self._next = 0
        #: The parameters of the last command that was taken, for all but its arguments.
        self.options: dict[str, Any] = {}
        #: Of commands without a result yet: arguments, and how their output is decoded.
        self.waiting: dict[int, tuple[Args, tuple[str, str] | None]] = {}

    def __call__(self) -> dict[str, object]:
        given = next(self._iterator)
        own: dict[str, Any] = {}
        if hasattr(given, "items"):
            own = dict(pairs("a command", given, _COMMANDS))
            if "args" not in own:
                raise InvalidValue(f"a command is {given!r}, which has no args: {_COMMANDS}")
            given = own.pop("args")
        options = {**_DEFAULTS, **self._common, **_checked("a command of map", own)}
        decoding = text_decoding(options["text"], options["encoding"], options["errors"])
        if options["input"] is not None and options["stdin"] is not None:
            raise InvalidValue("stdin and input are both given: input is what the program reads")
        data = options["input"]
        stdin = source(options["stdin"], decoding) if data is None else data_source(data, decoding)
        if stdin[0] == "iterator":
            raise InvalidValue(
                f"stdin is {options['stdin']!r}, and a command of a map reads no iterable: "
                "pass input, a path or a file"
            )
        args = given_args(given)
        raw = {
            "argv": argv("map", args, options["shell"]),
            **translated(RUN, {**options, **_FIXED}),
            "stdin": stdin,
            "tee": False,
            "taps": [],
        }
        audit("map", raw, options)
        self.options = options
        self.waiting[self._next] = args, decoding
        self._next += 1
        return raw


class Map(Generic[Out, Err, Order]):
    """A map under way: an iterator of `Ended`, and a context manager."""

    def __init__(self, native: _core.Map, given: _Given) -> None:
        self._native = native
        self._given = given

    def __iter__(self) -> Map[Out, Err, Order]:
        return self

    def __next__(self) -> Ended[Out, Err, Order]:
        come = self._native.next()
        if come is None:
            raise StopIteration
        index, kind, parts, line = come
        args, decoding = self._given.waiting.pop(index)
        result = error = before = None
        if kind == "ran":
            result = result_of(args, parts, decoding)
            error = _error_of(result, parts)
        elif kind == "not_started":
            error = parts
        else:
            before = Past(*parts)
        return Ended(index, args, result, error, before, line)

    def __enter__(self) -> Map[Out, Err, Order]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stop(self) -> None:
        """Starts nothing more, and stops what runs. Returns at once; results still come."""
        self._native.stop()

    def close(self) -> None:
        """Stops what runs, and returns when it has ended. No more results come."""
        self._native.close()

    @property
    def progress(self) -> Progress:
        """How far it is."""
        return Progress(**self._native.progress())


def _error_of(result: Result[Any, Any, Any], raw: Any) -> BaseException | None:
    if raw["error"] is not None:
        error: BaseException = raw["error"]
        return error
    if raw["io_error"] is not None:
        try:
            raise_for(result, raw, False, "return", None, None)
        except Exception as failure:
            return failure
    return None


class Ended(Generic[Out, Err, Order]):
    """A command of a map, and what became of it."""

    __slots__ = ("args", "before", "error", "index", "result", "summary")

    def __init__(
        self,
        index: int,
        args: Args,
        result: Result[Out, Err, Order] | None,
        error: BaseException | None,
        before: Past | None,
        summary: str,
    ) -> None:
        #: Its place among the commands, from 0 on.
        self.index = index
        #: Its arguments, as they were given.
        self.args = args
        #: The result of its run, None if it was not run.
        self.result = result
        #: Why it could not be started, or was broken off; None if that is not so.
        self.error = error
        #: What the journal tells of it, if it was not run for that reason.
        self.before = before
        #: What became of it, in a line.
        self.summary = summary

    @property
    def ok(self) -> bool:
        """True if it ended by itself with exit code 0, now or before."""
        if self.before is not None:
            return self.before.ok
        return self.error is None and self.result is not None and self.result.ok

    @property
    def unknown(self) -> bool:
        """True if it was started by an earlier map, and how it ended is not known."""
        return self.before is not None and self.before.outcome is None

    def check(self) -> None:
        """Raises what `run(..., check=True)` would, unless it is `ok`."""
        if self.error is not None:
            raise self.error
        if self.result is not None:
            self.result.check_returncode()
        if not self.ok:
            raise RuntimeError(self.summary)

    def __repr__(self) -> str:
        return f"<Ended {self.index}: {self.summary}>"


class Past(Record):
    """What a journal tells of a command of an earlier map."""

    __slots__ = ("started_at", "ok", "duration_s", "outcome")

    def __init__(
        self,
        started_at: float,
        ok: bool | None,
        duration_s: float | None,
        outcome: str | None,
    ) -> None:
        #: Seconds since 1970 at its start.
        self.started_at = started_at
        #: True if it is known to have succeeded.
        self.ok = bool(ok)
        #: Seconds from its start to its end, None if that is not known.
        self.duration_s = duration_s
        #: How it ended, in words, None if that is not known.
        self.outcome = outcome


class Progress(Record):
    """How far a map is."""

    __slots__ = (
        "taken",
        "running",
        "succeeded",
        "failed",
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
        #: Commands that were run and have failed, were stopped, or could not be started.
        self.failed = failed
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
