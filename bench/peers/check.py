"""What the Python subjects share: the check and the one line of JSON."""

import json
import sys
import time

BLOCK_WORDS = 4096 // 8


def _verify(data: bytes, size: int, first: int) -> None:
    if len(data) != size:
        sys.exit(f"wrong length: {len(data)}, not {size}")
    numbers = memoryview(data).cast("Q")[::BLOCK_WORDS]
    if numbers.tolist() != list(range(first, first + len(numbers))):
        sys.exit("wrong bytes")


def _peak_rss_kb() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


def measure(capture) -> None:
    """Times `capture(argv) -> (out, err)` on the workload that argv names."""
    child, streams, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    started = time.perf_counter()
    out, err = capture([child, *sys.argv[2:]])
    seconds = time.perf_counter() - started
    peak = _peak_rss_kb()
    _verify(out, size, 0)
    _verify(err, size if streams == 2 else 0, 1 << 32)
    print(json.dumps({"seconds": seconds, "peak_rss_kb": peak, "bytes_out": len(out), "bytes_err": len(err)}))


def measure_spawn(plain, changed) -> None:
    """Rates of `plain()` and `changed()`: COUNT BATCHES RESIDENT_BYTES [CHANGED_COUNT]."""
    count, batches, resident = (int(word) for word in sys.argv[1:4])
    changed_count = int(sys.argv[4]) if len(sys.argv) > 4 else count
    ballast = bytearray(b"\x01") * resident

    def rate(run, times: int) -> float:
        started = time.perf_counter()
        for _ in range(times):
            run()
        return times / (time.perf_counter() - started)

    rows = [(rate(plain, count), rate(changed, changed_count)) for _ in range(batches)]
    print(json.dumps({"plain_per_s": [a for a, _ in rows], "changed_per_s": [b for _, b in rows]}))
    del ballast


def measure_counted(run) -> None:
    """Times `run(argv) -> (bytes_out, bytes_err)` where not everything is kept."""
    started = time.perf_counter()
    out, err = run(sys.argv[1:])
    seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "peak_rss_kb": _peak_rss_kb(), "bytes_out": out, "bytes_err": err}))
