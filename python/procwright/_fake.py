"""`Fake`: programs that a test plays."""

from __future__ import annotations

import os
import threading
from abc import abstractmethod

from . import _starting
from ._arguments import callback as checked_callback
from ._arguments import items, number
from ._fake_calls import Call, NotRegistered, Words, surroundings
from ._fake_check import (
    refuse_as_core,
    refuse_child_as_core,
    refuse_directory,
    refuse_pipeline_as_core,
)
from ._fake_map import FakeMap, really
from ._fake_pipeline import calls_of, played_pipeline
from ._fake_reply import Reply
from ._fake_run import played, take_input
from ._hinted import hinted
from ._invalid import InvalidValue, bad_type
from ._options import call as call_core
from ._result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Any, Literal, NoReturn, Self, TypeAlias

    from ._fake_calls import _Pattern
    from ._process import Process
    from ._types import Data

    #: What answers a call.
    _Answer: TypeAlias = Reply | Result[Any, Any, Any] | BaseException

#: What answers in the place of the core, the last first.
_installed: list[Player] = []
_change = threading.Lock()


@hinted
class Player:
    """What stands in the place of the core, in all threads, while its block lasts."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._calls: list[Call] = []
        self._refused: list[NotRegistered] = []
        #: Stand-ins that may live, whether or not anybody has their children.
        self._started: list[tuple[Process, Call]] = []
        #: The error of a block that does not see it.
        self._failure: BaseException | None = None
        self._pid = os.getpid()

    @property
    def calls(self) -> list[Call]:
        """What was asked for and answered so far, in order."""
        with self._lock:
            return list(self._calls)

    def take_refused(self) -> list[NotRegistered]:
        """The errors of what was asked for and refused: the end of the block tells none of them."""
        with self._lock:
            refused, self._refused = self._refused, []
        return refused

    def __enter__(self) -> Self:
        with _change:
            if self in _installed:
                raise InvalidValue("this fake is in use: make another for a block inside of it")
            _installed.append(self)
            _starting.answer = self._answer
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with _change:
            _installed.remove(self)
            _starting.answer = _installed[-1]._answer if _installed else None
        with self._lock:
            started, self._started = self._started, []
        # A fork has no part in them.
        if started and self._pid == os.getpid():
            from ._fake_child import end

            for process, _ in started:
                end(process)
        for call in self.calls:
            call._end()
        failure, self._failure = self._failure, None
        self._leave(error or failure)

    def _fails_by(self, error: BaseException) -> None:
        """Says by what the block fails, where it does not see that: a fixture is not told how its
        test has ended."""
        self._failure = error
        self._note_refused(error)

    def _leave(self, error: BaseException | None) -> None:
        """What is to be done or found wrong at the end of the block."""
        if error is not None:
            self._note_refused(error)
        elif refused := self.take_refused():
            raise NotRegistered(_caught(refused[0]))

    def _note_refused(self, error: BaseException) -> None:
        """Tells, with the error of the block, of what was refused without being its reason."""
        reasons = _reasons(error)
        for refused in self.take_refused():
            if refused not in reasons:
                error.add_note(_caught(refused))

    def _answer(
        self,
        function: Literal["run", "spawn", "map", "pipeline"],
        native: Callable[[dict[str, Any]], Any],
        options: dict[str, Any],
        given: Mapping[str, Any],
    ) -> Any:
        if function == "pipeline":
            stages = [self._checked(stage) for stage in options["stages"]]
            refuse_pipeline_as_core({**options, "stages": stages})
            return self._pipeline(calls_of(options, given["stages"]), native, options)
        if function != "map":
            refuse = refuse_child_as_core if function == "spawn" else refuse_as_core
            call_core(refuse, self._checked(options), given)
            return self._one(Call(function, given["args"], options, given), native, given)
        if options["journal"] is not None:
            raise InvalidValue(
                "journal is given, and a fake keeps none: a journal is of commands that ran; "
                "leave it out in this test, or run the map for real"
            )
        commands = given["next"]

        def ask(index: int, raw: dict[str, Any]) -> Any:
            parameters, *_ = commands.waiting[index]
            return self._one(Call("map", parameters["args"], raw, parameters), really, parameters)

        def check(raw: dict[str, Any]) -> None:
            refuse_as_core(self._checked(raw))

        return FakeMap(options, commands, check, ask)

    def _checked(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options that are refused as the core would."""
        return options

    @abstractmethod
    def _one(
        self, call: Call, native: Callable[[dict[str, Any]], Any], given: Mapping[str, Any]
    ) -> Any: ...

    @abstractmethod
    def _pipeline(
        self,
        calls: list[Call],
        native: Callable[[dict[str, Any]], Any],
        options: dict[str, Any],
    ) -> Any: ...
    def _really(
        self, call: Call, native: Callable[[dict[str, Any]], Any], given: Mapping[str, Any]
    ) -> Any:
        return call_core(native, call._options, given)

    def _plays(self, call: Call, native: Callable[[dict[str, Any]], Any], answer: _Answer) -> Any:
        """Does what the program would."""
        if isinstance(answer, BaseException):
            raise answer
        reply = Reply.of(answer) if isinstance(answer, Result) else answer
        if reply._recorded is None:
            # What is told again has been run, where that directory was.
            refuse_directory(call)
        if call.function != "spawn":
            return played(call, reply)
        from ._fake_child import spawned
        from ._process import Process

        self._let_go()
        child = spawned(call, reply, native)
        # Not the child's own, which would keep its descriptor for as long as there is the child.
        process = Process._from_handle(child._handle)
        with self._lock:
            self._started.append((process, call))
        return child

    def _let_go(self) -> None:
        """Closes what is held for stand-ins that have ended, since a test may play many."""
        with self._lock:
            ended = [call for process, call in self._started if not process.is_alive()]
            self._started = [one for one in self._started if one[1] not in ended]
            for call in ended:
                call._end()


