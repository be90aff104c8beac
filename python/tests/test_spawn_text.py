"""Text out of and into a child."""

from __future__ import annotations

import codecs
import io
import os
import random

import pytest

from procwright import PIPE, Gap, Overflow, StreamClosed, TextReader, TextWriter, spawn

#: Of one to four bytes, with what is broken in every way that there is.
HOSTILE = (
    "aé€😀\n".encode()
    + b"\xff\xc3\xe2\x82\xf0\x9f\x98\xed\xa0\x80\xc0\x80\xf4\x90\x80\x80"
    + b"\x00x\xe2\x82\n\xf0\x9f\n\r\n\rend\xf0\x9f\x98"
)


@pytest.fixture
def cat(child):
    started = []

    def start(data=b"", close=True, **options):
        options.setdefault("text", True)
        it = spawn([child, "cat"], stdin=PIPE, **options)
        started.append(it)
        it.stdin.buffer.write(data)
        if close:
            it.stdin.close()
        return it

    yield start
    for it in started:
        it.stop()


def test_it_is_a_file(cat):
    it = cat(b"x", close=False)
    for stream, kind in ((it.stdout, TextReader), (it.stdin, TextWriter)):
        assert isinstance(stream, io.TextIOBase)
        assert isinstance(stream, kind)
        assert isinstance(stream.buffer, io.BufferedIOBase)
        assert stream.encoding == "utf-8"
        assert stream.newlines is None
        assert not stream.line_buffering
        assert not stream.isatty()
        assert not stream.seekable()
        assert stream.name == stream.buffer.name
    assert it.stdout.errors == "replace"
    assert it.stdin.errors == "strict"
    with pytest.raises(TypeError, match="pass a str"):
        it.stdin.write(b"x")
    with pytest.raises(UnicodeEncodeError):
        it.stdin.write("\udcff")
    it.stdout.close()
    assert it.stdout.buffer.closed
    for refused in (it.stdout.read, it.stdout.readline, lambda: next(it.stdout), it.stdout.flush):
        with pytest.raises(StreamClosed):
            refused()
    with it.stdin:
        pass
    assert it.stdin.closed
    with pytest.raises(StreamClosed):
        it.stdin.write("x")


ENCODINGS = [
    ("utf-8", "replace"),
    ("utf-8", "ignore"),
    ("utf-8", "surrogateescape"),
    ("utf-8", "backslashreplace"),
    ("latin-1", "strict"),
    ("ascii", "replace"),
    ("cp1252", "replace"),
    ("utf-16-le", "replace"),
    ("utf-8-sig", "replace"),
    ("shift_jis", "replace"),
    ("utf-7", "replace"),
]


@pytest.mark.parametrize(("encoding", "errors"), ENCODINGS)
@pytest.mark.parametrize("how", ["all", "lines", "readline", "pieces", "mixed"])
def test_every_way_gives_the_same_text(cat, encoding, errors, how):
    whole = (HOSTILE * 3).decode(encoding, errors)
    out = cat(HOSTILE * 3, encoding=encoding, errors=errors).stdout
    if how == "all":
        got = out.read()
    elif how == "lines":
        lines = list(out)
        assert (
            lines == whole.splitlines(True) or lines == io.StringIO(whole, newline="\n").readlines()
        )
        got = "".join(lines)
    elif how == "readline":
        got = "".join(iter(out.readline, ""))
    elif how == "pieces":
        pieces = list(iter(lambda: out.read(3), ""))
        assert {len(piece) for piece in pieces[:-1]} <= {3}
        got = "".join(pieces)
    else:
        got = out.readline() + out.read(2) + out.readline(4) + next(out, "") + out.read()
    assert got == whole


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
def test_characters_that_come_byte_by_byte(cat, encoding):
    text = "aé€😀\n€" if encoding != "latin-1" else "aéü\nö"
    it = cat(close=False, encoding=encoding)
    got = ""
    for byte in text.encode(encoding):
        it.stdin.buffer.write(bytes([byte]))
    it.stdin.close()
    while piece := it.stdout.read(1):
        assert len(piece) == 1
        got += piece
    assert got == text


def test_a_broken_character_is_told_when_it_is_known(cat):
    it = cat(b"\xf0\x9f\x98", close=False)
    it.stdin.buffer.write(b"A\xe2")
    assert it.stdout.read(2) == "\ufffdA"
    it.stdin.buffer.write(b"\x82\xac")
    assert it.stdout.read(1) == "€"
    it.stdin.buffer.write(b"\xe2\x82")
    it.stdin.close()
    assert it.stdout.read(5) == "\ufffd"
    assert it.stdout.read() == ""


