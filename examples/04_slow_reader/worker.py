"""Does ten steps of work, and prints a report of 40 kB about each."""

import pathlib
import sys

progress = pathlib.Path(sys.argv[1])
for step in range(1, 11):
    print(f"step {step}: " + "x" * 40_000, flush=True)
    progress.write_text(f"{step} of 10 steps done\n")
