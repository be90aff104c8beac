"""The same with procwright: dead is dead, and a look is no system call."""

import os
import pathlib
import signal
import socket
import subprocess
import sys

import procwright

ours, theirs = socket.socketpair()
program = pathlib.Path(__file__).with_name("worker.py")
worker = subprocess.Popen(
    [sys.executable, program, str(theirs.fileno())],
    stdout=subprocess.PIPE,
    pass_fds=[theirs.fileno()],
)
theirs.close()
monitor = procwright.LivenessMonitor(procwright.LivenessInvitation.receive(ours))
# A program that holds no token can be watched as well.
of_process = procwright.LivenessMonitor(worker)

looks = sum(monitor.alive() for _ in range(1_000_000))
print(f"the worker was alive at each of {looks} looks")

os.kill(worker.pid, signal.SIGKILL)
print(f"the worker has died: {monitor.wait()}, alive={monitor.alive()}")
print(f"its process: {of_process.wait()}, alive={of_process.alive()}")
worker.communicate()
print("and nobody who gets its number will change that")
