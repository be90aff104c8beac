"""What is before a match, by the types of a child: for type checkers, imported by nothing else."""

from __future__ import annotations

from typing import Any, overload

from ._generic import Both, Err, Generic, In, Out


class Searched(Generic[Out, Err, In, Both]):
    """A child of either API whose outputs `wait_for` searches."""

    before: _Before


class _Before:
    """The `before` of a child. None before a search, which the types leave out."""

    @overload
    def __get__(
        self, it: Searched[bytes | None, bytes | None, Any, Any], owner: object = ..., /
    ) -> bytes: ...
    @overload
    def __get__(
        self, it: Searched[str | None, str | None, Any, Any], owner: object = ..., /
    ) -> str: ...
    @overload
    def __get__(
        self, it: Searched[Any, Any, Any, Any], owner: object = ..., /
    ) -> str | bytes | None: ...
    def __get__(self, it: Any, owner: object = None, /) -> Any: ...
    def __set__(self, it: Any, value: Any, /) -> None: ...
