"""The streams of a child are files: for the standard library, and in every method."""

from __future__ import annotations

import array
import contextlib
import csv
import ctypes
import gzip
import hashlib
import io
import itertools
import json
import mmap
import os
import shutil
import signal
import subprocess
import tarfile
import threading
import zlib

import pytest

from procwright import PIPE, Gap, LineTooLong, Overflow, StreamClosed, StreamOverflow, run, spawn


@pytest.fixture(params=["spill", "block"])
def cat(child, request):
    """Starts `cat`, with bytes that it gives back."""
    started, writers = [], []

    def start(data=b"", close=True, **options):
        options.setdefault("overflow", request.param)
        it = spawn([child, "cat"], stdin=PIPE, **options)
        started.append(it)
        into = getattr(it.stdin, "buffer", it.stdin)
        if close:
            # A bare pipe holds little.
            writers.append(threading.Thread(target=write, args=(into, data)))
            writers[-1].start()
        else:
            into.write(data)
        return it

    def write(into, data):
        with contextlib.suppress(BrokenPipeError, StreamClosed), into:
            into.write(data)

    yield start
    for it in started:
        it.stop()
    for writer in writers:
        writer.join()


def test_it_is_a_file(cat):
    it = cat(b"x", close=False)
    out, into = it.stdout, it.stdin
    for stream in (out, into):
        assert isinstance(stream, io.BufferedIOBase)
        assert isinstance(stream, io.IOBase)
        assert not stream.seekable()
        assert not stream.isatty()
        assert not stream.closed
        assert stream.flush() is None
        assert isinstance(stream.name, str)
        for refused in (stream.tell, stream.detach, stream.truncate, lambda s=stream: s.seek(0)):
            with pytest.raises(io.UnsupportedOperation):
                refused()
        with pytest.raises(TypeError, match="pickled"):
            __import__("pickle").dumps(stream)
    assert (out.mode, out.readable(), out.writable()) == ("rb", True, False)
    assert (into.mode, into.readable(), into.writable()) == ("wb", False, True)
    with pytest.raises(io.UnsupportedOperation):
        out.write(b"")
    with pytest.raises(io.UnsupportedOperation):
        into.read()
    with pytest.raises(TypeError, match="text=True"):
        into.write("text")
    with out as same:
        assert same is out
    assert out.closed
    out.close()
    for refused in (out.read, out.readline, out.readable, out.flush, out.isatty, out.__enter__):
        with pytest.raises(StreamClosed):
            refused()
    with pytest.raises(StreamClosed):
        next(out)
    into.close()
    for refused in (lambda: into.write(b"x"), lambda: into.write(b""), into.flush):
        with pytest.raises(ValueError, match="closed"):
            refused()


def test_reads(cat):
    out = cat(b"0123456789\nabc\n\nlast").stdout
    assert out.read(3) == b"012"
    assert out.peek(1)[:2] == b"34"
    assert out.read(0) == b""
    assert out.read1(2) == b"34"
    assert out.readline(2) == b"56"
    assert out.readline() == b"789\n"
    buffer = bytearray(2)
    assert out.readinto(buffer) == 2
    assert buffer == b"ab"
    assert out.readinto1(memoryview(buffer)[:1]) == 1
    assert buffer == b"cb"
    assert next(out) == b"\n"
    assert out.readlines(1) == [b"\n"]
    assert out.readline(0) == b""
    assert out.read(None) == b"last"
    for at_end in (out.read, out.read1, out.peek, out.readline, lambda: out.read(5)):
        assert at_end() == b""
    assert out.readinto(buffer) == 0
    assert list(out) == []
    assert out.readlines() == []
    with pytest.raises(TypeError, match="bytearray"):
        out.readinto(b"read only")


