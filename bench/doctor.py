"""Why does it hang, and what the answer costs: `bench/doctor.py [--processes N] [--rounds N]`.

Starts so many processes, each with two pipes, and asks about one of them. For each way the time
that passes, with its ratio to the floor of the round, the processor time, and the system calls (by
`strace -c`, in a call of its own). The ways take turns. `procwright` and `look`, the floor
(`bench/floors/look.c`), are the first of PATH. What is not installed is named and left out.
"""

import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

#: The floor: the links of all descriptors read once, on as many threads as doctor has.
FLOOR = "bare links"

#: What is asked about the process {pid}, which sleeps, about {reader}, which waits for what the
#: parent of all writes, and about {writer}, which nobody reads. doctor looks twice, a
#: millisecond apart.
WAYS = {
    FLOOR: f"look {min(4, len(os.sched_getaffinity(0)))}",
    "bare links, one thread": "look 1",
    "procwright doctor, who sleeps": "procwright doctor --between 1ms {pid}",
    "procwright doctor, who reads": "procwright doctor --between 1ms {reader}",
    "procwright doctor, who waits for room": "procwright doctor --between 1ms {writer}",
    "procwright doctor, all": "procwright doctor --between 1ms",
    "lsof +E -p": "lsof +E -n -P -w -p {pid}",
    "lsfd": "lsfd",
    "ps -ef": "ps -ef",
}


def taken(argv):
    """Seconds that passed, and those of the processor."""
    begin = time.perf_counter()
    child = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    return time.perf_counter() - begin, usage.ru_utime + usage.ru_stime


def calls(argv, directory):
    """The system calls that it makes, None without strace."""
    if shutil.which("strace") is None:
        return None
    to = f"{directory}/calls"
    if os.path.exists(to):
        os.remove(to)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    # From aside: a strace that has started it waits for any child, and whoever is asked about
    # waits for this program, which would wait for that strace.
    subprocess.run(
        ["strace", "-D", "-f", "-c", "-U", "calls", "-o", to, *argv], **quiet, check=False
    )
    # It may have ended before strace has written all.
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if os.path.exists(to):
            with open(to) as file:
                totals = [re.match(r"\s*(\d+) total", line) for line in file]
            found = next((int(total[1]) for total in totals if total), None)
            if found is not None:
                return found
        time.sleep(0.01)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()

    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    sleepers = []
    figures = {}
    missing = set()
    try:
        for _ in range(args.processes):
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            sleepers.append(subprocess.Popen(["sleep", "600"], **pipes))
        asked = {"pid": sleepers[-1].pid}
        for name, program in (("reader", "cat"), ("writer", "yes")):
            sleepers.append(subprocess.Popen([program], **pipes))
            asked[name] = sleepers[-1].pid
        for _ in range(args.rounds):
            for name, line in WAYS.items():
                argv = line.format(**asked).split()
                if shutil.which(argv[0]) is None:
                    missing.add(name)
                    continue
                figures.setdefault(name, []).append(taken(argv))
        with tempfile.TemporaryDirectory() as directory:
            counts = {
                name: calls(WAYS[name].format(**asked).split(), directory)
                for name in figures
            }
    finally:
        for sleeper in sleepers:
            sleeper.kill()
        for sleeper in sleepers:
            sleeper.wait()
    for name in missing:
        print(f"left out: {name}, which is not here", file=sys.stderr)
    print("| | ms | to the floor | processor, ms | system calls |")
    print("|---|---:|---:|---:|---:|")
    for name, rounds in figures.items():
        passed, worked = zip(*rounds)
        floor = [passed for passed, _ in figures.get(FLOOR, [])]
        ratios = [one / least for one, least in zip(passed, floor)]
        cells = [
            spread([one * 1000 for one in passed]),
            spread(ratios) if ratios else "",
            spread([one * 1000 for one in worked]),
            "" if counts[name] is None else f"{counts[name]:,}",
        ]
        print(f"| {name} | {' | '.join(cells)} |")


def spread(values):
    """The middle one, the least and the greatest."""
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


if __name__ == "__main__":
    main()
