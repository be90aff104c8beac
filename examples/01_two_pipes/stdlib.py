"""Reads one pipe to its end and then the other. Hangs for ever."""

import os
import subprocess
import sys

NOISY = os.path.join(os.path.dirname(__file__), "noisy.py")

child = subprocess.Popen(
    [sys.executable, NOISY], stdout=subprocess.PIPE, stderr=subprocess.PIPE
)
out = child.stdout.read()
err = child.stderr.read()
child.wait()
print(f"stdout {len(out)} bytes, stderr {len(err)} bytes")
