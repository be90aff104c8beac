"""Functions between two programs of a pipeline."""

from __future__ import annotations

import io

from ._hinted import hinted
from ._invalid import bad_type
from ._record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from typing_extensions import Buffer

    from ._core import StageStreams

_HINT_FIRST = (
    "a function stands between two programs: give the first program its input by stdin=, which "
    "takes an iterable, such as what a generator function gives"
)
_HINT_LAST = (
    "a function stands between two programs: call it with what comes of the pipeline, or put a "
    'program behind it, ["cat"]'
)
_HINT_TWO = "a function stands between two programs: make one function of both"


@hinted
class StageFunction(Record):
    """What became of a function between two programs."""

    __slots__ = ("end", "judgement")

    def __init__(self, end: str, judgement: str) -> None:
        #: "returned"; "broken_pipe", nobody read what it gave; "failed", it raised; "cancelled",
        #: it came out of a stop; "running", it did not, and its thread goes on.
        self.end = end
        #: What that means for the whole, as of a stage.
        self.judgement = judgement

    def to_dict(self) -> dict[str, str]:
        """The parts as JSON has them."""
        return self._parts()


def split(stages: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[tuple[int, Any]]]:
    """The programs among the stages, and each function with the number of the program that it is
    behind."""
    programs: list[Any] = []
    functions: list[tuple[int, Any]] = []
    for place, stage in enumerate(stages):
        if not callable(stage) or hasattr(stage, "keys"):
            programs.append(stage)
            continue
        hint = None
        if not programs:
            hint = _HINT_FIRST
        elif place == len(stages) - 1:
            hint = _HINT_LAST
        elif functions and functions[-1][0] == len(programs) - 1:
            hint = _HINT_TWO
        if hint is not None:
            raise bad_type(f"stages[{place}]", stage, hint)
        functions.append((len(programs) - 1, stage))
    return tuple(programs), functions


def runner(
    function: Callable[[Any], Any], decoding: tuple[str, str] | None
) -> Callable[[StageStreams], None]:
    """`function` as the core calls it, under its name."""

    def run(streams: StageStreams) -> None:
        stream: Any = io.BufferedReader(_Input(streams))
        if decoding is not None:
            encoding, errors = decoding
            # No newline is translated, and a line ends with \n.
            stream = io.TextIOWrapper(stream, encoding, errors, newline="\n")
        pieces = function(stream)
        if pieces is None:
            return
        if isinstance(pieces, (str, bytes, bytearray, memoryview)):
            raise TypeError(
                f"{function!r} returned one {type(pieces).__name__}: yield pieces, or return a "
                "list of them"
            )
        for piece in pieces:
            streams.write(_encoded(function, piece, decoding))

    run.__name__ = getattr(function, "__qualname__", type(function).__name__)
    return run


def _encoded(function: object, piece: Any, decoding: tuple[str, str] | None) -> bytes:
    if isinstance(piece, str) and decoding is not None:
        return piece.encode(*decoding)
    if isinstance(piece, bytes):
        return piece
    if isinstance(piece, (bytearray, memoryview)):
        return bytes(piece)
    wanted = "str or bytes" if decoding is not None else "bytes"
    hint = " (pass text=True to have it encoded)" if isinstance(piece, str) else ""
    raise TypeError(f"{function!r} gave {type(piece).__name__}, not {wanted}{hint}")


class _Input(io.RawIOBase):
    """What the program before wrote."""

    def __init__(self, streams: StageStreams) -> None:
        self._streams = streams

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self._streams.read(len(view))
        view[: len(data)] = data
        return len(data)
