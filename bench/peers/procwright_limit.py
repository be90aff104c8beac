"""Ours from Python: `procwright.run` under a limit of 1 MiB a stream, head and tail."""

import procwright

from check import measure_counted

LIMIT = 1 << 20


def run(argv):
    done = procwright.run(argv, check=True, limit=LIMIT)
    if len(done.stdout) > LIMIT:
        raise SystemExit("more kept than the limit")
    return done.stdout_info.bytes, done.stderr_info.bytes


measure_counted(run)
