"""The streams of a `Child`, by its types: for type checkers, imported by nothing else.

What an attribute gives depends on the child's types, and is None where there is no such
stream; of its overloads the first that fits is taken.
"""

from __future__ import annotations

from typing import Any, overload

from ._child_before import Searched
from ._generic import Both, Err, In, Out
from ._merged import Merged
from ._stream import Reader, Writer
from ._text import TextReader, TextWriter


class Streams(Searched[Out, Err, In, Both]):
    """The attributes of a `Child` that are streams."""

    stdin: _Stdin
    stdout: _Stdout
    stderr: _Stderr
    merged: _Merged


class _Stdin:
    """The `stdin` of a child."""

    @overload
    def __get__(self, it: Streams[Any, Any, None, Any], owner: object = ..., /) -> None: ...
    @overload
    def __get__(self, it: Streams[Any, Any, str, Any], owner: object = ..., /) -> TextWriter: ...
    @overload
    def __get__(self, it: Streams[Any, Any, bytes, Any], owner: object = ..., /) -> Writer: ...
    @overload
    def __get__(
        self, it: Streams[Any, Any, str | None, Any], owner: object = ..., /
    ) -> TextWriter | None: ...
    @overload
    def __get__(
        self, it: Streams[Any, Any, bytes | None, Any], owner: object = ..., /
    ) -> Writer | None: ...
    @overload
    def __get__(
        self, it: Streams[Any, Any, Any, Any], owner: object = ..., /
    ) -> TextWriter | Writer | None: ...
    def __get__(self, it: Any, owner: object = None, /) -> Any: ...
    def __set__(self, it: Any, value: Any, /) -> None: ...


class _Stdout:
    """The `stdout` of a child."""

    @overload
    def __get__(self, it: Streams[None, Any, Any, Any], owner: object = ..., /) -> None: ...
    @overload
    def __get__(self, it: Streams[str, Any, Any, Any], owner: object = ..., /) -> TextReader: ...
    @overload
    def __get__(self, it: Streams[bytes, Any, Any, Any], owner: object = ..., /) -> Reader: ...
    @overload
    def __get__(
        self, it: Streams[str | None, Any, Any, Any], owner: object = ..., /
    ) -> TextReader | None: ...
    @overload
    def __get__(
        self, it: Streams[bytes | None, Any, Any, Any], owner: object = ..., /
    ) -> Reader | None: ...
    @overload
    def __get__(
        self, it: Streams[Any, Any, Any, Any], owner: object = ..., /
    ) -> TextReader | Reader | None: ...
    def __get__(self, it: Any, owner: object = None, /) -> Any: ...
    def __set__(self, it: Any, value: Any, /) -> None: ...


class _Stderr:
    """The `stderr` of a child."""

    @overload
    def __get__(self, it: Streams[Any, None, Any, Any], owner: object = ..., /) -> None: ...
    @overload
    def __get__(self, it: Streams[Any, str, Any, Any], owner: object = ..., /) -> TextReader: ...
    @overload
    def __get__(self, it: Streams[Any, bytes, Any, Any], owner: object = ..., /) -> Reader: ...
    @overload
    def __get__(
        self, it: Streams[Any, str | None, Any, Any], owner: object = ..., /
    ) -> TextReader | None: ...
    @overload
    def __get__(
        self, it: Streams[Any, bytes | None, Any, Any], owner: object = ..., /
    ) -> Reader | None: ...
    @overload
    def __get__(
        self, it: Streams[Any, Any, Any, Any], owner: object = ..., /
    ) -> TextReader | Reader | None: ...
    def __get__(self, it: Any, owner: object = None, /) -> Any: ...
    def __set__(self, it: Any, value: Any, /) -> None: ...


class _Merged:
    """The `merged` of a child."""

    @overload
    def __get__(self, it: Streams[Any, Any, Any, None], owner: object = ..., /) -> None: ...
    @overload
    def __get__(self, it: Streams[Any, Any, Any, str], owner: object = ..., /) -> Merged[str]: ...
    @overload
    def __get__(
        self, it: Streams[Any, Any, Any, bytes], owner: object = ..., /
    ) -> Merged[bytes]: ...
    @overload
    def __get__(
        self, it: Streams[Any, Any, Any, str | None], owner: object = ..., /
    ) -> Merged[str] | None: ...
    @overload
    def __get__(
        self, it: Streams[Any, Any, Any, bytes | None], owner: object = ..., /
    ) -> Merged[bytes] | None: ...
    @overload
    def __get__(
        self, it: Streams[Any, Any, Any, Any], owner: object = ..., /
    ) -> Merged[Any] | None: ...
    def __get__(self, it: Any, owner: object = None, /) -> Any: ...
    def __set__(self, it: Any, value: Any, /) -> None: ...