def _caught(refused: NotRegistered) -> str:
    # As it catches every exception.
    return f"{refused}\n(The tested code has caught this error.)"


def _reasons(error: BaseException) -> list[BaseException]:
    """An error, and those behind it and in it."""
    found: list[BaseException] = []
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is not None and not any(one is other for other in found):
            found.append(one)
            # Those that a traceback shows.
            left.append(one.__cause__ if one.__suppress_context__ else one.__context__)
            if isinstance(one, BaseExceptionGroup):
                left += one.exceptions
    return found


@hinted
class Registered:
    """A pattern of arguments, and what answers them."""

    def __init__(
        self,
        fake: Fake,
        words: Words,
        answer: _Answer | Callable[[Call], _Answer] | None,
        times: int | None,
        when: Callable[[Call], object] | None,
    ) -> None:
        self._fake = fake
        self._words = words
        self._gives = answer
        self._when = when
        #: How many calls it answers, None for any number.
        self.times = times
        self._calls: list[Call] = []

    @property
    def calls(self) -> list[Call]:
        """The calls that it has answered."""
        with self._fake._lock:
            return list(self._calls)

    @property
    def call_count(self) -> int:
        """How many there were."""
        return len(self.calls)

    @property
    def called(self) -> bool:
        """True if there was one."""
        return bool(self.calls)

    def assert_called(self, times: int | None = None) -> None:
        """Raises `AssertionError` unless it was called so many times; None: at all."""
        if times is not None:
            number("times", times, 0, 2**31 - 1, "pass a number of calls, 0 or more, or None")
        count = self.call_count
        if count != times if times is not None else not count:
            wanted = "at least once" if times is None else _times(times)
            raise AssertionError(
                f"{self._words} was to be called {wanted}, and was called {_times(count)}"
                f"{self._fake._story()}"
            )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            from ._missing import REGISTERED, missing

            raise missing(self, name, REGISTERED)

    def _is_used_up(self) -> bool:
        return not self._has_room(0)

    def _has_room(self, more: int) -> bool:
        """Whether it answers one call besides so many more."""
        return self.times is None or len(self._calls) + more < self.times

    def _line(self) -> str:
        count = len(self._calls)
        state = f"used up, {count} of {self.times}" if self._is_used_up() else _times(count)
        really = ", allowed to run" if self._gives is None else ""
        return f"{self._words}  ({state}{really})"

    def __repr__(self) -> str:
        return f"<Registered {self._line()}>"


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


