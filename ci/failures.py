#!/usr/bin/env python3
"""Prints what a log of `make test` or `make check` says of its failures.

    ci/failures.py LOG

First come the names of the tests that failed or did not end, a line each, and then what
the log says of each failure; at the end all of it once more, in short. A service that
keeps only the first thousands of characters keeps what is needed, and so does one that
keeps the last two thousand: each failure gets an equal share of them, so that the stacks
of one that hangs do not push out what another one says.
"""

import re
import sys

# Characters of all failures, and the share of one at least, at length and in short;
# characters of a line.
AT_LENGTH, IN_SHORT = (6000, 500), (1200, 200)
OF_A_LINE = 200

# Names of tests in short.
OF_NAMES = 10

# Lines from the beginning of one failure, and lines at the end of a part that failed and
# said nothing that looks like a failure.
OF_ONE, AT_THE_END = 60, 12

BEGINNING = re.compile(
    r"---- .* stdout ----"
    r"|\s+\d+\) (Failure|Error):"
    r"|_{5,} \S+ _{5,}"
    r"|(FAILED|HANGS|ERROR|E  )"
    r"|error"
    r"|required, but|not installed"
    r"|.*panicked at"
    r"|SIG[A-Z]+:"
    # What a process says that dies or hangs stands behind the dots of pytest.
    r"|.*(Timeout \(|Fatal Python|Segmentation fault|Aborted|double free|corrupted|INTERNALERROR)"
    # What Ruby says that dies, and the watchdog of its tests, which stands behind dots, too.
    r"|.*(\[BUG\]|\w+#test_.* hangs:)"
    r"|the tests of this file hang|WATCHDOG"
)

# A part of the log, and its name among those that failed.
HEADING = re.compile(r"== (.*)")
FAILED_PART = re.compile(r"FAILED: (.*)")

# How Rust's tests, pytest and minitest name a test that failed. Of one that hangs, pytest's
# faulthandler shows the stack.
NAMES = re.compile(
    r"test (\S.*) \.\.\. FAILED"
    r"|(?:FAILED|ERROR) (\S+::\S+)"
    r"|.*?(\w+#test_.*?)(?: \[.*\]:| hangs:|:$)"
    r'|  File ".*/(tests/test_\w+\.py", line \d+ in test_\w+)'
)

# Rust's tests tell of one that takes long, and of its end.
LONG = re.compile(r"test (\S+) has been running for over")
ENDED = re.compile(r"test (\S+) \.\.\. ")


def failures(lines):
    """Yields the parts of a log that begin where a failure does, as lines with numbers."""
    part = []
    for number, line in enumerate(lines, start=1):
        if BEGINNING.match(line) and (not part or part[0][1] != line):
            # What begins again within a few lines is more of one failure.
            if len(part) > 4:
                yield part
                part = []
        elif HEADING.match(line) and part:
            yield part
            part = []
            continue
        elif not part:
            continue
        if len(part) < OF_ONE:
            part.append((number, line))
    if part:
        yield part


def silent(lines, found):
    """Yields the last lines of each part that failed and in which no failure begins."""
    sections = {}
    section = []
    for number, line in enumerate(lines, start=1):
        if heading := HEADING.fullmatch(line):
            sections[heading[1]] = section = []
        section.append((number, line))
    begun = {part[0][0] for part in found}
    for line in lines:
        if (failed := FAILED_PART.fullmatch(line)) and failed[1] in sections:
            section = sections[failed[1]]
            if not any(number in begun for number, _ in section):
                yield section[-AT_THE_END:]


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


def show(found, characters, share):
    """Prints the beginning of each failure, in so many characters altogether."""
    shown = found[: characters // share]
    for part in shown:
        left = characters // len(shown)
        for number, line in part:
            text = f"{number}: {line[:OF_A_LINE]}"
            left -= len(text) + 1
            if left < 0:
                break
            print(text)
        print("--")
    if len(found) > len(shown):
        print(f"and {len(found) - len(shown)} more")


def main(log):
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    named = [f"  {name}"[:OF_A_LINE] for name in dict.fromkeys(names(lines))]
    found = list(failures(lines))
    found = [*silent(lines, found), *found]
    print("\n".join(named))
    show(found, *AT_LENGTH)
    print("\nIn short:")
    show(found, *IN_SHORT)
    print("\n".join(named[:OF_NAMES]))


if __name__ == "__main__":
    main(*sys.argv[1:])
