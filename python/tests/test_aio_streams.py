"""The streams of an `aio.Child` on asyncio, asyncio with uvloop, and trio."""

from __future__ import annotations

import codecs
import subprocess

import pytest

import procwright
from procwright import PIPE

anyio = pytest.importorskip("anyio")
from loops import CancelsAt, Turns, has_read  # noqa: E402

from procwright import aio  # noqa: E402


def test_streams_are_those_of_anyio(on):
    from anyio.streams.buffered import BufferedByteReceiveStream
    from anyio.streams.text import TextReceiveStream, TextSendStream

    async def main():
        async with aio.spawn(["cat"], stdin=PIPE) as child:
            assert isinstance(child.stdin, anyio.abc.ByteSendStream)
            assert isinstance(child.stdout, anyio.abc.ByteReceiveStream)
            await TextSendStream(child.stdin).send("grün\nrest")
            assert await TextReceiveStream(child.stdout).receive() == "grün\nrest"
            await child.stdin.send(b"to;there")
            buffered = BufferedByteReceiveStream(child.stdout)
            assert await buffered.receive_until(b";", 100) == b"to"
            assert await buffered.receive_exactly(5) == b"there"
            await child.stdin.aclose()
            with pytest.raises(anyio.EndOfStream):
                await child.stdout.receive()
            with pytest.raises(anyio.EndOfStream):
                await child.stdout.receive()

    on(main)


def test_the_errors_of_anyio(on):
    async def main():
        async with aio.spawn(["cat"], stdin=PIPE) as child:
            async with anyio.create_task_group() as tasks:

                async def is_closed_under():
                    with pytest.raises(anyio.ClosedResourceError) as raised:
                        await child.stdout.receive()
                    assert isinstance(raised.value, procwright.StreamClosed)

                tasks.start_soon(is_closed_under)
                await anyio.wait_all_tasks_blocked()
                with pytest.raises(anyio.BusyResourceError):
                    await child.stdout.receive()
                with pytest.raises(anyio.BusyResourceError):
                    await child.wait_for(b"x")
                await child.stdout.aclose()
            with pytest.raises(anyio.ClosedResourceError):
                await child.stdout.readline()
            with pytest.raises(ValueError, match="max_bytes"):
                await child.stderr.receive(0)
            await child.stdin.aclose()
            with pytest.raises(anyio.ClosedResourceError):
                await child.stdin.send(b"x")
        async with aio.spawn("exec <&-; echo; exec sleep 1000", shell=True, stdin=PIPE) as child:
            await child.stdout.readline()
            with pytest.raises(anyio.BrokenResourceError) as raised:
                await child.stdin.send(b"x")
            assert isinstance(raised.value, BrokenPipeError)
            child.kill()

    on(main)


def test_a_full_pipe(on):
    async def main():
        async with aio.spawn(["sleep", "1000"], stdin=PIPE) as child:
            # Its time may be over before the first byte.
            while not child.stdin.bytes_written:
                with anyio.move_on_after(0.05) as scope:
                    await child.stdin.send(bytes(1 << 20))
                assert scope.cancelled_caught
            assert 0 < child.stdin.bytes_written < 1 << 20
            async with anyio.create_task_group() as tasks:

                async def is_closed_under():
                    with pytest.raises(anyio.ClosedResourceError):
                        await child.stdin.send(bytes(1 << 20))

                tasks.start_soon(is_closed_under)
                await anyio.wait_all_tasks_blocked()
                with pytest.raises(anyio.BusyResourceError):
                    await child.stdin.send(b"x")
                await child.stdin.aclose()
            await child.stop()

    on(main)


def test_lines(on):
    async def main():
        async with aio.spawn(["seq", "3000"]) as child:
            lines = [line async for line in child.stdout]
        assert b"".join(lines) == subprocess.check_output(["seq", "3000"])
        assert len(lines) == 3000
        async with aio.spawn(["printf", r"a\r\nb\nlonger"], text=True) as child:
            found = [one async for one in child.stdout.lines(max_length=4)]
        assert found == ["a", "b", "long", "er"]
        async with aio.spawn("printf 'a;bb;c'", shell=True) as child:
            assert [one async for one in child.stdout.lines(b";")] == [b"a", b"bb", b"c"]
            assert await child.stdout.readline() == b""
        async with aio.spawn("printf 'abc\ndef'", shell=True) as child:
            read = [await child.stdout.readline(2) for _ in range(5)]
            assert read == [b"ab", b"c\n", b"de", b"f", b""]

    on(main)


