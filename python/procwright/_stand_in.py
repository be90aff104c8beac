"""The program that is spawned in the place of one that a test plays.

It runs alone, by its path: it imports nothing of the package. The file whose descriptor it is
given has what to do, and gets behind that what came on its stdin, for the test to see.
"""

import marshal
import os
import signal
import sys
import time


def play(file: int) -> None:
    size = int.from_bytes(os.pread(file, 8, 0), "little")
    steps, code = marshal.loads(os.pread(file, size, 8))
    end = 8 + size
    for kind, value in steps:
        if kind == "out":
            _write(1, value)
        elif kind == "err":
            _write(2, value)
        elif kind == "pause":
            time.sleep(value)
        elif kind == "hang":
            while True:
                signal.pause()
        else:
            end = _read(file, end, value)
    _end(code)


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _read(file: int, end: int, expected: "bytes | None") -> int:
    """Reads what is expected, or all there is to come."""
    came = b""
    while expected is None or len(came) < len(expected):
        piece = os.read(0, 65536 if expected is None else len(expected) - len(came))
        if not piece:
            break
        os.pwrite(file, piece, end)
        end += len(piece)
        came = b"" if expected is None else came + piece
        if expected is not None and not expected.startswith(came):
            break
    if expected is not None and came != expected:
        text = f"fake program: expected {expected!r} on stdin, and {came!r} came\n"
        _write(2, text.encode())
        os._exit(99)
    return end


def _end(code: int) -> None:
    if code >= 0:
        os._exit(code)
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):
        pass
    if -code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    # A signal that ends nobody.
    os._exit(128 - code)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    play(int(sys.argv[1]))
