"""Modules import only from below: in the package, in the extension, and in its folders."""

import pathlib
import re

import pytest
from layers import picture, python_imports, rust_imports, upward

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "procwright"
SOURCE = ROOT / "src"
FOLDERS = sorted(path.parent.name for path in SOURCE.glob("*/mod.rs"))


def test_package():
    text = (PACKAGE / "__init__.py").read_text()
    imports = {path.stem: python_imports(path.read_text()) for path in PACKAGE.glob("*.py")}
    imports["_core"] = python_imports((PACKAGE / "_core.pyi").read_text())
    for path in SOURCE.rglob("*.rs"):
        imports["_core"] |= set(re.findall(r'"procwright\.(_\w+)"', path.read_text()))
    calls_back = re.search(r"Upward from _core:\n# ([\w, ]+)\.", text)
    imports["_core"] -= {"_core", *calls_back[1].split(", ")}
    assert upward(picture(text, "#   "), imports) == []


def test_extension():
    imports = {}
    for path in SOURCE.rglob("*.rs"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".rs")
        paths = rust_imports(path.read_text())
        if room == "lib":
            # Its `super` is itself, inside of `_core`.
            names = {parts[1] for parts in paths}
        else:
            names = {parts[1] for parts in paths if parts[0] == "crate"}
        imports.setdefault(room, set()).update(names)
    text = between_fences((SOURCE / "lib.rs").read_text())
    assert upward(picture(text, "//! "), imports) == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_folder_of_the_extension(folder):
    text = (SOURCE / folder / "mod.rs").read_text()
    files = {path.stem: path.read_text() for path in (SOURCE / folder).glob("*.rs")}
    del files["mod"]
    # `super::Receiver` is what mod.rs has from `receiver`.
    homes = {}
    for names in re.findall(r"\buse (\w+::(?:\w+|\{[^}]*\}));", text):
        for parts in rust_imports(f"use super::{names};"):
            homes[parts[2]] = parts[1]
    imports = {name: set() for name in files}
    for name, source in files.items():
        for parts in rust_imports(source):
            if parts[0] == "super" and parts[1] != "super":
                imports[name].add(homes.get(parts[1], parts[1]))
            elif parts[:2] == ["crate", folder]:
                imports[name].add(homes.get(parts[2], parts[2]))
    assert upward(picture(between_fences(text), "//! "), imports) == []


def between_fences(text):
    return text.split("```text\n")[1].split("//! ```\n")[0]


PICTURE = """
#   top          what users see
#   left, right  two that know nothing of each other
#   bottom
"""


def wrong(**sources):
    files = {"top": "", "left": "", "right": "", "bottom": "", **sources}
    imports = {name: python_imports(source) for name, source in files.items()}
    return upward(picture(PICTURE, "#   "), imports)


def test_what_is_found():
    good = "from . import bottom\nfrom .left import a"
    assert wrong(top=good) == []
    back = ["bottom imports left, which is not below it"]
    assert wrong(left="from .bottom import a", bottom="from .left import a") == back
    inside = "def f():\n    from .left import a"
    assert wrong(left="import procwright.bottom", bottom=inside) == back
    checking = "if TYPE_CHECKING:\n    from procwright.left import a"
    assert wrong(bottom=checking) == back
    assert wrong(left="from . import right") == ["left imports right, which is not below it"]
    assert wrong(more="") == ["more is not in the picture"]
    assert wrong(top="from ._new import a") == ["top imports _new, which is no module"]
    with pytest.raises(AssertionError, match="twice"):
        picture("#   a, b\n#   b  c", "#   ")


def test_what_is_found_in_rust():
    source = """
    use std::io;
    use crate::a::{self, B, c::{D, E}};
    use super::f::G; // crate::no
    fn h() -> crate::i::J { super::k() }
    """
    assert rust_imports(source) == [
        ["crate", "a", "self"],
        ["crate", "a", "B"],
        ["crate", "a", "c", "D"],
        ["crate", "a", "c", "E"],
        ["super", "f", "G"],
        ["crate", "i", "J"],
        ["super", "k"],
    ]
    assert rust_imports("use crate::{report, values};") == [
        ["crate", "report"],
        ["crate", "values"],
    ]
