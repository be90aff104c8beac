"""What people type from habit into `procwright.aio` works, or its error says what to type."""

from __future__ import annotations

import signal

import pytest

import procwright
from procwright import PIPE, InvalidValue, _missing, _names

anyio = pytest.importorskip("anyio")
from procwright import aio  # noqa: E402


def on(main):
    return anyio.run(main)


def test_unknown_parameters_are_told_as_those_of_run():
    async def main():
        for name in ("capture_stdout", "nonsense"):
            with pytest.raises(InvalidValue) as caught:
                await aio.run(["true"], **{name: True})
            with pytest.raises(InvalidValue) as sync:
                procwright.run(["true"], **{name: True})
            assert str(caught.value) == str(sync.value).replace(" run()", " aio.run()", 1)
            assert f"it is {name}" not in str(caught.value)
        with pytest.raises(InvalidValue, match="shell names the shell"):
            await aio.run("exit", shell=True, executable="/bin/bash")

    on(main)


def test_a_nursery_is_told_what_to_start():
    async def main():
        async with anyio.create_task_group() as tasks:
            with pytest.raises(InvalidValue, match=r"task_status\.started\(child\)$") as caught:
                await aio.run(["true"], task_status=anyio.TASK_STATUS_IGNORED)
            assert "`async with aio.spawn(...) as child:`" in str(caught.value)
            with pytest.raises(InvalidValue, match="aio\\.spawn"):
                await tasks.start(aio.run, ["true"])

    on(main)


def test_callbacks_and_sources_that_have_to_be_awaited_are_refused():
    async def numbers():
        yield b"1"

    async def called(line):
        raise AssertionError

    async def main():
        for name in ("on_line", "on_stdout_line"):
            with pytest.raises(InvalidValue, match=f"^{name} is .*async for line in child.stdout"):
                await aio.run(["true"], **{name: called})
        with pytest.raises(InvalidValue, match=r"^on_stdout_line is .*nobody would await it"):
            aio.spawn(["true"], on_stdout_line=called)
        with pytest.raises(InvalidValue, match=r"^stdin is .*await child.stdin.send"):
            await aio.run(["cat"], stdin=numbers())
        async with aio.spawn(["cat"], stdin=PIPE) as child:
            with pytest.raises(InvalidValue, match=r"^tee is .*write\(\) has to be awaited"):
                await aio.run(["true"], tee=child.stdin)

    on(main)


@pytest.mark.parametrize("text", [False, True])
def test_attributes_of_others_are_told(text):
    async def main():
        async with aio.spawn(["cat"], stdin=PIPE, text=text) as child:
            things = [(child, _missing.AIO_CHILD), (child.process, _missing.PROCESS)]
            things += [(one, _missing.AIO_STREAM) for one in (child.stdin, child.stdout)]
            for thing, hints in things:
                name = type(thing).__name__
                for asked, hint in hints.items():
                    if hasattr(type(thing), asked):
                        assert hints is _missing.AIO_STREAM, asked
                        continue
                    with pytest.raises(AttributeError) as caught:
                        getattr(thing, asked)
                    assert (
                        str(caught.value) == f"{name!r} object has no attribute {asked!r}: {hint}"
                    )
            with pytest.raises(AttributeError, match=r"'logfile' to set: .*tee=sys\.stdout"):
                child.logfile = None
            async with aio.spawn_pipeline(["true"], ["true"]) as both:
                with pytest.raises(AttributeError, match=r"'mine' to set: .*keep it beside"):
                    both.mine = None
            for block in (lambda: iter(child), lambda: aiter(child), lambda: child.__enter__()):
                with pytest.raises(TypeError, match="async "):
                    block()

    on(main)


def test_names_of_others_are_told():
    for name, hint in {**_names.MODULE, **_names.AIO}.items():
        with pytest.raises(ImportError, match=f"^module 'procwright.aio' .* '{name}': use "):
            exec(f"from procwright.aio import {name}")
        with pytest.raises(
            AttributeError, match=r"^module 'procwright.aio' has no attribute"
        ) as told:
            getattr(aio, name)
        assert str(told.value).endswith(f": use {hint}")
    with pytest.raises(AttributeError, match=r": use procwright.Stop$"):
        aio.Stop  # noqa: B018


@pytest.mark.parametrize("text", [False, True])
def test_all_lines_at_once(text):
    async def main():
        line = "printf 'a\\r\\nb\\rc\\n\\nd'"
        async with aio.spawn(line, shell=True, text=text) as child:
            found = await child.stdout.readlines()
            wanted = ["a\r\n", "b\rc\n", "\n", "d"]
            assert found == (wanted if text else [one.encode() for one in wanted])
            assert await child.stdout.readlines() == []

    on(main)


def test_what_was_caught_in_the_block_is_not_raised_by_its_end(child):
    async def main():
        async with aio.spawn([child, "sleep-forever"], timeout=0.05) as it:
            with pytest.raises(procwright.TimeoutExpired):
                await it.wait()
        with pytest.raises(procwright.TimeoutExpired):
            async with aio.spawn([child, "sleep-forever"], timeout=0.05) as it:
                assert await it.stdout.read() == b""

    on(main)


@pytest.mark.parametrize("text", [False, True])
def test_a_stream_is_iterated_over_by_awaiting(text):
    async def main():
        async with aio.spawn(["true"], text=text) as child:
            for stream in (child.stdout, child.stderr):
                with pytest.raises(TypeError, match="async for line in"):
                    iter(stream)

    on(main)


def test_a_child_is_closed_as_a_process_of_anyio():
    async def main():
        async with aio.spawn(["cat"], stdin=PIPE) as child:
            await child.aclose()
            assert child.returncode == 0
            assert child.stdin.closed
            assert child.stdout.closed
            assert child.stderr.closed
            # Any number of times.
            await child.aclose()
        talks = aio.spawn(["yes"])
        await talks.aclose()
        assert talks.returncode == -signal.SIGPIPE
        both = aio.spawn(["yes"], merged=True)
        await both.aclose()
        assert both.returncode == -signal.SIGPIPE
        sleeps = aio.spawn(["sleep", "1000"])
        with anyio.move_on_after(0.1) as scope:
            await sleeps.aclose()
        assert scope.cancelled_caught
        assert sleeps.returncode == -signal.SIGTERM

    on(main)


def test_what_has_no_such_argument_says_what_to_type(on):
    async def main():
        with pytest.raises(InvalidValue, match=r"pass one list: aio\.run\(\['ls', '-l'\]\)$"):
            await aio.run("ls", "-l")
        with pytest.raises(InvalidValue, match=r"pass one list: aio\.spawn\(\['ls', '-l'\]\)$"):
            aio.spawn("ls", "-l")
        async with aio.spawn(["sleep", "1000"]) as child:
            with pytest.raises(InvalidValue, match=r'pass Stop\("TERM", grace=seconds\)'):
                await child.stop(grace=1)
            assert await child.stop("KILL") == []
        async with aio.spawn(["echo", "a"], merged=True) as both:
            with pytest.raises(InvalidValue, match=r"iterate over child\.merged first"):
                await both.result()
            assert [one.line async for one in both.merged] == [b"a\n"]
            assert (await both.result()).ok

    on(main)
