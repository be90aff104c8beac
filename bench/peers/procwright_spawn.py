"""Ours from Python: the spawn rate of `procwright.run`, nothing captured."""

import procwright
from procwright import INHERIT

from check import measure_spawn

TRUE = ["/bin/true"]


def plain():
    procwright.run(TRUE, check=True, stdout=INHERIT, stderr=INHERIT)


def changed():
    procwright.run(
        TRUE,
        check=True,
        stdout=INHERIT,
        stderr=INHERIT,
        umask=0o27,
        rlimits={"nofile": 512},
        start_new_session=True,
        cwd="/",
    )


measure_spawn(plain, changed)
