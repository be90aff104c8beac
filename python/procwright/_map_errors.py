"""The exception of a map's journal."""

from __future__ import annotations


class JournalError(OSError):
    """The journal of a map cannot be used, or not written any more.

    `errno` is that of the system, None if the file itself is the reason: it is not empty, of
    another directory, used by another map, or no journal.
    """

    def __init__(self, text: str, errno: int | None = None) -> None:
        super().__init__(text)
        self._text = text
        self.errno = errno

    def __str__(self) -> str:
        return self._text

    def __reduce__(self) -> tuple[type[JournalError], tuple[str, int | None]]:
        return type(self), (self._text, self.errno)


JournalError.__module__ = "procwright"
