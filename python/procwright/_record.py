"""Values with named parts, and those that tell of processes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from ._types import MaybeNone


class Record:
    """A value with named parts that compares by them."""

    __slots__: tuple[str, ...] = ()

    def _parts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value!r}" for name, value in self._parts().items())
        return f"{type(self).__name__}({parts})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((type(self), *map(str, self._parts().values())))


class Survivor(Record):
    """A process that could not be stopped, or that nobody can say was.

    `state` is the system's letter: D is a wait that not even SIGKILL ends; S or
    R is usually another user's process. "?" is for one that may belong to the
    program or be a stranger's, which nothing tells: it was not signalled.

    `pid` is None for all that cannot be seen: without /proc a stop reaches the
    program and its group, and who else there is cannot be known; nor is it known
    of a program that started processes faster than they could be found.
    """

    __slots__ = ("pid", "name", "state")

    def __init__(self, pid: int | None, name: str, state: str) -> None:
        self.pid = pid
        self.name = name
        self.state = state

    def __str__(self) -> str:
        if self.pid is None:
            return (
                "others, if any: they cannot be seen without /proc, or where processes are "
                "started faster than they are found"
            )
        if self.state == "?":
            return f"{self.name} (pid {self.pid}), which may belong to it or not: not signalled"
        return f"{self.name} (pid {self.pid}, state {self.state})"


class Status(Record):
    """How the program ended. Never guessed: what cannot be known is "unknown".

    `kind` is "exited" (then `code` is set), "signaled" (`signal`, `name` and
    `core`) or "unknown" (`why`). Comparing it with a number is a TypeError:
    that is its `returncode`.
    """

    __slots__ = ("kind", "code", "signal", "name", "core", "why")

    def __init__(
        self,
        kind: Literal["exited", "signaled", "unknown"],
        code: int | None = None,
        signal: int | None = None,
        name: str | None = None,
        core: bool | None = None,
        why: str | None = None,
    ) -> None:
        self.kind = kind
        self.code = code
        self.signal = signal
        self.name = name
        self.core = core
        self.why = why

    @property
    def returncode(self) -> int | MaybeNone:
        """The exit code, -N after signal N, None if unknown."""
        return self.code if self.signal is None else -self.signal

    def __eq__(self, other: object) -> bool:
        # Who expects the code, as `Popen.wait()` gives it, would take False for an answer.
        if isinstance(other, int):
            raise TypeError(
                f"a Status is no number: compare its returncode, status.returncode == {other!r}"
            )
        return super().__eq__(other)

    __hash__ = Record.__hash__

    def __repr__(self) -> str:
        parts = self._parts().items()
        shown = ", ".join(f"{key}={value!r}" for key, value in parts if value is not None)
        return f"Status({shown})"

    def __str__(self) -> str:
        if self.kind == "exited":
            return f"exited with code {self.code}"
        if self.kind == "signaled":
            return f"killed by {self.name}{' (core dumped)' if self.core else ''}"
        return f"ended in an unknown way ({self.why})"

    def to_dict(self) -> dict[str, Any]:
        """The parts that this kind has."""
        if self.kind == "exited":
            return {"kind": self.kind, "code": self.code}
        if self.kind == "signaled":
            return {
                "kind": self.kind,
                "signal": self.signal,
                "name": self.name,
                "core": self.core,
            }
        return {"kind": self.kind, "why": self.why}
