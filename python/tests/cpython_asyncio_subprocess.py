"""Runs CPython's own tests of asyncio.subprocess on `procwright.asyncio_subprocess`.

`python cpython_asyncio_subprocess.py [NAME...]`: the tests are those of the interpreter that runs
this (`test.test_asyncio.test_subprocess`), on an event loop of its own whose `subprocess_exec` and
`subprocess_shell` are ours. What is left out is printed with the reason. 77 without those tests.
"""

from __future__ import annotations

import asyncio
import sys
import unittest

#: Tests that say how asyncio does it, and not what comes of it.
LEFT_OUT = {
    "test_pause_reading": "puts a mock in the place of loop.connect_read_pipe, which has no part",
    "test_popen_error": "puts a mock in the place of subprocess.Popen, which has no part",
    "test_popen_error_with_stdin_pipe": "likewise",
    "test_subprocess_read_pipe_cancelled": "puts a mock in the place of loop.connect_read_pipe",
    "test_subprocess_write_pipe_cancelled": "puts a mock in the place of loop.connect_write_pipe",
    "test_subprocess_read_write_pipe_cancelled": "puts mocks in the places of both",
}
#: Classes of tests, likewise.
CLASSES_LEFT_OUT = {
    "SubprocessTransportTests": "tests the private class BaseSubprocessTransport",
    "GenericWatcherTests": "child watchers have no part",
    "MultiLoopChildWatcherTests": "child watchers have no part",
    "Subprocess...WatcherTests": "these are the tests that run here, with one watcher each",
}


def main() -> int:
    try:
        from test.test_asyncio import test_subprocess as theirs
        from test.test_asyncio import utils
    except ImportError as error:
        print(f"the tests of CPython are not installed: {error}")
        return 77
    from procwright import asyncio_subprocess as ours

    class Loop(asyncio.SelectorEventLoop):
        async def subprocess_exec(self, protocol_factory, program, *args, **options):
            return await ours.subprocess_exec(self, protocol_factory, program, *args, **options)

        async def subprocess_shell(self, protocol_factory, cmd, **options):
            return await ours.subprocess_shell(self, protocol_factory, cmd, **options)

    for module in (asyncio, asyncio.subprocess):
        module.create_subprocess_exec = ours.create_subprocess_exec
        module.create_subprocess_shell = ours.create_subprocess_shell

    class OnTheCore(theirs.SubprocessMixin, utils.TestCase):
        def setUp(self):
            super().setUp()
            self.loop = Loop()
            self.set_event_loop(self.loop)

    for name, reason in {**LEFT_OUT, **CLASSES_LEFT_OUT}.items():
        print(f"left out: {name}: {reason}")
    names = unittest.TestLoader().getTestCaseNames(OnTheCore)
    wanted = [name for name in names if name in (sys.argv[1:] or names) and name not in LEFT_OUT]
    # Some race the clock, and a machine that does much else may be slower: those have two tries
    # more.
    for _ in range(3):
        suite = unittest.TestSuite(OnTheCore(name) for name in wanted)
        outcome = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
        if outcome.testsRun < len(wanted) or not wanted:
            return 1
        failed = [test for test, _ in (*outcome.failures, *outcome.errors)]
        wanted = [test._testMethodName for test in failed]
        if not wanted:
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
