"""Stands in for ffmpeg on a broken video: a megabyte of complaints, then the result."""

import sys

for frame in range(20_000):
    print(f"frame {frame}: corrupt macroblock, concealing errors", file=sys.stderr)
print("20000 frames")
