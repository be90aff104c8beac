"""`aio.spawn_pipeline` on asyncio, asyncio with uvloop, and trio."""

from __future__ import annotations

import signal

import pytest
from conftest import is_alive

import procwright
from procwright import PIPE, Overflow

anyio = pytest.importorskip("anyio")

from procwright import aio  # noqa: E402


def judged(result):
    return [stage.judgement for stage in result.stages]


def test_a_talk_with_all_stages(on):
    async def main():
        async with aio.spawn_pipeline(["cat"], ["cat"], stdin=PIPE, text=True) as child:
            for said in ("pear\n", "äpple\n"):
                await child.stdin.send(said)
                assert await child.stdout.readline() == said
            assert child.poll() is None
            assert len(child.pids) == 2
            assert child.stderr[0] is not child.stderr[1]
        assert child.returncode == 0
        assert judged(await child.result()) == ["success", "success"]
        assert "procwright.aio.PipelineChild" in repr(child)

    on(main)


def test_communicate_and_result(on):
    async def main():
        data = b"x" * 1_000_000
        child = await aio.spawn_pipeline(["cat"], ["cat"], stdin=PIPE)
        assert await child.communicate(data) == (data, b"")
        assert (await child.result()).stdout == data
        stages = ["yes"], ["sh", "-c", "read x; echo why >&2; exit 3"]
        child = aio.spawn_pipeline(*stages, text=True)
        result = await child.result()
        assert (result.ok, result.stderr, await child.wait()) == (False, "why\n", 3)
        assert judged(result) == ["collateral", "failed"]

    on(main)


def test_a_wait_says_which_stages_have_not_ended_and_a_cancelled_one_changes_nothing(on):
    async def main():
        async with aio.spawn_pipeline(["sleep", "1000"], ["cat"], stop="KILL") as child:
            for call in (child.wait, child.communicate, child.result):
                with pytest.raises(procwright.WaitTimeout, match="stage 1 of 2 has not ended"):
                    await call(timeout=0.05)
                with anyio.move_on_after(0.02) as scope:
                    await call()
                assert scope.cancelled_caught
            assert all(is_alive(pid) for pid in child.pids)
            assert await child.stop() == []
        assert not any(is_alive(pid) for pid in child.pids)

    on(main)


def test_a_cancelled_block_leaves_nothing_running(on):
    async def main():
        child = None
        seconds = 0.05
        # Its time may be over before there is a child.
        while child is None:
            with anyio.move_on_after(seconds) as scope:
                async with aio.spawn_pipeline(["sleep", "1000"], ["sleep", "1000"]) as child:
                    await child.wait()
            assert scope.cancelled_caught
            seconds *= 2
        assert not any(is_alive(pid) for pid in child.pids)
        assert (await child.result()).stages[0].returncode == -signal.SIGTERM

    on(main)


def test_limits_and_stalls(on):
    async def main():
        child = aio.spawn_pipeline(["sleep", "1000"], ["cat"], timeout=0.2)
        for call in (child.wait, child.communicate):
            with pytest.raises(procwright.TimeoutExpired, match="stage 1 of 2 held up the rest"):
                await call()
        with pytest.raises(procwright.TimeoutExpired):
            async with aio.spawn_pipeline(["sleep", "1000"], timeout=0.1):
                pass
        overflow = Overflow(memory=65536, disk=0)
        async with aio.spawn_pipeline(
            ["yes"], ["cat"], overflow=overflow, stall_after=0.2
        ) as child:
            with pytest.raises(procwright.Stalled, match="cat cannot go on"):
                await child.wait()
            await child.stop()
        child = aio.spawn_pipeline(["sleep", "1000"], ["cat"])
        child.kill()
        assert await child.wait() < 0

    on(main)


def test_other_tasks_go_on(on):
    async def main():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await anyio.sleep(0)
                ticks += 1

        async with anyio.create_task_group() as group:
            group.start_soon(tick)
            async with aio.spawn_pipeline(["head", "-c", "3000000", "/dev/zero"], ["cat"]) as child:
                assert len((await child.communicate())[0]) == 3_000_000
            group.cancel_scope.cancel()
        assert ticks > 0

    on(main)


def test_what_is_wrong_is_told(on):
    async def main():
        with pytest.raises(procwright.InvalidValue, match=r"spawn_pipeline\(\) has no such"):
            aio.spawn_pipeline(["cat"], check=True)
        with pytest.raises(procwright.SpawnError, match="stage 2 of 2, no-such-program"):
            aio.spawn_pipeline(["cat"], ["no-such-program"])
        child = aio.spawn_pipeline(["true"])
        with pytest.raises(TypeError, match="async with"):
            child.__enter__()
        with pytest.raises(TypeError, match="async for line in"):
            iter(child)
        with pytest.raises(AttributeError, match=r"use \(await child.result\(\)\).stdout_info"):
            assert child.stdout_info
        await child.wait()

    on(main)


def test_a_default_that_it_is_given_takes_nothing_back_from_a_pipeline(on):
    async def main():
        both = (aio.cmd("sleep", "1000") | aio.cmd("cat")).with_options(timeout=0.01, stop="KILL")
        child = aio.spawn_pipeline(both, timeout=None)
        with pytest.raises(procwright.TimeoutExpired):
            await child.wait()

    on(main)
