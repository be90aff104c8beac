"""Writes python/procwright/_overloads.pyi and _aio_overloads.pyi: `ci/overloads.py`, or with
--check compares.

What `run`, `spawn`, `map`, `pipeline` and `spawn_pipeline` give, and those of `procwright.aio`, has a type by
what is asked for: `str` or `bytes`, and None for what does not come to this process. Types cannot
compute, so each case is an overload. The tables here are the cases, and the first that fits a
call is taken: one whose values only the running program knows falls to the last, where anything
may be None.

That last one takes, after erasure of types and only then, whatever is given: each of its
parameters is also a `Slip`, which nothing is, and it has one of every name. So mypy
takes it for the one that was meant, and tells of a slip in one line, where it would list all.

The one before the last is for `**options` that are `Any`: it needs a parameter that nobody can
give by name. Of all others that fit pyright takes the last, where mypy makes `Any` of what differs.

The options by which no type is chosen have one type in all overloads, and so are a `Slip` in all:
a call in which one of them is Any fits the last overload too, and where that has another type for
it a type checker takes what comes back for Any.
"""

import ast
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
#: With a terminal stdout has all, without one its own: only stderr depends on it.
MAY_BE_PTY = ["pty: bool | tuple[int, int]", "merged: Literal[False] = False"]
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
    ([OUT, ERR, *MAY_BE_PTY], True, None, False),
    ([OUT, ERR_ELSEWHERE, *MAY_BE_PTY], True, False, False),
    (ANY, None, None, None),
]
STDINS = [("stdin: NoPipe = None", "None"), ("stdin: Pipe", "{kind}")]
NO_CALLBACK = ["on_stdout_line: None = None", "on_stderr_line: None = None"]
CALLED = [
    f"on_{one}_line: Callable[[{{kind}}], object]" for one in ("stdout", "stderr")
]
CALLBACKS = [
    f"on_{one}_line: Callable[[{{kind}}], object] | None = None"
    for one in ("stdout", "stderr")
]

HEAD = """\
# Written by ci/overloads.py, which says why.

from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Executor
from signal import Signals
from typing import Any, Literal, TypedDict, overload

from typing_extensions import Unpack

from . import _core
{modules}
from ._types import (
    AnyTee,
    Args,
    BytesStageFn,
    Data,
    Elsewhere,
    Env,
    ExtraEnv,
    NoPipe,
    Open,
    Pipe,
    Seconds,
    Sink,
    Slip,
    StageFn,
    Stdin,
    StrOrBytesPath,
    Tee,
    TextStageFn,
    TextTee,
)

__all__ = ["map", "pipeline", "run", "spawn", "spawn_pipeline"]
"""

#: What both files import besides `Child`, `Map` and `PipelineChild`, of which each has its own.
IMPORTS = [
    "from ._event import Event",
    "from ._fan import Fan",
    "from ._journal import Journal",
    "from ._late import LateCommand, LatePipeline",
    "from ._overflow import Overflow",
    "from ._piece import Piece",
    "from ._pipeline import PipelineResult",
    "from ._result import Result",
]


def head(**own):
    lines = [f"from .{module} import {name}" for name, module in own.items()]
    return HEAD.format(modules="\n".join(sorted([*lines, *IMPORTS])))


def keywords():
    """The options by which no type is chosen: of each class of `_keywords.py` the bases, and the
    types by name."""
    source = (PACKAGE / "_keywords.py").read_text()
    return {
        one.name: (
            [base.id for base in one.bases],
            {
                field.target.id: ast.get_source_segment(source, field.annotation)
                for field in one.body
                if isinstance(field, ast.AnnAssign)
            },
        )
        for one in ast.parse(source).body
        if isinstance(one, ast.ClassDef)
    }


def options_of(name):
    """The types of the options of a class by name, those that it inherits among them."""
    if name == "TypedDict":
        return {}
    bases, own = keywords()[name]
    found = {}
    for base in bases:
        found |= options_of(base)
    return found | own


