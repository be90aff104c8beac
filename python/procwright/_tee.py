"""`tee`: copies of what is read, for places of the system's and for objects of Python's."""

from __future__ import annotations

from ._arguments import encoded, is_async, refuse_closed
from ._invalid import bad_type, bad_value
from ._stdio import descriptor, is_mapping, is_path
from ._taps import serialised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ._types import Tap

_STREAMS = {"stdout": 1, "stderr": 2}
_HINT = (
    "pass True for our own stdout and stderr, a path, a file to write to, a descriptor, or a "
    'mapping of streams to these, {"stderr": True}'
)


def copies(
    tee: Any, captured: list[int], decoding: tuple[str, str] | None
) -> tuple[list[tuple[int, str, Any]], list[Tap]]:
    """What the core copies itself, and what it calls with each piece of a stream.

    `captured` are the streams that come to us, by their numbers.
    """
    if tee is False:
        return [], []
    if is_mapping(tee):
        return _of_each(tee, captured, decoding)
    _refuse_stream(tee)
    if not captured:
        raise bad_value("tee", tee, _needs("stdout or stderr"))
    return _copies("tee", tee, captured, decoding)


def _of_each(
    tee: Mapping[Any, Any], captured: list[int], decoding: tuple[str, str] | None
) -> tuple[list[tuple[int, str, Any]], list[Tap]]:
    ours: list[tuple[int, str, Any]] = []
    taps: list[Tap] = []
    for name, target in tee.items():
        number = _STREAMS.get(name) if isinstance(name, str) else None
        if number is None:
            raise bad_value("tee", tee, 'its keys are "stdout" and "stderr"')
        if target is None or target is False:
            continue
        what = f"tee[{name!r}]"
        if number not in captured:
            raise bad_value(what, target, _needs(name))
        _refuse_stream(target)
        more, called = _copies(what, target, [number], decoding)
        ours += more
        taps += called
    return ours, taps


def _needs(name: str) -> str:
    return f"it needs {name} captured: leave {name} as it is by default, or leave tee out"


def _refuse_stream(target: Any) -> None:
    """Refuses the name of a stream, which would be taken for that of a file."""
    if isinstance(target, str) and target in _STREAMS:
        hint = (
            f'pass {{"{target}": True}} for that stream alone, or "./{target}" for a file of '
            "that name"
        )
        raise bad_value("tee", target, hint)


def _copies(
    what: str, target: Any, streams: list[int], decoding: tuple[str, str] | None
) -> tuple[list[tuple[int, str, Any]], list[Tap]]:
    if target is True:
        return [(stream, "own", None) for stream in streams], []
    # One file for both gets them in the order in which they are read.
    number = streams[0] if len(streams) == 1 else 0
    if is_path(target):
        return [(number, "file", encoded(what, target))], []
    if isinstance(target, int) and not isinstance(target, bool):
        return [(number, "fd", descriptor(what, target))], []
    return [], _taps(what, target, streams, decoding)


def _taps(what: str, file: Any, streams: list[int], decoding: tuple[str, str] | None) -> list[Tap]:
    if not hasattr(file, "write"):
        raise bad_type(what, file, _HINT)
    refuse_closed(what, file)
    if is_async(file.write):
        hint = "its write() has to be awaited: iterate over the output, and await it for each line"
        raise bad_type(what, file, hint)
    is_text = _takes_text(file, decoding is not None)
    write = serialised(_text_writer(file) if is_text else _writer(file))
    taps: list[Tap] = []
    for stream in streams:
        tap: Callable[[Any], object] = _ChunkDecoder(write, decoding) if is_text else write
        taps.append((stream, False, tap))
    return taps


def _takes_text(file: Any, is_text: bool) -> bool:
    """Whether a file takes text, or bytes. One that does not tell gets what the result has."""
    import io

    if isinstance(file, io.TextIOBase) or hasattr(file, "encoding"):
        return True
    if isinstance(file, (io.RawIOBase, io.BufferedIOBase)):
        return False
    mode = getattr(file, "mode", "")
    return is_text and not (isinstance(mode, str) and "b" in mode)


def _writer(file: Any) -> Callable[[bytes | None], None]:
    flush = getattr(file, "flush", None)

    def write(chunk: bytes | None) -> None:
        while chunk:
            written = file.write(chunk)
            if not isinstance(written, int) or written >= len(chunk):
                break
            # A file without a buffer writes what fits.
            chunk = chunk[written:]
        if flush is not None:
            flush()

    return write


def _text_writer(file: Any) -> Callable[[str], None]:
    flush = getattr(file, "flush", None)

    def write(text: str) -> None:
        if text:
            file.write(text)
        if flush is not None:
            flush()

    return write


class _ChunkDecoder:
    """Takes chunks of bytes and writes text."""

    __slots__ = ("_decoder", "_write")

    def __init__(self, write: Callable[[Any], object], decoding: tuple[str, str] | None) -> None:
        import codecs

        encoding, errors = decoding or ("utf-8", "replace")
        self._write = write
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)

    def __call__(self, chunk: bytes | None) -> None:
        self._write(self._decoder.decode(chunk or b"", chunk is None))
