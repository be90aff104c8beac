"""stdin, stdout and stderr in all their kinds."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time

import pytest
from conftest import with_time

import procwright
from procwright._piece import Kept, pieces

run = procwright.run


class Reader:
    def __init__(self, *pieces):
        self.pieces = list(pieces)

    def read(self, size):
        return self.pieces.pop(0) if self.pieces else b""


def test_stdin_kinds(child, tmp_path):
    path = tmp_path / "in"
    path.write_bytes(b"data")
    with path.open("rb") as file, tempfile.SpooledTemporaryFile() as spooled:
        spooled.write(b"data")
        spooled.seek(0)
        sources = {
            "path": path,
            "file": file,
            "list": [b"da", bytearray(b"t"), memoryview(b"a")],
            "generator": (bytes([byte]) for byte in b"data"),
            "reader": Reader(b"da", b"ta"),
            "text reader": io.StringIO("data"),
            "memory": io.BytesIO(b"data"),
            "spooled": spooled,
        }
        for name, source in sources.items():
            assert run([child, "cat"], stdin=source).stdout == b"data", name
    fd = os.open(path, os.O_RDONLY)
    assert run([child, "cat"], stdin=fd).stdout == b"data"
    os.close(fd)
    for source in (None, procwright.DEVNULL, subprocess.DEVNULL, procwright.PIPE, [], iter(())):
        assert run([child, "cat"], stdin=source).stdout == b""
    assert run([child, "cat"], stdin=["é", "b"], text=True).stdout == "éb"


def test_input_kinds(child):
    for data in (b"data", bytearray(b"data"), memoryview(b"data")):
        assert run([child, "cat"], input=data).stdout == b"data"
    assert run([child, "cat"], input="dätä", text=True).stdout == "dätä"
    assert run([child, "cat"], input=b"data", text=True).stdout == "data"
    assert run([child, "cat"], input="dätä", encoding="latin-1").stdout_bytes == b"d\xe4t\xe4"
    assert run([child, "cat"], input=b"").stdout == b""
    big = os.urandom(1 << 20) * 20
    assert run([child, "cat"], input=big).stdout == big
    assert run([child, "close-stdin-exit"], input=big).returncode == 0


def test_stdin_inherit(script, child):
    code = (
        "import sys, procwright\n"
        "print(procwright.run([sys.argv[1], 'cat'], stdin=procwright.INHERIT).stdout)\n"
    )
    process = script(code, child, stdin=subprocess.PIPE)
    assert process.communicate("hello") == ("b'hello'\n", "")


def test_an_iterator_that_raises(child, tmp_path):
    error = KeyError("mine")

    def pieces():
        yield b"a"
        raise error

    pidfile = tmp_path / "pid"
    with pytest.raises(KeyError) as caught:
        run([child, "sleep-forever", "--pidfile", str(pidfile)], stdin=pieces())
    assert caught.value is error
    for source, kind in (([1], TypeError), (["a"], TypeError), (Reader(None), BlockingIOError)):
        with pytest.raises(kind):
            run([child, "cat"], stdin=source)
    with pytest.raises(SystemExit):
        run([child, "cat"], stdin=Raising(SystemExit))


class Raising:
    def __init__(self, error):
        self.error = error

    def read(self, size):
        raise self.error


def test_a_generator_is_closed_when_nobody_wants_more(child):
    closed = threading.Event()

    def forever():
        try:
            while True:
                yield b"x" * 100_000
        finally:
            closed.set()

    assert run([child, "close-stdin-exit"], stdin=forever()).ok
    assert closed.wait(60)


def test_code_that_sleeps_for_ever_holds_up_no_timeout(child):
    wait = threading.Event()

    def pieces():
        wait.wait()
        yield b""

    stop = procwright.Stop("KILL")
    with pytest.raises(procwright.TimeoutExpired):
        run([child, "cat"], stdin=pieces(), timeout=0.2, stop=stop)
    stop = procwright.Stop("TERM", grace=0.2)

    def check(seconds):
        with pytest.raises(procwright.TimeoutExpired) as caught:
            run([child, "echo", "x"], on_line=lambda line: wait.wait(), timeout=seconds, stop=stop)
        assert caught.value.result.stdout == b"x\n"

    with_time(check)
    wait.set()


def test_stdout_kinds(child, tmp_path):
    path = tmp_path / "out"
    for target in (path, str(path), os.fsencode(path)):
        result = run([child, "echo", "x"], stdout=target)
        assert (result.stdout, result.stdout_bytes, result.stdout_info) == (None, None, None)
        assert path.read_text() == "x\n"
    with path.open("w") as file:
        file.write("before\n")
        run([child, "echo", "x"], stdout=file)
        file.write("after\n")
    assert path.read_text() == "before\nx\nafter\n"
    with path.open("ab") as file:
        run([child, "echo", "y"], stdout=file.fileno())
    assert path.read_text() == "before\nx\nafter\ny\n"
    assert run([child, "echo", "x"], stdout=subprocess.DEVNULL).stdout is None
    assert run([child, "echo", "x"], stdout=subprocess.PIPE).stdout == b"x\n"


def test_stderr_into_stdout(child):
    line = "echo a; echo b >&2; echo c"
    result = run(line, shell=True, stderr=subprocess.STDOUT)
    assert (result.stdout, result.stderr) == (b"a\nb\nc\n", None)
    lines: list = []
    run(line, shell=True, stderr=subprocess.STDOUT, on_line=lines.append, text=True)
    assert lines == ["a\n", "b\n", "c\n"]


def test_stdout_inherit(script, child):
    code = (
        "import sys, procwright\n"
        "for out in (None, procwright.INHERIT):\n"
        "    r = procwright.run([sys.argv[1], 'echo', 'x'], stdout=out)\n"
        "    assert r.stdout is None\n"
    )
    assert script(code, child).communicate() == ("x\nx\n", "")


def test_merged(child):
    line = "echo a; echo b >&2; echo c; echo d >&2"
    result = run(line, shell=True, merged=True)
    merged = result.merged
    assert b"".join(data for name, data in merged if name == "stdout") == b"a\nc\n"
    assert b"".join(data for name, data in merged if name == "stderr") == b"b\nd\n"
    assert {name for name, _ in merged} == {"stdout", "stderr"}
    result = run([child, "flood", "--out", "1M", "--err", "1M"], merged=True, limit=1000)
    kept = b"".join(data for name, data in result.merged if name == "stdout")
    assert kept == result.stdout
    assert len(kept) == 1000


def test_pieces_of_text():
    before = time.time()
    result = run("echo a; echo b >&2; printf '\\303'", shell=True, merged=True, text=True)
    pieces = result.merged
    assert all(isinstance(piece, procwright.Piece) for piece in pieces)
    assert "".join(piece.data for piece in pieces if piece.stream == "stdout") == "a\n\ufffd"
    assert ("stderr", "b\n") in pieces
    # The kernel's clocks are not all one: some granularity is theirs.
    assert before - 1 <= pieces[0].time <= pieces[-1].time <= time.time() + 1
    again = pickle.loads(pickle.dumps(pieces[0]))
    assert (again, again.time) == (pieces[0], pieces[0].time)
    assert again.ambiguous == pieces[0].ambiguous
    sizes = [one["bytes"] for one in result.to_dict()["merged"]]
    assert sum(sizes) == 5
    # No piece is there of what a limit has left out of both.
    result = run([sys.executable, "-c", FLOOD], merged=True, text=True, limit=100)
    for name in ("stdout", "stderr"):
        kept = "".join(piece.data for piece in result.merged if piece.stream == name)
        assert kept == getattr(result, name)


def test_a_character_that_two_pieces_share():
    data = "a\u00e9\u20ac\U0001f642z".encode() + b"\xe2\x82"
    segments = [(1, 1, False, 1.0) for _ in data]
    segments[3:3] = [(2, 1, True, 2.0), (2, 1, True, 3.0)]
    streams = {1: Kept("stdout", data, None, 0), 2: Kept("stderr", b"\xc3\xa9", None, 0)}
    found = pieces(segments, streams, ("utf-8", "replace"))
    out = [piece.data for piece in found if piece.stream == "stdout"]
    assert out == ["a", "\u00e9", "\u20ac", "\U0001f642", "z", "\ufffd"]
    [other] = [piece for piece in found if piece.stream == "stderr"]
    assert (other.data, other.ambiguous, other.time) == ("\u00e9", True, 3.0)


#: Characters of two bytes on both, by two threads.
FLOOD = """
import os, threading
def flood(fd):
    for _ in range(100):
        os.write(fd, "é".encode() * 1001)
