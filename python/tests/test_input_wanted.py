"""`input_wanted`: who asks for it is told that a program waits for input, once for each prompt."""

import asyncio
import os
import queue

import pytest

from procwright import CAPTURE, PIPE, Event, InvalidValue, aio, map, run, spawn

TWO = "printf 'Name: '; read name; printf 'Age of %s: ' \"$name\"; read age; echo"


def test_a_child_is_answered_prompt_by_prompt():
    told: queue.Queue[Event] = queue.Queue()
    with spawn(
        ["sh", "-c", TWO], pty=True, stdin=PIPE, on_event=told.put, input_wanted=True
    ) as child:
        for prompt, answer in (("Name: ", b"Ada\n"), ("Age of Ada: ", b"36\n")):
            event = told.get()
            assert (event.kind, event.prompt) == ("input_wanted", prompt)
            assert event.waiting is not None
            assert (event.waiting.kind, event.waiting.pid) == ("input", child.pid)
            assert event.waiting.terminal
            child.stdin.write(answer)
            child.stdin.flush()
        assert child.wait() == 0
    assert told.empty()


def test_a_run_says_who_waits_and_where():
    theirs, ours = os.pipe()
    events: list[Event] = []

    def answer(event: Event) -> None:
        events.append(event)
        os.write(ours, b"yes\n")

    with open(theirs, "rb") as stdin, open(ours, "wb"):
        result = run(
            ["sh", "-c", "printf 'Go on? ' >&2; read answer; echo $answer"],
            stdin=stdin,
            on_event=answer,
            input_wanted=True,
        )
    assert result.stdout == b"yes\n"
    [event] = events
    assert event.prompt == "Go on? "
    assert " wants input: sh (" in str(event)
    assert "waits for input on stdin, pipe " in str(event)


def test_an_awaited_run_and_child_tell_it():
    async def main() -> None:
        loop = asyncio.get_running_loop()
        told: asyncio.Queue[Event] = asyncio.Queue()

        def tell(event: Event) -> None:
            loop.call_soon_threadsafe(told.put_nowait, event)

        options = {"on_event": tell, "input_wanted": True}
        async with aio.spawn(["sh", "-c", TWO], stdin=PIPE, **options) as child:
            for prompt in ("Name: ", "Name: Age of Ada: "):
                event = await told.get()
                assert (event.kind, event.prompt) == ("input_wanted", prompt)
                await child.stdin.write(b"Ada\n")
            await child.wait()
        theirs, ours = os.pipe()
        with open(theirs, "rb") as stdin, open(ours, "wb", buffering=0) as writer:
            done = asyncio.create_task(
                aio.run(["head", "-c", "1"], stdin=stdin, stdout=CAPTURE, **options)
            )
            event = await told.get()
            assert event.prompt is None
            writer.write(b"x")
            assert (await done).stdout == b"x"

    asyncio.run(main())


def test_without_it_nothing_is_told():
    events: list[Event] = []
    theirs, ours = os.pipe()
    with open(theirs, "rb") as stdin, open(ours, "wb"):
        result = run(["cat"], stdin=stdin, on_event=events.append, timeout=0.8, on_timeout="return")
    assert result.reason == "timeout"
    assert events == []


def test_where_it_has_no_place():
    with pytest.raises(InvalidValue, match="input_wanted"):
        spawn(["true"], input_wanted=True, detach=True, stdout=None, stderr=None)
    with pytest.raises(TypeError, match="input_wanted"):
        list(map([["true"]], input_wanted=True))