def test_into_memory_of_the_callers(cat):
    data = bytes(range(256)) * 4
    for make in (
        lambda: bytearray(1024),
        lambda: array.array("i", bytes(1024)),
        lambda: array.array("d", bytes(1024)),
        lambda: memoryview(bytearray(1024)).cast("B", (4, 256)),
        lambda: (ctypes.c_int64 * 128)(),
        lambda: mmap.mmap(-1, 1024),
    ):
        out = cat(data).stdout
        buffer = make()
        assert out.readinto(buffer) == 1024
        assert bytes(memoryview(buffer)) == data
        assert out.readinto(buffer) == 0
    out = cat(data).stdout
    number = ctypes.c_int32()
    assert out.readinto1(number) == 4
    assert bytes(number) == data[:4]
    for empty in (bytearray(), array.array("i")):
        assert out.readinto(empty) == out.readinto1(empty) == 0
    for refused in (
        b"read only",
        b"",
        memoryview(bytearray(8)).toreadonly(),
        memoryview(bytearray(8))[::2],
        memoryview(bytearray(8))[::-1],
        memoryview(array.array("i", bytes(8))).toreadonly(),
        "text",
        [0] * 8,
        8,
        None,
    ):
        for read in (out.readinto, out.readinto1):
            with pytest.raises(TypeError):
                read(refused)
    assert out.read() == data[4:]
    out.close()
    for closed in (bytearray(), bytearray(1)):
        with pytest.raises(StreamClosed):
            out.readinto(closed)


def test_memory_that_is_read_into_stays_where_it_is(cat, when_asleep):
    it = cat(b"", close=False)
    buffer = bytearray(8)
    refused = []

    def resize():
        try:
            buffer.extend(b"more than there was")
        except BufferError as error:
            refused.append(error)
        it.stdin.write(b"12345678")

    when_asleep(resize)
    assert it.stdout.readinto(buffer) == 8
    assert buffer == b"12345678"
    assert len(refused) == 1
    buffer.extend(b"9")


@pytest.mark.parametrize("overflow", ["spill", "block"])
def test_an_interrupted_readinto_gives_back_what_it_had(child, when_asleep, overflow):
    it = spawn([child, "cat"], stdin=PIPE, overflow=overflow)
    it.stdin.write(b"kept")
    # It waits for the rest.
    while it.stdout.peek() != b"kept":
        pass
    when_asleep(lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        it.stdout.readinto(bytearray(100_000))
    when_asleep(lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        it.stdout.readinto(bytearray(5))
    it.stdin.close()
    buffer = bytearray(100)
    assert it.stdout.readinto1(buffer) == 4
    assert buffer[:4] == b"kept"
    assert it.stdout.readinto1(buffer) == 0


def test_a_gap_in_memory_of_the_callers(child):
    it = spawn([child, "cat"], stdin=PIPE, overflow=Overflow("drop_oldest", memory=8192))
    it.stdin.write(bytes(200_000))
    it.stdin.close()
    it.wait()
    buffer = bytearray(200_000)
    n = it.stdout.readinto(buffer)
    assert 0 < n < 200_000
    assert n + sum(gap.dropped for gap in it.stdout.gaps) == 200_000


def test_read1_and_peek_do_not_wait_for_more(cat):
    it = cat(b"part", close=False)
    assert it.stdout.peek() == b"part"
    assert it.stdout.read1() == b"part"
    it.stdin.write(b"more")
    assert it.stdout.read1(100) == b"more"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 4096, 65537, 1 << 20])
def test_every_size_of_read(cat, size):
    data = os.urandom(60_000 if size < 8 else 3_000_000)
    it = cat(data)
    pieces = list(iter(lambda: it.stdout.read(size), b""))
    assert b"".join(pieces) == data
    assert {len(piece) for piece in pieces[:-1]} <= {size}


def test_large(cat):
    data = os.urandom(20 << 20)
    assert cat(data).stdout.read() == data


def test_text_io_wrapper(cat):
    out = io.TextIOWrapper(cat("grün\r\nrot\n".encode("utf-16")).stdout, encoding="utf-16")
    assert list(out) == ["grün\n", "rot\n"]
    out.close()
    assert out.buffer.closed


def test_text_io_wrapper_writes(cat):
    it = cat(close=False)
    with io.TextIOWrapper(it.stdin, encoding="latin-1", write_through=True) as into:
        into.write("grün")
    assert it.stdin.closed
    assert it.stdout.read() == b"gr\xfcn"


def test_buffered_reader_over_it(cat):
    data = os.urandom(300_000)
    assert io.BufferedReader(cat(data).stdout, 1000).read() == data


