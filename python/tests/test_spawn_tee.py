"""Copies of a child's output: `tee` and `keep_full` of `spawn`, and the places of `tee`."""

import contextlib
import io
import os
import pathlib
import sys
import tempfile
import threading
import time

import pytest
from conftest import with_time

from procwright import DEVNULL, INHERIT, PIPE, InvalidValue, Overflow, SpawnError, run, spawn

BOTH = "echo out; echo err >&2"


def both(**options):
    return spawn(BOTH, shell=True, **options)


def lines(text):
    return sorted(text.splitlines())


def test_on_our_own_streams(script, child):
    code = (
        "import sys, procwright\n"
        "child = procwright.spawn('echo a; echo b >&2', shell=True, tee={})\n"
        "assert child.wait() == 0\n"
        # A wait is for the copy, too: this comes behind it.
        "print('end', flush=True)\n"
        "assert child.communicate() == (b'a\\n', b'b\\n')\n"
    )
    assert script(code.format("True"), child).communicate() == ("a\nend\n", "b\n")
    one = "{'stderr': True}"
    assert script(code.format(one), child).communicate() == ("end\n", "b\n")
    # What is shown is not told again.
    told = (
        "import procwright\n"
        "child = procwright.spawn('echo b >&2; sleep 60', shell=True, tee={}, text=True)\n"
        "child.stderr.readline()\n"
        "try: child.wait(0.2)\n"
        "except procwright.WaitTimeout as error: print('end of stderr' in str(error))\n"
        "child.stop('KILL')\n"
    )
    assert script(told.format("True"), child).communicate() == ("False\n", "b\n")
    assert script(told.format("False"), child).communicate() == ("True\n", "")


def test_files_of_pythons(capsys):
    with both(tee=sys.stdout, text=True) as child:
        assert child.wait() == 0
    assert lines(capsys.readouterr().out) == ["err", "out"]
    with contextlib.redirect_stderr(io.StringIO()) as redirected:
        child = both(tee={"stdout": sys.stdout, "stderr": sys.stderr})
        assert child.communicate() == (b"out\n", b"err\n")
    assert (capsys.readouterr().out, redirected.getvalue()) == ("out\n", "err\n")
    copy = io.BytesIO()
    child = both(tee=copy, merged=True)
    child.wait()
    assert lines(copy.getvalue()) == [b"err", b"out"]
    # Characters whose bytes come apart.
    copy = io.StringIO()
    with spawn(["printf", "\\303"], tee=copy):
        pass
    assert copy.getvalue() == "�"


@pytest.mark.parametrize("start", [run, spawn])
def test_paths_and_descriptors(start, tmp_path):
    def done(**options):
        started = start(BOTH, shell=True, **options)
        return started if start is run else started.result()

    path = tmp_path / "copy"
    path.write_text("of before")
    with pytest.raises(SpawnError):
        start(["/no/such/program"], tee=path)
    assert path.read_text() == "of before"
    for name in (path, str(path), os.fsencode(path)):
        result = done(tee=name)
        assert (result.stdout, result.stderr) == (b"out\n", b"err\n")
        assert lines(path.read_text()) == ["err", "out"]
    done(tee={"stderr": path, "stdout": None})
    assert path.read_text() == "err\n"
    done(tee={"stderr": path, "stdout": tmp_path / "other"})
    assert (tmp_path / "other").read_text() == "out\n"
    with open(path, "wb") as file:
        done(tee=file.fileno())
    assert lines(path.read_text()) == ["err", "out"]
    with open(path, "w") as file:
        done(tee=file)
    assert lines(path.read_text()) == ["err", "out"]
    with pytest.raises(SpawnError) as caught:
        start(["true"], tee=tmp_path / "no" / "such")
    assert "it is to get a copy of the output: name a file" in str(caught.value)
    with pytest.raises(OSError, match="No space"):
        done(tee="/dev/full")


