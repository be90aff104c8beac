"""Holds the modules of the Rust crates to the layers in docs/architecture.md.

    ci/layers.py            checks all crates that the document has a picture of
    ci/layers.py --print    prints an order that the imports of each crate allow

A picture is a code block that begins with ```` ```text layers CRATE ````. Each of its
lines has one module, or several joined by ` · `, and what it is for behind two spaces
or more. Three things are errors:

- a top-level module that the picture lacks, or one that the picture alone has;
- an import that does not go to a line further down;
- a circle between the modules of one folder, at whatever depth.

Files that the document names in backticks, from the root of the repository on, have to
be there. Tests are left out: they may look at everything. Crates cannot import in a circle, which
Cargo refuses; that none imports upward is checked here too, by the order of the pictures.
"""

import re
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = re.compile(r"^```text layers (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DECLARED = re.compile(
    r"((?:^\s*#\[.*\]\n)*)^\s*(?:pub(?:\([^)]*\))? )?mod (\w+);", re.MULTILINE
)
IMPORT = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?use\s+([^;]+);", re.MULTILINE)
PATH = re.compile(r"\b((?:crate|super)(?:::\w+)+)")
FILE = re.compile(r"`((?:crates|python|ruby|docs|conformance|bench|ci)/[\w./-]+)`")


def code(path: Path) -> str:
    """The text of a source file without comments and its inline tests."""
    text = re.sub(r"//.*", "", path.read_text())
    return re.split(r"#\[cfg\((?:all\()?test\b[^\n]*\]\s*mod \w+ \{", text)[0]


def leaves(tree: str) -> list[str]:
    """The paths of a use tree: `a::{b, c::d}` has two. What `as` says is kept."""
    tree = " ".join(tree.split())
    head, brace, rest = tree.partition("{")
    if not brace:
        return [tree]
    paths, depth, begin = [], 0, 0
    body = rest[: rest.rindex("}")] + ","
    for at, letter in enumerate(body):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            part = body[begin:at].strip()
            begin = at + 1
            if part:
                paths += leaves(head + part)
    return paths


class Crate:
    """The modules of one crate, what each has by name, and what each imports."""

    def __init__(self, source: Path):
        self.children: dict[tuple, set] = {}
        self.names: dict[tuple, dict] = {}
        self.paths: dict[tuple, set] = {}
        self.read(
            (),
            source / "lib.rs" if (source / "lib.rs").exists() else source / "main.rs",
        )

    def read(self, module: tuple, file: Path) -> None:
        text = code(file)
        folder = (
            file.parent
            if file.name in ("mod.rs", "lib.rs", "main.rs")
            else file.with_suffix("")
        )
        children = set()
        for attributes, name in DECLARED.findall(text):
            if re.search(r"cfg\((all\()?test\b", attributes) or name.endswith("tests"):
                continue
            found = [folder / f"{name}.rs", folder / name / "mod.rs"]
            for path in re.findall(r'path = "([^"]*)"', attributes):
                found.append(file.parent / path)
            for one in found:
                if one.exists():
                    children.add(name)
                    self.read((*module, name), one)
        names, paths = {}, set()
        for tree in IMPORT.findall(text):
            for path in leaves(tree):
                path, _, name = path.partition(" as ")
                parts = tuple(path.strip().split("::"))
                names[name or parts[-1]] = parts
                paths.add(parts)
        paths |= {tuple(path.split("::")) for path in PATH.findall(text)}
        # A module may have one file for each platform: what any of them has counts.
        self.children.setdefault(module, set()).update(children)
        self.names.setdefault(module, {}).update(names)
        self.paths.setdefault(module, set()).update(paths)

    def resolve(
        self, module: tuple, path: tuple, seen: frozenset = frozenset()
    ) -> tuple | None:
        """The module of this crate that has what `path` names in `module`."""
        if (module, path) in seen:
            return None
        seen |= {(module, path)}
        first, rest = path[0], path[1:]
        if first == "crate":
            here = ()
        elif first == "super":
            here = module[:-1]
        elif first == "self":
            here = module
        elif first in self.children.get(module, ()):
            here = (*module, first)
        elif first in self.names.get(module, {}) and self.names[module][first] != path:
            known = self.resolve(module, self.names[module][first], seen)
            return known and (self.resolve(known, rest, seen) if rest else known)
        else:
            return None
        if not rest:
            return here
        if rest[0] == "super" or rest[0] in self.children.get(here, ()):
            return self.resolve(here, rest, seen)
        if rest[0] in self.names.get(here, {}):
            return self.resolve(here, rest, seen) or here
        return here

    def imports(self):
        """Pairs of modules: who imports, and from whom."""
        for module, paths in self.paths.items():
            for path in paths:
                target = self.resolve(module, path)
                if target is not None and target != module:
                    yield module, target

    def arrows(self, folder: tuple) -> dict[str, set]:
        """What the modules right below `folder` import from each other."""
        depth = len(folder)
        arrows: dict[str, set] = {name: set() for name in self.children[folder]}
        for source, target in self.imports():
            if len(source) > depth and len(target) > depth:
                inside = source[:depth] == folder and target[:depth] == folder
                if inside and source[depth] != target[depth]:
                    arrows[source[depth]].add(target[depth])
        return arrows


