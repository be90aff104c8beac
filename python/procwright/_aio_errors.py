"""Exceptions of streams on event loops: those of anyio, which are those of procwright too."""

from __future__ import annotations

import anyio

from ._stream_errors import StreamClosed, StreamLost, StreamOverflow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


class AsyncStreamClosed(StreamClosed, anyio.ClosedResourceError):
    """`procwright.StreamClosed`, and anyio's `ClosedResourceError`."""


class AsyncStreamLost(StreamLost, anyio.BrokenResourceError):
    """`procwright.StreamLost`, and anyio's `BrokenResourceError`."""


class AsyncStreamOverflow(StreamOverflow, anyio.BrokenResourceError):
    """`procwright.StreamOverflow`, and anyio's `BrokenResourceError`."""


class AsyncBrokenPipe(BrokenPipeError, anyio.BrokenResourceError):
    """Python's `BrokenPipeError`, and anyio's `BrokenResourceError`: the child reads no more."""


def busy(words: str) -> anyio.BusyResourceError:
    """anyio's error of a second task, in other words than its own."""
    error = anyio.BusyResourceError("using")
    error.args = (words,)
    return error


class OfAnyio:
    """A block in which errors of streams are anyio's as well."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None or isinstance(error, _OURS):
            return
        if isinstance(error, StreamClosed):
            raise AsyncStreamClosed(error.stream) from None
        if isinstance(error, StreamOverflow):
            raise AsyncStreamOverflow(error.stream, error.offset) from None
        if isinstance(error, StreamLost):
            lost = error.stream, error.offset, error.length, error.errno or 0, error.strerror or ""
            raise AsyncStreamLost(*lost) from None
        if isinstance(error, BrokenPipeError):
            raise AsyncBrokenPipe(*error.args) from None


_OURS = (AsyncStreamClosed, AsyncStreamLost, AsyncStreamOverflow, AsyncBrokenPipe)

#: Errors of streams in this block are anyio's as well.
OF_ANYIO = OfAnyio()
