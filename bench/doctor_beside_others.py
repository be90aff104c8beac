#!/usr/bin/env python3
"""What doctor, lsfd, lsof, py-spy and strace say of each scene of the gallery, as a table.

    bench/doctor_beside_others.py    prints docs/reference/doctor-beside-others.md

It runs the tests of the gallery (`crates/procwright-explain/tests/gallery/`), which set up each
scene, wait until doctor says of it what it has to, and start this program once more (`BESIDE`).
That asks each other tool about the same process, as root, while the scene stands, and has a line
for the table. Whether a tool *names who* is decided by whether the numbers of the processes that
doctor's finding is about are in what it says, other than the one that was asked about.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TESTS = ["cargo", "test", "-q", "-p", "procwright-explain", "--test", "gallery"]

#: Where the lines of the table are gathered, in the environment of this program once more.
TO = "BESIDE_TO"


def output(*words: str) -> str:
    ran = subprocess.run(words, capture_output=True, text=True, errors="replace")
    return ran.stdout + ran.stderr


def names(wanted: set[int], named: set[int]) -> str:
    found = wanted & named
    if not wanted:
        return "–"
    return (
        "yes"
        if found == wanted
        else f"{len(found)} of {len(wanted)}"
        if found
        else "no"
    )


def by_lsof(asked: int) -> set[int]:
    """Those that lsof +E names as the other ends of what this one has."""
    lines = output("lsof", "+E", "-n", "-P", "-w", "-a", "-p", str(asked)).splitlines()
    others = [re.findall(r"\b(\d+),\S+?,\d+[a-z]", line) for line in lines]
    return {int(pid) for line in others for pid in line}


def by_lsfd(asked: int) -> set[int]:
    """Those that have a pipe or a socket of this one's by what lsfd lists.

    It shows whose an end is by itself (ENDPOINTS) from 2.39 on.
    """
    lines = output("lsfd", "-n", "-r", "-o", "PID,NAME").splitlines()
    rows = [line.split(" ", 1) for line in lines if re.search(r" (pipe|socket):", line)]
    own = {name for pid, name in rows if pid == str(asked)}
    return {int(pid) for pid, name in rows if name in own}


def by_py_spy(asked: int) -> str:
    """The function at the top of the stack of the main thread."""
    frames = re.findall(
        r"^\s+(\S+) \(", output("py-spy", "dump", "--pid", str(asked)), re.M
    )
    return f"`{frames[0]}`" if frames else "–"


def by_strace(asked: int) -> str:
    """The call that it is in: that is shown at once, and strace goes on until it is ended."""
    text = output("timeout", "-s", "INT", "0.7", "strace", "-p", str(asked))
    call = re.search(r"^(\w+\([^,) ]*)", text, re.M)
    return f"`{re.sub('[0-9]{3,}', 'N', call[1])}…`" if call else "–"


def ask(name: str, asked: int) -> None:
    """Adds the line of one scene, whose diagnosis is read from stdin."""
    told = json.load(sys.stdin)
    found = told["findings"]
    wanted = set(found[0]["processes"]) - {asked} if found else set()
    verdict = (
        f"{told['verdict']}, `{found[0]['pattern']}`" if found else told["verdict"]
    )
    cells = [
        name,
        verdict,
        str(len(wanted)) if found else "–",
        names(wanted, by_lsfd(asked)),
        names(wanted, by_lsof(asked)),
        by_py_spy(asked),
        by_strace(asked),
    ]
    with open(os.environ[TO], "a") as table:
        table.write("| " + " | ".join(cells) + " |\n")


def version(*words: str) -> str:
    found = re.search(r"\d+(\.\d+)+", output(*words))
    return f"{words[0]} {found[0] if found else '?'}"


def main() -> None:
    tools = {"lsfd": "--version", "lsof": "-v", "py-spy": "--version", "strace": "-V"}
    for tool in tools:
        if shutil.which(tool) is None:
            sys.exit(f"there is no {tool}")
    with tempfile.TemporaryDirectory() as folder:
        to = f"{folder}/table"
        environment = os.environ | {"BESIDE": os.path.abspath(__file__), TO: to}
        subprocess.run(
            [*TESTS, "--", "--test-threads=3"],
            env=environment,
            stdout=sys.stderr,
            check=True,
        )
        with open(to) as table:
            lines = sorted(table, key=lambda line: line.split(" | ")[1::-1])
    versions = ", ".join(version(tool, word) for tool, word in tools.items())
    release = os.uname().release.split("-")[0]
    print(HEAD.format(versions=versions, release=release, scenes=len(lines)))
    print("".join(lines) + FOOT)


HEAD = """# doctor beside others

What each says of the {scenes} scenes of doctor's own [gallery](../../crates/procwright-explain/tests/gallery/main.rs), programs that hang and programs that do not, when it is asked about one process of it, as root: {versions}, Linux {release}. `bench/doctor_beside_others.py` makes this page. A program that a scene is about and that is not installed leaves its scene out.

- **doctor**: its verdict and the name of the hang. A test holds each to what is true. A *possible* of a circle of pipes could not see somebody, here a process with an io_uring, or process 1.
- **others**: how many processes there are beside the one asked about that hold each other up, or hold it up. – where nothing hangs.
- **lsfd**, **lsof +E**: whether these are among those that it shows to have the other end of something that the process asked about has open. lsfd does so from 2.39 on, by `ENDPOINTS`; before, as here, its list has to be joined by the numbers of pipes and sockets, which this page does for it. What they show is the same where nothing hangs, and neither says who waits. *no* is a wait for something else than a conduit between the two: a child, a lock, a third process. Any conduit between the two counts, also one that nobody waits for. – if there is nobody to be named.
- **py-spy dump**: the function at the top of the stack of the main thread; – of what is no Python.
- **strace -p**: the system call of the main thread. Neither names a process: of a circle each member has to be asked in turn.

| | doctor | others | lsfd | lsof +E | py-spy dump | strace -p |
|---|---|---:|---|---|---|---|"""

FOOT = (
    "\npy-spy and strace stop the process for a moment, which doctor, lsfd and lsof do not. "
    "[dla](https://github.com/rouming/dla) (of 2015, built from its source) looks for circles of "
    "pthread mutexes by the stacks of threads that sleep. It was run beside one of these scenes, "
    "and beside one program whose two threads take two mutexes in the wrong order, and told of "
    "none: it goes by the name of a function, `__lll_lock_wait`, that glibc 2.36 does not export. "
    "Of mutexes within one program doctor sees that a thread waits, and not for whom.\n"
)

if __name__ == "__main__":
    match sys.argv[1:]:
        case [name, asked]:
            ask(name, int(asked))
        case _:
            main()
