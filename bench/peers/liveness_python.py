"""What a check costs in Python: `check BATCHES BATCH_US`; see src/subject_liveness.rs.

`peer` is the process whose life it is about: its stdin is a socket to its parent.
"""

import datetime
import io
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time

ROW = 16


def repeated(call, names):
    """A function that makes the call sixteen times a turn, with its names at hand as locals."""
    body = "".join(f"        {call}\n" for _ in range(ROW))
    source = f"def repeat(rows, {', '.join(names)}):\n    for _ in range(rows):\n{body}"
    made = {}
    exec(source, made)
    repeat = made["repeat"]

    def timed(rows):
        began = time.thread_time_ns()
        repeat(rows, **names)
        return time.thread_time_ns() - began

    return timed


def calibrated(timed, batch_us):
    rows = 1
    while True:
        took = max(1, timed(rows))
        if took * 4 > batch_us * 1000:
            return max(1, rows * batch_us * 1000 // took)
        rows *= 4


def measure(checks, reasons):
    batches, batch_us = (int(word) for word in sys.argv[2:4])
    entries = [(name, timed, calibrated(timed, batch_us)) for name, timed in checks.items()]
    found = {name: [] for name in checks}
    for batch in range(batches):
        for turn in range(len(entries)):
            name, timed, rows = entries[(turn + batch) % len(entries)]
            found[name].append(timed(rows) / (rows * ROW))
    print(json.dumps({**found, **reasons}))


def start_peer():
    ours, theirs = socket.socketpair()
    with theirs:
        peer = subprocess.Popen([sys.executable, __file__, "peer"], stdin=theirs)
    return peer, ours


def of_procwright(checks, reasons, peer, ours):
    """Those of ours, or why there are none."""
    try:
        import procwright

        # Made as the monitors are, and its attribute answers the same kind of question.
        cancel = procwright.Cancel()
        checks["attribute Cancel.cancelled, Python"] = repeated("c.cancelled", {"c": cancel})
        token = procwright.LivenessMonitor(procwright.LivenessInvitation.receive(ours))
        process = procwright.LivenessMonitor(procwright.Process(peer))
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        for name in ("alive, Python", "alive process, Python"):
            reasons[name] = reason
        return
    assert token.alive() and process.alive()
    checks["alive, Python"] = repeated("m.alive()", {"m": token})
    checks["alive process, Python"] = repeated("m.alive()", {"m": process})


def of_psutil(checks, reasons, peer):
    try:
        import psutil
    except ImportError as error:
        reasons["psutil is_running, Python"] = str(error)
        return
    process = psutil.Process(peer.pid)
    assert process.is_running()
    checks["psutil is_running, Python"] = repeated("p.is_running()", {"p": process})


def sleep_on(end, other):
    # Else it would not see its parent's end.
    other.close()
    try:
        end.recv()
    except EOFError:
        pass


def check():
    checks, reasons = {}, {}
    # Forked first, while there is one thread.
    context = multiprocessing.get_context("fork")
    ends = context.Pipe()
    child = context.Process(target=sleep_on, args=(ends[1], ends[0]), daemon=True)
    child.start()
    peer, ours = start_peer()
    of_procwright(checks, reasons, peer, ours)
    checks["attribute FileIO.closed, Python"] = repeated("f.closed", {"f": io.FileIO(0, closefd=False)})
    checks["attribute date.year, Python"] = repeated("d.year", {"d": datetime.date(2000, 1, 1)})
    checks["os.kill, Python"] = repeated("kill(pid, 0)", {"kill": os.kill, "pid": peer.pid})
    checks["Popen.poll, Python"] = repeated("p.poll()", {"p": peer})
    checks["multiprocessing is_alive, Python"] = repeated("p.is_alive()", {"p": child})
    of_psutil(checks, reasons, peer)
    measure(checks, reasons)
    peer.kill()
    peer.wait()
    child.kill()
    child.join()


def live():
    with socket.socket(fileno=os.dup(0)) as parent:
        token = None
        try:
            import procwright

            token = procwright.LivenessToken()
            token.invite().send(parent)
        except Exception:
            # The other side sees that nothing comes, and says so.
            parent.shutdown(socket.SHUT_WR)
        parent.recv(1)
        del token


if __name__ == "__main__":
    live() if sys.argv[1] == "peer" else check()
