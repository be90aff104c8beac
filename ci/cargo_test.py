#!/usr/bin/env python3
"""Runs the Rust tests as `cargo test` does, but several test executables at a time.

    ci/cargo_test.py [--no-run | --alone] CARGO_ARGUMENT...

Cargo runs them one after the other, and most of their time is spent waiting. What an
executable prints is shown when it has ended. All run, whatever the others came to; the
exit code is 1 if one failed. Those that need the machine to themselves run with --alone,
one after the other, and are left out without it.
"""

import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

# Storms of forks are caught by surveys within bounds of time, and silence is told from
# slowness by the clock: both fail where other tests take the processors.
ALONE = ["procwright-process src/lib.rs", "procwright tests/timeouts.rs"]

# Seconds after which an executable hangs: no test of the usual forms takes a fifth of it.
# The watchdogs of whole files bark later, and cannot show what their tests wait for.
HANGS_AFTER = 12 * 3600 if os.environ.get("STRESS") == "1" else 540

# Those that take longest, so that none of them is left alone at the end.
FIRST = [
    "gallery",
    "tmux",
    "procwright",
    "steps_receivers",
    "takeover",
    "counted",
    "wait_scale",
]


def build(arguments):
    """Yields (title, directory, executable) for each test executable."""
    cargo = ["cargo", "test", "--no-run", "--message-format=json-render-diagnostics"]
    built = subprocess.run([*cargo, *arguments], stdout=subprocess.PIPE, check=False)
    if built.returncode != 0:
        sys.exit(built.returncode)
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["profile"]["test"]:
            package = pathlib.Path(message["manifest_path"]).parent
            source = pathlib.Path(message["target"]["src_path"])
            title = f"{package.name} {source.relative_to(package)}"
            yield message["target"]["name"], title, package, message["executable"]


def rank(test):
    name = test[0]
    return FIRST.index(name) if name in FIRST else len(FIRST)


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError as error:
        return str(error)


def family(pid):
    """This process and what descends from it."""
    found = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        for child in read(task / "children").split():
            found += family(child) if child.isdigit() else []
    return found


def diagnosis(pid):
    """What the processes of a hanging test wait for, thread by thread."""
    told = []
    for one in family(pid):
        told.append(f"{one}: {read(f'/proc/{one}/cmdline')}")
        for task in sorted(pathlib.Path(f"/proc/{one}/task").glob("*")):
            words = [read(task / name) for name in ("comm", "wchan", "syscall")]
            told.append(f"  {task.name} {' | '.join(words)}")
        if shutil.which("gdb"):
            gdb = [
                "gdb",
                "-batch",
                "-nx",
                "-p",
                str(one),
                "-ex",
                "thread apply all bt 8",
            ]
            try:
                stacks = subprocess.run(
                    gdb, capture_output=True, text=True, timeout=120, check=False
                ).stdout
            except subprocess.TimeoutExpired:
                stacks = "gdb hangs, too"
            told += [f"  {line}" for line in stacks.splitlines()]
    return "\n".join(told)


def run(title, directory, words):
    """Runs one executable.

    What it prints goes to a file, not to a pipe: a process that it leaves behind would
    hold the pipe open, and the end of the output would never come.
    """
    begun = time.monotonic()
    with tempfile.TemporaryFile() as output:
        test = subprocess.Popen(
            words,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        hangs = b""
        try:
            code = test.wait(HANGS_AFTER)
        except subprocess.TimeoutExpired:
            hangs = f"HANGS: {title}\n{diagnosis(test.pid)}\n".encode()
            test.kill()
            code = test.wait()
        output.seek(0)
        printed = output.read()
    seconds = time.monotonic() - begun
    shown = f"\n     Running {title} ({seconds:.1f} s)\n".encode() + printed + hangs
    if code != 0:
        shown += f"FAILED: {title}: {code}\n".encode()
    return title, code, shown


def main(arguments):
    mode = arguments.pop(0) if arguments[:1] in (["--no-run"], ["--alone"]) else None
    tests = sorted(build(arguments), key=rank)
    if mode == "--no-run":
        return 0
    alone = mode == "--alone"
    tests = [test for test in tests if (test[1] in ALONE) == alone]
    # One keeps a third of a core busy, and what runs beside has use for the rest.
    at_a_time = 1 if alone else min(2 * (os.cpu_count() or 1), 8)
    failed = []
    with concurrent.futures.ThreadPoolExecutor(at_a_time) as pool:
        calls = [pool.submit(run, *test[1:3], [test[3]]) for test in tests]
        if not alone:
            doc = ["cargo", "test", "--doc", "--no-fail-fast", *arguments]
            calls.append(pool.submit(run, "examples in the documentation", ".", doc))
        for call in concurrent.futures.as_completed(calls):
            title, code, shown = call.result()
            sys.stdout.buffer.write(shown)
            sys.stdout.flush()
            if code != 0:
                failed.append(title)
    print(f"\n{len(calls)} test executables, {len(failed)} failed", *failed, sep="\n  ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
