"""What a `Result` has of a stream that was captured: for type checkers, imported by nothing
else.

An attribute is None where the stream did not come to this process; of its overloads the first
that fits is taken.
"""

from __future__ import annotations

from typing import Any, TypeVar, overload

from ._generic import Err, Generic, Out
from ._piece import Order

_Value = TypeVar("_Value")
#: `StreamInfo`, which is above.
_Info = TypeVar("_Info")


class Captured(Generic[_Info, Out, Err, Order]):
    """The attributes of a `Result` that are there where a stream was captured."""

    stdout_bytes: _OfStdout[bytes]
    stderr_bytes: _OfStderr[bytes]
    stdout_info: _OfStdout[_Info]
    stderr_info: _OfStderr[_Info]


class _OfStdout(Generic[_Value]):
    """An attribute that is None where stdout went elsewhere."""

    @overload
    def __get__(self, it: Captured[Any, None, Any, Any], owner: object = ..., /) -> None: ...
    @overload
    def __get__(
        self, it: Captured[Any, str | bytes, Any, Any], owner: object = ..., /
    ) -> _Value: ...
    @overload
    def __get__(
        self, it: Captured[Any, Any, Any, Any], owner: object = ..., /
    ) -> _Value | None: ...
    def __get__(self, it: Any, owner: object = None, /) -> Any: ...
    def __set__(self, it: Any, value: Any, /) -> None: ...


class _OfStderr(Generic[_Value]):
    """An attribute that is None where stderr went elsewhere."""

    @overload
    def __get__(self, it: Captured[Any, Any, None, Any], owner: object = ..., /) -> None: ...
    @overload
    def __get__(
        self, it: Captured[Any, Any, str | bytes, Any], owner: object = ..., /
    ) -> _Value: ...
    @overload
    def __get__(
        self, it: Captured[Any, Any, Any, Any], owner: object = ..., /
    ) -> _Value | None: ...
    def __get__(self, it: Any, owner: object = None, /) -> Any: ...
    def __set__(self, it: Any, value: Any, /) -> None: ...