def or_slip(parameter):
    """A parameter that is a slip besides, as the formatter breaks its line."""
    line = f"    {parameter.replace(': ', ': Slip | ', 1)}"
    return line if len(line) < 100 else line.replace(" | ", "\n    | ")


def slipping():
    """The classes of options for overloads, in which each is a slip besides."""
    for name, (bases, own) in keywords().items():
        # The last overload names each option, and commands are other functions'.
        if not name.endswith(("Any", "Options", "MapCommand")):
            bases = [base if base == "TypedDict" else f"_{base}" for base in bases]
            lines = [f"class _{name}({', '.join(bases)}, total=False):"]
            lines += [or_slip(f"{option}: {kind}") for option, kind in own.items()]
            yield "\n".join([*lines, ""])


def keywords_only(first):
    """What ends the parameters by place; nothing behind one that takes all that are left."""
    return [] if first.startswith("*") else ["    *,"]


def last(name, parameters, options, gives, first="args: Args | LateCommand"):
    """The overload for what only the running program knows, and for slips."""
    parameters = [*parameters]
    parameters += [
        f"{option}: {kind} = ..." for option, kind in options_of(options).items()
    ]
    lines = ["@overload", f"def {name}(", f"    {first} | Slip,", *keywords_only(first)]
    lines += [f"{or_slip(parameter)}," for parameter in parameters]
    lines.append("    **no_such_parameter: Slip,")
    return "\n".join([*lines, f") -> {gives}: ..."])


def unpacked(name, gives, first="args: Args | LateCommand"):
    """The overload for a call that passes on options of which nothing is known."""
    lines = ["@overload", f"def {name}(", f"    {first},", *keywords_only(first)]
    lines += ["    no_such_parameter: Slip,", "    **options: Any,"]
    return "\n".join([*lines, f") -> {gives}: ..."])


def data(kind, comes):
    return {True: kind, False: "None", None: f"{kind} | None"}[comes]


def overload(name, parameters, options, gives, first="args: Args | LateCommand[Open]"):
    lines = ["@overload", f"def {name}(", f"    {first},", *keywords_only(first)]
    lines += [f"    {parameter}," for parameter in parameters]
    return "\n".join(
        [*lines, f"    **options: Unpack[_{options}],", f") -> {gives}: ..."]
    )


def runs():
    for kind, text in KINDS:
        for sinks, out, err, merged in CASES:
            order = data(f"list[Piece[{kind}]]", merged)
            gives = f"Result[{data(kind, out)}, {data(kind, err)}, {order}]"
            options = "RunBytes" if kind == "bytes" else "RunText"
            yield overload("run", [*sinks, *text], options, gives)
    yield unpacked("run", "Result[Any, Any, Any]")
    yield last("run", [*ANY, *UNKNOWN], "RunAny", "Result")


def spawns():
    for kind, text in KINDS:
        for sinks, out, err, merged in CASES:
            if merged:
                # They come as one, and not each.
                out = err = False
            called = [(NO_CALLBACK, out, err)]
            if out is None:
                called = [(CALLBACKS, out, err)]
            elif out and err:
                # What a callback reads does not come by `communicate`.
                called.append(([CALLED[0], NO_CALLBACK[1]], None, True))
                called.append(([NO_CALLBACK[0], CALLED[1]], True, None))
            for calls, *comes in called:
                calls = [one.format(kind=kind) for one in calls]
                for stdin, wanted in STDINS:
                    types = [data(kind, one) for one in comes]
                    types += [wanted.format(kind=kind), data(kind, merged)]
                    options = "SpawnBytes" if kind == "bytes" else "SpawnText"
                    gives = f"Child[{', '.join(types)}]"
                    parameters = [stdin, *sinks, *text, *calls]
                    yield overload("spawn", parameters, options, gives)
    calls = [one.format(kind="str | bytes") for one in CALLBACKS]
    # Of a child of Any a checker takes each stream for None, which is the first that fits.
    yield unpacked("spawn", "Any")
    yield last(
        "spawn", ["stdin: Stdin = None", *ANY, *UNKNOWN, *calls], "SpawnAny", "Child"
    )


