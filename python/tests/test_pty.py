"""A program on a terminal of its own."""

import logging
import os
import re
import sys
import time

import pytest
from conftest import with_time

import procwright
from procwright import DEVNULL, INHERIT, PIPE, STDOUT, _child, run, spawn


def python(code):
    return [sys.executable, "-c", code]


TELL = (
    "import os, sys; print([os.isatty(n) for n in range(3)], *os.get_terminal_size(1)[::-1]); "
    "sys.stdout.flush(); print('err', file=sys.stderr)"
)


def test_output_is_a_terminal():
    result = run(python(TELL), pty=(31, 97), text=True)
    assert result.stdout == "[False, True, True] 31 97\r\nerr\r\n"
    assert result.stderr is None
    assert result.stdout_info.blocked_s is None
    assert result.stderr_info is None


def test_without_a_terminal_of_ours_it_is_24_by_80():
    # Of a program that has none at all.
    code = (
        "import procwright, sys; "
        f"print(procwright.run([sys.executable, '-c', {TELL!r}], pty=True, text=True).stdout)"
    )
    result = run(python(code), text=True, check=True)
    assert "24 80" in result.stdout
    # And of one that has: this is it.
    assert "7 9" in run(python(code), pty=(7, 9), text=True).stdout


def test_input_is_exact():
    data = bytes(range(256)) * 1000
    code = "import sys; d = sys.stdin.buffer.read(); print(len(d), sum(d), sys.stdout.isatty())"
    assert run(python(code), input=data, pty=True).stdout == f"256000 {sum(data)} True\r\n".encode()


def test_all_of_it_is_there():
    code = "import sys; sys.stdout.write(''.join(f'{n}\\n' for n in range(150000)))"
    expected = "".join(f"{n}\r\n" for n in range(150000))
    assert run(python(code), pty=True, text=True).stdout == expected
    with spawn(python(code), pty=True, text=True) as child:
        assert child.stdout.read() == expected


def test_lines_and_copies(capfd):
    lines = []
    result = run(["printf", "a\\nb\\n"], pty=True, on_line=lines.append, tee=True, text=True)
    assert lines == ["a\r\n", "b\r\n"]
    assert result.stdout == "a\r\nb\r\n"
    assert capfd.readouterr().out == "a\r\nb\r\n"


def test_an_interpreter():
    env = {"TERM": "dumb", "PYTHON_BASIC_REPL": "1", "PYTHONSTARTUP": None}
    args = [sys.executable, "-q", "-I"]
    with spawn(args, stdin=PIPE, pty=True, text=True, extra_env=env) as child:
        child.wait_for(r">>> $", timeout=60)
        child.stdin.write("print(6 * 7)\n")
        child.wait_for(r"^42", timeout=60)
        child.wait_for(r">>> $", timeout=60)
        child.stdin.write("import sys; sys.stdin.isatty()\n")
        child.wait_for("^True", timeout=60)
        # Before it asks it sets up the terminal, and a Ctrl-D from before that is lost.
        child.wait_for(r">>> $", timeout=60)
    # The end of its input, typed when the block was left.
    assert child.returncode == 0


def test_communicate():
    child = spawn(
        ["sh", "-c", "stty -echo; echo ready; cat; exit 3"], stdin=PIPE, pty=True, text=True
    )
    child.wait_for("ready", timeout=60)
    out, err = child.communicate("one\ntwo", timeout=60)
    assert (out, err) == ("one\r\ntwo", None)
    assert child.returncode == 3


def test_resize():
    code = (
        "import os, signal, sys, time\n"
        "def tell(*_): print(*os.get_terminal_size(1)[::-1]); sys.exit(4)\n"
        "signal.signal(signal.SIGWINCH, tell)\n"
        "print('ready', flush=True)\n"
        # A signal right before a pause would be handled behind it.
        "while True: time.sleep(0.01)\n"
    )
    with spawn(python(code), pty=True, text=True) as child:
        child.wait_for("ready", timeout=60)
        child.resize(11, 22)
        # The end of the line may come behind the word.
        assert child.stdout.read().removeprefix("\r\n") == "11 22\r\n"
    assert child.returncode == 4

    # Whoever shows it is about to see that nobody has it.
    def until_it_is_gone():
        while True:
            child.resize(1, 1)
            time.sleep(0.001)

    with pytest.raises(BrokenPipeError):
        until_it_is_gone()
    with spawn(["true"]) as child, pytest.raises(RuntimeError, match="no terminal"):
        child.resize(1, 1)
    with spawn(["true"], pty=True) as child:
        for rows, columns in [(0, 1), (1, -1), (65536, 1), ("1", 1)]:
            with pytest.raises(
                procwright.InvalidValue, match=r"^(rows|columns) is .*: pass a number of rows"
            ):
                child.resize(rows, columns)


def test_the_size_of_another_terminal():
    # Which has the columns first.
    size = os.terminal_size((80, 24))
    assert "24 80" in run(python(TELL), pty=size, text=True).stdout