threading.Thread(target=flood, args=(2,)).start()
flood(1)
"""


def test_limit(child):
    whole = run([child, "flood", "--out", "1M"]).stdout
    for limit in (1001, procwright.Limit(1001)):
        result = run([child, "flood", "--out", "1M"], limit=limit)
        assert result.ok
        assert result.stdout == whole[:501] + whole[-500:]
        info = result.stdout_info
        assert (info.bytes, info.kept_bytes) == (1 << 20, 1001)
        assert (info.dropped_bytes, info.dropped_at) == ((1 << 20) - 1001, 501)
    with pytest.raises(procwright.OutputLimitExceeded) as caught:
        run([child, "flood-forever"], limit=procwright.Limit(1000, "fail"))
    result = caught.value.result
    assert result.reason == "output_limit"
    assert len(result.stdout) == 1000
    assert run([child, "echo", "x"], limit=procwright.Limit(2, "fail")).ok


def test_keep_full(child, tmp_path):
    path = tmp_path / "full"
    result = run([child, "flood", "--out", "1M", "--err", "10"], limit=100, keep_full=path)
    assert path.stat().st_size == 1 << 20
    assert (tmp_path / "full.stderr").stat().st_size == 10
    assert result.stdout_info.kept_at == str(path)
    assert result.stdout_info.kept_error is None
    assert len(result.stdout) == 100


def test_keep_full_on_a_full_disk(child, tmp_path):
    path = tmp_path / "full"
    path.symlink_to("/dev/full")
    result = run([child, "flood", "--out", "1M"], keep_full=path)
    assert result.ok
    assert len(result.stdout) == 1 << 20
    assert "No space left" in result.stdout_info.kept_error
    assert "No space left" in result.explanation


def test_lines(child):
    lines: list = []
    result = run([child, "trickle", "3", "1"], on_line=lines.append)
    assert b"".join(lines) == result.stdout
    assert all(line.endswith(b"\n") for line in lines)
    out, err = [], []
    run(
        "echo a; echo b >&2; printf c",
        shell=True,
        text=True,
        on_stdout_line=out.append,
        on_stderr_line=err.append,
    )
    assert (out, err) == (["a\n", "c"], ["b\n"])
    lines = []
    text = "ä\nö\nü"
    run([child, "cat"], input=text, encoding="utf-16", on_line=lines.append)
    assert lines == ["ä\n", "ö\n", "ü"]
    lines = []
    run([child, "big-line", "5M"], on_line=lines.append, stdout=procwright.PIPE)
    assert sum(map(len, lines)) >= 5 << 20


def test_on_line_is_never_called_twice_at_once(child):
    inside = 0
    calls = 0

    def callback(line):
        nonlocal inside, calls
        inside += 1
        calls += 1
        assert inside == 1
        inside -= 1

    run([child, "flood", "--out", "100K", "--err", "100K"], on_line=callback)
    assert calls > 0


def test_a_callback_that_raises(child):
    error = ValueError("mine")

    def callback(line):
        raise error

    with pytest.raises(ValueError, match="mine") as caught:
        run(
            [child, "trickle", "100000", "1"], on_stdout_line=callback, stop=procwright.Stop("KILL")
        )
    assert caught.value is error


def test_text_at_chunk_edges(child):
    raw = run([child, "invalid-utf8"]).stdout
    slow = run([child, "invalid-utf8", "--split", "1"], text=True, on_line=lambda line: None)
    assert slow.stdout == raw.decode(errors="replace")
    assert slow.stdout_bytes == raw
    assert "�" in slow.stdout
    with pytest.raises(UnicodeDecodeError):
        _ = run([child, "invalid-utf8"], errors="strict").stdout
    assert run([child, "print-bytes", "610d0a62"], text=True).stdout == "a\r\nb"
    file = io.StringIO()
    run([child, "invalid-utf8", "--split", "1"], tee=file)
    assert file.getvalue() == raw.decode(errors="replace")


class Pieces(io.RawIOBase):
    """Writes at most three bytes at a time."""

    def __init__(self):
        self.data = b""

    def writable(self):
        return True

    def write(self, data):
        self.data += bytes(data[:3])
        return min(3, len(data))


def test_tee(script, child):
    code = (
        "import sys, procwright\n"
        "r = procwright.run('echo a; echo b >&2', shell=True, tee=True)\n"
        "assert (r.stdout, r.stderr) == (b'a\\n', b'b\\n')\n"
    )
    assert script(code, child).communicate() == ("a\n", "b\n")
    for file in (io.BytesIO(), Pieces()):
        result = run([child, "trickle", "5", "1"], tee=file)
        data = file.data if isinstance(file, Pieces) else file.getvalue()
        assert data == result.stdout
    error = OSError("full")

    class Broken:
        def write(self, data):
            raise error

    with pytest.raises(OSError, match="full") as caught:
        run([child, "trickle", "100000", "1"], tee=Broken(), stop=procwright.Stop("KILL"))
    assert caught.value is error
    with pytest.raises(ValueError, match="captured"):
        run([child, "echo"], stdout=None, stderr=None, tee=io.BytesIO())
