"""Forks a process again and again while callbacks of every kind run in it, and says how many
of the forks hang.

    python fork_storm.py FORKS [SECONDS]

A fork that does not end within two minutes hangs: it is told with its stack, in Python and,
where there is gdb, in C. After so many seconds no more are begun.
"""

from __future__ import annotations

import collections
import faulthandler
import gc
import logging
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings

from procwright import Overflow, Stop, run, spawn

PATIENCE_S = 120
LINES = "i=0; while [ $i -lt 60 ]; do echo $i; echo $i >&2; i=$((i+1)); done"
FLOOD = "head -c 300000 /dev/zero & head -c 300000 /dev/zero >&2; wait"


class Sink:
    def write(self, text):
        return len(text)

    def flush(self):
        pass


def callback(_):
    callback.calls += 1


callback.calls = 0


def lines():
    run(LINES, shell=True, on_line=lambda line: callback(line))


def lines_of_each():
    run(
        LINES,
        shell=True,
        on_stdout_line=lambda x: callback(x),
        on_stderr_line=lambda x: callback(x),
    )


def tee():
    run(LINES, shell=True, tee=Sink())


def pieces_of_stdin():
    run(["cat"], stdin=(callback(n) or b"x" * 1000 for n in range(40)))


def stdin_of_a_child():
    with spawn(["cat"], stdin=(callback(n) or b"x" * 1000 for n in range(40))) as child:
        child.stdout.read()


def bytes_for_a_child():
    with spawn(["wc", "-c"], input=bytes(300_000)) as child:
        child.stdout.read()


def lines_of_a_child():
    with spawn(LINES, shell=True, on_stdout_line=callback, on_stderr_line=callback) as child:
        child.wait()


def events():
    overflow = Overflow("drop_oldest", memory=65536)
    with spawn(
        FLOOD, shell=True, overflow=overflow, on_event=lambda event: callback(event)
    ) as child:
        child.wait()


def volume():
    run(FLOOD, shell=True, on_event=lambda event: callback(event))


def failing_callback():
    def fail(_):
        raise KeyError

    try:
        run(LINES, shell=True, on_stdout_line=fail, on_stderr_line=fail, stop=Stop("KILL"))
    except KeyError:
        callback(None)


KINDS = [
    lines,
    lines_of_each,
    tee,
    pieces_of_stdin,
    stdin_of_a_child,
    bytes_for_a_child,
    lines_of_a_child,
    events,
    volume,
    failing_callback,
]


def again_and_again(kind, calls, over):
    while not over.is_set():
        kind()
        calls[kind.__name__] += 1


def in_the_fork(number):
    """What a fork does: nothing, or a run of its own, or a good end."""
    if number % 10 == 3:
        gc.collect()
    if number % 50 == 7:
        assert run(["echo", "forked"], on_line=lambda line: None).stdout == b"forked\n"
    if number % 50 == 9:
        sys.exit(0)
    os._exit(0)


def tell(pid):
    print(f"HANG: fork {pid}", file=sys.stderr, flush=True)
    os.kill(pid, signal.SIGUSR1)
    if shutil.which("gdb"):
        command = ["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 30"]
        subprocess.run(command, stdout=sys.stderr, stderr=subprocess.DEVNULL, check=False)


class Forks:
    """The forks that have not ended."""

    def __init__(self):
        self.began: dict[int, tuple[int, float]] = {}
        self.ended = select.poll()
        self.bad = self.hung = 0

    def add(self, pid):
        pidfd = os.pidfd_open(pid)
        self.began[pidfd] = (pid, time.monotonic())
        self.ended.register(pidfd, select.POLLIN)

    def reap(self, at_most):
        """Reaps those that have ended, and waits until no more than so many are left."""
        while self.began:
            block = len(self.began) > at_most
            ended = [pidfd for pidfd, _ in self.ended.poll(1000 if block else 0)]
            late = time.monotonic() - PATIENCE_S
            hung = [pidfd for pidfd, (_, began) in self.began.items() if began < late]
            for pidfd in set(hung) - set(ended):
                self.hung += 1
                tell(self.began[pidfd][0])
                os.kill(self.began[pidfd][0], signal.SIGKILL)
            for pidfd in {*ended, *hung}:
                pid, _ = self.began.pop(pidfd)
                self.bad += os.waitpid(pid, 0)[1] != 0
                self.ended.unregister(pidfd)
                os.close(pidfd)
            if not block and not ended:
                return


def main(forks, seconds):
    warnings.simplefilter("ignore", DeprecationWarning)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    sys.setswitchinterval(0.0005)
    # A fork may hold another run's pipe for a moment; and the second callback that fails is told.
    logging.getLogger("procwright").setLevel(logging.ERROR)
    sys.unraisablehook = callback
    calls: collections.Counter[str] = collections.Counter()
    over = threading.Event()
    for kind in KINDS:
        threading.Thread(target=again_and_again, args=(kind, calls, over), daemon=True).start()
    until = time.monotonic() + seconds
    running = Forks()
    made = 0
    while made < forks and time.monotonic() < until:
        pid = os.fork()
        if pid == 0:
            in_the_fork(made)
        made += 1
        running.add(pid)
        running.reap(at_most=7)
        if made % 1000 == 0:
            print(f"{made} forks, {running.hung} hung, {running.bad} ended badly", flush=True)
    running.reap(at_most=0)
    bad, hung = running.bad, running.hung
    missing = [kind.__name__ for kind in KINDS if not calls[kind.__name__]]
    version = sys.version.split()[0]
    print(
        f"{version}: {made} forks, {hung} hung, {bad} ended badly, "
        f"{callback.calls} callbacks in {sum(calls.values())} calls"
    )
    sys.stdout.flush()
    if missing:
        print(f"never done: {missing}", file=sys.stderr, flush=True)
    # The threads go on as they are.
    os._exit(1 if bad or hung else 0)


if __name__ == "__main__":
    # A fork that is to end well returns here.
    main(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else float("inf"))
