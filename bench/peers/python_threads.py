"""Peer: CPython with a thread a stream, each reading to the end at once."""

import subprocess
import threading

from check import measure


def capture(argv):
    kept = [b"", b""]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:

        def read(index, stream):
            kept[index] = stream.read()

        second = threading.Thread(target=read, args=(1, child.stderr))
        second.start()
        read(0, child.stdout)
        second.join()
        if child.wait():
            raise SystemExit("the child failed")
    return kept


measure(capture)
