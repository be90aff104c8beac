"""Waiting until a child says something."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess

import pytest

import procwright
from procwright import (
    PIPE,
    EndedBeforeMatch,
    InvalidValue,
    MatchTimeout,
    StreamClosed,
    WaitTimeout,
    _wait_for,
    spawn,
)

#: Only against hanging.
LONG = 100


@pytest.fixture
def shell():
    started = []

    def start(line, **options):
        options.setdefault("text", True)
        started.append(spawn(line, shell=True, stdin=PIPE, **options))
        return started[-1]

    yield start
    for it in started:
        it.stop()


def test_a_server(shell):
    it = shell("echo starting; echo listening on port 8080; echo ready; cat")
    match = it.wait_for(r"port (\d+)", timeout=LONG)
    assert match[1] == "8080"
    assert match.string == "listening on port 8080"
    assert it.stdout.readline() == "ready\n"


def test_of_both_streams(shell):
    it = shell("echo one; echo two >&2; cat")
    assert it.wait_for("two")
    assert shell("echo two; echo two >&2; cat").wait_for("two", stream="stderr")


def test_bytes_and_compiled(shell):
    it = shell("echo ÄB; cat", text=False)
    assert it.wait_for(re.compile(b"b$", re.I), timeout=LONG)
    it.stdin.write(b"\xff\xfe\r\n")
    assert it.wait_for(b"\xff")[0] == b"\xff"
    with pytest.raises(TypeError, match=r"^pattern is 'text': pass a regular expression for bytes"):
        it.wait_for("text")


def test_a_prompt_has_no_newline(shell):
    it = shell("printf 'name? '; read name; printf 'hello %s, age? ' $name; cat")
    assert it.wait_for("name[?] $")
    it.stdin.write("me\n")
    assert it.wait_for("hello (.*), age")[1] == "me"
    it.stdin.write("rest\n")
    assert it.stdout.readline() == "? rest\n"


def test_the_end_comes_first(shell):
    it = shell("echo one; echo two >&2; exit 3")
    with pytest.raises(EndedBeforeMatch) as raised:
        it.wait_for("never", timeout=LONG)
    error = raised.value
    assert isinstance(error, subprocess.SubprocessError)
    assert (error.returncode, error.pattern) == (3, "never")
    assert sorted(error.lines) == ["one", "two"]
    assert " exited with code 3 before it said 'never'" in str(error)
    assert "    one" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_it_fails_while_another_holds_its_output(shell, child):
    it = shell(f"{child} sleep-forever & echo $!; exit 4")
    with pytest.raises(EndedBeforeMatch) as raised:
        it.wait_for("never", timeout=LONG)
    assert raised.value.returncode == 4
    os.kill(int(raised.value.lines[0]), signal.SIGKILL)


def test_what_a_launcher_leaves_behind_says_it(shell, child):
    it = shell(f"exec 3<&0; ({child} cat <&3; echo done) & exit 0")
    assert it.wait() == 0
    it.stdin.write("up\n")
    it.stdin.close()
    assert it.wait_for("up", timeout=LONG)
    assert it.wait_for("done", timeout=LONG)
    it.stdout.close()


def test_the_time_comes_first(shell):
    it = shell("echo one; echo two; cat")
    with pytest.raises(MatchTimeout) as raised:
        it.wait_for("never", timeout=0.05)
    error = raised.value
    assert isinstance(error, (WaitTimeout, subprocess.TimeoutExpired, TimeoutError))
    assert error.lines[:1] in (["one"], [])
    assert "0.05 s" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    it.stdin.write("never\n")
    assert it.wait_for("never", timeout=LONG)


def test_it_is_closed_meanwhile(shell, when_asleep):
    it = shell("cat", stderr=None)
    when_asleep(it.stdout.close)
    with pytest.raises(StreamClosed):
        it.wait_for("never")


def test_ctrl_c(shell, when_asleep):
    it = shell("cat")
    when_asleep(lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        it.wait_for("never")
    it.stdin.write("said\n")
    assert it.wait_for("said")


def test_a_flood_does_not_hide_the_time(child):
    it = spawn([child, "flood-forever"])
    with pytest.raises(MatchTimeout):
        it.wait_for(b"never", timeout=0.05)
    it.stop()


def test_refused(shell):
    it = shell("cat", stdout=None, stderr=None)
    with pytest.raises(InvalidValue, match="PIPE"):
        it.wait_for("x")
    it = shell("cat")
    with pytest.raises(InvalidValue, match="stderr"):
        it.wait_for("x", stream="both")
    with pytest.raises(
        InvalidValue, match=r"^pattern is '\(': .*unterminated subpattern"
    ) as caught:
        it.wait_for("(")
    assert isinstance(caught.value.__cause__, re.error)
    it = shell("echo x", merged=True)
    with pytest.raises(InvalidValue, match=r"child\.merged"):
        it.wait_for("x")


@pytest.mark.parametrize(
    "options",
    [{"encoding": "gbk"}, {"errors": "backslashreplace"}, {"encoding": "utf-16-le"}],
)
def test_what_was_decoded_already_is_looked_at(child, options):
    it = spawn([child, "cat"], stdin=PIPE, text=True, **options)
    it.stdin.write("one\ntwo\r\nready\nname? ")
    assert it.stdout.readline() == "one\n"
    # All that was written has gone through the decoder by now.
    assert it.wait_for("^ready$", LONG)[0] == "ready"
    assert it.wait_for(r"\? $", LONG)[0] == "? "
    it.stdin.write("last")
    it.stdin.close()
    with pytest.raises(EndedBeforeMatch, match="last"):
        it.wait_for("never", LONG)


def test_what_a_callback_reads_is_not_taken_from_it(child):
    lines = []
    with spawn([child, "cat"], stdin=PIPE, on_stdout_line=lines.append) as it:
        with pytest.raises(InvalidValue, match=r"is read by its callback: look there$"):
            it.wait_for(b"x", LONG, stream="stdout")
        # Of both: a search of the other alone would wait in vain.
        with pytest.raises(InvalidValue, match='look there; stream="stderr" searches that alone'):
            it.wait_for(b"x", LONG)
        with pytest.raises(MatchTimeout):
            it.wait_for(b"x", 0, stream="stderr")
        it.stdin.write(b"x\n")
    assert lines == [b"x\n"]


#: The native decoder of text, Python's, and none.
DECODED = [{}, {"errors": "backslashreplace"}, {"encoding": "utf-16-le"}, {"text": False}]


@pytest.mark.parametrize("options", DECODED)
def test_what_is_behind_the_match_stays(child, options):
    options = {"text": True, **options}
    with spawn([child, "cat"], stdin=PIPE, **options) as it:
        said = (lambda text: text) if options["text"] else str.encode
        it.stdin.write(said("Zoë: port 80 port 443 ünd weiter\r\na b c\nlast: "))
        assert it.wait_for(said(r"port (\d+)"), LONG)[1] == said("80")
        assert it.wait_for(said(r"port (\d+)"), LONG)[1] == said("443")
        assert it.wait_for(said("ü"), LONG).string == said(" ünd weiter")
        assert it.stdout.readline() == said("nd weiter\r\n")
        assert it.wait_for(said("a"), LONG)
        assert it.wait_for(said("b"), LONG)
        # With the end of the line, behind which nothing else is.
        assert it.wait_for(said("c"), LONG)
        assert it.wait_for(said("la"), LONG)
        assert it.wait_for(said("^st: $"), LONG)
        it.stdin.write(said("one two\nthree\n"))
        it.stdin.close()
        assert it.wait_for(said("one"), LONG)
        assert list(it.stdout) == [said(" two\n"), said("three\n")]


def a_line(it):
    return it.stdout.readline()


def a_loop(it):
    return next(iter(it.stdout))


def what_is_here(it):
    return it.stdout.read1()


def another_search(it):
    assert not it.before
    nothing = it.before
    match = it.wait_for("next" if isinstance(nothing, str) else b"next", LONG)
    assert not it.before, "the end of the line is no part of what stood before"
    return match[0] + ("\n" if isinstance(nothing, str) else b"\n")


@pytest.mark.parametrize("read", [a_line, a_loop, what_is_here, another_search])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("options", DECODED)
def test_the_end_of_the_line_is_passed_over_that_comes_later(child, options, end, read):
    options = {"text": True, **options}
    with spawn([child, "cat"], stdin=PIPE, **options) as it:
        said = (lambda text: text) if options["text"] else str.encode
        it.stdin.write(said("ready"))
        assert it.wait_for(said("ready"), LONG)
        # By itself, which whoever reads is not told of.
        it.stdin.write(said(end))
        with pytest.raises(WaitTimeout):
            it.stdout.readline(timeout=0.05)
        it.stdin.write(said("next\n"))
        assert read(it) == said("next\n")


@pytest.mark.parametrize("options", DECODED)
def test_no_more_than_the_end_of_the_line_is_passed_over(child, options):
    options = {"text": True, **options}
    with spawn([child, "cat"], stdin=PIPE, **options) as it:
        said = (lambda text: text) if options["text"] else str.encode
        lines = []
        for rest in ("\n\n", " it is\n", "\r!\n", ""):
            it.stdin.write(said("ready"))
            assert it.wait_for(said("ready"), LONG)
            it.stdin.write(said(rest + "next\n"))
            while not lines or lines[-1] != said("next\n"):
                lines.append(it.stdout.readline())
            lines[-1] = said("|")
        assert said("").join(lines) == said("\n| it is\n|\r!\n||")
        it.stdin.write(said("ready"))
        assert it.wait_for(said("ready"), LONG)
        it.stdin.write(said("\nall of the rest\n"))
        assert it.communicate()[0] == said("all of the rest\n")


def test_two_prompts_at_once_are_two(shell):
    # In one piece, in two, and as the line whose end comes later.
    for line in (
        "printf 'Connected. Password: '; cat",
        "printf 'Connected. '; printf 'Password: '; cat",
        "printf 'Connected. Password: \\n'; cat",
    ):
        it = shell(line, pty=True)
        assert it.wait_for("Connected", LONG)
        assert it.wait_for("Password: ", LONG)


def test_a_match_of_nothing_goes_on_with_the_next_line(shell):
    it = shell("echo one; echo two; printf 'name: '; cat")
    assert [it.wait_for("x*", LONG).string for _ in range(3)] == ["one", "two", "name: "]
    it.stdin.write("four\n")
    assert it.wait_for("$", LONG).string == "four"


def test_the_end_of_a_line_can_be_waited_for(shell):
    it = shell("printf 'port 8'; read x; printf '080\\r\\nready\\nsteady\\n'; cat")
    it.stdin.write("\n")
    assert it.wait_for(r"port (\d+)\r?\n", LONG)[1] == "8080"
    assert it.wait_for("ready\n", LONG)[0] == "ready\n"
    assert it.stdout.readline() == "steady\n"
    it.stdin.write("one\ntwo\n")
    with pytest.raises(MatchTimeout, match=r"'one\\ntwo' \(which is looked for in one line at a"):
        it.wait_for("one\ntwo", 0.05)


@pytest.mark.parametrize(
    ("errors", "expected"),
    [("replace", b"\xe2\x82b rest\n"), ("ignore", b"b rest\n"), ("surrogateescape", None)],
)
def test_of_what_cannot_be_decoded_nothing_is_lost(child, errors, expected):
    with spawn([child, "cat"], stdin=PIPE, text=True, errors=errors) as it:
        it.stdin.buffer.write(b"\xffa\xe2\x82b rest\n")
        assert it.wait_for("a", LONG)
        rest = it.stdout.buffer.readline()
        assert rest in (b"\xe2\x82b rest\n", expected)


def test_a_character_that_is_not_whole_yet_is_waited_for(child):
    with spawn([child, "cat"], stdin=PIPE, text=True, errors="strict") as it:
        it.stdin.buffer.write("name: ä".encode()[:-1])
        assert it.wait_for("name", LONG)
        it.stdin.buffer.write("ä\n".encode()[1:])
        assert it.stdout.readline() == ": ä\n"


def test_the_rest_is_in_the_result(shell):
    it = shell("echo one two; echo three")
    assert it.wait_for("one", LONG)
    assert it.communicate()[0] == " two\nthree\n"


def test_what_stood_before_the_match(child):
    for text in (False, True):

        def said(word, text=text):
            return word if text else word.encode()

        with spawn(["cat"], stdin=PIPE, text=text) as cat:
            assert cat.before is None
            cat.stdin.write(said("one\ntwo\r\nthree > four > "))
            cat.wait_for(said("> "), timeout=60)
            assert cat.before == said("one\ntwo\r\nthree ")
            cat.wait_for(said("> "), timeout=60)
            assert cat.before == said("four ")
            # A search that finds nothing has passed over nothing.
            with pytest.raises(MatchTimeout):
                cat.wait_for(said("> "), timeout=0)
            assert cat.before == said("")
            cat.stdin.write(said("x" * 600_000 + "\n") + said("y" * 600_000 + "\nend\n"))
            cat.wait_for(said("end"), timeout=60)
            assert len(cat.before) == 1 << 20
            assert cat.before.endswith(said("y\n"))


@pytest.mark.parametrize("text", [False, True])
def test_what_a_search_without_a_match_has_passed_over(text):
    def said(word):
        return word if text else word.encode()

    cat = spawn(["cat"], stdin=PIPE, text=text)
    cat.stdin.write(said("one\n> two\r\nthree\nfo"))
    cat.wait_for(said("> "), timeout=LONG)
    # One write of less than PIPE_BUF came at once.
    with pytest.raises(MatchTimeout) as raised:
        cat.wait_for(said("missing"), timeout=0)
    assert raised.value.lines == [said("two"), said("three"), said("fo")]
    assert cat.before == said("two\r\nthree\n")
    # What is no whole line stays.
    cat.stdin.write(said("ur\nfive\nsix"))
    cat.stdin.close()
    with pytest.raises(EndedBeforeMatch):
        cat.wait_for(said("missing"), timeout=LONG)
    assert cat.before == said("four\nfive\nsix")
    assert cat.wait(timeout=LONG) == 0


def test_what_a_search_that_ctrl_c_ends_has_passed_over(shell, when_asleep):
    it = shell("echo one; cat")
    # The line is there before the search, which sleeps behind it.
    it.stdout.buffer.peek(1)
    when_asleep(lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        it.wait_for("never")
    assert it.before == "one\n"


@pytest.fixture
def looks_too_early(monkeypatch):
    """The first look at an output comes before what is there."""

    def begin(it):
        for stream in (it.stdout, it.stderr):
            assert procwright.wait([stream], timeout=LONG).done
        look, looks = _wait_for._Search.find_in, []

        def find_in(search, one):
            looks.append(one)
            return None if len(looks) == 1 else look(search, one)

        monkeypatch.setattr(_wait_for._Search, "find_in", find_in)

    return begin


def test_what_came_before_a_match_in_the_other_output_is_passed_over(shell, looks_too_early):
    it = shell("printf 'answer\nmore\n'; printf '(a) > ' >&2; cat")
    looks_too_early(it)
    assert it.wait_for("> $", timeout=LONG)
    assert it.before == "answer\nmore\n(a) "


def test_what_matches_in_the_other_output_stays_there(shell, looks_too_early):
    it = shell("printf 'one\nready 1\ntwo\n'; echo ready 2 >&2; cat")
    looks_too_early(it)
    assert it.wait_for(r"ready \d", timeout=LONG)[0] == "ready 2"
    assert it.before == "one\n"
    assert it.wait_for(r"ready \d", timeout=LONG)[0] == "ready 1"
    assert it.stdout.readline() == "two\n"
