"""The memory and disk that the output of all children may take together."""

from __future__ import annotations

from . import _core
from ._arguments import size
from ._record import Record


class Budget(Record):
    """Bytes of memory and disk that are in force.

    `disk` None is 8 GiB, or a quarter of what is free where that is less, and is only
    for streams whose `Overflow` names no `disk`.
    """

    __slots__ = ("memory", "disk")

    def __init__(self, memory: int, disk: int | None) -> None:
        #: Bytes in memory.
        self.memory = memory
        #: Bytes on disk.
        self.disk = disk


def budget() -> Budget:
    """The budget for the output of all children of `spawn` that waits to be read."""
    return Budget(*_core.budget())


def set_budget(memory: int | str | None = None, disk: int | str | None = None) -> None:
    """Sets what the output of all children of `spawn` may take together, from now on.

    For streams that are there already, too, and instead of what
    `PROCWRIGHT_MEMORY_BUDGET` and `PROCWRIGHT_DISK_BUDGET` say. It is shared evenly
    among those that need it; a stream that is to lose nothing loses nothing: its bytes
    go to disk sooner, or its child waits sooner.

    memory, disk
        Bytes as a number, or as text with a unit, as those of `Overflow`. Both are set:
        None is the default, 256 MiB of memory, and of the disk what `Budget` says.

    >>> set_budget(memory="64MiB")
    >>> budget()
    Budget(memory=67108864, disk=None)
    """
    _core.set_budget(
        None if memory is None else size("memory", memory),
        None if disk is None else size("disk", disk),
    )
