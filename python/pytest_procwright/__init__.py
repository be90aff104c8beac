"""The pytest plugin of procwright: the fixtures `procwright_fake` and `procwright_cassette`, and
the option `--procwright-explain`.

It is a package of its own: pytest imports plugins at every start, and this must not import
procwright where nobody asks for it. Without the option nothing of a run of pytest changes by its
being there.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from procwright.testing import Cassette, Fake


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option, which is off."""
    parser.getgroup("procwright").addoption(
        "--procwright-explain",
        dest="procwright_explain",
        metavar="SECONDS",
        help="say what its processes wait for of a test that takes longer, which goes on",
    )
    parser.addini(
        "procwright_explain", "seconds of --procwright-explain, off if it is empty", default=""
    )


def pytest_configure(config: pytest.Config) -> None:
    """Begins to look after tests, if that is asked for."""
    if not (config.getoption("procwright_explain") or config.getini("procwright_explain")):
        return
    from ._explain import Explain, seconds_of

    if (seconds := seconds_of(config)) is not None:
        config.pluginmanager.register(Explain(seconds), "procwright-explain")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Says to the fixtures of a test that it fails, and by what: pytest does not."""
    if call.when != "call" or call.excinfo is None:
        return
    arguments = getattr(item, "funcargs", {})
    for name in ("procwright_fake", "procwright_cassette"):
        if (player := arguments.get(name)) is not None:
            player._fails_by(call.excinfo.value)


@pytest.fixture
def procwright_fake() -> Iterator[Fake]:
    """A `procwright.testing.Fake`: programs are played, and what is not registered is refused."""
    from procwright.testing import Fake

    with Fake() as fake:
        yield fake


@pytest.fixture
def procwright_cassette(request: pytest.FixtureRequest) -> Iterator[Cassette]:
    """A `procwright.testing.Cassette` in the directory `cassettes` beside the test's file.

    The first time it records, if the test succeeds, then it replays. PROCWRIGHT_CASSETTES=replay
    records nothing, =record records anew.
    """
    from procwright.testing import Cassette

    file = Path(request.node.path)
    name = "".join(
        letter if letter.isalnum() or letter in "-_." else "_" for letter in request.node.name
    )
    path = file.parent / "cassettes" / file.stem / f"{name}.jsonl"
    mode: Any = os.environ.get("PROCWRIGHT_CASSETTES", "once")
    with Cassette(path, mode=mode) as cassette:
        yield cassette
