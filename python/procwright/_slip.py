"""Names that were mistyped."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: Of two names that are less alike one is no slip of the other.
_ALIKE = 0.8


def slip_of(name: str, known: Sequence[str]) -> str | None:
    """The question after the one name that this is a slip of, if there is one."""
    import difflib

    near = difflib.get_close_matches(name, known, 1, _ALIKE)
    return f"did you mean {near[0]}?" if near else None
