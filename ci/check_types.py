"""Types of programs that use procwright, by mypy and pyright at their strictest.

Run it with the interpreter that has procwright, mypy and basedpyright installed. It looks at

- python/types/true_programs.py, in which there is no mistake;
- python/types/wrong_programs.py, of which both complain about each line that is marked
  `# wrong`, and about no other;
- the Python blocks of the documents, each file as one program, as ci/docs.py runs them.

basedpyright is pyright in a wheel with its Node.js: what pip gets is all there is to get, at
one version, where the package `pyright` gets the program itself from npm when it first runs.
"""

import json
import pathlib
import re
import subprocess
import sys

import docs

ROOT = docs.ROOT
PROGRAMS = ROOT / "python/types"
DIRECTORY = ROOT / "target/types"

#: Rules of style, for a block of a document that begins anew where another has ended.
NOT_FOR_BLOCKS = [
    "reportRedeclaration",
    "reportDuplicateImport",
    "reportUnusedVariable",
]


def programs_of_documents():
    """Writes the programs, each of which keeps the lines of its document."""
    found = {}
    for path in docs.documents():
        source = docs.program(path, list(docs.blocks(path.read_text(encoding="utf-8"))))
        if source:
            name = path.relative_to(ROOT)
            file = DIRECTORY / (re.sub(r"\W", "_", str(name.with_suffix(""))) + ".py")
            rules = ", ".join(f"{rule}=false" for rule in NOT_FOR_BLOCKS)
            # The first line of a document is in no block.
            file.write_text(f"# pyright: {rules}{source}\n", encoding="utf-8")
            found[file] = name
    return found


def mypy(files):
    argv = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--no-error-summary",
    ]
    # A name of one block may be another's for something else.
    argv += ["--allow-redefinition-new", "--local-partial-types"]
    argv += ["--hide-error-context", "--show-absolute-path", "--no-pretty"]
    argv += ["--cache-dir", DIRECTORY / "mypy"]
    printed = subprocess.run(
        [*argv, *files], check=False, capture_output=True, text=True, cwd=DIRECTORY
    )
    errors = re.findall(r"^(.+?):(\d+): error: (.*)$", printed.stdout, re.MULTILINE)
    if printed.returncode not in (0, 1) or (printed.returncode == 1 and not errors):
        sys.exit(f"mypy failed:\n{printed.stdout}{printed.stderr}")
    return [(pathlib.Path(file), int(line), text) for file, line, text in errors]


def pyright(files):
    config = DIRECTORY / "pyrightconfig.json"
    included = [str(file) for file in files]
    config.write_text(json.dumps({"typeCheckingMode": "strict", "include": included}))
    argv = [
        sys.executable,
        "-m",
        "basedpyright",
        "--outputjson",
        "--pythonpath",
        sys.executable,
    ]
    printed = subprocess.run(
        [*argv, "-p", config], check=False, capture_output=True, text=True
    )
    try:
        found = json.loads(printed.stdout)["generalDiagnostics"]
    except (ValueError, KeyError):
        sys.exit(f"basedpyright failed:\n{printed.stdout}{printed.stderr}")
    return [
        (pathlib.Path(one["file"]), one["range"]["start"]["line"] + 1, one["message"])
        for one in found
        if one["severity"] == "error"
    ]


def main():
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    for file in DIRECTORY.glob("*.py"):
        file.unlink()
    documents = programs_of_documents()
    wrong = PROGRAMS / "wrong_programs.py"
    marked = {
        number
        for number, line in enumerate(wrong.read_text(encoding="utf-8").splitlines(), 1)
        if line.endswith("# wrong")
    }
    files = [PROGRAMS / "true_programs.py", wrong, *documents]
    failed = False
    for checker in (mypy, pyright):
        errors = checker(files)
        complained = {line for file, line, _ in errors if file == wrong}
        for line in sorted(marked - complained):
            failed = True
            print(
                f"{wrong.relative_to(ROOT)}:{line}: {checker.__name__} finds no mistake"
            )
        for file, line, text in errors:
            if file != wrong or line not in marked:
                failed = True
                name = documents.get(file) or file.relative_to(ROOT)
                print(f"{name}:{line}: {checker.__name__}: {text}")
        print(
            f"{checker.__name__}: {len(files)} programs, {len(complained & marked)} of "
            f"{len(marked)} mistakes found",
            flush=True,
        )
    sys.exit(failed)


if __name__ == "__main__":
    main()