def test_read(on):
    async def main():
        async with aio.spawn(["seq", "100000"]) as child:
            assert await child.stdout.read(4) == b"1\n2\n"
            rest = await child.stdout.read()
            assert len(rest) == 588_895 - 4
            assert await child.stdout.read() == b""
        options = {"shell": True, "stdin": PIPE}
        async with aio.spawn("printf a; cat; printf b", **options) as child:
            with anyio.move_on_after(0.1) as scope:
                await child.stdout.read()
            assert scope.cancelled_caught
            child.stdin.close()
            assert await child.stdout.read() == b"ab"
        async with aio.spawn("printf ä; cat; printf b", text=True, **options) as child:
            with anyio.move_on_after(0.1) as scope:
                await child.stdout.read()
            assert scope.cancelled_caught
            child.stdin.close()
            assert await child.stdout.read() == "äb"

    on(main)


@pytest.mark.parametrize("method", ["receive", "readline", "read"])
@pytest.mark.parametrize("text", [False, True], ids=["bytes", "text"])
def test_cancelled_reads_lose_nothing(on, method, text):
    async def main():
        pieces, cancelled = [], 0
        async with aio.spawn("seq 5000; sleep 0.05; seq 5000", shell=True, text=text) as child:
            while True:
                with anyio.CancelScope() as scope:
                    try:
                        reading = getattr(child.stdout, method)()
                        piece = await CancelsAt(reading, scope.cancel, 1 if cancelled < 50 else 0)
                    except anyio.EndOfStream:
                        break
                if scope.cancelled_caught:
                    cancelled += 1
                elif piece:
                    pieces.append(piece)
                else:
                    break
        expected = subprocess.check_output(["seq", "5000"], text=text) * 2
        assert type(expected)().join(pieces) == expected
        assert cancelled > 0

    on(main)


def test_a_line_that_does_not_come(on):
    async def main():
        async with aio.spawn("printf half; sleep 1000", shell=True, text=True) as child:
            with pytest.raises(procwright.WaitTimeout, match="no line from stdout"):
                await child.stdout.readline(timeout=0.05)
            assert await child.stdout.receive() == "half"
            await child.stop()

    on(main)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
def test_text(on, encoding, child):
    async def main():
        options = {"encoding": encoding, "stdin": PIPE}
        async with aio.spawn(["cat"], **options) as cat:
            assert codecs.lookup(cat.stdout.encoding) == codecs.lookup(encoding)
            await cat.stdin.write("grün\nzwei\n")
            assert await cat.stdout.readline() == "grün\n"
            assert await cat.stdout.receive() == "zwei\n"
            with pytest.raises(procwright.InvalidValue):
                await cat.stdin.send(b"bytes")
            await cat.stdin.writelines(["a\n", "b\n"])
            await cat.stdin.aclose()
            assert [line async for line in cat.stdout] == ["a\n", "b\n"]
            with pytest.raises(anyio.EndOfStream):
                await cat.stdout.receive()

    on(main)


def test_merged(on):
    # Each line comes when that before it has been read.
    options = {"shell": True, "stdin": PIPE, "merged": True}
    line = "echo a; read next; echo b >&2; read next; echo c"

    async def said(lines, go_on):
        found = []
        async for one in lines:
            found.append((one.stream, one.line))
            if len(found) < 3:
                await go_on()
        return found

    async def main():
        async with aio.spawn(line, text=True, **options) as child:
            found = await said(child.merged, lambda: child.stdin.send("\n"))
        assert found == [("stdout", "a\n"), ("stderr", "b\n"), ("stdout", "c\n")]
        async with aio.spawn(line, **options) as child:
            found = await said(child.merged.lines(), lambda: child.stdin.send(b"\n"))
        assert found == [("stdout", b"a"), ("stderr", b"b"), ("stdout", b"c")]

    on(main)


def test_nobody_holds_up_the_loop(on):
    async def main():
        size = 2_000_000
        line = f"head -c {size} /dev/zero | tr '\\0' '\\n'; cat"
        async with aio.spawn(line, shell=True, stdin=PIPE) as child:
            await has_read(child.stdout, size)
            async with anyio.create_task_group() as tasks:
                turns = Turns(tasks)
                for _ in range(3000):
                    await child.stdout.readline()
                assert turns.number >= 3
                turns.number = 0
                received = 0
                while received < 1_500_000:
                    received += len(await child.stdout.receive())
                assert turns.number >= 3
                tasks.cancel_scope.cancel()

    on(main)


