"""Takes a quarter of a second a line. The child does not know and does not wait."""

import os
import pathlib
import sys
import time

import procwright

TICKER = os.path.join(os.path.dirname(__file__), "ticker.py")

with procwright.spawn([sys.executable, TICKER, sys.argv[1]]) as child:
    for number, line in enumerate(child.stdout):
        assert int(line.split()[0]) == number
        time.sleep(0.25)
print(f"{number + 1} lines; the child took {pathlib.Path(sys.argv[1]).read_text()}")