@hinted
class Fake(Player):
    """Programs that a test plays, while the `with` block lasts, for every thread.

    `run`, `spawn`, `map` and `pipeline` start nothing then: what is registered is answered, all
    else is refused with `NotRegistered`. The block ends with that error, too, if the tested code
    has caught it. A pipeline asks for each of its stages, and for each program of a `Fan`.

    A run takes no time, and its process number is nobody's. A child of `spawn` is a process, a
    small stand-in, so that it does all that a child does.

    strict
        At the end of the block everything that was registered must have been asked for, and
        what has a number of times so many times.

    >>> import procwright
    >>> with Fake() as fake:
    ...     fake.register(["git", "push", ...], stderr="no network", returncode=1)
    ...     procwright.run(["git", "push", "origin"], text=True).stderr
    <Registered ['git', 'push', ...]  (never)>
    'no network'
    """

    def __init__(self, *, strict: bool = False) -> None:
        super().__init__()
        #: Whether everything that is registered has to be asked for.
        self.strict = bool(strict)
        self._registered: list[Registered] = []

    @property
    def registered(self) -> list[Registered]:
        """What is registered, in the order in which it is tried."""
        with self._lock:
            return list(self._registered)

    def register(
        self,
        args: _Pattern,
        answer: _Answer | Callable[[Call], _Answer] | None = None,
        *,
        stdout: Data | str = b"",
        stderr: Data | str = b"",
        returncode: int = 0,
        times: int | None = None,
        when: Callable[[Call], object] | None = None,
    ) -> Registered:
        """Registers what answers calls for a program.

        args
            A list of words. Each is text or a path, which has to be the same; a compiled
            regular expression, which has to match all of it; `...`, for any number of words,
            none among them; or an object that is compared by `==`, as `unittest.mock.ANY`.
            A `str`, or an expression, is the line of `shell=True`, a path object a program
            without arguments; a `Command` has the words, or the line.
        answer
            A `Reply`; the `Result` of a real run, which is told again; an exception, which is
            raised; or a function that gets the `Call` and gives one of these.
        stdout, stderr, returncode
            A `Reply` of these, where no answer is given.
        times
            How many calls it answers. Then the next that fits has its turn: what is
            registered is tried in order.
        when
            Called with the `Call`: false, and this does not fit.
        """
        reply = Reply(stdout=stdout, stderr=stderr, returncode=returncode)
        if answer is None:
            answer = reply
        elif reply != Reply():
            raise InvalidValue(
                "answer is given, and stdout, stderr or returncode as well: pass them to its Reply"
            )
        elif isinstance(answer, (list, tuple)):
            hint = (
                "register each for once, register(args, Reply(...), times=1): what is registered "
                "is tried in order; or pass iter(replies).__next__ in a function of the Call"
            )
            raise bad_type("answer", answer, hint)
        elif not (isinstance(answer, (Reply, Result, BaseException)) or callable(answer)):
            hint = "pass a Reply, a Result, an exception, or a function of the Call that gives one"
            raise bad_type("answer", answer, hint)
        elif isinstance(answer, type):
            hint = "pass an object of the class, or a function that makes one"
            raise bad_type("answer", answer, hint)
        return self._add(args, answer, times, when)

    def allow(
        self,
        args: _Pattern,
        *,
        times: int | None = None,
        when: Callable[[Call], object] | None = None,
    ) -> Registered:
        """Lets calls for a program through: it really runs. `allow([...])` is any program."""
        return self._add(args, None, times, when)

    def _add(self, args: _Pattern, answer: Any, times: Any, when: Any) -> Registered:
        words = Words("args", args)
        if times is not None:
            number("times", times, 1, 2**31 - 1, "pass a number of calls, 1 or more, or None")
        checked_callback("when", when)
        registered = Registered(self, words, answer, times, when)
        with self._lock:
            self._registered.append(registered)
        return registered

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            from ._missing import FAKE, missing

            raise missing(self, name, FAKE)

    def assert_calls(self, patterns: Sequence[_Pattern]) -> None:
        """Raises `AssertionError` unless these were the calls, in this order, and no others."""
        hint = "pass a list of patterns, each as register() takes it"
        given = items("patterns", patterns, hint)
        expected = [Words(f"patterns[{place}]", one) for place, one in enumerate(given)]
        calls = self.calls
        for place in range(max(len(expected), len(calls))):
            if place == len(calls):
                wrong = f"call {place + 1} was to be {expected[place]}, and there was none"
            elif place == len(expected):
                wrong = f"call {place + 1} is one too many: {calls[place]}"
            elif expected[place].fits(calls[place]):
                continue
            else:
                wrong = f"call {place + 1} was to be {expected[place]}, and is {calls[place]}"
            raise AssertionError(wrong + self._story())

    def assert_all_called(self) -> None:
        """Raises `AssertionError` unless everything that is registered was asked for."""
        unused = [
            one
            for one in self.registered
            if (not one.called if one.times is None else one.call_count != one.times)
        ]
        if unused:
            lines = "".join(f"\n  {one._line()}" for one in unused)
            raise AssertionError(f"registered, and not asked for so often:{lines}{self._story()}")

    def _leave(self, error: BaseException | None) -> None:
        super()._leave(error)
        if error is None and self.strict:
            self.assert_all_called()

    def _story(self) -> str:
        """The calls, as the end of an error."""
        lines = "".join(f"\n  {place}. {call}" for place, call in enumerate(self.calls, 1))
        return f"\ncalls:{lines or ' none'}"

    def _one(
        self, call: Call, native: Callable[[dict[str, Any]], Any], given: Mapping[str, Any]
    ) -> Any:
        registered = self._taken(call)
        gives = registered._gives
        if gives is None:
            return self._really(call, native, given)
        take_input(call)
        # Outside of the lock: it may run programs itself.
        answer: Any = gives(call) if callable(gives) and not _is_answer(gives) else gives
        if not _is_answer(answer):
            what = f"the answer to {call}"
            raise bad_type(what, answer, "return a Reply, a Result or an exception")
        return self._plays(call, native, answer)

    def _pipeline(
        self,
        calls: list[Call],
        native: Callable[[dict[str, Any]], Any],
        options: dict[str, Any],
    ) -> Any:
        if self._take_allowed(calls):
            # One after the other, they could not end as they do joined.
            return native(options)
        return played_pipeline(
            calls, options, lambda call: self._one(call, really, call.parameters)
        )

    def _take_allowed(self, calls: list[Call]) -> bool:
        """Whether what answers each call is that it really runs; then all are counted, and else
        none."""
        while True:
            taken: list[Registered] = []
            for call in calls:
                answers = (one for one in self._fitting(call) if one._has_room(taken.count(one)))
                answer = next(answers, None)
                if answer is None or answer._gives is not None:
                    return False
                taken.append(answer)
            with self._lock:
                # Another thread may have taken one meanwhile.
                if all(one._has_room(taken.count(one) - 1) for one in taken):
                    for one, call in zip(taken, calls, strict=True):
                        one._calls.append(call)
                    self._calls += calls
                    return True

    def _fitting(self, call: Call) -> Iterator[Registered]:
        """What may answer the call, in order."""
        for one in self.registered:
            if one._words.fits(call) and (one._when is None or one._when(call)):
                yield one

    def _taken(self, call: Call) -> Registered:
        """What answers the call, which then is counted."""
        for one in self._fitting(call):
            with self._lock:
                if not one._is_used_up():
                    one._calls.append(call)
                    self._calls.append(call)
                    return one
        error = NotRegistered(self._refusal(call))
        with self._lock:
            self._refused.append(error)
        raise error

    def _refusal(self, call: Call) -> str:
        lines = [f"{call} is not registered, and was not started"]
        with self._lock:
            registered = list(self._registered)
            if registered:
                lines.append("registered, in the order in which it is tried:")
            for one in registered:
                lines.append(f"  {one._line()}")
                if one._words.fits(call):
                    why = f"when() says no\n    {surroundings(call)}"
                    if one._is_used_up():
                        why = "used up"
                else:
                    why = one._words.difference(call) or ""
                if why:
                    lines.append(f"    {why}")
        words = call.args if call.shell else list(call.argv)
        lines.append(f"to answer it: fake.register({words!r}, stdout=...)")
        lines.append(f"to run it for real: fake.allow({words!r})")
        return "\n".join(lines)


def _is_answer(answer: object) -> bool:
    return isinstance(answer, (Reply, Result, BaseException))
