"""Pipelines of 2, 3, 8 and more stages: `bench/pipelines.py --bin DIR [--rounds N] [SUBJECT...]`.

Three kinds of work: `head -c` into `cat`s, as fast as it goes; the same with a stage in the middle
that reads nothing for a second, where the time until the first stage has ended is measured too;
and `true | true`, one after the other. The ways take turns, so that ratios within one run mean
something; ratios are to bash. A way that is not here, or that fails, is named and left out.

DIR has the programs that ci/bench.sh builds: `pipeline` (the floor, by system calls alone),
`bench-rust-pipeline`, `procwright`.
"""

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PEERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers")

LOOP = """
began=$EPOCHREALTIME
for ((left = %d; left > 0; left--)); do %s; done > /dev/null
ended=$EPOCHREALTIME
echo "$(( ${ended/./} - ${began/./} ))e-6"
"""


def shell(line, count):
    return ["bash", "-c", LOOP % (count, line)]


def joined(stages, separator):
    words = [word for stage in stages for word in (*stage, separator)]
    return words[:-1]


def ways(args):
    """The argument list of each way, by the stages and how often they run."""
    binary = lambda name: os.path.join(args.bin, name)
    quoted = lambda stages: " | ".join(map(shlex.join, stages))
    command = lambda stages, more="": shlex.join(
        [binary("procwright"), "pipe", *more.split(), *joined(stages, "--to")]
    )
    peer = lambda name: os.path.join(PEERS, name)
    return {
        "system calls": lambda s, n: [binary("pipeline"), str(n), *joined(s, "--")],
        "bash": lambda s, n: shell(quoted(s), n),
        "`Popen`, chained": lambda s, n: [
            args.python,
            peer("pipelines_popen.py"),
            str(n),
            json.dumps(s),
        ],
        "`Open3.pipeline`": lambda s, n: [
            "ruby",
            peer("pipelines.rb"),
            str(n),
            json.dumps(s),
        ],
        "execa": lambda s, n: [
            "node",
            peer("pipelines.mjs"),
            args.execa,
            str(n),
            json.dumps(s),
        ],
        "**Rust**": lambda s, n: [
            binary("bench-rust-pipeline"),
            str(n),
            "plain",
            *joined(s, "--"),
        ],
        "**Rust, `elastic`**": lambda s, n: [
            binary("bench-rust-pipeline"),
            str(n),
            "elastic",
            *joined(s, "--"),
        ],
        "**Python**": lambda s, n: [
            args.python,
            peer("pipelines_procwright.py"),
            str(n),
            "plain",
            json.dumps(s),
        ],
        "**`procwright pipe`**": lambda s, n: shell(command(s), n),
        "**`procwright pipe --elastic all`**": lambda s, n: shell(
            command(s, "--elastic all"), n
        ),
    }


def seconds(argv):
    """What the way says that it took; None if it is not here or has failed."""
    if shutil.which(argv[0]) is None:
        return None
    ran = subprocess.run(
        argv, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if ran.returncode != 0:
        print(f"{argv[:3]}: {ran.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    return float(ran.stdout.split()[-1])


def taking_turns(names, rounds, measure):
    """The figures of each way, by rounds in which each has its turn."""
    figures, missing = {}, set()
    for _ in range(rounds):
        for name in names:
            if name in missing:
                continue
            figure = measure(name)
            if figure is None:
                missing.add(name)
                figures.pop(name, None)
                continue
            figures.setdefault(name, []).append(figure)
    for name in missing:
        print(f"left out: {name}, which is not here, or fails", file=sys.stderr)
    return figures


def table(title, unit, figures):
    print(
        f"\n### {title}\n\n| | {unit}: median | least to most | to bash |\n|---|---:|---:|---:|"
    )
    base = statistics.median(figures["bash"]) if "bash" in figures else None
    for name, found in figures.items():
        middle = statistics.median(found)
        form = "{:,.0f}" if middle >= 100 else "{:.2f}"
        spread = f"{form.format(min(found))} to {form.format(max(found))}"
        ratio = "" if base is None else f"{middle / base:.2f}"
        print(f"| {name} | {form.format(middle)} | {spread} | {ratio} |")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--execa", default="execa")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mib", type=int, default=2048)
    parser.add_argument("--starts", type=int, default=300)
    parser.add_argument("subjects", nargs="*")
    args = parser.parse_args()
    by_name = ways(args)
    names = args.subjects or list(by_name)
    plain = [name for name in names if "elastic" not in name]
    for count in (2, 3, 8):
        stages = [["head", "-c", f"{args.mib}M", "/dev/zero"], *[["cat"]] * (count - 1)]

        def rate(name, stages=stages):
            took = seconds(by_name[name](stages, 1))
            return took and args.mib / took

        figures = taking_turns(names if count == 3 else plain, args.rounds, rate)
        table(f"{args.mib} MiB through {count} stages", "MiB/s", figures)
    slow_mib = args.mib // 16
    with tempfile.TemporaryDirectory() as directory:
        ended = os.path.join(directory, "ended")
        first = f"head -c {slow_mib}M /dev/zero; date +%s.%N > {ended}"
        stages = [["sh", "-c", first], ["sh", "-c", "sleep 1; exec cat"], ["cat"]]

        def first_done(name):
            began = time.time()
            if seconds(by_name[name](stages, 1)) is None:
                return None
            with open(ended) as file:
                return float(file.read()) - began

        figures = taking_turns(names, args.rounds, first_done)
        title = (
            f"{slow_mib} MiB, and a stage in the middle that reads nothing for a second"
        )
        table(title, "s until the first stage has ended", figures)
    for count in (2, 10):
        stages = [["/bin/true"]] * count

        def starts(name, stages=stages):
            took = seconds(by_name[name](stages, args.starts))
            return took and args.starts / took

        figures = taking_turns(plain, args.rounds, starts)
        table(f"`true`, {count} stages, one after the other", "pipelines/s", figures)


if __name__ == "__main__":
    main()
