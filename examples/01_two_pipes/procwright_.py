"""The same with procwright: both pipes are read at once."""

import os
import sys

import procwright

NOISY = os.path.join(os.path.dirname(__file__), "noisy.py")

result = procwright.run([sys.executable, NOISY])
print(f"stdout {len(result.stdout)} bytes, stderr {len(result.stderr)} bytes")
