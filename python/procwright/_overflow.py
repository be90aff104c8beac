"""`Overflow`: the policy for output that is not read as fast as it comes."""

from __future__ import annotations

import re

from ._arguments import word
from ._invalid import InvalidValue, bad_type, bad_value
from ._record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

_POLICIES = ("spill", "block", "drop_oldest", "drop_newest", "fail")
_MEMORY = 16 << 20
_UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}


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
        self.memory = 0 if policy == "block" else size("memory", memory, _MEMORY)
        #: Bytes kept on disk; None for what the disk allows.
        self.disk = None if disk is None else size("disk", disk, 0)

    def _raw(self) -> tuple[str, int, int | None] | None:
        """The policy for the core. None is the bare pipe."""
        return None if self.policy == "block" else (self.policy, self.memory, self.disk)


def as_overflow(
    value: Overflow | Literal["spill", "block", "drop_oldest", "drop_newest", "fail"],
) -> Overflow:
    if isinstance(value, Overflow):
        return value
    return Overflow(word("overflow", value, _POLICIES, ", or an Overflow"))  # type: ignore[arg-type]


_SIZE = 'pass 0 or more bytes, as 65536, "64KiB" or "1GiB"'


def size(what: str, value: int | str | None, default: int) -> int:
    if value is None:
        return default
    number: int | None = None
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value)
        unit = _UNITS.get(found[2].lower()) if found else None
        if found and unit is not None:
            number = int(float(found[1]) * unit) if "." in found[1] else int(found[1]) * unit
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        raise bad_type(what, value, _SIZE)
    if number is None or not 0 <= number < 2**63:
        raise bad_value(what, value, _SIZE)
    return number
