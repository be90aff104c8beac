"""The pytest plugin of procwright: the fixtures `procwright_fake` and `procwright_cassette`.

It is a package of its own: pytest imports plugins at every start, and this must not import
procwright where no test asks for it. It has no options, hooks or markers: nothing of a run of
pytest changes by its being there.
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


@pytest.fixture
def procwright_fake() -> Iterator[Fake]:
    """A `procwright.testing.Fake`: programs are played, and what is not registered is refused."""
    from procwright.testing import Fake

    with Fake() as fake:
        yield fake


@pytest.fixture
def procwright_cassette(request: pytest.FixtureRequest) -> Iterator[Cassette]:
    """A `procwright.testing.Cassette` in the directory `cassettes` beside the test's file.

    The first time it records, then it replays. PROCWRIGHT_CASSETTES=replay records nothing,
    =record records anew.
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
