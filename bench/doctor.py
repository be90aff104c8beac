"""Why does it hang, and what the answer costs: `bench/doctor.py [--processes N] [--rounds N]`.

Starts so many processes, each with two pipes, and asks about one of them. For each way the time
that passes, the processor time, and the system calls (by `strace -c`, in a call of its own). The
ways take turns. `procwright` is the first of PATH. What is not installed is named and left out.
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

#: What is asked about the process {pid}. doctor looks twice, a millisecond apart.
WAYS = {
    "procwright doctor": "procwright doctor --between 1ms {pid}",
    "lsof +E -p": "lsof +E -n -P -w -p {pid}",
    "lsfd": "lsfd",
    "ps -ef": "ps -ef",
}


def asked(argv):
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
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(
        ["strace", "-f", "-c", "-U", "calls", "-o", to, *argv], **quiet, check=False
    )
    with open(to) as file:
        totals = [re.match(r"\s*(\d+) total", line) for line in file]
    return next((int(total[1]) for total in totals if total), None)


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
        pid = sleepers[-1].pid
        for _ in range(args.rounds):
            for name, line in WAYS.items():
                argv = line.format(pid=pid).split()
                if shutil.which(argv[0]) is None:
                    missing.add(name)
                    continue
                figures.setdefault(name, []).append(asked(argv))
        with tempfile.TemporaryDirectory() as directory:
            counts = {
                name: calls(WAYS[name].format(pid=pid).split(), directory)
                for name in figures
            }
    finally:
        for sleeper in sleepers:
            sleeper.kill()
        for sleeper in sleepers:
            sleeper.wait()
    for name in missing:
        print(f"left out: {name}, which is not here", file=sys.stderr)
    print("| | ms | processor, ms | system calls |")
    print("|---|---:|---:|---:|")
    for name, rounds in figures.items():
        cells = []
        for values in zip(*rounds):
            ms = sorted(value * 1000 for value in values)
            cells.append(f"{statistics.median(ms):.1f} ({ms[0]:.1f} to {ms[-1]:.1f})")
        count = counts[name]
        print(
            f"| {name} | {' | '.join(cells)} | {'' if count is None else f'{count:,}'} |"
        )


if __name__ == "__main__":
    main()
