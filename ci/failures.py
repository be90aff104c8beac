#!/usr/bin/env python3
"""Prints what a log of `make test` or `make check` says of its failures.

    ci/failures.py [--names] LOG

A service that keeps only a part of a log keeps that. Each failure gets an equal share of
the lines: the stacks of one that hangs do not push out what another one says. With
--names it prints the names alone of the tests that failed or did not end, a line each.
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
    r"|the tests of this file hang|WATCHDOG"
)

# How Rust's tests, pytest and minitest name a test that failed. Of one that hangs, pytest's
# faulthandler shows the stack.
NAMES = re.compile(
    r"test (\S.*) \.\.\. FAILED"
    r"|(?:FAILED|ERROR) (\S+::\S+)"
    r"|(\w+#test_\w+) \[.*\]:"
    r'|  File ".*/(tests/test_\w+\.py", line \d+ in test_\w+)'
)

# Rust's tests tell of one that takes long, and of its end.
LONG = re.compile(r"test (\S+) has been running for over")
ENDED = re.compile(r"test (\S+) \.\.\. ")


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


def names(lines):
    """Yields the name of each test that failed, and of each that did not end."""
    unended = {}
    for line in lines:
        if (named := NAMES.match(line)) is not None:
            yield next(filter(None, named.groups()))
        if (long := LONG.match(line)) is not None:
            unended[long[1]] = True
        elif (ended := ENDED.match(line)) is not None:
            unended.pop(ended[1], None)
    for name in unended:
        yield f"{name} (did not end)"


def main(arguments):
    mode = arguments.pop(0) if arguments[:1] == ["--names"] else None
    (log,) = arguments
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    if mode == "--names":
        for name in dict.fromkeys(names(lines)):
            print(f"  {name}")
        return
    found = list(failures(lines))
    share = max(LINES // max(len(found), 1), 6)
    for part in found[: LINES // 6]:
        for number, line in part[:share]:
            print(f"{number}: {line[:300]}")
        print("--")
    if len(found) > LINES // 6:
        print(f"and {len(found) - LINES // 6} more")


if __name__ == "__main__":
    main(sys.argv[1:])