def order(arrows: dict[str, set]) -> tuple[list[list[str]], list[str]]:
    """The modules from the lowest, those that may stand side by side together; and
    those that are in a circle, or above one."""
    left = {name: set(below) for name, below in arrows.items()}
    rows = []
    while free := sorted(
        name for name, below in left.items() if not below & left.keys()
    ):
        rows.append(free)
        for name in free:
            del left[name]
    return rows, circle(left)


def circle(left: dict[str, set]) -> list[str]:
    """One circle among modules of which each imports another of them."""
    if not left:
        return []
    way = [min(left)]
    while True:
        after = min(left[way[-1]] & left.keys())
        if after in way:
            return way[way.index(after) :] + [after]
        way.append(after)


def check_crate(name: str, crate: Crate, picture: str) -> list[str]:
    faults, height = [], {}
    lines = [line for line in picture.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        for module in re.split(r"\s{2,}", line.strip())[0].split(" · "):
            height[module] = len(lines) - number
    for module in sorted(crate.children[()] - height.keys()):
        faults.append(f"{name}: the picture lacks {module}")
    for module in sorted(height.keys() - crate.children[()]):
        faults.append(f"{name}: the picture has {module}, and the crate has not")
    for module, below in sorted(crate.arrows(()).items()):
        for other in sorted(below):
            if height.get(other, 0) >= height.get(module, 99):
                faults.append(
                    f"{name}: {module} imports {other}, which is not below it"
                )
    for folder in sorted(crate.children):
        _, around = order(crate.arrows(folder))
        if around:
            where = "::".join((name, *folder))
            faults.append(f"{where}: a circle of imports: {' > '.join(around)}")
    return faults


def check(root: Path, document: Path) -> list[str]:
    faults, above = [], set()
    for name, picture in PICTURE.findall(document.read_text()):
        folder = root / "crates" / name
        needs = tomllib.loads((folder / "Cargo.toml").read_text()).get(
            "dependencies", {}
        )
        for other in sorted(above & needs.keys()):
            faults.append(
                f"{name} depends on {other}, whose picture stands above its own"
            )
        above.add(name)
        faults += check_crate(name, Crate(folder / "src"), picture)
    for name in sorted(set(FILE.findall(document.read_text()))):
        if not (root / name).exists():
            faults.append(f"{document.name} names {name}, which is not there")
    packages = {file.parent.name for file in root.glob("crates/procwright*/Cargo.toml")}
    return faults + [
        f"{name} has no picture in {document.name}" for name in sorted(packages - above)
    ]


def check_the_check() -> None:
    """Plants each fault in a little tree, and fails unless exactly it is found."""
    files = {
        "crates/procwright-low/Cargo.toml": "[dependencies]\n",
        "crates/procwright-low/src/lib.rs": "mod a;\nmod b;\n",
        "crates/procwright-low/src/a.rs": "",
        "crates/procwright-low/src/b.rs": "use crate::a::A;\n",
        "crates/procwright/Cargo.toml": "[dependencies]\nprocwright-low = '1'\n",
        "crates/procwright/src/lib.rs": "mod one;\n",
        "crates/procwright/src/one/mod.rs": "mod x;\nmod y;\npub use x::X;\n",
        "crates/procwright/src/one/x.rs": "// use super::y::Y;\npub struct X;\n",
        "crates/procwright/src/one/y.rs": "use super::X;\n",
        "layers.md": "`crates/procwright/src/lib.rs`\n```text layers procwright\none  first\n```\n"
        "```text layers procwright-low\nb  above\na  below\n```\n",
    }
    planted = {
        "": ("layers.md", files["layers.md"]),
        "a imports b, which is not below it": (
            "crates/procwright-low/src/a.rs",
            "fn f() { crate::b::f() }\n",
        ),
        "::one: a circle of imports: x > y > x": (
            "crates/procwright/src/one/x.rs",
            "use super::y::Y;\n",
        ),
        "lacks c": ("crates/procwright-low/src/lib.rs", "mod a;\nmod b;\nmod c;\n"),
        "has b, and": ("crates/procwright-low/src/lib.rs", "mod a;\n"),
        "stands above": (
            "crates/procwright-low/Cargo.toml",
            "[dependencies]\nprocwright = '1'\n",
        ),
        "is not there": ("layers.md", "`crates/gone.rs`" + files["layers.md"]),
        "no picture": (
            "layers.md",
            files["layers.md"].split("```text layers procwright-low")[0],
        ),
    }
    for fault, (name, text) in planted.items():
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for path, content in {
                **files,
                "crates/procwright-low/src/c.rs": "",
                name: text,
            }.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(content)
            found = check(root, root / "layers.md")
        if bool(fault) != any(fault in one for one in found) or (found and not fault):
            sys.exit(f"layers.py does not find what it should, {fault!r}, but {found}")


def main() -> None:
    document = ROOT / "docs" / "architecture.md"
    if sys.argv[1:] == ["--print"]:
        for folder in sorted(ROOT.glob("crates/procwright*")):
            crate = Crate(folder / "src")
            rows, around = order(crate.arrows(()))
            print(
                f"{folder.name}:",
                *(" · ".join(row) for row in reversed(rows)),
                sep="\n  ",
            )
            for at in sorted(crate.children):
                around = order(crate.arrows(at))[1]
                if around:
                    print("  circle:", "::".join(at), " > ".join(around))
        return
    check_the_check()
    faults = check(ROOT, document)
    print(*faults, sep="\n", end="\n" if faults else "")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