def test_csv(cat):
    it = cat(b'a,"b\nc"\r\nd,e\r\n', text=True)
    assert list(csv.reader(it.stdout)) == [["a", "b\nc"], ["d", "e"]]


def test_csv_writes(cat):
    it = cat(text=True, close=False)
    csv.writer(it.stdin).writerows([["a", "ö"], [1, 2]])
    it.stdin.close()
    assert it.stdout.read() == "a,ö\r\n1,2\r\n"


def test_json(cat):
    value = {"a": [1, None, "é"], "b": "x" * 200_000}
    assert json.load(cat(json.dumps(value).encode()).stdout) == value
    it = cat(text=True, close=False, overflow="spill")
    json.dump(value, it.stdin)
    it.stdin.close()
    assert json.load(it.stdout) == value


def test_copyfileobj(cat, tmp_path):
    data = os.urandom(2_000_000)
    it = cat(data)
    with open(tmp_path / "out", "wb") as file:
        shutil.copyfileobj(it.stdout, file)
    assert (tmp_path / "out").read_bytes() == data
    other = cat(close=False, overflow="spill")
    with open(tmp_path / "out", "rb") as file:
        shutil.copyfileobj(file, other.stdin)
    other.stdin.close()
    assert other.stdout.read() == data


def test_gzip_and_zlib(cat):
    data = os.urandom(1000) * 1000
    with gzip.open(cat(gzip.compress(data)).stdout) as file:
        assert file.read() == data
    unpack = zlib.decompressobj()
    out = cat(zlib.compress(data)).stdout
    assert b"".join(map(unpack.decompress, iter(lambda: out.read(4096), b""))) == data
    it = cat(close=False)
    with gzip.open(it.stdin, "wb") as file:
        file.write(data)
    it.stdin.close()
    assert gzip.decompress(it.stdout.read()) == data


def test_tar(cat):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        info = tarfile.TarInfo("name")
        info.size = 100_000
        tar.addfile(info, io.BytesIO(b"z" * info.size))
    with tarfile.open(fileobj=cat(packed.getvalue()).stdout, mode="r|*") as tar:
        member = tar.next()
        assert tar.extractfile(member).read() == b"z" * 100_000


def test_hashing_and_closing_and_islice(cat):
    data = b"line\n" * 10_000
    with contextlib.closing(cat(data).stdout) as out:
        assert list(itertools.islice(out, 3)) == [b"line\n"] * 3
        rest = hashlib.sha256()
        for line in out:
            rest.update(line)
    assert rest.digest() == hashlib.sha256(data[15:]).digest()
    assert out.closed


def test_a_pipe_is_handed_on(child):
    first = spawn([child, "echo", "through", "both"], overflow="block")
    second = subprocess.Popen([child, "cat"], stdin=first.stdout, stdout=subprocess.PIPE)
    first.stdout.close()
    assert second.communicate()[0] == b"through both\n"
    first = spawn([child, "echo", "x"], overflow="block")
    assert spawn([child, "cat"], stdin=first.stdout).stdout.read() == b"x\n"


@pytest.mark.parametrize(
    ("options", "held"),
    [
        ({}, "10 bytes"),
        ({"text": True}, "10 bytes"),
        ({"encoding": "shift_jis"}, "[0-9]+ characters"),
    ],
)
def test_a_pipe_of_which_a_part_is_here_is_handed_on_with_that_or_not_at_all(child, options, held):
    it = spawn(["printf", "ready now\nrest\n"], overflow="block", **options)
    it.wait()
    it.wait_for(b"ready" if not options else "ready")
    refused = f"(?s)stdout of printf .* cannot give a fileno: {held} wait in this process"
    with pytest.raises(io.UnsupportedOperation, match=refused):
        it.stdout.fileno()
    with pytest.raises(io.UnsupportedOperation, match="hands on all"):
        subprocess.Popen([child, "cat"], stdin=it.stdout)
    assert run([child, "cat"], stdin=it.stdout, **options).stdout_bytes == b" now\nrest\n"
    # Once all of it was taken, the pipe is all that there is.
    it = spawn(["printf", "ready\nrest\n"], overflow="block", **options)
    it.wait()
    it.wait_for(b"ready" if not options else "ready")
    assert len(it.stdout.read(5)) == 5
    assert it.stdout.fileno() >= 0