def test_closing_its_output_hangs_up():
    child = spawn(["sh", "-c", "echo ready; while :; do sleep 1; done"], stdin=PIPE, pty=True)
    child.wait_for(b"ready", timeout=60)
    child.stdout.close()
    assert child.wait(timeout=60) == -1
    with pytest.raises(procwright.StreamClosed):
        child.stdin.write(b"x")


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"pty": (0, 80)}, "rows, columns"),
        ({"pty": 24}, "rows, columns"),
        ({"pty": "24x80"}, "rows, columns"),
        ({"pty": True, "stdout": INHERIT}, "stdout is"),
        ({"pty": True, "stdout": DEVNULL}, "stdout is DEVNULL"),
        ({"pty": True, "stderr": INHERIT}, "stderr is"),
        ({"pty": True, "merged": True}, "merged"),
        ({"pty": True, "process_group": 0}, "process_group"),
        ({"pty": True, "on_stderr_line": print}, "on_stdout_line"),
    ],
)
@pytest.mark.parametrize("start", [run, spawn])
def test_what_cannot_be_had(start, options, part):
    with pytest.raises(procwright.InvalidValue, match=part):
        start(["/nonexistent"], **options)


def test_what_a_child_cannot_have():
    with pytest.raises(procwright.InvalidValue, match="bare pipe"):
        spawn(["/nonexistent"], pty=True, overflow="block")
    with pytest.raises(procwright.InvalidValue, match="INHERIT"):
        spawn(["/nonexistent"], pty=True, stdin=INHERIT)


def test_errors_may_go_elsewhere(tmp_path):
    path = tmp_path / "errors"
    result = run(python(TELL), pty=(5, 6), stderr=path, text=True)
    assert result.stdout == "[False, True, False] 5 6\r\n"
    assert path.read_text() == "err\n"
    assert run(["sh", "-c", "echo a; echo b >&2"], pty=True, stderr=STDOUT).stdout == b"a\r\nb\r\n"


def test_a_timeout_has_what_was_shown():
    def check(seconds):
        with pytest.raises(procwright.TimeoutExpired) as caught:
            run(["sh", "-c", "echo here; exec sleep 1000"], pty=True, timeout=seconds)
        assert caught.value.result.stdout == b"here\r\n"
        assert str(caught.value).endswith("\n  the end of its output:\n    here")
        assert not os.path.exists(f"/proc/{caught.value.result.pid}")

    with_time(check)


def test_a_failure_has_what_was_shown():
    args = ["sh", "-c", "echo why >&2; exit 3"]
    with pytest.raises(procwright.CalledProcessError, match=r"the end of its output:\n    why$"):
        run(args, pty=True, check=True)
    with spawn(args, pty=True) as child:
        assert "the end of its output:\n    why" in child.result().explanation


def test_a_failure_whose_stderr_goes_where_stdout_goes_has_the_end_of_both():
    args = ["sh", "-c", "echo out; echo why >&2; exit 3"]
    said = r"\n  the end of its output:\n    out\n    why$"
    with pytest.raises(procwright.CalledProcessError, match=said):
        run(args, stderr=STDOUT, check=True)
    with spawn(args, stderr=STDOUT) as child:
        assert re.search(said, child.result().explanation)
    # The reader of another program's words, and not of its own.
    assert "the end of" not in run(args, stderr=STDOUT, stdout=DEVNULL).explanation


def test_another_prompt_than_was_expected():
    with spawn(["sh", "-c", "echo hello; printf 'Password: '; cat"], stdin=PIPE, pty=True) as child:
        child.wait_for(b"hello", timeout=60)
        said = ""
        while "Password: " not in said:  # it was not there yet to be looked at
            with pytest.raises(procwright.MatchTimeout) as caught:
                child.wait_for(b"login: ", timeout=0.01)
            said = str(caught.value)
        child.wait_for(b"Password: ", timeout=60)


#: Throws away what was typed, once the end is among it, and then reads.
DISCARDS = """
import select, sys, termios
print("ready", flush=True)
select.select([0], [], [])
termios.tcflush(0, termios.TCIFLUSH)
print("got", repr(sys.stdin.read()), flush=True)
"""


def test_the_end_of_a_block_is_typed_again_to_who_has_thrown_it_away(monkeypatch):
    monkeypatch.setattr(_child, "_LEFT_OFF_S", 0.05)
    with spawn(python(DISCARDS), stdin=PIPE, pty=True, text=True) as child:
        child.wait_for("ready")
    assert child.returncode == 0
    # The end of the first line may have come behind what was looked for.
    assert child.stdout.read().lstrip() == "got ''\r\n"


def test_the_end_of_a_block_is_typed_to_all_that_read_one_after_the_other(monkeypatch):
    monkeypatch.setattr(_child, "_LEFT_OFF_S", 0.05)
    with spawn("cat; cat; exit 7", shell=True, stdin=PIPE, pty=True) as child:
        pass
    assert child.returncode == 7


def test_the_end_of_a_block_is_typed_again_on_event_loops(monkeypatch):
    anyio = pytest.importorskip("anyio")
    from procwright import aio

    monkeypatch.setattr(_child, "_LEFT_OFF_S", 0.05)

    async def main():
        async with aio.spawn(python(DISCARDS), stdin=PIPE, pty=True, text=True) as child:
            await child.wait_for("ready")
        assert child.returncode == 0

    anyio.run(main)


def test_a_program_that_does_not_end_for_its_end_is_told_of(monkeypatch):
    monkeypatch.setattr(_child, "_LEFT_OFF_S", 0.05)
    told = []

    class Handler(logging.Handler):
        def emit(self, record):
            told.append(record.getMessage())
            child.stop("KILL")

    handler = Handler()
    logger = logging.getLogger("procwright")
    logger.addHandler(handler)
    try:
        with spawn("while :; do cat; done", shell=True, stdin=PIPE, pty=True) as child:
            pass
    finally:
        logger.removeHandler(handler)
    [text] = told
    assert f"(pid {child.pid}), which waits for input at its terminal and does not end" in text
