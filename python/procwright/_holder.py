"""`Holder`: a process that holds a pipe of a run."""

from __future__ import annotations

from ._hinted import hinted
from ._record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._process import Process


@hinted
class Holder(Record):
    """A process that holds a pipe of the run.

    Its number may be another's by now: `process()` is the way to signal it.
    """

    __slots__ = ("_identity", "name", "pid")

    def __init__(
        self, pid: int, name: str, _identity: tuple[int, int | None] | None = None
    ) -> None:
        #: The number that it had when it was seen.
        self.pid = pid
        #: The name that it went by.
        self.name = name
        # Its start and its inode; None of one that had ended when it was looked at.
        self._identity = _identity

    def _parts(self) -> dict[str, Any]:
        return {"pid": self.pid, "name": self.name}

    def process(self) -> Process:
        """The process, to signal it, stop it or wait for its end: never another one.

        Raises `NoSuchProcess` if it has ended, whoever has its number now, and of a result
        that was recorded, which does not tell.
        """
        if self._identity is None:
            from ._errors import NoSuchProcess

            raise NoSuchProcess(
                self.pid,
                str(self.pid),
                f"{self} cannot be told from a later process of its number: it ended while it "
                f"was looked at, or is of a recorded result; Process({self.pid}) is whoever has "
                "the number",
            )
        from ._process import Process

        return Process._of_identity(self.pid, *self._identity)

    def __str__(self) -> str:
        return f"{self.name} (pid {self.pid})"
