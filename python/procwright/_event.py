"""`Event`: what a run or a child tells while it goes on."""

from __future__ import annotations

from ._holder import Holder
from ._record import Record


class Event(Record):
    """News of a run or a child while it goes on; `str()` says it in words.

    Of kind "held": the program has exited, but a second later other processes
    still hold its pipes. Of kind "missed": so many events found the callback still at
    work on earlier ones that they are counted here.
    """

    __slots__ = ("kind", "text", "command", "streams", "holders", "complete")

    def __init__(
        self,
        kind: str,
        text: str,
        command: str = "",
        streams: str = "",
        holders: list[tuple[int, str, tuple[int, int | None] | None]] | None = None,
        complete: bool = True,
    ) -> None:
        self.kind = kind
        self.text = text
        self.command = command
        self.streams = streams
        self.holders = [Holder(*holder) for holder in holders or ()]
        self.complete = complete

    def __str__(self) -> str:
        return self.text
