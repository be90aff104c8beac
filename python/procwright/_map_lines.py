"""Lines of the commands of a map, for `map(on_line=...)`."""

from __future__ import annotations

import _thread

from ._callback import log_raised
from ._taps import _LineDecoder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._types import Tap

#: The longest line in bytes; a longer one comes in pieces.
_LONGEST = 2**24


class MapLines:
    """Calls back with the lines of all commands, one at a time."""

    def __init__(self, on_line: Callable[[Any, Any, int], object]) -> None:
        self._on_line = on_line
        # Each command has a thread that calls.
        self._lock = _thread.allocate_lock()

    def taps(self, index: int, captured: list[int], decoding: tuple[str, str] | None) -> list[Tap]:
        """Those of the command at `index`, for the streams by their descriptors."""
        return [(stream, False, self._tap(index, stream, decoding)) for stream in captured]

    def _tap(
        self, index: int, stream: int, decoding: tuple[str, str] | None
    ) -> Callable[[bytes | None], object]:
        name = "stdout" if stream == 1 else "stderr"

        def call(line: Any) -> None:
            with self._lock:
                try:
                    self._on_line(line, name, index)
                except BaseException as error:
                    # Who calls wait() sees no Ended that would have it.
                    outcome = ", which stops this command: the Ended has it as its error"
                    log_raised(f"on_line for command {index} of a map", error, outcome)
                    raise

        if decoding is None:
            return _LineSplitter(call)
        return _LineDecoder(call, *decoding, _LONGEST, False)


class _LineSplitter:
    """Takes chunks of bytes and calls back with lines."""

    __slots__ = ("_callback", "_length", "_pieces")

    def __init__(self, callback: Callable[[bytes], object]) -> None:
        self._callback = callback
        #: Of a line that has not ended.
        self._pieces: list[bytes] = []
        self._length = 0

    def __call__(self, chunk: bytes | None) -> None:
        if chunk is None:
            self._call()
            return
        for piece in _lines(chunk):
            while self._length + len(piece) > _LONGEST:
                fits = _LONGEST - self._length
                self._add(piece[:fits])
                self._call()
                piece = piece[fits:]
            self._add(piece)
            if piece.endswith(b"\n"):
                self._call()

    def _add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._length += len(piece)

    def _call(self) -> None:
        line = b"".join(self._pieces)
        self._pieces.clear()
        self._length = 0
        if line:
            self._callback(line)


def _lines(chunk: bytes) -> list[bytes]:
    """The lines, which end at a newline alone."""
    *whole, rest = chunk.split(b"\n")
    return [*(line + b"\n" for line in whole), *([rest] if rest else [])]
