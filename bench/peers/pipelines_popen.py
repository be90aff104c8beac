"""Pipelines as chains of Popen: pipelines_popen.py COUNT JSON, which is a list of lists of words."""

import json
import subprocess
import sys
import time

count, stages = int(sys.argv[1]), json.loads(sys.argv[2])
started = time.perf_counter()
for _ in range(count):
    running = []
    before = subprocess.DEVNULL
    for place, words in enumerate(stages):
        last = place == len(stages) - 1
        stdout = subprocess.DEVNULL if last else subprocess.PIPE
        running.append(subprocess.Popen(words, stdin=before, stdout=stdout))
        if place:
            before.close()
        before = running[-1].stdout
    assert all(one.wait() in (0, -13) for one in running)
print(f"{time.perf_counter() - started:.6f}")
