"""`Journal`: the file by which a map knows what has been done."""

from __future__ import annotations

from ._arguments import encoded, file_name
from ._hinted import hinted
from ._invalid import InvalidValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._types import StrOrBytesPath


@hinted
class Journal:
    """A file that notes what was started and has ended, by which a later map knows it.

    path
        The file, in lines of JSON. It is made if it is not there.
    resume
        Go on with what is in it: what was done is not done again (`Ended.before`), whatever
        the order of the commands, and what the end of its map had stopped is run again. Without
        this a file with a journal in it is refused.
    rerun_failed
        Run again what has failed, by a limit of its own too.
    rerun_unknown
        Run again what was started and has no known end (`Ended.unknown`). It may have done
        its work or a part of it, and may even still be running.
    sync
        Have each line on the disk before anything follows from it, so that the journal is
        right after a power failure, too.
    joblog
        A file that gets GNU parallel's `--joblog` besides.
    """

    __slots__ = ("joblog", "path", "rerun_failed", "rerun_unknown", "resume", "sync")

    def __init__(
        self,
        path: StrOrBytesPath,
        *,
        resume: bool = False,
        rerun_failed: bool = False,
        rerun_unknown: bool = False,
        sync: bool = False,
        joblog: StrOrBytesPath | None = None,
    ) -> None:
        hint = "pass a file, a str, bytes or a path"
        file_name("path", path, hint)
        if joblog is not None:
            file_name("joblog", joblog, hint)
        if (rerun_failed or rerun_unknown) and not resume:
            raise InvalidValue("rerun_failed and rerun_unknown are for resume=True")
        self.path = path
        self.resume = bool(resume)
        self.rerun_failed = bool(rerun_failed)
        self.rerun_unknown = bool(rerun_unknown)
        self.sync = bool(sync)
        self.joblog = joblog

    def raw(self) -> dict[str, object]:
        """In the form that the core takes."""
        return {
            "path": encoded("path", self.path),
            "resume": self.resume,
            "rerun_failed": self.rerun_failed,
            "rerun_unknown": self.rerun_unknown,
            "sync": self.sync,
            "joblog": None if self.joblog is None else encoded("joblog", self.joblog),
        }

    def __repr__(self) -> str:
        return f"Journal({self.path!r}, resume={self.resume!r})"


def journal_of(journal: Any) -> Journal:
    """A journal, or that of a file."""
    if isinstance(journal, Journal):
        return journal
    file_name("journal", journal, "pass a file, a str, bytes or a path, or a Journal")
    return Journal(journal)
