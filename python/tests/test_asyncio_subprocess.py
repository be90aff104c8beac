"""`procwright.asyncio_subprocess`: asyncio.subprocess on the core, by a changed import."""

from __future__ import annotations

import asyncio
import gc
import os
import pathlib
import signal
import subprocess
import sys
import threading

import pytest
from conftest import comes_back, descriptors, is_alive

from procwright import asyncio_subprocess as ours
from procwright.asyncio_subprocess import DEVNULL, PIPE, STDOUT

LOOPS = ["asyncio", "uvloop"]


@pytest.fixture(params=LOOPS)
def on(request):
    """Runs a coroutine on a loop of asyncio's."""
    if request.param == "asyncio":
        return asyncio.run
    uvloop = pytest.importorskip("uvloop")

    def run(main):
        loop = uvloop.new_event_loop()
        try:
            return loop.run_until_complete(main)
        finally:
            loop.close()

    return run


def test_what_comes_is_of_asyncio(on):
    async def main():
        process = await ours.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE, stderr=PIPE)
        assert isinstance(process, asyncio.subprocess.Process)
        assert isinstance(process.stdin, asyncio.StreamWriter)
        assert isinstance(process.stdout, asyncio.StreamReader)
        assert process.returncode is None
        assert is_alive(process.pid)
        process.stdin.write(b"one\n")
        await process.stdin.drain()
        assert await process.stdout.readline() == b"one\n"
        assert await process.communicate(b"two") == (b"two", b"")
        assert await process.wait() == process.returncode == 0
        with pytest.raises(ProcessLookupError):
            process.kill()

    on(main())


def test_where_the_streams_go(on, tmp_path):
    async def main():
        process = await ours.create_subprocess_shell(
            "echo out; echo err >&2; exit 3", PIPE, PIPE, STDOUT
        )
        assert await process.communicate() == (b"out\nerr\n", None)
        assert process.returncode == 3
        with (tmp_path / "said").open("wb") as file:
            process = await ours.create_subprocess_exec("echo", "x", stdin=DEVNULL, stdout=file)
            assert (process.stdin, process.stdout, process.stderr) == (None, None, None)
            assert await process.wait() == 0
        assert (tmp_path / "said").read_bytes() == b"x\n"

    on(main())


def test_much_in_both_directions(on):
    async def main():
        data = os.urandom(5_000_000)
        process = await ours.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
        assert await process.communicate(data) == (data, None)

    on(main())


def test_who_writes_more_than_is_read_waits(on, tmp_path):
    gate = tmp_path / "gate"
    # A cat that reads at once may take all that waits between two looks of this test.
    line = 'until [ -e "$0" ]; do sleep 0.01; done; exec cat'

    async def main():
        process = await ours.create_subprocess_exec("sh", "-c", line, gate, stdin=PIPE, stdout=PIPE)
        transport = process.stdin.transport
        low, high = transport.get_write_buffer_limits()
        assert high > low
        sent = 0
        while transport.get_write_buffer_size() <= high:
            process.stdin.write(bytes(65536))
            sent += 65536
            await asyncio.sleep(0)
        drained = asyncio.ensure_future(process.stdin.drain())
        await asyncio.sleep(0)
        assert not drained.done()
        gate.touch()
        process.stdin.close()
        assert len(await process.stdout.read()) == sent
        await drained
        assert await process.wait() == 0

    on(main())


def test_a_program_that_reads_no_more(on):
    async def main():
        process = await ours.create_subprocess_shell("exec <&-; echo; exec sleep 1000", PIPE, PIPE)
        await process.stdout.readline()
        process.stdin.write(b"x")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            await process.stdin.drain()
        process.terminate()
        assert await process.communicate() == (b"", None)
        assert process.returncode == -signal.SIGTERM

    on(main())


def test_a_protocol_hears_of_the_end_of_a_program_that_reads_nothing(on):
    async def main():
        loop = asyncio.get_running_loop()

        class Protocol(asyncio.SubprocessProtocol):
            def __init__(self):
                self.lost, self.pipes = loop.create_future(), {}

            def pipe_connection_lost(self, fd, exc):
                self.pipes[fd] = type(exc)

            def connection_lost(self, exc):
                self.lost.set_result(exc)

        transport, protocol = await ours.subprocess_exec(loop, Protocol, "true")
        assert await protocol.lost is None
        assert protocol.pipes == dict.fromkeys(range(3), type(None))
        transport.close()
        # Also who reads no more, while others of it go on; what was to be written is lost.
        shell = "read line; exec <&-; exec sleep 1000"
        transport, protocol = await ours.subprocess_shell(loop, Protocol, shell)
        stdin = transport.get_pipe_transport(0)
        stdin.write(b"line\n" + bytes(1_000_000))
        while not protocol.pipes:
            await asyncio.sleep(0)
        assert protocol.pipes == {0: BrokenPipeError}
        assert stdin.is_closing()
        transport.kill()
        assert await protocol.lost is None
        transport.close()

    on(main())