@pytest.mark.parametrize("start", [run, spawn])
def test_what_cannot_be_copied_is_refused(start, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for options, text in [
        ({"tee": "stderr"}, "tee is 'stderr': pass {\"stderr\": True} for that stream alone, or "),
        ({"tee": {"out": True}}, 'tee is {\'out\': True}: its keys are "stdout" and "stderr"'),
        ({"tee": {"stdout": "stdout"}}, "tee is 'stdout': pass {\"stdout\": True}"),
        (
            {"tee": True, "stdout": DEVNULL, "stderr": INHERIT},
            "tee is True: it needs stdout or stderr captured",
        ),
        ({"tee": {"stderr": True}, "stderr": DEVNULL}, "tee['stderr'] is True: it needs stderr"),
        ({"tee": {"stderr": True}, "pty": True}, "tee['stderr'] is True: it needs stderr"),
        ({"tee": "a\0b"}, "tee is 'a\\x00b', which contains a NUL byte"),
        ({"tee": "x", "keep_full": "x"}, "tee is 'x': keep_full names that file too"),
        ({"tee": {"stdout": "x", "stderr": "./x"}}, "tee['stderr'] is './x': tee['stdout'] names"),
        ({"stdout": "x", "tee": pathlib.Path("x")}, "tee is "),
    ]:
        with pytest.raises(InvalidValue) as caught:
            start([sys.executable, "--version"], **options)
        assert str(caught.value).startswith(text)
    assert os.listdir(tmp_path) == []


def test_what_spawn_refuses():
    ahead = 'it needs output to be read ahead, and overflow="block" keeps none: use "spill", '
    with pytest.raises(InvalidValue) as caught:
        both(tee=True, overflow="block")
    assert str(caught.value).startswith(f"tee is True: {ahead}")
    with pytest.raises(InvalidValue) as caught:
        both(keep_full="/x", overflow="block")
    assert str(caught.value).startswith("keep_full is '/x', which needs output to be read ahead")


def test_all_is_copied_where_some_is_dropped(child):
    copy = io.BytesIO()
    flood = spawn(
        [child, "flood", "--out", "1M"], tee=copy, overflow=Overflow("drop_oldest", memory=65536)
    )
    assert flood.wait() == 0
    assert len(copy.getvalue()) == 1 << 20
    assert len(flood.stdout.read()) < 1 << 20


def test_keep_full(child, tmp_path):
    path = tmp_path / "full"
    flood = spawn([child, "flood", "--out", "1M", "--err", "10"], keep_full=path)
    assert flood.wait() == 0
    assert path.stat().st_size == 1 << 20
    assert (tmp_path / "full.stderr").stat().st_size == 10
    result = flood.result()
    assert path.read_bytes() == result.stdout
    assert result.stdout_info.kept_at == str(path)
    assert result.stdout_info.kept_error is None
    full = spawn([child, "echo", "x"], keep_full="/dev/full", stderr=DEVNULL).result()
    assert full.stdout_info.kept_error.endswith("; 2 bytes are missing")


class Boom(Exception):
    pass


def ask(child, way):
    if way == "block":
        with child:
            return
    if way != "poll":
        getattr(child, way)()
    while True:
        child.poll()


def test_what_a_file_raises_does_not_end_the_program_of_a_block(caplog):
    class Broken:
        def write(self, data):
            raise Boom("no room")

    line = "trap 'exit 9' TERM; echo x; read end; sleep 0.2; exit 7"
    child = spawn(line, shell=True, stdin=PIPE, tee=Broken())
    while "has raised Boom" not in caplog.text:
        time.sleep(0.001)
    with pytest.raises(Boom), child:
        pass
    assert child.returncode == 7


@pytest.mark.parametrize("way", ["wait", "communicate", "result", "poll", "block"])
def test_what_a_file_raises_is_logged_at_once_and_raised_once(way, child, caplog):
    seen = threading.Event()

    class Broken:
        def write(self, data):
            seen.set()
            raise Boom("no room")

    flood = spawn([child, "flood", "--out", "1M"], tee=Broken())
    assert seen.wait(60)
    # What is in the log is told by the next call, whichever that is.
    while "has raised Boom: no room; the file gets no more" not in caplog.text:
        time.sleep(0.001)
    with pytest.raises(Boom):
        ask(flood, way)
    # The stream is its reader's all the same.
    assert len(flood.communicate()[0]) == 1 << 20
    assert flood.wait() == 0


def test_a_file_may_ask_for_its_own_child():
    told = []
    given = threading.Event()

    class Asks:
        def write(self, data):
            given.wait(60)
            told.append(child.wait())

    child = spawn(["echo", "x"], tee=Asks())
    given.set()
    assert child.wait() == 0
    assert told == [0]


def test_a_file_that_is_stuck_holds_up_no_timeout(child):
    from procwright import TimeoutExpired

    gate = threading.Event()

    class Stuck:
        def write(self, data):
            gate.wait()

    def check(seconds):
        options = {"timeout": seconds, "stop": "KILL", "stall_after": None}
        flood = spawn([child, "flood-forever"], tee=Stuck(), **options)
        with pytest.raises(TimeoutExpired) as caught:
            flood.result()
        info = caught.value.result.stdout_info
        assert info.bytes == len(caught.value.stdout) >= info.undelivered_bytes > 0

    try:
        with_time(check)
    finally:
        gate.set()


def test_the_end_of_stderr_is_in_the_text_of_every_wait_that_times_out(child):
    script = "echo said >&2; echo ready; sleep 60"
    for options, read in [({}, None), ({"merged": True}, "merged"), ({"pty": True}, None)]:
        waiting = spawn(script, shell=True, stop="KILL", **options)
        if read == "merged":
            next(iter(waiting.merged))
        else:
            waiting.wait_for(rb"ready", stream="stdout")
        for _ in range(200):
            with pytest.raises(TimeoutError) as caught:
                waiting.wait(0.1)
            if "said" in str(caught.value):
                break
        of = "its output" if options.get("pty") else "stderr"
        assert f"\n  the end of {of}:\n    said" in str(caught.value)
        waiting.stop()

    # That of a limit of its own has it, too, though nobody has read it.
    def check(seconds):
        limited = spawn(script, shell=True, timeout=seconds, stop="KILL")
        with pytest.raises(TimeoutError) as caught:
            limited.wait()
        assert "the end of stderr:\n    said" in str(caught.value)

    with_time(check)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("timeout", 5),
        ("idle_timeout", 5),
        ("limit", 5),
        ("keep_full", "x"),
        ("until", "exit"),
        ("until", "silent:2s"),
    ],
)
def test_what_ends_with_us_is_refused_with_detach(name, value):
    with pytest.raises(InvalidValue) as caught:
        spawn(["true"], detach=True, stdout=DEVNULL, stderr=DEVNULL, **{name: value})
    start = f"{name} is {value!r}, which ends with us, and with detach=True the program lives on: "
    assert str(caught.value).startswith(start)


