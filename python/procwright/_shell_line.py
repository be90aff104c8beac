"""Which words behind a line for the shell the line uses, as far as that is certain."""

from __future__ import annotations

import os
import re

#: Any of $0, $1, $@, $*, $#, or ${1}.
_ANY = re.compile(rb"\$\{?[#!]?[0-9@*#]")
#: Those among them that have the first word, or all.
_FIRST = re.compile(rb"\$\{?[#!]?[0@*#]")
#: What may give the shell other words than those behind the line, asks whether there is one, or
#: says that a `$` may be one of another program: functions, `set`, tests, comments, here
#: documents, `$'...'`.
_OTHERS = re.compile(
    rb"\(\s*\)|<<|\$'|(?:^|\s)#|\b(?:set|function|eval|source|alias|test)\b|\[|(?:^|[;&|({\n])\s*\.\s"
)
#: In their order: a text in single quotes and an escaped character, which are left out; one in
#: double quotes without any of these, an argument, and a quote that is none of all these.
_PART = re.compile(
    rb"'[^']*'|\\.|\$\$|"
    rb'"(?P<quoted>(?:[^"\'\\`(]|\\.)*)"|\$(?P<one>[1-9])|\$\{(?P<many>[1-9][0-9]*)\}'
    rb"|(?P<unclear>[\"'`])",
    re.DOTALL,
)
#: What people put first for the sake of `$0` alone.
_NAMES = frozenset((b"_", b"-", b"--", b"sh", b"bash", b"dash", b"ksh", b"zsh"))


def uses_any(line: bytes) -> bool:
    """Whether the line has any of $0, $1, $@, $*, $#, or ${1}."""
    return _ANY.search(line) is not None


def takes_first_for_one(line: bytes, words: list[bytes]) -> bool:
    """Whether the line takes the one word behind it for `$1`, while it is `$0`: it uses `$1`,
    which is not there, and never the word.

    A shell makes an empty word of it without an error. Of several words the first may be a name
    that is meant, and the others as many as there are.
    """
    if len(words) != 1:
        return False
    if os.path.basename(words[0]) in _NAMES or _FIRST.search(line) or _OTHERS.search(line):
        return False
    used = _arguments(line)
    return used is not None and 1 in used


def _arguments(line: bytes) -> set[int] | None:
    """The numbers of the arguments that the shell puts in whatever else is true; None if what
    is quoted cannot be told."""
    found: set[int] = set()
    for part in _PART.finditer(line):
        if part["unclear"]:
            return None
        if part["quoted"]:
            found |= _arguments(part["quoted"]) or set()
        number = part["one"] or part["many"]
        if number:
            found.add(int(number))
    return found
