#!/usr/bin/env python3
"""Prints what a log of `make test` or `make check` says of its failures.

    ci/failures.py LOG

A service that keeps only a part of a log keeps that. Each failure gets an equal share of
the lines: the stacks of one that hangs do not push out what another one says.
"""

import re
import sys

# Lines in all, and lines from the beginning of one failure at most.
LINES, OF_ONE = 150, 60

BEGINNING = re.compile(
    r"---- .* stdout ----"
    r"|\s+\d+\) (Failure|Error):"
    r"|_{5,} \S+ _{5,}"
    r"|(FAILED|HANGS|ERROR|E  )"
    r"|error"
    r"|required, but|not installed"
    r"|.*panicked at"
    r"|Timeout |Fatal Python|SIG[A-Z]+:"
)


def failures(lines):
    """Yields the parts of a log that begin where a failure does."""
    part = []
    for number, line in enumerate(lines, start=1):
        if BEGINNING.match(line) and (not part or part[0][1] != line):
            # What begins again within a few lines is more of one failure.
            if len(part) > 4:
                yield part
                part = []
        elif not part:
            continue
        if len(part) < OF_ONE:
            part.append((number, line))
    if part:
        yield part


def main(log):
    with open(log, encoding="utf-8", errors="replace") as file:
        found = list(failures(file.read().splitlines()))
    share = max(LINES // max(len(found), 1), 6)
    for part in found[: LINES // 6]:
        for number, line in part[:share]:
            print(f"{number}: {line[:300]}")
        print("--")
    if len(found) > LINES // 6:
        print(f"and {len(found) - LINES // 6} more")


if __name__ == "__main__":
    main(sys.argv[1])
