"""Pipelines of ours: pipelines_procwright.py COUNT elastic|plain JSON, a list of lists of words."""

import json
import sys
import time

import procwright

count, elastic, stages = int(sys.argv[1]), sys.argv[2] == "elastic", json.loads(sys.argv[3])
given = {"elastic": True} if elastic else {}
started = time.perf_counter()
for _ in range(count):
    procwright.pipeline(
        *stages, stdout=procwright.DEVNULL, stderr=procwright.INHERIT, check=True, **given
    )
print(f"{time.perf_counter() - started:.6f}")
