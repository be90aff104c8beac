"""`Event`: what a run or a child tells while it goes on."""

from __future__ import annotations

from ._explained import Diagnosis, Waiting
from ._holder import Holder
from ._record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._types import RawDiagnosis, RawWaiting


class Event(Record):
    """News of a run or a child while it goes on; `str()` says it in words.

    Of kind "held": the program has exited, but a second later other processes
    still hold its pipes. Of kind "explained": it has not ended by the time of
    `explain_after`, and `diagnosis` says why, or is None if `str()` says why nothing could be
    found out. Of kind "input_wanted": it has begun to wait for input; `waiting` says who and
    where, and `prompt` is the unfinished last line of the output that came last, as it came, or
    None. Of kind "missed": so many events found the callback still at
    work on earlier ones that they are counted here.
    """

    __slots__ = (
        "kind",
        "text",
        "command",
        "streams",
        "holders",
        "complete",
        "diagnosis",
        "waiting",
        "prompt",
    )

    def __init__(
        self,
        kind: str,
        text: str,
        command: str = "",
        streams: str = "",
        holders: list[tuple[int, str, tuple[int, int | None] | None]] | None = None,
        complete: bool = True,
        diagnosis: RawDiagnosis | None = None,
        waiting: RawWaiting | None = None,
        prompt: str | None = None,
    ) -> None:
        self.kind = kind
        self.text = text
        self.command = command
        self.streams = streams
        self.holders = [Holder(*holder) for holder in holders or ()]
        self.complete = complete
        self.diagnosis = None if diagnosis is None else Diagnosis(*diagnosis)
        self.waiting = None if waiting is None else Waiting(*waiting)
        self.prompt = prompt

    def __str__(self) -> str:
        return self.text