@pytest.mark.parametrize("seed", range(5))
def test_at_random(cat, seed):
    rng = random.Random(seed)
    data = bytes(rng.choice(HOSTILE) for _ in range(30_000))
    out = cat(data).stdout
    got = []
    while True:
        what = rng.randrange(4)
        if what == 0:
            piece = out.readline()
        elif what == 1:
            piece = out.readline(rng.randrange(1, 9))
        elif what == 2:
            piece = next(out, "")
        else:
            piece = out.read(rng.randrange(1, 300))
        if not piece:
            break
        got.append(piece)
    assert "".join(got) == data.decode("utf-8", "replace")


def test_strict(cat):
    out = cat(b"good\nb\xffd\nrest\n", errors="strict").stdout
    assert next(out) == "good\n"
    with pytest.raises(UnicodeDecodeError):
        next(out)
    assert next(out) == "rest\n"


def test_bytes_and_text_in_turn(cat):
    out = cat("é1\né2\nrest".encode()).stdout
    assert out.read(1) == "é"
    assert out.buffer.read(2) == b"1\n"
    assert out.readline() == "é2\n"
    assert out.buffer.read() == b"rest"


def test_no_newline_is_translated(cat):
    it = cat(b"a\r\nb\rc\n")
    assert list(it.stdout) == ["a\r\n", "b\rc\n"]
    it = cat(close=False)
    it.stdin.writelines(["a\n", "b\r\n"])
    it.stdin.close()
    assert it.stdout.buffer.read() == b"a\nb\r\n"


def test_a_byte_order_mark_comes_once(cat):
    def echoed():
        it = cat(close=False, encoding="utf-16")
        it.stdin.write("a")
        it.stdin.write("b")
        it.stdin.close()
        return it.stdout

    assert echoed().buffer.read() == "ab".encode("utf-16")
    assert echoed().read() == "ab"


@pytest.mark.parametrize("keep_ends", [False, True])
def test_a_broken_character_ends_with_its_line(keep_ends):
    it = spawn(r"printf 'caf\303\nnext\r\n\303'", shell=True, text=True, errors="replace")
    lines = list(it.stdout.lines(keep_ends=keep_ends))
    if keep_ends:
        assert lines == ["caf\ufffd\n", "next\r\n", "\ufffd"]
    else:
        assert lines == ["caf\ufffd", "next", "\ufffd"]


def test_lines(cat):
    data = "eins;zwei\ndrei€\r\nvier".encode()
    assert list(cat(data).stdout.lines()) == ["eins;zwei", "drei€", "vier"]
    assert list(cat(data).stdout.lines(";")) == ["eins", "zwei\ndrei€\r\nvier"]
    assert list(cat(data).stdout.lines(None, keep_ends=True))[1] == "drei€\r\n"
    pieces = list(cat("€€€€".encode()).stdout.lines(max_length=4))
    assert "".join(pieces) == "€€€€"
    with pytest.raises(io.UnsupportedOperation, match="utf-16"):
        next(cat(data, encoding="utf-16").stdout.lines())


def test_gaps(child):
    it = spawn([child, "cat"], stdin=PIPE, text=True, overflow=Overflow("drop_oldest", memory=4096))
    it.stdin.write("€€€€€\n" * 20_000)
    it.stdin.close()
    it.wait()
    items = list(it.stdout.lines())
    assert any(isinstance(item, Gap) for item in items)
    assert [item for item in items if isinstance(item, Gap)] == it.stdout.gaps
    assert it.stdout.figures.dropped_bytes > 0


def test_large(cat):
    text = "".join(chr(random.Random(1).randrange(32, 0xD7FF)) for _ in range(1000)) * 2000
    it = cat(close=False)
    it.stdin.write(text)
    it.stdin.close()
    assert it.stdout.read() == text


def test_hostile_output(child):
    it = spawn([child, "invalid-utf8", "--split", "0"], text=True)
    raw = spawn([child, "invalid-utf8"]).stdout.read()
    assert "".join(it.stdout) == raw.decode("utf-8", "replace")
    assert os.linesep == "\n"


def test_what_runs_while_a_line_is_decoded_may_read(cat, monkeypatch):
    """A signal handler or a finaliser may come in a codec that is Python's."""
    it = cat(b"one\ntwo\nthree\n", encoding="cp1252")
    decode = codecs.charmap_decode
    came = []

    def meanwhile(*args):
        if not came:
            came.append("inside")
            came.append(it.stdout.readline())
            came.append(it.stdout.buffer.read1())
        return decode(*args)

    monkeypatch.setattr(codecs, "charmap_decode", meanwhile)
    assert it.stdout.readline() == "one\n"
    assert came == ["inside", "two\n", b"three\n"]
