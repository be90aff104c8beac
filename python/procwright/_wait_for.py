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
#: How long a child that has closed its output is waited for, to tell how it ended.
_GRACE_S = 1.0


def wait_for(
    child: Child, pattern: Any, timeout: float | None, stream: str | None
) -> re.Match[Any]:
    deadline = _Deadline(timeout)
    search = _Search(child, pattern, stream)
    # By itself, or by a signal it has ended; its output may still be on its way.
    ended = False
    while True:
        for one in search.open:
            if (match := search.look(one)) is not None:
                return match
        search.open = [one for one in search.open if not one.is_over]
        if not search.open or (ended and child.returncode != 0):
            search.give_up(child)
        left = deadline.left()
        if left == 0:
            from ._stream_errors import MatchTimeout

            raise MatchTimeout(
                _shown(child.args), timeout, search.pattern.pattern, list(search.lines)
            )
        if ended:
            # A launcher: what it has left behind may say it.
            _sleep(search.open, None, left)
        else:
            ended = _sleep(search.open, child, left)


class _Watched:
    """A stream, and how far its incomplete line was looked at."""

    __slots__ = ("binary", "is_over", "looked_at", "stream")

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.binary: Reader = _binary(stream)
        self.looked_at = 0
        self.is_over = False


class _Search:
    def __init__(self, child: Child, pattern: Any, stream: str | None) -> None:
        names = ("stdout", "stderr") if stream is None else (stream,)
        if stream not in (None, "stdout", "stderr"):
            raise _invalid(f'stream is {stream!r}: use "stdout", "stderr" or None for both')
        streams = [getattr(child, name) for name in names]
        self.open = [_Watched(one) for one in streams if one is not None]
        if not self.open:
            raise _invalid(f"{' and '.join(names)} of the child cannot be read: spawn with PIPE")
        self.pattern: re.Pattern[Any] = re.compile(pattern)
        self.lines: collections.deque[Any] = collections.deque(maxlen=_LINES)
        self._decoding = child._decoding
        wants = bytes if self._decoding is None else str
        if not isinstance(self.pattern.pattern, wants):
            raise TypeError(
                f"pattern is {type(self.pattern.pattern).__name__}, "
                f"but the streams are those of {wants.__name__}"
            )
        if self._decoding is not None and "\n".encode(self._decoding[0]) != b"\n":
            raise _invalid(f"wait_for cannot find lines in {self._decoding[0]}: spawn for bytes")

    def look(self, one: _Watched) -> re.Match[Any] | None:
        """Looks at all that is here. The first match."""
        while True:
            kind, data = one.binary._look(one.looked_at)
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
                    return None
                # No more than was looked at.
                one.binary.read1(len(data))
                return match
            one.looked_at = 0
            self.lines.append(line)
            if match is not None:
                return match

    def _text(self, line: bytes) -> Any:
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        return line if self._decoding is None else line.decode(*self._decoding)

    def give_up(self, child: Child) -> NoReturn:
        from ._stream_errors import EndedBeforeMatch

        code: int | None
        try:
            code = child.wait(_GRACE_S)
        except TimeoutError:
            code = None
        raise EndedBeforeMatch(_shown(child.args), code, self.pattern.pattern, list(self.lines))


def _sleep(streams: list[_Watched], child: Child | None, left: float | None) -> bool:
    """Until there is more or the time is up. Whether the child has ended."""
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
    return 0 in done


def _invalid(text: str) -> ValueError:
    from ._errors import InvalidValue

    return InvalidValue(text)