def test_a_pipe_of_which_half_a_character_is_here_is_not_handed_on():
    it = spawn(["printf", "ready\n\\203"], overflow="block", encoding="shift_jis", errors="replace")
    it.wait()
    assert it.stdout.readline() == "ready\n"
    with pytest.raises(io.UnsupportedOperation, match="bytes of a character that is not whole"):
        it.stdout.fileno()
    assert it.stdout.read() == "\ufffd"


def test_a_queue_has_no_number(child):
    it = spawn([child, "echo", "x"])
    with pytest.raises(io.UnsupportedOperation, match='overflow="block"'):
        it.stdout.fileno()
    with pytest.raises(io.UnsupportedOperation):
        subprocess.Popen([child, "cat"], stdin=it.stdout)
    it.wait()


def test_a_lent_pipe_is_still_read_and_closed(child):
    it = spawn([child, "cat"], stdin=PIPE, overflow="block")
    assert os.get_blocking(it.stdout.fileno())
    assert os.get_blocking(it.stdin.fileno())
    data = os.urandom(1 << 20)
    assert it.communicate(data) == (data, b"")


LINES = b"one\ntwo\r\nthree\rfour\n\nlast"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [b"one", b"two", b"three\rfour", b"", b"last"]),
        ({"keep_ends": True}, [b"one\n", b"two\r\n", b"three\rfour\n", b"\n", b"last"]),
        ({"separator": None}, [b"one", b"two", b"three", b"four", b"", b"last"]),
        ({"separator": b"r"}, [b"one\ntwo\r\nth", b"ee\rfou", b"\n\nlast"]),
        ({"separator": b"\n\n"}, [b"one\ntwo\r\nthree\rfour", b"last"]),
        ({"separator": b"zzz", "max_length": 20}, [LINES[:20], LINES[20:]]),
        ({"max_length": 4}, [b"one", b"two\r", b"", b"thre", b"e\rfo", b"ur", b"", b"last"]),
    ],
)
def test_lines(cat, options, expected):
    assert list(cat(LINES).stdout.lines(**options)) == expected


def test_a_line_that_is_too_long(cat):
    out = cat(b"short\n" + b"x" * 1000 + b"\nend\n").stdout
    lines = out.lines(max_length=100, too_long="fail")
    assert next(lines) == b"short"
    with pytest.raises(LineTooLong, match="100 bytes"):
        next(lines)
    assert out.readline() == b"x" * 1000 + b"\n"
    assert list(out.lines(max_length=100, too_long="fail")) == [b"end"]
    for bad in ({"separator": b""}, {"separator": b"ab", "max_length": 1}, {"too_long": "cut"}):
        with pytest.raises(ValueError, match="|".join(bad)):
            out.lines(**bad)


def test_framings_in_turn(cat):
    out = cat(b"a;b\nc;d\ne").stdout
    assert next(out.lines(b";")) == b"a"
    assert out.readline() == b"b\n"
    assert next(out.lines(b";")) == b"c"
    assert out.read(1) == b"d"
    assert list(out) == [b"\n", b"e"]


def test_100_mb_without_a_newline(child):
    it = spawn([child, "big-line", "100M"])
    size = 0
    for piece in it.stdout.lines(max_length=1 << 20):
        assert len(piece) <= 1 << 20
        size += len(piece)
    assert size >= 100_000_000


@pytest.mark.parametrize("policy", ["drop_oldest", "drop_newest"])
def test_gaps(child, policy):
    it = spawn([child, "cat"], stdin=PIPE, overflow=Overflow(policy, memory=8192))
    lines = [b"%07d\n" % i for i in range(20_000)]
    it.stdin.write(b"".join(lines))
    it.stdin.close()
    it.wait()
    got = list(it.stdout.lines(keep_ends=True))
    gaps = [item for item in got if isinstance(item, Gap)]
    assert gaps
    assert gaps == it.stdout.gaps
    written = sum(map(len, lines))
    kept = sum(len(item) for item in got if isinstance(item, bytes))
    assert kept + sum(gap.dropped for gap in gaps) == written
    figures = it.stdout.figures
    assert figures.dropped_bytes == sum(gap.dropped for gap in gaps)
    assert figures.bytes_in == written
    assert figures.lag_bytes == 0
    everything = b"".join(lines)
    at = 0
    for item in got:
        if isinstance(item, Gap):
            assert item.offset == at
            at += item.dropped
        else:
            assert everything[at : at + len(item)] == item, "nothing is glued together"
            at += len(item)


