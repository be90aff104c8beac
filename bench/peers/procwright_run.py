"""Ours from Python: `procwright.run`."""

import procwright

from check import measure


def capture(argv):
    done = procwright.run(argv, check=True)
    return done.stdout, done.stderr


measure(capture)
