"""The figures of the suite `queue` as the tables of docs/benchmarks.md.

    python3 ci/bench/queue_tables.py target/bench/queue.json […] [--into docs/benchmarks.md]

Prints them, or puts them between that file's marks. Several files are several machines.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

LENGTHS = ("16 B", "64 B", "1 KiB", "64 KiB", "4 MiB")
BEGIN, END = "<!-- figures:queue -->", "<!-- /figures -->"

#: As the text calls them.
NAMES = {
    "procwright": "**procwright**, send",
    "procwright-reserve": "**procwright**, reserve",
    "procwright-many": "**procwright**, send_many",
    "cloudtoid": "cloudtoid-interprocess",
    "cloudtoid-batch": "cloudtoid-interprocess, batches",
    "ipc-channel-memory": "ipc-channel, IpcSharedMemory",
    "mq": "POSIX message queue",
    "seqpacket": "SEQPACKET socket",
    "rtrb-threads": "rtrb, between threads (bound)",
    "floor-words": "two words (floor)",
    "floor-futex": "two words, futex (floor)",
    "floor-memory": "new memory (floor)",
    "python-procwright": "**procwright**, bytes",
    "python-procwright-many": "**procwright**, recv_many",
    "python-procwright-objects": "**procwright**, objects",
    "python-procwright-objects-many": "**procwright**, objects, recv_many",
    "python-Queue": "multiprocessing.Queue",
    "python-SimpleQueue": "multiprocessing.SimpleQueue",
    "python-Pipe": "multiprocessing.Pipe",
    "python-Pipe-bytes": "multiprocessing.Pipe, send_bytes",
    "python-faster-fifo": "faster-fifo",
    "python-faster-fifo-many": "faster-fifo, get_many",
}


def shown(value: float) -> str:
    """Three digits that count."""
    for least, digits in ((100, 0), (10, 1), (1, 2)):
        if abs(value) >= least:
            return f"{value:,.{digits}f}"
    return f"{value:.3f}"


class Figures:
    """What a run has found."""

    def __init__(self, report: dict[str, Any]) -> None:
        self.report = report
        self.rows = report["rows"]

    def cases(self, begin: str) -> list[str]:
        found = dict.fromkeys(row["case"] for row in self.rows)
        return [case for case in found if case.startswith(begin)]

    def of(self, case: str, metric: str) -> dict[str, dict[str, Any]]:
        rows = (
            row for row in self.rows if (row["case"], row["metric"]) == (case, metric)
        )
        return {row["subject"]: row for row in rows}

    def table(self, heads: list[str], columns: list[tuple[str, str]]) -> list[str]:
        """A line a subject, a column a case and metric; the first that has any orders them."""
        found = [self.of(case, metric) for case, metric in columns]
        subjects = list(dict.fromkeys(name for rows in found for name in rows))
        if not subjects:
            return []
        is_rate = columns[0][1] == "rate"

        def order(name: str) -> tuple[int, float]:
            for at, rows in enumerate(found):
                if name in rows:
                    median = float(rows[name]["median"])
                    return (at, -median if is_rate else median)
            return (len(found), 0.0)

        lines = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * len(columns)}"]
        for name in sorted(subjects, key=order):
            cells = [
                shown(rows[name]["median"]) if name in rows else "" for rows in found
            ]
            lines.append(f"| {NAMES.get(name, name)} | {' | '.join(cells)} |")
        return [*lines, ""]

    def behind(self) -> list[str]:
        """Where somebody else is ahead of the best of ours."""
        lines = []
        timed = {"time", "last", "rate", "to send", "to receive"}
        for case in dict.fromkeys(row["case"] for row in self.rows):
            metrics = dict.fromkeys(
                row["metric"] for row in self.rows if row["case"] == case
            )
            for metric in metrics:
                if metric not in timed:
                    continue
                rows = self.of(case, metric)
                is_bound = ("floor", "rtrb")
                sign = -1 if metric == "rate" else 1
                ours = {n: r["median"] for n, r in rows.items() if "procwright" in n}
                peers = {
                    n: r["median"]
                    for n, r in rows.items()
                    if n not in ours and not n.startswith(is_bound)
                }
                if not ours or not peers:
                    continue
                us = min(ours, key=lambda name: sign * ours[name])
                them = min(peers, key=lambda name: sign * peers[name])
                if sign * peers[them] < sign * ours[us]:
                    ratio = max(ours[us], peers[them]) / max(
                        min(ours[us], peers[them]), 1e-9
                    )
                    name = NAMES.get(them, them)
                    lines.append(f"- {case}, {metric}: {name}, by {shown(ratio)}")
        return lines

    def floors(self) -> list[str]:
        """Ours over the floors, pair by pair."""
        ratios = [
            ratio
            for ratio in self.report["ratios"]
            if ratio["case"].startswith(("round trip", "256 MiB"))
            and ratio["under"].startswith(("floor", "rtrb"))
        ]
        if not ratios:
            return []
        lines = [
            "| ours over the floor or bound | median | interval |",
            "|---|---:|---:|",
        ]
        for ratio in ratios:
            median, low, high = (shown(ratio[key]) for key in ("median", "low", "high"))
            over, under = (
                NAMES.get(ratio[key], ratio[key]) for key in ("over", "under")
            )
            what = f"{ratio['case']}: {over} / {under}"
            lines.append(f"| {what} | {median} | {low} to {high} |")
        return [*lines, ""]

    def text(self) -> str:
        machine = self.report["machine"]
        rounds = max((row["n"] for row in self.rows), default=0)
        quick = " **Quick: not for quoting.**" if self.report["quick"] else ""
        where = f"{machine['cpu']}, {machine['cpus']} processors, {machine['memory_kb'] >> 20} GiB"
        how = f"Linux {machine['kernel']}, up to {rounds} rounds, medians.{quick}"
        lines = [f"{where}, {how}", ""]
        for wait in ("spinning", "sleeping"):
            cases = [(f"round trip, {length}, {wait}", "time") for length in LENGTHS]
            lines += self.table([f"round trip, {wait}, µs", *LENGTHS], cases)
        for wait in ("spinning", "sleeping"):
            for senders in ("1 sender", "2 senders", "4 senders", "12 senders"):
                cases = [
                    (f"one way, {length}, {senders}, {wait}", "rate")
                    for length in LENGTHS
                ]
                head = f"one way, {senders}, {wait}, messages a millisecond"
                lines += self.table([head, *LENGTHS], cases)
        bursts = self.cases("burst")
        columns = [(case, "last") for case in bursts]
        lines += self.table(
            ["from the first sent to the last received, µs", *bursts], columns
        )
        for case in self.cases("256 MiB"):
            metrics = (
                "rate",
                "drain",
                "held before",
                "held when full",
                "held afterwards",
            )
            heads = (
                "filled, MiB/s",
                "drained, MiB/s",
                "MiB held before",
                "when full",
                "afterwards",
            )
            lines += self.table([case, *heads], [(case, metric) for metric in metrics])
        for case in self.cases("system calls") + self.cases("instructions"):
            metrics = list(
                dict.fromkeys(r["metric"] for r in self.rows if r["case"] == case)
            )
            units = {r["metric"]: r["unit"] for r in self.rows if r["case"] == case}
            heads = [f"{metric}, {units[metric]}" for metric in metrics]
            lines += self.table([case, *heads], [(case, metric) for metric in metrics])
        for kind in ("round trip in Python", "one way in Python"):
            cases = self.cases(kind)
            metric = "time" if kind.startswith("round") else "rate"
            unit = "µs" if metric == "time" else "messages a millisecond"
            heads = [case.removeprefix(kind).strip(", ") for case in cases]
            lines += self.table(
                [f"{kind}, {unit}", *heads], [(case, metric) for case in cases]
            )
        lines += self.floors()
        behind = self.behind()
        lines += (
            ["A peer is ahead of the best of ours in:", "", *behind, ""]
            if behind
            else []
        )
        if self.report["missing"]:
            lines += ["Could not be had:", ""]
            lines += [
                f"- {name}: {why}" for name, why in self.report["missing"].items()
            ]
            lines.append("")
        return "\n".join(lines)


def main() -> None:
    words = sys.argv[1:]
    into = None
    if "--into" in words:
        at = words.index("--into")
        into = Path(words[at + 1])
        del words[at : at + 2]
    all_figures = [Figures(json.loads(Path(word).read_text())) for word in words]
    text = "\n".join(figures.text() for figures in all_figures)
    if into is None:
        print(text)
        return
    if any(figures.report["quick"] for figures in all_figures):
        raise SystemExit("a quick run is not for quoting")
    before, rest = into.read_text().split(BEGIN)
    _, after = rest.split(END, 1)
    into.write_text(f"{before}{BEGIN}\n{text}{END}{after}")


if __name__ == "__main__":
    main()
