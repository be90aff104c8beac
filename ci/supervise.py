#!/usr/bin/env python3
"""Runs a command in the same surroundings each time, and leaves no process behind.

    ci/supervise.py COMMAND [ARGUMENT...]

The command inherits no ignored and no blocked signal: `nohup`, `&` in a script and
some CI services ignore a few, and a shell cannot undo that. Its stdin is /dev/null, it
has no terminal, no descriptor above 2, nothing of an outer `make`, the locale C.UTF-8.

When the command ends, or this process gets SIGHUP, SIGINT, SIGQUIT or SIGTERM (unless
they were ignored: `nohup` keeps its meaning), or the `make` above ends or is told to,
every process that the command left is killed, whatever session or group it is in.

Two processes do this, each for the case that the other one is killed:

- The front stays in the caller's process group and receives its signals.
- The keeper is a session of its own, out of reach of a SIGKILL to the caller's group.
  It starts the command and kills what is left.

Both are subreapers: an orphan below them becomes their child. What is killed is always
a child not yet waited for, whose pid cannot have gone to another process.
"""

import ctypes
import os
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
ENDING = {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM}
# Variables by which an outer make would speak to the makes and cargos below.
OF_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "CARGO_MAKEFLAGS")


def prctl(option, value):
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def reap():
    """Waits for the children that have ended; yields (pid, exit code)."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        code = os.waitstatus_to_exitcode(status)
        yield pid, code if code >= 0 else 128 - code


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(pid) for pid in file.read().split()]


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read(80).replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def kill_descendants():
    """Kills all processes below this one; returns those found first, as texts.

    Only children are killed. Their children become ours, and are killed in turn.
    """
    found = []
    spared = set()
    while True:
        for _ in reap():
            pass
        left = [pid for pid in children() if pid not in spared]
        if not left:
            return found
        for pid in left:
            found.append(f"{pid} {command_line(pid)}")
            try:
                os.kill(pid, signal.SIGKILL)
            except PermissionError:
                spared.add(pid)
                print(f"supervise: {found[-1]} may not be killed", file=sys.stderr)
        time.sleep(0.005)


def command(words):
    """Becomes the command."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.umask(0o022)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    for name in (*OF_MAKE, "LANGUAGE"):
        os.environ.pop(name, None)
    os.environ.update(LC_ALL="C.UTF-8", CI_SUPERVISOR=str(os.getppid()))
    try:
        os.execvp(words[0], words)
    except OSError as error:
        print(f"supervise: {words[0]}: {error}", file=sys.stderr)
        os._exit(127)


def keeper(front, words):
    """Runs the command; returns its exit code when nothing of it runs any more."""
    os.setsid()
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != front:
        return 1
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    started = os.fork()
    if started == 0:
        command(words)
    while signal.sigwait({signal.SIGTERM, signal.SIGCHLD}) == signal.SIGCHLD:
        for pid, code in reap():
            if pid == started:
                for left in dict.fromkeys(kill_descendants()):
                    print(
                        f"supervise: left behind, and killed: {left}", file=sys.stderr
                    )
                return code
    kill_descendants()
    return 128 + signal.SIGTERM


class Make:
    """The make that started this, if one did."""

    def __init__(self):
        self.pid = os.getppid()
        self.is_there = self._read("comm").strip() in ("make", "gmake")

    def _read(self, name):
        try:
            with open(f"/proc/{self.pid}/{name}") as file:
                return file.read()
        except OSError:
            return ""

    def has_to_end(self):
        """Whether make was killed, or was told to end and waits for us.

        A make that gets SIGINT, SIGQUIT or SIGHUP by itself passes it on to no child
        (it expects a terminal to have sent it to all) and waits in its handler, where
        the signal is blocked and has its default disposition.
        """
        if not self.is_there:
            return False
        if os.getppid() != self.pid:
            return True
        masks = dict.fromkeys(("SigBlk", "SigIgn", "SigCgt"), 0)
        for line in self._read("status").splitlines():
            key, _, rest = line.partition(":")
            if key in masks:
                masks[key] = int(rest, 16)
        blocked, ignored, caught = masks.values()
        return any(blocked & ~ignored & ~caught & 1 << number - 1 for number in ENDING)


def main(words):
    if not words:
        sys.exit(__doc__)
    make = Make()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    ending = {one for one in ENDING if signal.getsignal(one) != signal.SIG_IGN}
    awaited = ending | {signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_SETMASK, awaited)
    front = os.getpid()
    started = os.fork()
    if started == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        for one in ENDING:
            signal.signal(one, signal.SIG_DFL)
        code = 1
        try:
            code = keeper(front, words)
        finally:
            os._exit(code)
    received = None
    while True:
        # Nothing tells of what became of make: the time-out is for looking.
        info = signal.sigtimedwait(awaited, 1)
        if info and info.si_signo in ending:
            received = info.si_signo
        elif make.has_to_end():
            received = signal.SIGTERM
        if received:
            os.kill(started, signal.SIGTERM)
            os.waitpid(started, 0)
            break
        ended = dict(reap())
        if started in ended:
            break
    kill_descendants()
    if received is None:
        sys.exit(ended[started])
    signal.signal(received, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.kill(front, received)


if __name__ == "__main__":
    main(sys.argv[1:])