@pytest.mark.parametrize("is_text", [False, True], ids=["bytes", "text"])
@pytest.mark.parametrize("is_merged", [False, True], ids=["lines", "merged"])
def test_long_lines_hold_up_nobody(on, is_merged, is_text):
    async def main():
        line = "for i in 1 2 3 4 5 6 7 8 9; do head -c 200000 /dev/zero; echo; done; cat"
        options = {"shell": True, "stdin": PIPE, "merged": is_merged, "text": is_text}
        async with aio.spawn(line, **options) as child:
            stream = child.merged if is_merged else child.stdout
            await has_read(stream, 9 * 200_001)
            async with anyio.create_task_group() as tasks:
                lines = stream.lines()
                turns = Turns(tasks)
                for _ in range(9):
                    await anext(lines)
                assert turns.number >= 3
                tasks.cancel_scope.cancel()

    on(main)


def test_a_busy_stream_locks_no_other(on):
    async def main():
        line = "echo out; cat; echo out2; sleep 1000"
        async with aio.spawn(line, shell=True, stdin=PIPE, text=True) as child:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(child.stderr.readline)
                await anyio.wait_all_tasks_blocked()
                with pytest.raises(anyio.BusyResourceError):
                    await child.wait_for("out")
                assert await child.stdout.readline() == "out\n"
                tasks.cancel_scope.cancel()
            await child.stdin.aclose()
            assert (await child.wait_for("out2"))[0] == "out2"
            await child.stop()

    on(main)


def test_each_error_of_a_closed_stream_is_one_of_anyio(on):
    async def main():
        async with aio.spawn(["cat"], stdin=PIPE, text=True) as child:
            await child.stdin.aclose()
            await child.stdout.aclose()
            for call in (
                lambda: child.stdin.send("x"),
                lambda: child.stdin.buffer.send(b"x"),
                lambda: child.stdout.buffer.readline(0),
                lambda: child.stdout.read(),
                lambda: child.stdout.buffer.read(),
                lambda: child.wait_for("x", stream="stdout"),
                lambda: child.communicate("x"),
                lambda: anext(child.stdout.lines()),
            ):
                with pytest.raises(anyio.ClosedResourceError) as raised:
                    await call()
                assert isinstance(raised.value, procwright.StreamClosed)

    on(main)


@pytest.mark.parametrize("kind", [bytearray, lambda data: memoryview(bytearray(data))])
def test_what_is_sent_is_what_was_given(on, kind):
    async def main():
        async with aio.spawn("read go; cat", shell=True, stdin=PIPE) as child:
            await child.stdin.send(b"\n")
            given = kind(b"a" * 3_000_000)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(child.stdin.send, given)
                while child.stdin.bytes_written <= 1:
                    await anyio.lowlevel.checkpoint()
                given[:] = b"b" * len(given)
            await child.stdin.aclose()
            assert await child.stdout.read() == b"a" * 3_000_000

    on(main)


def test_a_send_that_sent_nothing_has_begun_nothing(on):
    async def main():
        async with aio.spawn(["cat"], stdin=PIPE, encoding="utf-16") as child:
            with anyio.CancelScope() as scope:
                child.stdin.buffer._turns.left = -1
                await CancelsAt(child.stdin.send("lost"), scope.cancel, 1)
            assert scope.cancelled_caught
            assert child.stdin.buffer.bytes_written == 0
            await child.stdin.send("grün")
            await child.stdin.aclose()
            assert await child.stdout.buffer.read() == "grün".encode("utf-16")

    on(main)


@pytest.mark.parametrize("is_text", [False, True], ids=["bytes", "text"])
def test_what_a_line_was_looked_for_in_is_read(on, is_text):
    async def main():
        size = 2_000_000
        line = f"head -c {size} /dev/zero; cat"
        calls = [lambda child: child.communicate(), lambda child: child.result()]
        if is_text:
            calls.append(lambda child: child.stdout.read())
        for call in calls:
            async with aio.spawn(line, shell=True, stdin=PIPE, text=is_text) as child:
                await has_read(child.stdout, size)
                with pytest.raises(procwright.WaitTimeout):
                    await child.stdout.readline(timeout=0.2)
                child.stdin.close()
                found = await call(child)
            text = getattr(found, "stdout", found)
            text = text[0] if isinstance(text, tuple) else text
            assert len(text) == size

    on(main)
