"""`Overflow`: the policy for output that is not read as fast as it comes."""

from __future__ import annotations

from ._arguments import size, word
from ._hinted import hinted
from ._invalid import InvalidValue
from ._record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

_POLICIES = ("spill", "block", "drop_oldest", "drop_newest", "fail")
_MEMORY = 16 << 20


@hinted
class Overflow(Record):
    """The policy for output that is not read as fast as it comes.

    policy
        "spill": keep `memory` bytes in memory, then up to `disk` bytes in files
        without a name, and only then let the child wait. Nothing is lost.
        "block": keep nothing. The stream is the kernel's pipe itself, and the child
        waits when that is full.
        "drop_oldest", "drop_newest": keep the last or the first `memory` bytes. The
        child never waits; what is missing is told in its place.
        "fail": keep `memory` bytes; one more is a `StreamOverflow`.
    memory, disk
        Bytes as a number, or as text with a unit: "64KiB", "16MiB", "1GiB". `disk`
        None is 1 GiB, or a tenth of what is free where that is less.

    >>> Overflow("drop_oldest", memory="1MiB").memory
    1048576
    """

    __slots__ = ("policy", "memory", "disk")

    def __init__(
        self,
        policy: Literal["spill", "block", "drop_oldest", "drop_newest", "fail"] = "spill",
        *,
        memory: int | str | None = None,
        disk: int | str | None = None,
    ) -> None:
        word("policy", policy, _POLICIES)
        if policy == "block" and memory is not None:
            raise InvalidValue('memory is for what is kept: "block" keeps nothing')
        if policy != "spill" and disk is not None:
            raise InvalidValue(f'disk is for "spill": {policy!r} uses none')
        #: The name of the policy.
        self.policy = policy
        #: Bytes kept in memory.
        self.memory = 0 if policy == "block" else _size("memory", memory, _MEMORY)
        #: Bytes kept on disk; None for what the disk allows.
        self.disk = None if disk is None else size("disk", disk)

    def _raw(self) -> tuple[str, int, int | None] | None:
        """The policy for the core. None is the bare pipe."""
        return None if self.policy == "block" else (self.policy, self.memory, self.disk)


def as_overflow(
    value: Overflow | Literal["spill", "block", "drop_oldest", "drop_newest", "fail"],
) -> Overflow:
    if isinstance(value, Overflow):
        return value
    return Overflow(word("overflow", value, _POLICIES, ", or an Overflow"))  # type: ignore[arg-type]


def _size(name: str, value: int | str | None, default: int) -> int:
    return default if value is None else size(name, value)
