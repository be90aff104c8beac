"""The pytest plugin of procwright: the fixture `procwright_fake`.

It is a package of its own: pytest imports plugins at every start, and this must not import
procwright where no test asks for it. It has no options, hooks or markers: nothing of a run of
pytest changes by its being there.
"""

from __future__ import annotations

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from procwright.testing import Fake


@pytest.fixture
def procwright_fake() -> Iterator[Fake]:
    """A `procwright.testing.Fake`: programs are played, and what is not registered is refused."""
    from procwright.testing import Fake

    with Fake() as fake:
        yield fake
