"""A line where a list of words is asked for, and what to type in its place. Imported when one was
given."""

from __future__ import annotations

import os
import shlex

from ._invalid import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def words(line: str | bytes) -> list[str]:
    """The words of a line, as a shell takes them apart."""
    text = os.fsdecode(line)
    try:
        return shlex.split(text)
    except ValueError:
        # A quote is not closed.
        return [text]


def programs(line: str | bytes) -> list[list[str]] | None:
    """The words of each program of a line, which `|` stands between; None of one that needs a
    shell."""
    text = os.fsdecode(line)
    if any(sign in text for sign in "$`\\"):
        return None
    found: list[list[str]] = [[]]
    try:
        parts = _parts(text, posix=True)
        # A `|` in quotes is none, and has lost them among the words.
        if parts.count("|") != _parts(text, posix=False).count("|"):
            return None
        for part in parts:
            if part == "|":
                found.append([])
            elif part and set(part) <= set("();<>|&"):
                return None
            else:
                found[-1].append(part)
    except ValueError:
        return None
    return found if all(found) else None


def _parts(text: str, *, posix: bool) -> list[str]:
    parts = shlex.shlex(text, posix=posix, punctuation_chars=True)
    parts.whitespace_split, parts.commenters = True, ""
    return list(parts)


def as_arguments(commands: Iterable[object]) -> str:
    """Commands as the arguments of a call."""
    return ", ".join(shown(one) for one in commands)
