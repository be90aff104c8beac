"""The cases of conformance/run.json, map.json and pipeline.json by front end, as tables.

    conformance.py [--missing FRONT_END | --fault NAME] [FOLDER]

FOLDER (target/conformance) has what each front end's tests have written. It fails if a
case has failed, if a front end has not run, or if one has left out a case for no reason
that stands in the data. With a fault of conformance/faults.json, which was switched on,
it fails if other cases have failed than those that had to.
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
MARKS = {"passed": "ok", "failed": "FAILED", None: "MISSING"}


def results(folder: pathlib.Path, name: str) -> dict[str, str]:
    try:
        return json.loads((folder / f"{name}.json").read_text())
    except FileNotFoundError:
        return {}


def caught(fault: str, folder: pathlib.Path) -> int:
    data = json.loads((ROOT / "conformance" / "run.json").read_text())
    without = {case["name"]: case.get("without", {}) for case in data["cases"]}
    faults = json.loads((ROOT / "conformance" / "faults.json").read_text())
    known = faults["faults"][fault]
    wrong = 0
    print(f"{fault}: {known['about']}")
    for name in faults["front_ends"]:
        ran = results(folder, name)
        must = {case for case in known["cases"] if name not in without[case]}
        failed = {case for case, result in ran.items() if result == "failed"}
        print(
            f"  {name:8} {len(failed & must)} of {len(must)} caught it, of {len(ran)} cases"
        )
        for case in sorted(must - failed):
            print(f"    did not see it: {case}")
        for case in sorted(failed - must):
            print(f"    failed as well: {case}")
        wrong |= must != failed
    return int(wrong)


def main(missing: list[str], folder: pathlib.Path) -> int:
    wrong = table("run.json", "", missing, folder)
    for subject in ("map", "pipeline"):
        print()
        wrong |= table(f"{subject}.json", f"{subject}-", missing, folder)
    return wrong


def table(file: str, prefix: str, missing: list[str], folder: pathlib.Path) -> int:
    """Cases of a file, by front ends, whose results have names that begin with the prefix."""
    data = json.loads((ROOT / "conformance" / file).read_text())
    names = [name for name in data["front_ends"] if name not in missing]
    ran = {name: results(folder, prefix + name) for name in names}
    width = max(len(case["name"]) for case in data["cases"])
    print(" " * width, *(f"{name:8}" for name in names))
    wrong, reasons, passed = 0, {}, dict.fromkeys(names, 0)
    for case in data["cases"]:
        row = []
        for name in names:
            result = ran[name].pop(case["name"], None)
            reason = case.get("without", {}).get(name)
            if result is None and reason:
                reasons.setdefault((name, reason), []).append(case["name"])
                row.append("-")
                continue
            passed[name] += result == "passed"
            wrong += result != "passed"
            row.append(MARKS[result])
        print(f"{case['name']:{width}}", *(f"{mark:8}" for mark in row))
    print(
        f"{len(data['cases'])} cases, passed:".ljust(width),
        *(f"{passed[n]:<8}" for n in names),
    )
    for (name, reason), cases in reasons.items():
        print(f"- not in {name}, for {reason}: {', '.join(cases)}")
    for name in names:
        if ran[name]:
            # Of another day, or of a case that has another name by now.
            print(f"{name} has run what is no case: {', '.join(ran[name])}")
            wrong += 1
    return min(wrong, 1)


if __name__ == "__main__":
    words, missing = sys.argv[1:], []
    while words[:1] == ["--missing"]:
        missing.append(words[1])
        words = words[2:]
    if words[:1] == ["--fault"]:
        sys.exit(caught(words[1], pathlib.Path(words[2])))
    sys.exit(main(missing, pathlib.Path(*words or [ROOT / "target" / "conformance"])))