@pytest.mark.parametrize("how", ["iterate", "readline", "read", "text", "text read"])
def test_gaps_in_the_ways_of_files(child, how):
    text = how.startswith("text")
    overflow = Overflow("drop_newest", memory=4096)
    it = spawn([child, "cat"], stdin=PIPE, overflow=overflow, text=text)
    line = b"%06d\n"
    getattr(it.stdin, "buffer", it.stdin).write(b"".join(line % i for i in range(50_000)))
    it.stdin.close()
    it.wait()
    if how in ("iterate", "text"):
        got = list(it.stdout)
    elif how == "readline":
        got = list(iter(it.stdout.readline, b""))
    else:
        got = [it.stdout.read()]
    binary = it.stdout.buffer if text else it.stdout
    assert binary.gaps
    dropped = sum(gap.dropped for gap in binary.gaps)
    assert sum(map(len, got)) + dropped == 50_000 * 7
    if "read" not in how.split():
        assert all(len(one) <= 7 for one in got)


def test_fail(child):
    it = spawn([child, "flood-forever"], overflow=Overflow("fail", memory=8192))
    with pytest.raises(StreamOverflow) as raised:
        it.stdout.read()
    assert raised.value.offset >= 8192
    assert "overflow" in str(raised.value)
    it.stop()


def test_figures(child):
    it = spawn([child, "cat"], stdin=PIPE, overflow=Overflow(memory="64KiB"))
    it.stdin.write(b"x" * 1_000_000)
    it.stdin.close()
    assert it.wait() == 0
    figures = it.stdout.figures
    assert figures.peak_bytes > 64 << 10
    assert figures.spilled_bytes > 0
    assert figures.lag_s > 0
    assert len(it.stdout.read()) == 1_000_000
    assert it.stdout.figures.bytes_out == 1_000_000
    assert it.stdout.blocked_s >= 0
    bare = spawn([child, "echo"], overflow="block")
    assert bare.stdout.figures is None
    assert bare.stdout.blocked_s >= 0
    bare.wait()


def test_a_reader_that_says_little_holds_up_nobody(child):
    it = spawn([child, "flood", "--err", "5M", "--out", "5"])
    assert it.wait() == 0
    assert len(it.stdout.read()) == 5
    assert len(it.stderr.read()) == 5 << 20


def test_much_stdin_while_output_backs_up(child):
    data = os.urandom(20 << 20)
    it = spawn([child, "cat"], stdin=PIPE)
    it.stdin.write(data)
    it.stdin.close()
    assert it.stdout.read() == data


def test_write(cat):
    it = cat(close=False)
    assert it.stdin.write(bytearray(b"ab")) == 2
    assert it.stdin.write(memoryview(b"cdef")[::2]) == 2
    assert it.stdin.write(b"") == 0
    it.stdin.writelines([b"1\n", b"2\n"])
    assert it.stdin.bytes_written == 8
    it.stdin.close()
    assert it.stdout.read() == b"abce1\n2\n"


def test_nobody_reads_any_more(child):
    it = spawn([child, "close-stdin-exit", "0"], stdin=PIPE)
    it.wait()
    with pytest.raises(BrokenPipeError):
        it.stdin.write(b"x")
    assert it.stdin.write(b"") == 0


@pytest.mark.parametrize("options", [{}, {"text": True}, {"encoding": "utf-16"}])
def test_a_closed_file_refuses_also_what_asks_for_nothing(child, options):
    it = spawn([child, "exit", "0"], **options)
    out = it.stdout
    out.close()
    for use in (iter, lambda out: out.read(0), lambda out: out.readline(0)):
        with pytest.raises(ValueError, match="closed file"):
            use(out)
    it.wait()
