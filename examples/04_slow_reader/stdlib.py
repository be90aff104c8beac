"""Only wants to know how the worker ended. Never does."""

import os
import subprocess
import sys

WORKER = os.path.join(os.path.dirname(__file__), "worker.py")

child = subprocess.Popen([sys.executable, WORKER, sys.argv[1]], stdout=subprocess.PIPE)
code = child.wait()
print(f"the worker exited with code {code}")
