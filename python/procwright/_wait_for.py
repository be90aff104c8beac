"""Waiting until a child says something."""

from __future__ import annotations

import codecs
import collections
import re

from . import _core
from ._invalid import bad_type, bad_value
from ._stream import binary
from ._timeout import Deadline, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from typing import Any, NoReturn, Protocol

    from ._keeper import Keeper
    from ._stream import Reader
    from ._types import Seconds

    class _Started(Protocol):
        """A child, as far as a search in its streams needs one."""

        args: Any
        before: Any
        _keeper: Keeper | None

        @property
        def _handle(self) -> _core.ProcessHandle: ...
        @property
        def returncode(self) -> int | None: ...
        def wait(self, timeout: Seconds | None) -> int | None: ...
        def _command(self) -> str: ...


#: Number of the last lines that an error tells.
_LINES = 10
#: The most bytes, of text characters, that are kept of what a search has passed over.
_PASSED = 1 << 20
#: Seconds for which a child that has closed its output is waited for, and one that has
#: failed for its last words, which others may keep open.
_GRACE_S = 1.0


def wait_for(
    child: _Started,
    streams: list[Any],
    decoding: tuple[str, str] | None,
    pattern: Any,
    timeout: Seconds | None,
) -> re.Match[Any]:
    """Reads lines of the streams until one has a match for the pattern."""
    from ._errors import WaitTimeout

    steps = searching(child, streams, decoding, pattern, timeout)
    try:
        step = next(steps)
        while True:
            if isinstance(step, Sleep):
                step = steps.send(_sleep(step))
                continue
            if isinstance(step, Look):
                step = steps.send(step.look())
                continue
            try:
                # Raises what the child was stopped for, if it has reached a limit.
                code = child.wait(step.seconds)
            except WaitTimeout:
                code = None
            step = steps.send(code)
    except StopIteration as over:
        match: re.Match[Any] = over.value
        return match
    finally:
        # Of one that Ctrl-C has ended as well.
        steps.close()


def searching(
    child: _Started,
    streams: list[Any],
    decoding: tuple[str, str] | None,
    pattern: Any,
    timeout: Seconds | None,
) -> Generator[Sleep | EndWait | Look, Any, re.Match[Any]]:
    """A search, without its sleeps: these are asked for. It is sent the places of the members
    that have come, how the child ended, None if it has not, or what it waits for or does. Whoever
    does not take it to its end closes it."""
    deadline = Deadline(timeout)
    search = _Search(streams, decoding, pattern)
    try:
        return (yield from _steps(child, search, timeout, deadline))
    finally:
        # However it ends: what was passed over cannot be read any more.
        child.before = search.before


def _steps(
    child: _Started, search: _Search, timeout: Seconds | None, deadline: Deadline
) -> Generator[Sleep | EndWait | Look, Any, re.Match[Any]]:
    ended = False
    while True:
        for one in search.open:
            if (match := search.find_in(one)) is not None:
                search.settle(one, match)
                return match
        search.open = [one for one in search.open if not one.is_over]
        if not search.open:
            code = yield EndWait(_GRACE_S)
            search.give_up(child, code)
        left = deadline.left()
        if left == 0:
            from ._stream_errors import match_timeout

            look = None if child._keeper is None else child._keeper.look(seconds(timeout))
            doing = "" if look is None else (yield Look(look))
            lines = search.last_lines()
            looked_for = search.pattern.pattern
            command = child._command()
            raise match_timeout(child.args, timeout, looked_for, lines, command, doing)
        fds = [one.binary.readiness_fd() for one in search.open]
        if not ended:
            came = yield Sleep([*fds, child._handle], left)
            ended = len(fds) in came
        elif child.returncode == 0:
            # The child was a launcher: a process that it has left behind may say it.
            yield Sleep(fds, left)
        else:
            # The child's last words may still be on their way.
            grace = _GRACE_S if left is None else min(left, _GRACE_S)
            if not (yield Sleep(fds, grace)):
                code = yield EndWait(_GRACE_S)
                search.give_up(child, code)


