"""Waiting until a child says something."""

from __future__ import annotations

import collections
import re

from . import _core
from ._child import _binary, _Deadline, _shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from ._child import Child
    from ._stream import Reader

#: How many of the last lines an error tells.
_LINES = 10
#: How long a child that has closed its output is waited for, and one that has failed
#: for its last words, which others may keep open.
_GRACE_S = 1.0


def wait_for(
    child: Child, pattern: Any, timeout: float | None, stream: str | None
) -> re.Match[Any]:
    deadline = _Deadline(timeout)
    search = _Search(child, pattern, stream)
    ended = False
    while True:
        for one in search.open:
            if (match := search.look(one)) is not None:
                return match
        search.open = [one for one in search.open if not one.is_over]
        if not search.open:
            search.give_up(child)
        left = deadline.left()
        if left == 0:
            from ._stream_errors import MatchTimeout

            raise MatchTimeout(_shown(child.args), timeout, search.pattern.pattern, search.said())
        if not ended:
            ended = 0 in _sleep(search.open, child, left)
        elif child.returncode == 0:
            # A launcher: what it has left behind may say it.
            _sleep(search.open, None, left)
        else:
            # What it has written may still be on its way.
            grace = _GRACE_S if left is None else min(left, _GRACE_S)
            if not _sleep(search.open, None, grace):
                search.give_up(child)


class _Watched:
    """A stream, and how far its incomplete line was looked at."""

    __slots__ = ("binary", "is_over", "look", "looked_at", "part", "take")

    def __init__(self, stream: Any) -> None:
        self.binary: Reader = _binary(stream)
        # A text stream that keeps decoded text is looked at itself.
        keeps = hasattr(stream, "_look")
        self.look = stream._look if keeps else self.binary._look
        self.take = stream._give if keeps and stream is not self.binary else self.binary.read1
        self.looked_at = 0
        #: An incomplete line without the pattern: another prompt than was expected.
        self.part: Any = None
        self.is_over = False


class _Search:
    def __init__(self, child: Child, pattern: Any, stream: str | None) -> None:
        names = ("stdout", "stderr") if stream is None else (stream,)
        if stream not in (None, "stdout", "stderr"):
            raise _invalid(f'stream is {stream!r}: use "stdout", "stderr" or None for both')
        called = [caller.stream for caller in child._callers]
        streams = [getattr(child, name) for name in names]
        self.open = [_Watched(one) for one in streams if one is not None and one not in called]
        if not self.open:
            which = " and ".join(names)
            if child.merged is not None:
                raise _invalid(f"{which} of the child are merged: iterate over child.merged")
            if any(one in called for one in streams if one is not None):
                raise _invalid(f"{which} of the child is read by its callback: look there")
            raise _invalid(f"{which} of the child cannot be read: spawn with PIPE")
        self.pattern: re.Pattern[Any] = re.compile(pattern)
        self.lines: collections.deque[Any] = collections.deque(maxlen=_LINES)
        self._decoding = child._decoding
        wants = bytes if self._decoding is None else str
        if not isinstance(self.pattern.pattern, wants):
            raise TypeError(
                f"pattern is {type(self.pattern.pattern).__name__}, "
                f"but the streams are those of {wants.__name__}"
            )

    def look(self, one: _Watched) -> re.Match[Any] | None:
        """Looks at all that is here. The first match."""
        while True:
            kind, data = one.look(one.looked_at)
            if kind == "end":
                one.is_over = True
                return None
            if data is None:
                return None
            line = self._text(data)
            match = self.pattern.search(line)
            if kind == "part":
                one.looked_at = len(data)
                if match is None:
                    one.part = line
                    return None
                # No more than was looked at.
                one.take(len(data))
                return match
            one.looked_at = 0
            one.part = None
            self.lines.append(line)
            if match is not None:
                return match

    def _text(self, line: bytes | str) -> Any:
        if isinstance(line, str):
            return line.removesuffix("\n").removesuffix("\r")
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        return line if self._decoding is None else line.decode(*self._decoding)

    def said(self) -> list[Any]:
        """The last lines, those without an end too."""
        return [*self.lines, *(one.part for one in self.open if one.part)]

    def give_up(self, child: Child) -> NoReturn:
        from ._stream_errors import EndedBeforeMatch

        code: int | None
        try:
            code = child.wait(_GRACE_S)
        except TimeoutError:
            code = None
        raise EndedBeforeMatch(_shown(child.args), code, self.pattern.pattern, list(self.lines))


def _sleep(streams: list[_Watched], child: Child | None, left: float | None) -> list[int]:
    """Until there is more or the time is up. Which streams have more; 0 is the child."""
    waiting = _core.WaitSet(left)
    done: list[int] = []
    try:
        for place, one in enumerate(streams, 1):
            waiting.add(place, one.binary.readiness_fd(), "exited")
        if child is not None:
            waiting.add(0, child.process._handle, "exited")
        waiting.wait(0, done)
    finally:
        waiting.close()
    return done


def _invalid(text: str) -> ValueError:
    from ._errors import InvalidValue

    return InvalidValue(text)
