"""`aio.run` on asyncio, asyncio with uvloop, and trio."""

from __future__ import annotations

import errno
import logging
import os
import signal
import threading

import pytest
from conftest import is_alive

import procwright

anyio = pytest.importorskip("anyio")
from loops import LONG, NoDescriptors, descendants  # noqa: E402

from procwright import _held, aio, queue  # noqa: E402


def test_run(on):
    async def main():
        result = await aio.run(["sh", "-c", "cat; echo err >&2; exit 3"], input=b"in")
        assert (result.stdout, result.stderr, result.returncode) == (b"in", b"err\n", 3)
        assert result.reason == "finished"
        assert result.stdout_info.complete

    on(main)


def test_codes_that_are_no_failure(on):
    async def main():
        # On the loop, and on a thread.
        for more in ({}, {"tee": {"stderr": True}}):
            result = await aio.run(["sh", "-c", "exit 1"], check=True, ok_codes=[1], **more)
            assert (result.ok, result.returncode) == (True, 1)
            with pytest.raises(procwright.CalledProcessError):
                await aio.run(["sh", "-c", "exit 2"], check=True, ok_codes=[1], **more)
        async with aio.spawn(["sh", "-c", "exit 1"], ok_codes=[1]) as child:
            assert (await child.result()).ok
        assert (await aio.cmd("false", ok_codes=[1]).run(check=True)).ok

    on(main)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"timeout": -1}, procwright.TimeoutExpired),
        ({"timeout": 0.05}, procwright.TimeoutExpired),
        ({"idle_timeout": 0.05}, procwright.IdleTimeout),
        ({"timeout": "x"}, procwright.InvalidValue),
        ({"no_such": 1}, TypeError),
        ({"overflow": "spill"}, TypeError),
        ({"cwd": "/no/such"}, FileNotFoundError),
        ({"stdin": "fails"}, ZeroDivisionError),
        ({"tee": True, "stdout": None, "stderr": None}, procwright.InvalidValue),
    ],
    ids=lambda value: None if isinstance(value, type) else ",".join(value),
)
def test_errors_are_those_of_run(on, options, error, child):
    def told(raised):
        # Each call has its own name.
        text = str(raised.value).split("\n")[0].replace("aio.run()", "run()")
        return raised.type, text if raised.type is procwright.InvalidValue else text[:20]

    def given():
        return {**options, "stdin": (1 / 0 for _ in "x")} if "stdin" in options else options

    with pytest.raises(error) as expected:
        procwright.run([child, "sleep-forever"], **given())

    async def main():
        with pytest.raises(error) as raised:
            await aio.run([child, "sleep-forever"], **given())
        assert told(raised) == told(expected)

    on(main)


def test_check_and_text(on):
    async def main():
        with pytest.raises(procwright.CalledProcessError) as raised:
            await aio.run("echo ü; exit 4", shell=True, text=True, check=True)
        assert raised.value.result.stdout == "ü\n"
        result = await aio.run(["sleep", "1000"], timeout=0.01, on_timeout="return")
        assert result.reason == "timeout"

    on(main)


def test_what_has_a_thread(on, tmp_path):
    async def main():
        lines = []
        result = await aio.run(
            ["sh", "-c", "echo 1; echo 2 >&2"],
            text=True,
            on_line=lines.append,
            keep_full=tmp_path / "all",
            merged=True,
            limit=100,
        )
        assert sorted(lines) == ["1\n", "2\n"]
        assert (tmp_path / "all").read_text() == "1\n"
        pieces = sorted((one.stream, one.data) for one in result.merged)
        assert pieces == [("stderr", "2\n"), ("stdout", "1\n")]
        assert (await aio.run(["seq", "100000"], limit=10)).stdout == b"1\n2\n30000\n"

    on(main)


def test_a_cancel_of_procwright(on, child):
    async def runs(options):
        with pytest.raises(procwright.Cancelled):
            await aio.run([child, "sleep-forever"], **options)

    async def main():
        for more in ({}, {"on_line": print}):
            cancel = procwright.Cancel()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(runs, {"cancel": cancel, **more})
                await anyio.sleep(0.05)
                cancel.cancel()
            await runs({"cancel": cancel, **more})

    on(main)


def test_it_returns_at_the_exit_though_the_output_is_held(on):
    async def main():
        result = await aio.run(["sh", "-c", "sleep 1000 & echo hi"], until="exit")
        assert result.stdout == b"hi\n"
        (holder,) = result.stdout_info.held_by
        os.kill(holder.pid, signal.SIGKILL)

    on(main)


def test_who_holds_the_output_is_told(on, caplog):
    told = procwright.Cancel()

    class Cancels(logging.Handler):
        def emit(self, record):
            told.cancel()

    async def main():
        # Over once what it leaves behind has become `sleep`.
        line = 'sleep 1000 & until [ "$(cat /proc/$!/comm)" = sleep ]; do :; done'
        with pytest.raises(procwright.Cancelled):
            await aio.run(line, shell=True, cancel=told)

    handler = Cancels()
    logger = logging.getLogger("procwright")
    logger.addHandler(handler)
    try:
        with caplog.at_level(logging.WARNING):
            on(main)
    finally:
        logger.removeHandler(handler)
    (record,) = [one for one in caplog.records if one.name == "procwright"]
    assert "stdout and stderr are held open by sleep" in record.message


