"""The layers of a folder's modules, and the imports that they allow.

A picture of layers is a text that has a line for each, highest first: the modules, between
commas, and behind two spaces or more what they are.
"""

import ast
import re

MODULES = re.compile(r"[\w, ]+?(?=  |$)")


def picture(text: str, mark: str) -> dict[str, int]:
    """The layer of each module, by the lines of `text` that begin with `mark` and a word."""
    layers: dict[str, int] = {}
    for line in text.splitlines():
        if not line.startswith(mark):
            continue
        names = MODULES.match(line.removeprefix(mark).rstrip())
        assert names, line
        height = -len(set(layers.values()))
        for name in names[0].split(","):
            assert name.strip() not in layers, f"{name} is twice in the picture"
            layers[name.strip()] = height
    assert layers
    return layers


def upward(layers: dict[str, int], imports: dict[str, set[str]]) -> list[str]:
    """The imports that are not downward, and the modules that are in only one of both."""
    wrong = [f"{name} is not in the picture" for name in imports.keys() - layers.keys()]
    wrong += [f"{name} is in the picture alone" for name in layers.keys() - imports.keys()]
    for name in imports.keys() & layers.keys():
        for other in imports[name] - {name}:
            if other not in layers:
                wrong.append(f"{name} imports {other}, which is no module")
            elif layers[other] >= layers[name]:
                wrong.append(f"{name} imports {other}, which is not below it")
    return sorted(wrong)


def python_imports(source: str) -> set[str]:
    """The modules of its own package that a module imports: at its top, in functions, and
    for type checkers."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            found |= {name.split(".")[0] for name in names}
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{name}" for name in names]
            parts = [name.split(".") for name in names]
            found |= {part[1] for part in parts if part[0] == "procwright" and len(part) > 1}
    return found


def rust_imports(source: str) -> list[list[str]]:
    """The paths that a file names from `crate` or `super` on, `use` and elsewhere."""
    source = re.sub(r"//.*", "", source)
    found: list[list[str]] = []
    for path in re.findall(r"\b(?:crate|super)::(?:[\w:]*\{[^;]*\}|[\w:]+)", source):
        found += _expanded(re.sub(r"\s+", "", path))
    return found


def _expanded(path: str) -> list[list[str]]:
    """`a::{b, c::{d, e}}` as `a::b`, `a::c::d`, `a::c::e`."""
    head, brace, rest = path.partition("{")
    if not brace:
        return [head.split("::")]
    pieces, depth, piece = [], 0, ""
    for letter in rest[: rest.rindex("}")]:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and not depth:
            pieces.append(piece)
            piece = ""
        else:
            piece += letter
    prefix = head.removesuffix("::").split("::")
    ends = [end for one in [*pieces, piece] if one for end in _expanded(one)]
    return [prefix + end for end in ends]
