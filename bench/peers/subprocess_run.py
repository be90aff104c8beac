"""Peer: CPython's `subprocess.run(capture_output=True)`."""

import subprocess

from check import measure


def capture(argv):
    done = subprocess.run(argv, capture_output=True, check=True)
    return done.stdout, done.stderr


measure(capture)