def test_many_at_once(on):
    async def main():
        limiter = anyio.CapacityLimiter(20)
        codes = []

        async def one(number):
            async with limiter:
                result = await aio.run(["sh", "-c", f"echo {number}; exit {number % 3}"])
                assert result.stdout == b"%d\n" % number
                codes.append(result.returncode)

        async with anyio.create_task_group() as tasks:
            for number in range(60):
                tasks.start_soon(one, number)
        assert sorted(codes) == sorted(number % 3 for number in range(60))

    on(main)


class Wrapped:
    """A source with an attribute of the name that our own streams have had."""

    def __init__(self, stream):
        self._stream = stream
        self._left = [b"whole", b""]

    def read(self, size):
        return self._left.pop(0)


def test_a_wrapper_is_read_itself(on, tmp_path):
    hidden = tmp_path / "hidden"
    hidden.write_bytes(b"wrong")

    async def main():
        with hidden.open("rb") as file:
            assert procwright.run(["cat"], stdin=Wrapped(file)).stdout == b"whole"
            assert (await aio.run(["cat"], stdin=Wrapped(file))).stdout == b"whole"
        async with aio.spawn(["echo", "said"]) as first:
            assert (await aio.run(["cat"], stdin=first.stdout)).stdout == b"said\n"

    on(main)


def test_a_run_without_descriptors_is_stopped(on, monkeypatch):
    monkeypatch.setenv("PROCWRIGHT_TEST_OF", str(os.getpid()))

    async def main():
        with NoDescriptors() as none, anyio.CancelScope() as scope:

            async def cancels():
                while not descendants():
                    await anyio.sleep(0.01)
                none.take()
                scope.cancel()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(cancels)
                await aio.run(["sleep", "1000"])
        assert scope.cancelled_caught
        assert not descendants()

    on(main)


@pytest.mark.parametrize("ends", ["itself", "a cancel"])
def test_nothing_is_told_of_holders_once_the_run_has_returned(on, ends, tmp_path, monkeypatch):
    monkeypatch.setattr(_held, "HELD_AFTER_S", 0.05)
    begun, released = threading.Event(), threading.Event()
    order = []

    class Slow(logging.Handler):
        def emit(self, record):
            assert "held open by" in record.getMessage()
            begun.set()
            released.wait(LONG)
            order.append("told")

    handler = Slow()
    logger = logging.getLogger("procwright")
    logger.addHandler(handler)
    go, pid = tmp_path / "go", tmp_path / "pid"
    line = f"(while [ ! -e {go} ]; do sleep 0.01; done) & echo $! > {pid}"

    async def main():
        async def runs():
            with anyio.CancelScope() as scope:
                scopes.append(scope)
                await aio.run(line, shell=True)
            order.append("returned")

        scopes = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(runs)
            while not begun.is_set():
                await anyio.sleep(0.01)
            if ends == "itself":
                go.touch()
            else:
                scopes[0].cancel()
            while is_alive(int(pid.read_text())):
                await anyio.sleep(0.01)
            # It has nothing to wait for but the one who is told.
            await anyio.sleep(0.2)
            released.set()

    try:
        on(main)
    finally:
        released.set()
        logger.removeHandler(handler)
    assert order == ["told", "returned"]


def test_where_no_thread_can_be_had_it_is_refused_and_the_loop_goes_on(on):
    async def main():
        before = threading.stack_size(1 << 46)
        try:
            with pytest.raises(procwright.SpawnError) as caught:
                await aio.run(["true"], on_line=str)
            assert (caught.value.step, caught.value.errno) == ("thread", errno.EAGAIN)
            assert "no thread can be had" in str(caught.value)
            running = aio.map([["true"]])
            with pytest.raises(OSError, match="no thread can be had"):
                await anext(running)
        finally:
            threading.stack_size(before)
        # Nothing of it was lost.
        assert [ended.ok async for ended in running] == [True]
        # A stop does without.
        child = aio.spawn(["sleep", "1000"])
        threading.stack_size(1 << 46)
        try:
            assert await child.stop() == []
        finally:
            threading.stack_size(before)
        assert await child.wait() == -signal.SIGTERM

    on(main)


@pytest.mark.parametrize("more", ["{}", "{'on_line': print}"], ids=["loop", "thread"])
def test_the_end_of_the_interpreter_stops_a_run(more, script, tmp_path):
    pid = tmp_path / "pid"
    process = script(
        """
import asyncio, os, sys
from procwright import Stop, aio
pid, more = sys.argv[1:]
line = f"trap '' TERM; echo $$ > {pid}.new; mv {pid}.new {pid}; while :; do sleep 0.1; done"
async def begun():
    while not os.path.exists(pid):
        await asyncio.sleep(0.01)
loop = asyncio.new_event_loop()
run = loop.create_task(aio.run(line, shell=True, stop=Stop("TERM", grace=0.3), **eval(more)))
loop.run_until_complete(begun())
""",
        str(pid),
        more,
    )
    process.communicate()
    assert not is_alive(int(pid.read_text()))


def test_several_loops():
    def loop(backend):
        async def main():
            for _ in range(5):
                assert (await aio.run(["echo", "x"])).stdout == b"x\n"

        anyio.run(main, backend=backend)

    threads = [threading.Thread(target=loop, args=("asyncio",)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_names():
    assert set(aio.__all__) <= {*procwright.__all__, *queue.__all__}
    assert procwright.aio is aio
