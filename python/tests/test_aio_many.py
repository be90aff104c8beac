"""`aio.map` and `aio.pipeline` on asyncio, asyncio with uvloop, and trio."""

from __future__ import annotations

import errno
import gc
import os
import warnings

import pytest
from conftest import is_alive

import procwright

anyio = pytest.importorskip("anyio")
from loops import CancelsAt, cancelled_once, descendants  # noqa: E402

from procwright import aio  # noqa: E402


def test_map(on):
    async def main():
        commands = [["sh", "-c", f"echo {number}; exit {number % 2}"] for number in range(20)]
        found = {}
        async for ended in aio.map(commands, parallel=3, text=True):
            found[ended.index] = ended.stdout, ended.returncode
        assert found == {number: (f"{number}\n", number % 2) for number in range(20)}
        async with aio.map(commands, ordered=True) as running:
            assert [ended.index async for ended in running] == list(range(20))
            assert running.progress.failed == 10
        assert (await aio.map(commands).wait()).succeeded == 10
        with pytest.raises(procwright.InvalidValue):
            aio.map(["ls", "-l"])

    on(main)


def test_a_cancelled_step_of_a_map_loses_nothing(on, tmp_path):
    go = tmp_path / "go"

    async def main():
        line = f"until test -e {go}; do sleep 0.01; done; echo said"
        async with aio.map([line, "echo more"], shell=True, ordered=True, text=True) as running:
            for _ in range(3):
                with anyio.move_on_after(0.02) as scope:
                    await anext(running)
                assert scope.cancelled_caught
            go.touch()
            assert [ended.stdout async for ended in running] == ["said\n", "more\n"]

    on(main)


def test_what_ends_a_map(on, tmp_path, monkeypatch):
    monkeypatch.setenv("PROCWRIGHT_TEST_OF", str(os.getpid()))

    def failing():
        yield ["true"]
        raise ZeroDivisionError

    async def main():
        with pytest.raises(ZeroDivisionError):
            await aio.map(failing(), parallel=1).wait()
        async with (
            cancelled_once(lambda: len(descendants()) >= 2) as scope,
            aio.map([["sleep", "1000"]] * 5, parallel=2) as running,
        ):
            await anext(running)
        assert scope.cancelled_caught
        assert not descendants()
        async with aio.map([["sleep", "1000"]] * 5, parallel=2) as running:
            running.stop()
        assert not descendants()
        reasons, seconds = [], 0.05
        # The deadline may come before a program.
        while not reasons:
            running = aio.map([["sleep", "1000"]], deadline=seconds)
            reasons = [one.result.reason async for one in running if one.result is not None]
            seconds *= 2
        assert reasons == ["timeout"]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        on(main)


def test_one_at_a_time_waits_for_a_result_of_a_map(on):
    async def main():
        running = aio.map([["sleep", "1000"]])
        steps = []

        async def waits():
            steps.append("waits")
            with pytest.raises(StopAsyncIteration):
                await anext(running)
            steps.append("over")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(waits)
            while running._next is None:
                await anyio.sleep(0.01)
            with pytest.raises(RuntimeError, match="waited for already"):
                await anext(running)
            assert steps == ["waits"]
            # It wakes who waits.
            await running.aclose()
        assert steps == ["waits", "over"]

    on(main)


def test_a_map_that_is_left_behind_ends(on):
    async def main():
        running = aio.map([["sleep", "1000"]])
        with anyio.move_on_after(0.05) as scope:
            await anext(running)
        assert scope.cancelled_caught

    def leaves():
        on(main)
        gc.collect()

    with pytest.warns(ResourceWarning, match="the end of a map came early"):
        leaves()


def test_pipeline(on):
    async def main():
        result = await aio.pipeline(["yes"], ["head", "-2"], text=True)
        assert result.stdout == "y\ny\n"
        with pytest.raises(procwright.CalledProcessError) as raised:
            await aio.pipeline(["true"], ["false"], check=True)
        assert raised.value.result.returncode == 1
        with pytest.raises(procwright.InvalidValue, match="cancel"):
            await aio.pipeline(["true"], cancel=1)
        cancel = procwright.Cancel()
        async with anyio.create_task_group() as tasks:

            async def waits():
                with pytest.raises(procwright.Cancelled):
                    await aio.pipeline(["sleep", "1000"], ["cat"], cancel=cancel)

            tasks.start_soon(waits)
            await anyio.sleep(0.05)
            cancel.cancel()

    on(main)


def test_a_function_in_a_pipeline(on, tmp_path):
    begun, ended = tmp_path / "begun", []

    def upper(file):
        return [file.read().upper()]

    def reads(file):
        begun.touch()
        try:
            yield from file
        except OSError as error:
            ended.append(error.errno)
            raise

    async def main():
        result = await aio.pipeline(["echo", "a"], upper, ["cat"], text=True)
        assert result.stdout == "A\n"
        async with cancelled_once(begun.exists) as scope:
            await aio.pipeline(["sleep", "1000"], reads, ["cat"])
        assert scope.cancelled_caught
        assert ended == [errno.ECANCELED]

    on(main)


def test_a_cancelled_pipeline_is_stopped(on, tmp_path):
    pid = tmp_path / "pid"
    line = f"echo said; echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1000"

    async def main():
        caught = []
        async with cancelled_once(pid.exists) as scope:
            try:
                await aio.pipeline(["sh", "-c", line], ["cat"])
            except anyio.get_cancelled_exc_class() as error:
                caught.append(error)
                raise
        assert scope.cancelled_caught
        assert not is_alive(int(pid.read_text()))
        if hasattr(caught[0], "result"):
            assert isinstance(caught[0].result, procwright.PipelineResult)

    on(main)


def test_a_pipeline_that_is_cancelled_at_once(on):
    async def main():
        with anyio.CancelScope() as scope:
            await CancelsAt(aio.pipeline(["sleep", "1000"], ["cat"]), scope.cancel, 1)
        assert scope.cancelled_caught

    on(main)
