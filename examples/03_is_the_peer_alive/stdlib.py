"""Asks whether a worker is alive, as it is mostly done: `os.kill(pid, 0)`.

The worker is killed. Nobody has taken its status yet, and the number is still its
own: alive. Then its status is taken, and somebody else gets the number: alive.
"""

import os
import pathlib
import signal
import subprocess
import sys


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def a_stranger_with(pid):
    """A process that gets this number, as chance gives it to somebody some day."""
    while True:
        with open("/proc/sys/kernel/ns_last_pid", "w") as last:
            last.write(str(pid - 1))
        stranger = subprocess.Popen(["sleep", "60"])
        if stranger.pid == pid:
            return stranger
        stranger.kill()  # another process was quicker
        stranger.wait()


program = pathlib.Path(__file__).with_name("worker.py")
worker = subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE)
worker.stdout.readline()  # it is at work
os.kill(worker.pid, signal.SIGKILL)
os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)  # it has died
print(f"the worker has died: alive={alive(worker.pid)}")

worker.communicate()
try:
    stranger = a_stranger_with(worker.pid)
except OSError:
    print("a stranger has its number: only root can bring that about at will")
else:
    print(f"a stranger has its number: alive={alive(worker.pid)}")
    stranger.kill()
    stranger.wait()
