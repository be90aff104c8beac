"""Runs the code blocks of the documents: `ci/docs.py [FILE...]`.

Run it with the interpreter that has procwright installed. Needs nothing else.

- The ```python blocks of a file are one program, run in an empty directory.
  Line numbers in its errors are those of the file. A block that cannot run
  says ```python no_run, and is only compiled.
- A ```console run block is a session: after each line that begins with `$ `
  comes what that command prints, on both streams. A line that is only `…`
  stands for any lines, `…` within a line for any text.

Examples are short, and so are their times: a machine with much else to do may be too
slow for one. A program or session that fails is run twice more, and told of each time.

Links to files and headings of the repository must lead somewhere. Whatever fails,
with the file and line, makes the exit code 1.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIME_S = 300
ATTEMPTS = 3
FENCE = re.compile(r"^```(.*)$")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)")


def blocks(text):
    """Yields (info words, number of the first line, lines) for each fenced block."""
    info, first, lines = None, 0, []
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if not fence:
            lines.append(line)
        elif info is None:
            info, first, lines = fence[1].split(), number + 1, []
        else:
            yield info, first, lines
            info, lines = None, []


def program(path, found):
    """All ```python blocks of a file as one source, each on its own lines."""
    source = []
    for info, first, lines in found:
        if info[:1] != ["python"]:
            continue
        if "no_run" in info:
            compile("\n" * (first - 1) + "\n".join(lines), str(path), "exec")
        else:
            source += [""] * (first - 1 - len(source)) + lines
    return "\n".join(source)


def run(argv, directory):
    # The directory of the interpreter, for the command that came with the package.
    environ = dict(os.environ, PYTHONPATH="", PYTHONUNBUFFERED="1")
    environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + environ["PATH"]
    return subprocess.run(
        argv,
        check=False,
        cwd=directory,
        env=environ,
        timeout=TIME_S,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def again(attempt, *arguments):
    """The failures of the last attempt."""
    for left in reversed(range(ATTEMPTS)):
        failures = list(attempt(*arguments))
        if not failures or not left:
            break
        print(*failures, "(it is tried again)", sep="\n", flush=True)
    return failures


def run_program(path, source):
    # As the file itself, so that tracebacks name it and show its lines.
    with tempfile.TemporaryDirectory() as directory:
        code = "import sys; exec(compile(sys.argv.pop(), sys.argv.pop(), 'exec'))"
        result = run([sys.executable, "-c", code, str(path), source], directory)
    if result.returncode != 0:
        yield f"{path}: exit code {result.returncode}\n{result.stdout}"


def commands(first, lines):
    """Yields (line number, command, expected lines)."""
    found = []
    for number, line in enumerate(lines, first):
        if line.startswith("$ "):
            found.append((number, line[2:], []))
        elif found:
            found[-1][2].append(line)
    return found


def pattern(expected):
    parts = []
    for line in expected:
        if line.strip() == "…":
            parts.append(r"(?:.*\n)*")
        else:
            parts.append(re.escape(line).replace("…", ".*") + r"\n")
    return "".join(parts)


def run_console(path, first, lines):
    with tempfile.TemporaryDirectory() as directory:
        for number, command, expected in commands(first, lines):
            result = run(["sh", "-c", command], directory)
            if not re.fullmatch(pattern(expected), result.stdout):
                shown = "\n".join(expected)
                yield f"{path}:{number}: $ {command}\nexpected:\n{shown}\ngot:\n{result.stdout}"


def slugs(path):
    """The anchors of a file's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    }


def dead_links(path, name):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for target, anchor in LINK.findall(line):
            file = path.parent / target if target else path
            if not file.exists() or (anchor and anchor not in slugs(file)):
                yield f"{name}:{number}: dead link {target}{'#' if anchor else ''}{anchor}"


def check(path):
    found = list(blocks(path.read_text(encoding="utf-8")))
    name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    yield from dead_links(path, name)
    try:
        source = program(name, found)
    except SyntaxError as error:
        yield f"{name}:{error.lineno}: {error}"
        return
    count = sum(info[:1] == ["python"] and "no_run" not in info for info, _, _ in found)
    if source:
        yield from again(run_program, name, source)
    for info, first, lines in found:
        if info == ["console", "run"]:
            count += 1
            yield from again(run_console, name, first, lines)
    print(f"{name}: {count} blocks", flush=True)


def documents():
    """All documents of the repository that have blocks."""
    return [
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "examples").rglob("*.md")),
    ]


def main(arguments):
    paths = [pathlib.Path(argument).resolve() for argument in arguments]
    paths = paths or documents()
    failures = [failure for path in paths for failure in check(path)]
    for failure in failures:
        print("\nFAILED", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
