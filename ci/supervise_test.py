#!/usr/bin/env python3
"""Tests ci/supervise.py. Nothing of what it started may run when it has ended."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

SUPERVISE = [sys.executable, str(pathlib.Path(__file__).with_name("supervise.py"))]
# Leaves a process in a session of its own, an orphan, one that ignores signals and one
# that has all three; each holds the descriptor that it inherits as stdout.
TREE = """
setsid sleep 1000 &
(setsid sh -c 'sleep 1000 & setsid sleep 1000 & wait' &)
(trap '' HUP INT TERM; sleep 1000) &
echo started
"""
STAYS = TREE + "sleep 1000\n"


def start(*words, **options):
    options.setdefault("stdout", subprocess.PIPE)
    return subprocess.Popen([*SUPERVISE, *words], stderr=subprocess.DEVNULL, **options)


class Supervise(unittest.TestCase):
    def read_to_the_end(self, process):
        """A pipe ends when its last holder has: that is what shows that all are gone."""
        self.assertTrue(process.stdout.read().endswith(b"started\n"))
        process.stdout.close()
        return process.wait()

    def children(self, pid):
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(pid) for pid in file.read().split()]

    def started(self, *words, **options):
        process = start(*words, **options)
        self.assertEqual(process.stdout.read1(), b"started\n")
        return process

    def assert_empties(self, process):
        self.assertEqual(process.stdout.read(), b"")
        process.stdout.close()
        return process.wait()

    def test_the_exit_code_is_passed_on_and_stragglers_are_killed(self):
        self.assertEqual(self.read_to_the_end(start("sh", "-c", TREE + "exit 7")), 7)
        self.assertEqual(
            self.read_to_the_end(start("sh", "-c", TREE + "kill -9 $$")), 137
        )

    def test_signals_end_all(self):
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
            process = self.started("sh", "-c", STAYS)
            process.send_signal(number)
            self.assertEqual(self.assert_empties(process), -number)

    def test_either_of_the_two_may_be_killed(self):
        process = self.started("sh", "-c", STAYS)
        process.kill()
        self.assertEqual(self.assert_empties(process), -signal.SIGKILL)
        process = self.started("sh", "-c", STAYS)
        [keeper] = self.children(process.pid)
        os.kill(keeper, signal.SIGKILL)
        self.assertEqual(self.assert_empties(process), 128 + signal.SIGKILL)

    def test_a_make_above_ends_all(self):
        with tempfile.TemporaryDirectory() as directory:
            makefile = pathlib.Path(directory, "Makefile")
            words = " ".join(SUPERVISE)
            makefile.write_text(f"all:\n\t@{words} sh tree\n")
            makefile.with_name("tree").write_text(STAYS)
            for number in (
                signal.SIGINT,
                signal.SIGTERM,
                signal.SIGHUP,
                signal.SIGKILL,
            ):
                process = subprocess.Popen(
                    ["make", "-C", directory],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
                while b"started\n" not in process.stdout.readline():
                    pass
                process.send_signal(number)
                process.stdout.read()
                process.stdout.close()
                self.assertNotEqual(process.wait(), 0)

    def test_nothing_is_inherited(self):
        code = """if True:
        import os, signal, sys
        own = {signal.SIGPIPE, signal.SIGXFSZ}
        ignored = {s for s in signal.valid_signals() if signal.getsignal(s) == signal.SIG_IGN}
        print(ignored - own, signal.pthread_sigmask(signal.SIG_BLOCK, []), os.getsid(0) == os.getppid())
        print(os.environ.get("MAKEFLAGS"), os.environ["LC_ALL"], sorted(os.listdir("/proc/self/fd"))[:-1])
        """

        def hostile():
            signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGUSR1, signal.SIGTERM})
            for number in (
                signal.SIGHUP,
                signal.SIGINT,
                signal.SIGQUIT,
                signal.SIGCHLD,
            ):
                signal.signal(number, signal.SIG_IGN)

        process = start(
            *(sys.executable, "-I", "-c", code),
            env=dict(os.environ, MAKEFLAGS="-j --jobserver-auth=3,4"),
            preexec_fn=hostile,
            pass_fds=[1],
        )
        said = process.stdout.read().decode()
        process.stdout.close()
        self.assertEqual(process.wait(), 0)
        self.assertEqual(said, "set() set() True\nNone C.UTF-8 ['0', '1', '2']\n")

    def test_what_the_caller_ignores_does_not_end_it(self):
        def ignore():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

        process = self.started(
            "sh", "-c", "echo started; read line; exit 3", preexec_fn=ignore
        )
        process.send_signal(signal.SIGHUP)
        # Its stdin is empty.
        self.assertEqual(self.assert_empties(process), 3)


if __name__ == "__main__":
    unittest.main()
