"""A child raises for its failure, and reads nothing for that."""

from __future__ import annotations

import asyncio

import anyio
import pytest

import procwright
from procwright import PIPE, CalledProcessError, InvalidValue, aio, spawn, spawn_pipeline
from procwright.testing import Fake


def test_of_a_child(child):
    with spawn([child, "says", "out:said\\n", "exit:3"], text=True) as it:
        assert it.wait() == 3
        for _ in range(2):
            with pytest.raises(CalledProcessError, match="exited with code 3") as caught:
                it.check_returncode()
        assert caught.value.returncode == 3
        assert caught.value.result.stdout is None
        # It has taken nothing.
        assert it.stdout.read() == "said\n"
    assert it.result().returncode == 3
    it = spawn([child, "exit", "2"], ok_codes=[2])
    it.wait()
    it.check_returncode()


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("start", [spawn, aio.spawn])
def test_what_communicate_has_read_is_in_the_error(child, start, text):
    it = start([child, "says", "out:said\n", "err:why\n", "exit:3"], text=text)
    talk = it.communicate()
    out, err = asyncio.run(awaited(talk)) if start is aio.spawn else talk
    with pytest.raises(CalledProcessError) as caught:
        it.check_returncode()
    assert (caught.value.stdout, caught.value.stderr) == (out, err)
    assert len(out) == len("said\n")
    assert len(err) == len("why\n")


async def awaited(talk):
    return await talk


@pytest.mark.parametrize("start", [spawn, spawn_pipeline])
def test_the_end_is_waited_for(child, start, when_asleep):
    # Its outputs are at their ends long before it is.
    line = "exec >&- 2>&-; read line; exit 3"
    shell = ["sh", "-c", line]
    it = start(shell, stdin=PIPE) if start is spawn else start(shell, [child, "cat"], stdin=PIPE)
    assert it.stdout.read() == b""
    when_asleep(lambda: it.stdin.write(b"end\n"))
    with pytest.raises(CalledProcessError, match="code 3"):
        it.check_returncode()
    with it:
        pass


def test_it_waits_for_one_that_ends_well(child):
    for _ in range(20):
        with spawn([child, "says", "out:said\n"]) as it:
            assert it.stdout.read() == b"said\n"
            it.check_returncode()


@pytest.mark.parametrize("start", [aio.spawn, aio.spawn_pipeline])
def test_of_what_goes_on_it_is_refused_on_a_loop(child, start):
    argv = [child, "cat"]
    it = start(argv, stdin=PIPE) if start is aio.spawn else start(argv, argv, stdin=PIPE)
    told = r"cat.* has not ended, .*await child\.wait\(\) first"
    with pytest.raises(InvalidValue, match=told):
        it.check_returncode()
    asyncio.run(ended(it))
    it.check_returncode()


async def ended(it):
    async with it:
        pass


def test_what_it_was_stopped_for_comes_first(child):
    it = spawn([child, "sleep-forever"], timeout=0.05)
    with pytest.raises(procwright.TimeoutExpired):
        it.wait()
    with pytest.raises(procwright.TimeoutExpired):
        it.check_returncode()
    it = spawn([child, "sleep-forever"], timeout=0.05, on_timeout="return")
    it.wait()
    with pytest.raises(CalledProcessError):
        it.check_returncode()
    it = spawn([child, "sleep-forever"])
    it.stop()
    with pytest.raises(CalledProcessError):
        it.check_returncode()
    it = spawn_pipeline([child, "sleep-forever"], [child, "cat"], timeout=0.05)
    with pytest.raises(procwright.TimeoutExpired):
        it.wait()
    with pytest.raises(procwright.TimeoutExpired):
        it.check_returncode()


def test_what_a_callback_has_raised_comes_first(child):
    def fails(line):
        raise KeyError(line)

    it = spawn([child, "says", "out:a\\n", "exit:1"], text=True, on_stdout_line=fails)
    with pytest.raises(KeyError):
        it.communicate()
    with pytest.raises(CalledProcessError):
        it.check_returncode()


def test_of_a_pipeline_that_was_spawned(child):
    with spawn_pipeline([child, "says", "out:said\\n", "exit:3"], [child, "cat"]) as it:
        assert it.wait() == 3
        with pytest.raises(CalledProcessError) as caught:
            it.check_returncode()
        assert [one.returncode for one in caught.value.result.stages] == [3, 0]
        assert it.stdout.read() == b"said\n"
    with spawn_pipeline([child, "echo", "a"], [child, "cat"]) as it:
        it.wait()
        it.check_returncode()


def test_a_task_fails_while_another_reads(child):
    async def serve(argv, *, task_status):
        async with aio.spawn(argv, stdin=PIPE) as it:
            task_status.started(it)
            await it.wait()
        it.check_returncode()

    async def serve_joined(argv, *, task_status):
        async with aio.spawn_pipeline(argv, [child, "cat"], stdin=PIPE) as it:
            task_status.started(it)
            await it.wait()
        it.check_returncode()

    async def main(served):
        async with anyio.create_task_group() as tasks:
            it = await tasks.start(served, [child, "says", "out:said\\n", "ack", "exit:4"])
            assert await it.stdout.readline() == b"said\n"
            await it.stdin.send(b"\n")
            await it.stdout.read()
            await anyio.sleep_forever()

    for served in (serve, serve_joined):
        with pytest.raises(BaseExceptionGroup) as caught:
            asyncio.run(main(served))
        assert caught.group_contains(CalledProcessError, match="code 4")


def test_of_a_program_that_a_test_plays():
    with Fake() as fake:
        fake.register(["serve"], returncode=5, stdout="out")
        with spawn(["serve"]) as it:
            it.wait()
            with pytest.raises(CalledProcessError) as caught:
                it.check_returncode()
            assert caught.value.returncode == 5
