"""The cases of conformance/run.json by front end, as one table.

    conformance.py [--missing FRONT_END] [FOLDER]

FOLDER (target/conformance) has what each front end's tests have written. It fails if a
case has failed, if a front end has not run, or if one has left out a case for no reason
that stands in the data.
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


def main(missing: list[str], folder: pathlib.Path) -> int:
    data = json.loads((ROOT / "conformance" / "run.json").read_text())
    names = [name for name in data["front_ends"] if name not in missing]
    ran = {name: results(folder, name) for name in names}
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
    print(f"{len(data['cases'])} cases, passed:".ljust(width), *(f"{passed[n]:<8}" for n in names))
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
    sys.exit(main(missing, pathlib.Path(*words or [ROOT / "target" / "conformance"])))
