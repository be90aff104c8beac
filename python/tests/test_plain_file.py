"""A program has a file's descriptor only where that has what the file itself reads or writes."""

# The tests close what is opened in tables.
# ruff: noqa: SIM115

from __future__ import annotations

import asyncio
import bz2
import contextlib
import gzip
import http.client
import io
import lzma
import os
import socket
import socketserver
import ssl
import tarfile
import tempfile
import zipfile

import anyio
import pytest

import procwright
from procwright import aio

DATA = b"b\na\n"


class Upper:
    """An object that reads something else than what is behind its descriptor."""

    def __init__(self, path):
        self._file = path.open("rb")
        self.close, self.fileno = self._file.close, self._file.fileno

    def read(self, size=-1):
        return self._file.read(size).upper()


class UpperRaw(io.FileIO):
    def read(self, size=-1):
        return super().read(size).upper()


class UpperInto(io.FileIO):
    """Read by a buffer, which calls this."""

    def readinto(self, into):
        count = super().readinto(into)
        into[:count] = bytes(into[:count]).upper()
        return count


class UpperBuffer(io.BufferedReader):
    def read(self, size=-1):
        return super().read(size).upper()


class UpperText(io.TextIOWrapper):
    def read(self, size=-1):
        return super().read(size).upper()


class UpperLines:
    """What `fileinput` gives: lines, and a descriptor of which some were read ahead."""

    def __init__(self, path):
        self._file = path.open("rb")
        self.close, self.fileno = self._file.close, self._file.fileno

    def __iter__(self):
        return (line.upper() for line in self._file)


def compressed(module, path, mode="rb"):
    with module.open(path, "wb") as file:
        file.write(DATA)
    return module.open(path, mode)


def member_of_tar(path):
    with tarfile.open(path.with_suffix(".tgz"), "w:gz") as archive:
        archive.add(path, "data")
    return tarfile.open(path.with_suffix(".tgz")).extractfile("data")


def member_of_zip(path):
    with zipfile.ZipFile(path.with_suffix(".zip"), "w") as archive:
        archive.write(path, "data")
    return zipfile.ZipFile(path.with_suffix(".zip")).open("data")


def response(path):
    """One whose body came with its header, and so waits in Python."""
    here, there = socket.socketpair()
    there.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(DATA) + DATA)
    made = http.client.HTTPResponse(here)
    made.begin()
    here.close()
    there.close()
    return made


def after(file, step):
    step(file)
    return file


def spooled(mode, data):
    """One that has more than it keeps in memory."""
    made = tempfile.SpooledTemporaryFile(1, mode)
    made.write(data)
    made.seek(0)
    return made


def back_at_the_start(file):
    file.read()
    file.seek(0)


