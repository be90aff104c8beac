"""One stream after the other, as nobody should dare. With procwright it works.

Whoever wants the lines while they come cannot use `run`. A spawned child's output
is taken as fast as it comes, whichever stream is read first, or none.
"""

import os
import sys

import procwright

NOISY = os.path.join(os.path.dirname(__file__), "noisy.py")

with procwright.spawn([sys.executable, NOISY]) as child:
    out = child.stdout.read()
    err = child.stderr.read()
print(f"stdout {len(out)} bytes, stderr {len(err)} bytes")