def test_cancel_and_tee_are_refused_with_detach():
    from procwright import Cancel

    for name, value in [("cancel", Cancel()), ("tee", True)]:
        with pytest.raises(InvalidValue, match=rf"^{name} is .*with detach=True the program lives"):
            spawn(["true"], detach=True, stdout=DEVNULL, stderr=DEVNULL, **{name: value})


class Written:
    """An object that does not tell what it takes."""

    def __init__(self, **attributes):
        self.all = []
        self.__dict__.update(attributes)

    def write(self, data):
        self.all.append(data)


def test_an_object_that_does_not_tell_gets_what_the_result_has(child):
    for call in (run, lambda *given, **options: spawn(*given, **options).wait()):
        for options, file, gets in (
            ({}, Written(), bytes),
            ({"text": True}, Written(), str),
            ({"encoding": "utf-8"}, Written(), str),
            ({"text": True}, Written(mode="wb"), bytes),
            ({}, Written(encoding=None), str),
        ):
            call([child, "echo", "é"], tee=file, **options)
            assert {type(data) for data in file.all} == {gets}
            assert gets().join(file.all) == ("é\n" if gets is str else "é\n".encode())
    with tempfile.TemporaryFile() as file:
        run([child, "echo", "x"], tee=file, text=True)
        file.seek(0)
        assert file.read() == b"x\n"