class Sleep:
    """Sleep until one of the members has come or the time is up."""

    __slots__ = ("members", "seconds")

    def __init__(self, members: Sequence[_core._Member], seconds: float | None) -> None:
        self.members = members
        self.seconds = seconds


class EndWait:
    """Wait so long for the child's end."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class Look:
    """Look what the child waits for or does, which takes some milliseconds."""

    __slots__ = ("look",)

    def __init__(self, look: Callable[[], str]) -> None:
        self.look = look


def _compiled(pattern: Any, kind: type) -> re.Pattern[Any]:
    hint = f"pass a regular expression for {kind.__name__}, which the streams are of"
    spawned = ", or spawn with text=True" if kind is bytes else ""
    if isinstance(pattern, (list, tuple)):
        hint = (
            'pass one regular expression for all, "(first)|(second)": lastindex of the match tells'
        )
        raise bad_type("pattern", pattern, hint)
    text = pattern.pattern if isinstance(pattern, re.Pattern) else pattern
    if not isinstance(text, kind):
        # What is neither is no better with streams of text.
        raise bad_type("pattern", pattern, hint + (spawned if isinstance(text, str) else ""))
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise bad_value("pattern", pattern, f"it cannot be compiled, {error}; {hint}") from error


class _SearchedStream:
    """A stream, and how far its incomplete line was looked at."""

    __slots__ = (
        "binary",
        "expect_end",
        "is_over",
        "looked_at",
        "part",
        "peek_line",
        "put_back",
        "take",
    )

    def __init__(self, stream: Any) -> None:
        self.binary: Reader = binary(stream)
        # A text stream that keeps decoded text is looked at itself.
        keeps = hasattr(stream, "_peek_line")
        self.peek_line = stream._peek_line if keeps else self.binary._peek_line
        self.put_back = stream._put_back if keeps else self.binary._put_back
        self.take = stream._give if keeps and stream is not self.binary else self.binary.read1
        #: Passes over the end of a line that was taken without it, once that comes.
        self.expect_end = stream._expect_end if keeps else self.binary._expect_end
        self.looked_at = 0
        #: An incomplete line without the pattern: another prompt than was expected.
        self.part: Any = None
        self.is_over = False


class _Search:
    def __init__(self, streams: list[Any], decoding: tuple[str, str] | None, pattern: Any) -> None:
        self.open = [_SearchedStream(one) for one in streams]
        self.pattern: re.Pattern[Any] = _compiled(pattern, bytes if decoding is None else str)
        self.lines: collections.deque[Any] = collections.deque(maxlen=_LINES)
        #: What was passed over, with the ends of lines, and how much that is.
        self._passed: collections.deque[Any] = collections.deque()
        self._passed_size = 0
        self._decoding = decoding
        self._names_ends = names_ends(self.pattern.pattern)

    def find_in(self, one: _SearchedStream) -> re.Match[Any] | None:
        """Looks at all that is here. The first match, behind which the stream goes on."""
        while True:
            kind, data = one.peek_line(one.looked_at)
            if kind == "end":
                one.is_over = True
                return None
            if data is None:
                return None
            is_whole = kind == "line"
            said = self._text(data, is_whole)
            line = _without_end(said)
            match = self._match(line, said if is_whole else None)
            if not is_whole:
                one.looked_at = len(data)
                if match is None:
                    one.part = line
                    return None
                # No more than was looked at.
                taken = self._taken_by(match, line, said, data)
                one.take(taken)
                if taken == len(data):
                    one.expect_end()
                return match
            one.looked_at = 0
            one.part = None
            self.lines.append(line)
            if match is not None:
                rest = data[self._taken_by(match, line, said, data) :]
                if rest:
                    one.put_back(rest)
                return match
            self._pass(said)

    def _match(self, line: Any, said: Any) -> re.Match[Any] | None:
        """The match in a line, or in `said`, the line with its end, None if that has not come."""
        match = self.pattern.search(line)
        if match is None and said is not None and self._names_ends:
            match = self.pattern.search(said)
        return match

    def settle(self, found: _SearchedStream, match: re.Match[Any]) -> None:
        """Passes over what came before the match that was found in this stream.

        1. An output is looked at, and has nothing.
        2. The program writes an answer there, and its prompt to the other output.
        3. The other is looked at, and has the prompt.

        So they are looked at once more, or the answer would be taken for what came later.
        """
        for one in self.open:
            while one is not found and not one.is_over and self._passes_line(one):
                pass
        self._pass(match.string[: match.start()])

    def _passes_line(self, one: _SearchedStream) -> bool:
        """Passes over a whole line, unless the pattern is in it."""
        kind, data = one.peek_line(0)
        if kind != "line" or data is None:
            one.looked_at = 0
            return False
        said = self._text(data, True)
        line = _without_end(said)
        if self._match(line, said) is not None:
            one.put_back(data)
            return False
        self.lines.append(line)
        self._pass(said)
        return True

    def _pass(self, said: Any) -> None:
        """Keeps the end of all that was passed over: who waits for hours for a word in a log may
        not take all of it."""
        self._passed.append(said)
        self._passed_size += len(said)
        while self._passed_size - len(self._passed[0]) >= _PASSED:
            self._passed_size -= len(self._passed.popleft())

    @property
    def before(self) -> Any:
        """What was passed over, at most so much: what stood before the match, or all lines."""
        nothing: Any = b"" if self._decoding is None else ""
        return nothing.join(self._passed)[-_PASSED:]

    def _taken_by(self, match: re.Match[Any], line: Any, said: Any, data: bytes | str) -> int:
        """How much of `data`, which says `said`, a match takes: all up to its end, and the line's
        end where nothing else follows. One of nothing takes all of it, else the next search
        would find it again."""
        end = match.end()
        if not match[0] or end >= len(line):
            return len(data)
        if self._decoding is None or isinstance(data, str):
            return end
        return _bytes_of(said, end, data, *self._decoding)

    def _text(self, data: bytes | str, is_whole: bool) -> Any:
        """What a line or the beginning of one says, with its end."""
        if isinstance(data, str) or self._decoding is None:
            return data
        encoding, errors = self._decoding
        # The beginning of a character waits for its rest.
        return codecs.getincrementaldecoder(encoding)(errors).decode(data, is_whole)

    def last_lines(self) -> list[Any]:
        """The last lines, those without an end too."""
        return [*self.lines, *(one.part for one in self.open if one.part)]

    def give_up(self, child: _Started, code: int | None) -> NoReturn:
        from ._stream_errors import EndedBeforeMatch

        looked_for, lines = self.pattern.pattern, list(self.lines)
        raise EndedBeforeMatch(child.args, code, looked_for, lines, child._command())


def names_ends(pattern: Any) -> bool:
    """Whether a pattern names the end of a line, by its characters and not by `$`."""
    text = pattern if isinstance(pattern, str) else pattern.decode("latin-1")
    return any(end in text for end in ("\n", "\\n", "\r", "\\r"))


def _without_end(said: Any) -> Any:
    if isinstance(said, str):
        return said.removesuffix("\n").removesuffix("\r")
    return said.removesuffix(b"\n").removesuffix(b"\r")


def _bytes_of(text: str, end: int, data: bytes, encoding: str, errors: str) -> int:
    """Number of the bytes of `data` that the first `end` characters of its text are made of."""
    try:
        begun = text[:end].encode(encoding, errors)
    except UnicodeError:
        begun = None
    if begun is not None and data.startswith(begun):
        return len(begun)
    # Something could not be decoded, and others stand for it.
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    characters = 0
    for place in range(len(data)):
        came = len(decoder.decode(data[place : place + 1]))
        if characters + came > end:
            # This byte has shown that those before it are no character.
            return place
        characters += came
        if characters == end:
            return place + 1
    return len(data)


def _sleep(step: Sleep) -> list[int]:
    """The places of the members that have come."""
    waiting = _core.WaitSet(step.seconds)
    done: list[int] = []
    try:
        for place, member in enumerate(step.members):
            waiting.add(place, member, "exited")
        waiting.wait(0, done)
    finally:
        waiting.close()
    return done
