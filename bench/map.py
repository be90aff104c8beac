"""Many short commands, eight at a time: `bench/map.py [--commands N] [--rounds N] [SUBJECT...]`.

For each way the commands a second, and the processor time of the controller alone, a command:
that of the commands themselves is left out. The ways take turns, so that ratios within one run
mean something. `procwright` is the first of PATH. What is not installed is named and left out.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time

POOL = """
import subprocess, sys
from concurrent.futures import ThreadPoolExecutor
def one(_):
    return subprocess.run(["true"], capture_output=True).returncode
with ThreadPoolExecutor(8) as pool:
    assert not any(pool.map(one, range(int(sys.argv[1]))))
"""

OURS = """
import procwright, sys
commands = (["true"] for _ in range(int(sys.argv[1])))
assert all(ended.ok for ended in procwright.map(commands, parallel=8))
"""

SHELL = {
    "procwright map": "seq {n} | procwright map -j8 true",
    "procwright map --live": "seq {n} | procwright map -j8 --live true",
    "procwright map --journal": "rm -f {dir}/j; seq {n} | procwright map -j8 --journal {dir}/j true",
    "xargs -P8 -n1": "seq {n} | xargs -P8 -n1 true",
    "GNU parallel -j8": "seq {n} | parallel -j8 true",
    "GNU parallel -j8 --joblog": "seq {n} | parallel -j8 --joblog {dir}/joblog true",
}
PYTHON = {
    "ThreadPoolExecutor + subprocess": POOL,
    "procwright.map, Python": OURS,
}


def measured(argv, **options):
    """Seconds that passed, and those of the processor for the controller alone."""
    begin = time.perf_counter()
    child = subprocess.Popen(argv, stderr=subprocess.DEVNULL, **options)
    # As a zombie it still tells its own time apart from that of its children.
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    passed = time.perf_counter() - begin
    with open(f"/proc/{child.pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    if child.wait() != 0:
        return None
    return passed, ticks / os.sysconf("SC_CLK_TCK")


def run(name, commands, directory):
    if name in PYTHON:
        return measured([sys.executable, "-c", PYTHON[name], str(commands)])
    feed, _, line = SHELL[name].rpartition("| ")
    for step in feed.split(";")[:-1]:
        subprocess.run(step.format(dir=directory), shell=True, check=True)
    items = "".join(f"{number}\n" for number in range(commands)).encode()
    with open(f"{directory}/items", "wb") as file:
        file.write(items)
    with open(f"{directory}/items", "rb") as file:
        return measured(line.format(dir=directory).split(), stdin=file)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commands", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("subjects", nargs="*")
    args = parser.parse_args()
    import tempfile

    figures = {}
    with tempfile.TemporaryDirectory() as directory:
        names = args.subjects or [*SHELL, *PYTHON]
        missing = set()
        for _ in range(args.rounds):
            for name in names:
                program = sys.executable if name in PYTHON else SHELL[name].rpartition("| ")[2]
                if name in missing or shutil.which(program.split()[0]) is None:
                    missing.add(name)
                    continue
                figure = run(name, args.commands, directory)
                if figure is None:
                    missing.add(name)
                    continue
                figures.setdefault(name, []).append(figure)
    for name in missing:
        print(f"left out: {name}, which is not here", file=sys.stderr)
    print("| | commands a second | least to most | controller, ms a command |")
    print("|---|---:|---:|---:|")
    for name, rounds in figures.items():
        rates = sorted(args.commands / passed for passed, _ in rounds)
        cpu = statistics.median(own for _, own in rounds) / args.commands * 1000
        spread = f"{rates[0]:,.0f} to {rates[-1]:,.0f}"
        print(f"| {name} | {statistics.median(rates):,.0f} | {spread} | {cpu:.2f} |")


if __name__ == "__main__":
    main()
