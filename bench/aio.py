"""Programs on event loops: `bench/aio.py [--quick] [--rounds N] [--case CASE...] [WAY...]`.

Seconds, median, least and most, and the processor time of the controller alone. The ways take
turns, so that ratios within one run mean something. `bench/peers/aio_subject.py` has the ways and
the cases. What is not installed is named and left out.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

SUBJECT = pathlib.Path(__file__).parent / "peers" / "aio_subject.py"
sys.path.insert(0, str(SUBJECT.parent))

#: For each case its number and its rounds, unless others are asked for, the number of a quick run,
#: and what its figures are of. With these all of it takes some ten minutes.
CASES = {
    "at_once": (1_000, 3, 200, "{n:,} programs at once, s in all"),
    "bounded": (20_000, 1, 1_000, "{n:,} programs, 200 at a time, s in all"),
    "chunks": (1_024, 3, 64, "{n:,} MiB of a stream by the piece, s"),
    "lines": (1_024, 1, 16, "{n:,} MiB of a stream in lines of 100 bytes, s"),
    "exit": (200, 3, 20, "from the end of a program until its wait is over, ms"),
    "cancel": (50, 3, 10, "from a cancellation until the task is told and the program gone, ms"),
}
#: Those of which the middle of all tries is told, in ms.
OF_TRIES = ("exit", "cancel")


def measured(way, case, number):
    """The seconds of each try, and those of the processor; none where it cannot be had."""
    argv = [sys.executable, str(SUBJECT), way, case, str(number)]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode == 77:
        return None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"code {done.returncode}"])[-1]
        print(f"left out: {way}, {case}: {last}", file=sys.stderr)
        return None
    figure = json.loads(done.stdout)
    return statistics.median(figure["seconds"]), figure["cpu"]


def main():
    from aio_subject import WAYS

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("ways", nargs="*", metavar="WAY")
    args = parser.parse_args()
    for case in args.case or CASES:
        long, rounds, short, title = CASES[case]
        rounds = args.rounds or (1 if args.quick else rounds)
        number = short if args.quick else long
        figures = {}
        missing = set()
        for _ in range(rounds):
            for way in args.ways or WAYS:
                figure = None if way in missing else measured(way, case, number)
                if figure is None:
                    missing.add(way)
                else:
                    figures.setdefault(way, []).append(figure)
        scale = 1000 if case in OF_TRIES else 1
        print(f"\n### {title.format(n=number)}\n")
        print("| | median | least to most | controller, processor s |")
        print("|---|---:|---:|---:|")
        ordered = sorted(figures.items(), key=lambda one: statistics.median(s for s, _ in one[1]))
        for way, found in ordered:
            seconds = sorted(scale * one for one, _ in found)
            cpu = statistics.median(one for _, one in found)
            spread = f"{seconds[0]:.3g} to {seconds[-1]:.3g}"
            print(
                f"| {way} | {statistics.median(seconds):.3g} | {spread} | {cpu:.2f} |", flush=True
            )


if __name__ == "__main__":
    main()
