"""Peer: the spawn rate of CPython's subprocess. A limit needs preexec_fn there."""

import os
import resource
import subprocess

from check import measure_spawn

TRUE = ["/bin/true"]


def limit():
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))


def plain():
    subprocess.run(TRUE, check=True)


def changed():
    subprocess.run(TRUE, check=True, umask=0o27, preexec_fn=limit, start_new_session=True, cwd=os.sep)


measure_spawn(plain, changed)