READ = {
    "gzip": (lambda path: compressed(gzip, path), DATA),
    "bz2": (lambda path: compressed(bz2, path), DATA),
    "lzma": (lambda path: compressed(lzma, path), DATA),
    "text of gzip": (lambda path: compressed(gzip, path, "rt"), DATA),
    "buffer over gzip": (lambda path: io.BufferedReader(compressed(gzip, path)), DATA),
    "member of tar": (member_of_tar, DATA),
    "member of zip": (member_of_zip, DATA),
    "response": (response, DATA),
    "class of its own": (Upper, DATA.upper()),
    "derived class": (UpperRaw, DATA.upper()),
    "buffer over a derived class": (lambda path: io.BufferedReader(UpperInto(path)), DATA.upper()),
    "derived buffer": (lambda path: UpperBuffer(io.FileIO(path)), DATA.upper()),
    "derived text": (lambda path: UpperText(io.FileIO(path)), DATA.upper()),
    "lines": (UpperLines, DATA.upper()),
    "spooled after a line": (lambda path: after(spooled("w+b", DATA), next), b"a\n"),
    "spooled text after a line": (
        lambda path: after(spooled("w+", DATA.decode()), lambda file: file.readline()),
        b"a\n",
    ),
    "behind what was written": (
        lambda path: after(path.open("r+b"), lambda file: file.write(b"B\n")),
        b"a\n",
    ),
    "after a line": (lambda path: after(path.open("rb"), next), b"a\n"),
    "text after a line": (lambda path: after(path.open(), lambda file: file.readline()), b"a\n"),
    "text between lines": (lambda path: after(path.open(), next), b"a\n"),
    "back at the start": (lambda path: after(path.open("rb"), back_at_the_start), DATA),
    "text back at the start": (lambda path: after(path.open(), back_at_the_start), DATA),
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(DATA)
    return path


def start(how, *argv, **options):
    """The result of a program, by each way to start one."""

    async def awaited():
        if how == "aio.run":
            return await aio.run(argv, **options)
        async with aio.spawn(argv, **options) as child:
            return await child.result()

    if how.startswith("aio"):
        return asyncio.run(awaited())
    if how == "run":
        return procwright.run(argv, **options)
    if how == "spawn":
        with procwright.spawn(argv, **options) as child:
            return child.result()
    if how == "stage":
        return procwright.pipeline({"args": argv, **options})
    return procwright.pipeline(argv, **options)


@pytest.mark.parametrize("how", ["run", "spawn", "aio.run", "aio.spawn", "pipeline"])
@pytest.mark.parametrize("kind", READ)
def test_stdin_is_what_the_file_reads(child, path, kind, how):
    made, contents = READ[kind]
    with contextlib.closing(made(path)) as file:
        assert start(how, child, "cat", stdin=file).stdout == contents


def test_what_waits_to_be_written_stands_where_it_was_written(child, path):
    with path.open("r+b") as file:
        file.write(b"B\n")
        assert procwright.run([child, "cat"], stdin=file).stdout == b"a\n"
    assert path.read_bytes() == b"B\na\n"


def test_a_response_goes_on_as_it_comes(child):
    here, there = socket.socketpair()
    there.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nfirst\n")
    with contextlib.closing(http.client.HTTPResponse(here)) as body, here, there:
        body.begin()
        with procwright.spawn([child, "cat"], stdin=body) as it:
            assert it.stdout.readline() == b"first\n"
            there.sendall(b"rest\n")
            assert it.stdout.readline() == b"rest\n"
            there.shutdown(socket.SHUT_RDWR)


def test_what_does_not_block_has_not_ended(child):
    class Never(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, into):
            return None

    with pytest.raises(BlockingIOError, match="stdin"):
        procwright.run([child, "cat"], stdin=io.BufferedReader(Never()))


def written(file):
    file.write(DATA)
    file.seek(0)
    return file


def of_socket(mode):
    here, there = socket.socketpair()
    there.close()
    with here:
        return here.makefile(mode)


PLAIN = {
    "file": lambda path: path.open("rb"),
    "text": lambda path: path.open(encoding="latin-1"),
    "no buffer": lambda path: path.open("rb", buffering=0),
    "moved": lambda path: after(path.open("rb"), lambda file: file.seek(2)),
    "fdopen": lambda path: os.fdopen(os.open(path, os.O_RDONLY)),
    "to read and write": lambda path: path.open("r+b"),
    "temporary": lambda path: written(tempfile.TemporaryFile()),
    "named temporary": lambda path: written(tempfile.NamedTemporaryFile()),
    "spooled": lambda path: written(tempfile.SpooledTemporaryFile()),
    "socket": lambda path: socket.socket(),
    "file of a socket": lambda path: of_socket("rb"),
}


@pytest.mark.parametrize("kind", PLAIN)
def test_stdin_is_the_descriptor_of_a_plain_file(path, kind):
    with PLAIN[kind](path) as file:
        shown = procwright.run(["readlink", "/proc/self/fd/0"], stdin=file, text=True, check=True)
        assert shown.stdout.strip() == os.readlink(f"/proc/self/fd/{file.fileno()}")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8", "utf-16-le"])
def test_a_text_file_goes_on_in_its_own_bytes(child, path, encoding):
    rest = "\xe4 \r\n\u20ac"[: 4 if encoding == "latin-1" else None].encode(encoding)
    path.write_bytes("first\r\n".encode(encoding) + rest)
    with path.open(encoding=encoding) as file:
        assert file.readline() == "first\n"
        assert procwright.run([child, "cat"], stdin=file).stdout == rest
        # The program has read all.
        assert file.read() == ""


def encrypted():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    here, there = socket.socketpair()
    there.close()
    return context.wrap_socket(here, do_handshake_on_connect=False, server_hostname="there")


def encrypted_file():
    with encrypted() as connection:
        return connection.makefile("wb", 0)


WRITE_THEMSELVES = {
    "gzip": lambda path: gzip.open(path, "wb"),
    "bz2": lambda path: bz2.open(path, "wb"),
    "lzma": lambda path: lzma.open(path, "wb"),
    "text of gzip": lambda path: gzip.open(path, "wt"),
    "buffer over gzip": lambda path: io.BufferedWriter(gzip.open(path, "wb")),
    "connection with TLS": lambda path: encrypted(),
    "file of a connection with TLS": lambda path: encrypted_file(),
}


@pytest.mark.parametrize("how", ["run", "spawn", "aio.run", "aio.spawn", "pipeline", "stage"])
@pytest.mark.parametrize("name", ["stdout", "stderr"])
@pytest.mark.parametrize("kind", WRITE_THEMSELVES)
def test_an_output_to_a_file_that_writes_itself_is_refused(child, path, kind, name, how):
    if name == "stdout" and how == "stage":
        pytest.skip("that of a stage is the next one's")
    with contextlib.closing(WRITE_THEMSELVES[kind](path)) as file:
        held = os.fstat(file.fileno())
        refused = rf"^{name}\b.*: the program would write past it.*pass tee=\{{'{name}': it\}}"
        with pytest.raises(procwright.InvalidValue, match=refused):
            start(how, child, "no-such-role", **{name: file})
        assert os.fstat(file.fileno()).st_size == held.st_size


def test_what_is_said_instead_is_right(child, path):
    with gzip.open(path, "wb") as file:
        procwright.run([child, "cat"], input=DATA, tee={"stdout": file})
    assert gzip.decompress(path.read_bytes()) == DATA
    with gzip.open(path, "wb") as file:
        procwright.run([child, "cat"], input=DATA, stdout=file.fileno())
    assert path.read_bytes().find(DATA) >= 0


SINKS = {
    "file": lambda path: path.open("wb"),
    "text": lambda path: path.open("w", encoding="latin-1"),
    "no buffer": lambda path: path.open("wb", buffering=0),
    "fdopen": lambda path: os.fdopen(os.open(path, os.O_WRONLY | os.O_TRUNC), "w"),
    "to read and write": lambda path: path.open("r+b"),
    "temporary": lambda path: tempfile.TemporaryFile(),
    "named temporary": lambda path: tempfile.NamedTemporaryFile("w+"),
    "spooled": lambda path: tempfile.SpooledTemporaryFile(),
    "socket": lambda path: socket.socket(),
    "file of a socket": lambda path: of_socket("wb"),
}


@pytest.mark.parametrize("name", ["stdout", "stderr"])
@pytest.mark.parametrize("kind", SINKS)
def test_an_output_goes_to_the_descriptor_of_a_plain_file(path, kind, name):
    link = f"/proc/self/fd/{1 if name == 'stdout' else 2}"
    with SINKS[kind](path) as file, tempfile.TemporaryFile() as other:
        for one, code in [(file, 0), (other, 1)]:
            ours = f"/proc/{os.getpid()}/fd/{one.fileno()}"
            argv = ["test", link, "-ef", ours]
            assert procwright.run(argv, **{name: file}).returncode == code


def test_a_request_is_answered_by_a_program(child):
    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            procwright.run([child, "cat"], input=DATA, stdout=self.wfile, check=True)

    here, there = socket.socketpair()
    with here, there:
        Handler(here, "there", None)
        assert there.recv(100) == DATA


def test_files_of_event_loops(child, path):
    async def main():
        async with await anyio.open_file(path) as file:
            result = await aio.run(["readlink", "/proc/self/fd/0"], stdin=file, text=True)
            assert result.stdout == f"{path}\n"
        refused = pytest.raises(procwright.InvalidValue, match="it has to be awaited")
        with compressed(gzip, path) as file, refused:
            await aio.run([child, "cat"], stdin=anyio.wrap_file(file))

        async with await anyio.open_file(path, "wb") as file:
            await file.write(b"ours\n")
            await aio.run([child, "cat"], input=DATA, stdout=file)
        assert path.read_bytes() == b"ours\n" + DATA

    asyncio.run(main())
