"""The streams of an `aio.PipelineChild`, by its types: for type checkers alone."""

from __future__ import annotations

from typing import Any, overload

from ._aio_child_streams import Streams
from ._aio_stream import Reader
from ._aio_text import TextReader
from ._generic import Err, Generic, In, Out
from ._types import MaybeNone


class PipelineStreams(Streams[Out, Err, In, None], Generic[Out, Err, In]):
    """The attributes of an `aio.PipelineChild` that are streams."""

    stderr: _Stderrs  # type: ignore[assignment]


class _Stderrs:
    """The `stderr` of a pipeline: one for each stage, None where a stage sends it elsewhere."""

    @overload
    def __get__(
        self, it: Streams[Any, None, Any, Any], owner: object = ..., /
    ) -> tuple[None, ...]: ...
    @overload
    def __get__(
        self, it: Streams[Any, str, Any, Any], owner: object = ..., /
    ) -> tuple[TextReader | MaybeNone, ...]: ...
    @overload
    def __get__(
        self, it: Streams[Any, bytes, Any, Any], owner: object = ..., /
    ) -> tuple[Reader | MaybeNone, ...]: ...
    @overload
    def __get__(
        self, it: Streams[Any, Any, Any, Any], owner: object = ..., /
    ) -> tuple[TextReader | Reader | MaybeNone, ...]: ...
    def __get__(self, it: Any, owner: object = None, /) -> Any: ...
    def __set__(self, it: Any, value: Any, /) -> None: ...
