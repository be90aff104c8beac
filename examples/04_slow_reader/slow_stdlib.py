"""Takes a quarter of a second a line, and so does the child, whatever it has to do."""

import os
import pathlib
import subprocess
import sys
import time

TICKER = os.path.join(os.path.dirname(__file__), "ticker.py")

child = subprocess.Popen([sys.executable, TICKER, sys.argv[1]], stdout=subprocess.PIPE)
for number, line in enumerate(child.stdout):
    assert int(line.split()[0]) == number
    time.sleep(0.25)
child.wait()
print(f"{number + 1} lines; the child took {pathlib.Path(sys.argv[1]).read_text()}")
