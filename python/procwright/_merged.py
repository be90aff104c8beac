"""Both outputs of a child as one."""

from __future__ import annotations

from . import _core
from ._result import _Record
from ._stream import Figures, Gap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Literal


class MergedLine(_Record):
    """A line of one of the two outputs."""

    __slots__ = ("stream", "time", "line")

    def __init__(self, stream: Literal["stdout", "stderr"], time: float, line: Any) -> None:
        #: Which of the two.
        self.stream = stream
        #: When its end was read out of the pipe, in seconds since 1970.
        self.time = time
        #: The line and its end; `str` if text was asked for.
        self.line = line


class Merged(_core.Merged):
    """Iterates over the lines of both outputs, in the order in which they came.

    Gives `MergedLine`, and `Gap` where bytes were dropped (of which the offset is not
    known: it is -1). Any thread may close it: who is blocked in it gets `StreamClosed`.
    """

    __slots__ = ("_decoding",)

    _decoding: tuple[str, str] | None

    def __iter__(self) -> Merged:
        return self

    def __next__(self) -> MergedLine | Gap:
        item = self._next()
        if item is None:
            raise StopIteration
        number, time, data = item
        if number == 0:
            return Gap(-1, data)
        line = data if self._decoding is None else data.decode(*self._decoding)
        return MergedLine("stdout" if number == 1 else "stderr", time, line)

    @property
    def figures(self) -> Figures | None:
        """As those of a `Reader`, of both together."""
        raw = self._figures()
        return None if raw is None else Figures(raw)

    def __enter__(self) -> Merged:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<procwright.Merged {self.label}{state}>"
