"""The same with procwright: whoever waits for the end drains the pipe meanwhile."""

import os
import sys

import procwright

WORKER = os.path.join(os.path.dirname(__file__), "worker.py")

result = procwright.run([sys.executable, WORKER, sys.argv[1]])
print(f"the worker exited with code {result.returncode}")
print(f"it wrote {result.stdout_info.bytes} bytes")