def maps():
    for kind, text in KINDS:
        for sinks, out, err, merged in CASES:
            order = data(f"list[Piece[{kind}]]", merged)
            gives = f"Map[{data(kind, out)}, {data(kind, err)}, {order}]"
            options = "MapBytes" if kind == "bytes" else "MapText"
            commands = "commands: Iterable[Args | LateCommand[Open]]"
            yield overload("map", [*sinks, *text], options, gives, commands)
    # A command with options of its own may say something else, and nobody knows what.
    commands = "commands: Iterable[Args | Mapping[str, Any] | LateCommand]"
    for kind, text in KINDS:
        options = "MapBytes" if kind == "bytes" else "MapText"
        yield overload("map", [*ANY, *text], options, "Map[Any, Any, Any]", commands)
    yield unpacked("map", "Map[Any, Any, Any]", commands)
    yield last("map", [*ANY, *UNKNOWN], "MapAny", "Map", commands)


#: What is a stage, or several, besides a function.
STAGES = "Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan"


def stages_of(kind):
    function = "BytesStageFn" if kind == "bytes" else "TextStageFn"
    return f"*stages: {STAGES} | {function}"


def pipelines():
    for kind, text in KINDS:
        stages = stages_of(kind)
        options = "PipelineBytes" if kind == "bytes" else "PipelineText"
        for sink, out in [(OUT, kind), (OUT_ELSEWHERE, f"None, {kind}")]:
            gives = f"PipelineResult[{out}]"
            yield overload("pipeline", [sink, *text], options, gives, stages)
    stages = f"*stages: {STAGES} | StageFn"
    yield unpacked("pipeline", "PipelineResult[Any]", stages)
    yield last(
        "pipeline",
        ["stdout: Sink = -1", *UNKNOWN],
        "PipelineAny",
        "PipelineResult",
        stages,
    )


def spawned_pipelines():
    sinks = [
        ([OUT, ERR], True, True),
        ([OUT, ERR_ELSEWHERE], True, False),
        ([OUT_ELSEWHERE, ERR], False, True),
        ([OUT_ELSEWHERE, ERR_ELSEWHERE], False, False),
        (["stdout: Sink = -1", "stderr: Sink = -1"], None, None),
    ]
    for kind, text in KINDS:
        options = "SpawnPipelineBytes" if kind == "bytes" else "SpawnPipelineText"
        for sink, out, err in sinks:
            for stdin, wanted in STDINS:
                types = [data(kind, out), data(kind, err), wanted.format(kind=kind)]
                gives = f"PipelineChild[{', '.join(types)}]"
                parameters = [stdin, *sink, *text]
                yield overload(
                    "spawn_pipeline", parameters, options, gives, stages_of(kind)
                )
    stages = f"*stages: {STAGES} | StageFn"
    yield unpacked("spawn_pipeline", "Any", stages)
    yield last(
        "spawn_pipeline",
        ["stdin: Stdin = None", "stdout: Sink = -1", "stderr: Sink = -1", *UNKNOWN],
        "SpawnPipelineAny",
        "PipelineChild",
        stages,
    )


def awaited(overloads):
    """Those of what ends, as event loops have it."""
    return (one.replace("\ndef ", "\nasync def ", 1) for one in overloads)


def main():
    files = {
        "_overloads.pyi": [
            head(Child="_child", Map="_map", PipelineChild="_pipeline_child"),
            *slipping(),
            *runs(),
            *spawns(),
            *maps(),
            *pipelines(),
            *spawned_pipelines(),
            "",
        ],
        "_aio_overloads.pyi": [
            head(
                Child="_aio_child",
                Map="_aio_map",
                PipelineChild="_aio_pipeline_child",
            ),
            *slipping(),
            *awaited(runs()),
            *spawns(),
            *maps(),
            *awaited(pipelines()),
            *spawned_pipelines(),
            "",
        ],
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
