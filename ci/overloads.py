"""Writes python/procwright/_overloads.pyi and _aio_overloads.pyi: `ci/overloads.py`, or with
--check compares.

What `run`, `spawn` and `map` give, and those of `procwright.aio`, has a type by
what is asked for: `str` or `bytes`, and None for what does not come to this process. Types cannot
compute, so each case is an overload. The tables here are the cases, and the first that fits a
call is taken: one whose values only the running program knows falls to the last, where anything
may be None.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python/procwright"

#: The type of data, and the parameters that make it so.
KINDS = [
    (
        "bytes",
        [
            "text: Literal[False] = False",
            "encoding: None = None",
            "errors: None = None",
        ],
    ),
    (
        "str",
        [
            "text: Literal[True]",
            "encoding: str | None = None",
            "errors: str | None = None",
        ],
    ),
    (
        "str",
        ["text: Literal[False] = False", "encoding: str", "errors: str | None = None"],
    ),
    ("str", ["text: Literal[False] = False", "encoding: None = None", "errors: str"]),
]
UNKNOWN = ["text: bool = ...", "encoding: str | None = ...", "errors: str | None = ..."]

OUT = "stdout: Pipe = -1"
ERR = "stderr: Pipe = -1"
OUT_ELSEWHERE = "stdout: Elsewhere"
ERR_ELSEWHERE = "stderr: Elsewhere"
PLAIN = ["pty: Literal[False] = False", "merged: Literal[False] = False"]
MERGED = ["pty: Literal[False] = False", "merged: Literal[True]"]
PTY = ["pty: Literal[True] | tuple[int, int]", "merged: Literal[False] = False"]
ANY = [
    "stdout: Sink = -1",
    "stderr: Sink = -1",
    "pty: bool | tuple[int, int] = False",
    "merged: bool = False",
]

#: Where both outputs go, and whether stdout and stderr come to us, and both as one.
#: None is for "only the running program knows".
CASES = [
    ([OUT, ERR, *PLAIN], True, True, False),
    ([OUT, ERR_ELSEWHERE, *PLAIN], True, False, False),
    ([OUT_ELSEWHERE, ERR, *PLAIN], False, True, False),
    ([OUT_ELSEWHERE, ERR_ELSEWHERE, *PLAIN], False, False, False),
    ([OUT, ERR, *MERGED], True, True, True),
    ([OUT, "stderr: Sink = -1", *PTY], True, False, False),
    (ANY, None, None, None),
]
STDINS = [("stdin: NoPipe = None", "None"), ("stdin: Pipe", "{kind}")]
NO_CALLBACK = ["on_stdout_line: None = None", "on_stderr_line: None = None"]
CALLBACKS = [
    f"on_{one}_line: Callable[[{{kind}}], object] | None = None"
    for one in ("stdout", "stderr")
]

HEAD = """\
# Written by ci/overloads.py, which says why.

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, overload

from typing_extensions import Unpack

from ._child import Child
from ._keywords import MapBytes, MapText, RunAny, RunBytes, RunText, SpawnBytes, SpawnText
from ._map import Map
from ._piece import Piece
from ._result import Result
from ._types import Args, Elsewhere, NoPipe, Pipe, Sink, Stdin

__all__ = ["map", "run", "spawn"]
"""


AIO_HEAD = """\
# Written by ci/overloads.py, which says why.

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, overload

from typing_extensions import Unpack

from ._aio_child import Child
from ._aio_map import Map
from ._keywords import MapBytes, MapText, RunAny, RunBytes, RunText, SpawnBytes, SpawnText
from ._piece import Piece
from ._result import Result
from ._types import Args, Elsewhere, NoPipe, Pipe, Sink, Stdin

__all__ = ["map", "run", "spawn"]
"""


def data(kind, comes):
    return {True: kind, False: "None", None: f"{kind} | None"}[comes]


def overload(name, parameters, options, gives, first="args: Args"):
    lines = ["@overload", f"def {name}(", f"    {first},", "    *,"]
    lines += [f"    {parameter}," for parameter in parameters]
    return "\n".join(
        [*lines, f"    **options: Unpack[{options}],", f") -> {gives}: ..."]
    )


def runs():
    for kind, text in KINDS:
        for sinks, out, err, merged in CASES:
            order = data(f"list[Piece[{kind}]]", merged)
            gives = f"Result[{data(kind, out)}, {data(kind, err)}, {order}]"
            options = "RunBytes" if kind == "bytes" else "RunText"
            yield overload("run", [*sinks, *text], options, gives)
    yield overload("run", [*ANY, *UNKNOWN], "RunAny", "Result")


def spawns():
    for kind, text in KINDS:
        for sinks, out, err, merged in CASES:
            for stdin, wanted in STDINS:
                if merged:
                    # They come as one, and not each.
                    out = err = False
                types = [data(kind, one) for one in (out, err)]
                types += [wanted.format(kind=kind), data(kind, merged)]
                calls = CALLBACKS if out is None else NO_CALLBACK
                calls = [one.format(kind=kind) for one in calls]
                options = "SpawnBytes" if kind == "bytes" else "SpawnText"
                gives = f"Child[{', '.join(types)}]"
                yield overload("spawn", [stdin, *sinks, *text, *calls], options, gives)
    calls = [one.format(kind="str | bytes") for one in CALLBACKS]
    yield overload(
        "spawn", ["stdin: Stdin = None", *ANY, *UNKNOWN, *calls], "SpawnBytes", "Child"
    )


def maps():
    for kind, text in KINDS:
        for sinks, out, err, merged in CASES:
            order = data(f"list[Piece[{kind}]]", merged)
            gives = f"Map[{data(kind, out)}, {data(kind, err)}, {order}]"
            options = "MapBytes" if kind == "bytes" else "MapText"
            commands = "commands: Iterable[Args]"
            yield overload("map", [*sinks, *text], options, gives, commands)
    # A command with options of its own may say something else.
    commands = "commands: Iterable[Args | Mapping[str, Any]]"
    yield overload("map", [*ANY, *UNKNOWN], "MapBytes", "Map", commands)


def awaited(overloads):
    """Those of `run`, as event loops have it."""
    return (one.replace("def run(", "async def run(") for one in overloads)


def main():
    files = {
        "_overloads.pyi": [HEAD, *runs(), *spawns(), *maps(), ""],
        "_aio_overloads.pyi": [AIO_HEAD, *awaited(runs()), *spawns(), *maps(), ""],
    }
    for name, parts in files.items():
        file = PACKAGE / name
        written = "\n".join(parts)
        if sys.argv[1:] != ["--check"]:
            file.write_text(written)
        elif not file.exists() or file.read_text() != written:
            sys.exit(
                f"{file.relative_to(ROOT)} is not what ci/overloads.py writes: run that"
            )


if __name__ == "__main__":
    main()