def test_wait_is_for_the_exit_and_until_for_the_pipes(on):
    async def main():
        line = "sleep 1000 & echo $!"
        process = await ours.create_subprocess_shell(line, stdout=PIPE, until="exit")
        out, _ = await process.communicate()
        holder = int(out)
        assert is_alive(holder)
        os.kill(holder, signal.SIGKILL)
        process = await ours.create_subprocess_shell(line, stdout=PIPE)
        assert await process.wait() == 0
        os.kill(int(await process.stdout.readline()), signal.SIGKILL)
        assert await process.stdout.read() == b""

    on(main())


def test_a_cancelled_start_leaves_nothing(on, tmp_path):
    async def main():
        started = asyncio.ensure_future(ours.create_subprocess_exec("sleep", "1000", stdout=PIPE))
        await asyncio.sleep(0)
        started.cancel()
        with pytest.raises(asyncio.CancelledError):
            await started

    gc.collect()
    before = descriptors()
    on(main())
    gc.collect()
    comes_back(before)


def test_a_loop_that_ends_kills(on):
    async def main():
        process = await ours.create_subprocess_exec("sleep", "1000", stdin=PIPE, stdout=PIPE)
        return process.pid

    def leaves():
        pid = on(main())
        while is_alive(pid):
            gc.collect()

    with pytest.warns(ResourceWarning):
        leaves()


def test_loops_of_other_threads_and_no_thread_a_child():
    async def main():
        processes = [await ours.create_subprocess_exec("cat", stdin=PIPE) for _ in range(5)]
        assert not {one.name for one in threading.enumerate()} & {"waitpid-0"}
        for process in processes:
            process.stdin.close()
        assert [await process.wait() for process in processes] == [0] * 5
        ended.append(True)

    ended = []
    threads = [threading.Thread(target=asyncio.run, args=(main(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ended) == 3


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"text": True}, ValueError),
        ({"universal_newlines": True}, ValueError),
        ({"encoding": "utf-8"}, ValueError),
        ({"errors": ""}, ValueError),
        ({"bufsize": 1}, ValueError),
        ({"shell": True}, ValueError),
        ({"creationflags": 1}, ValueError),
        ({"preexec_fn": print}, TypeError),
        ({"executable": "true"}, TypeError),
        ({"merged": True}, TypeError),
        ({"no_such": 1}, TypeError),
        ({"cwd": "/no/such"}, FileNotFoundError),
        ({"user": "no such user"}, ValueError),
    ],
    ids=lambda value: None if isinstance(value, type) else ",".join(value),
)
def test_what_is_refused(options, error):
    async def main():
        with pytest.raises(error):
            await ours.create_subprocess_exec("true", **options)

    asyncio.run(main())


def test_what_popen_has_may_be_said():
    async def main():
        reader, writer = os.pipe()
        os.set_inheritable(writer, True)
        options = {
            "bufsize": 0,
            "close_fds": False,
            "creationflags": 0,
            "executable": None,
            "pipesize": -1,
            "preexec_fn": None,
            "process_group": None,
            "restore_signals": False,
            "startupinfo": None,
            "umask": -1,
            "user": None,
        }
        line = f"echo said > /dev/fd/{writer}; grep SigIgn /proc/self/status"
        process = await ours.create_subprocess_exec("sh", "-c", line, stdout=PIPE, **options)
        out, _ = await process.communicate()
        ignored = int(out.split()[1], 16)
        assert ignored & 1 << signal.SIGPIPE - 1
        os.close(writer)
        with open(reader, "rb") as file:
            assert file.read() == b"said\n"

    asyncio.run(main())


def test_those_of_cpython():
    """What they leave out is printed; they have their own time limits."""
    path = pathlib.Path(__file__).parent / "cpython_asyncio_subprocess.py"
    done = subprocess.run([sys.executable, str(path)], stdout=PIPE, stderr=STDOUT, text=True)
    if done.returncode == 77:
        pytest.skip(done.stdout)
    print(done.stdout)
    assert done.returncode == 0
