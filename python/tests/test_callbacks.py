"""Callbacks that take their time, never return, or raise: no deadline waits for them, they
have the grace of the stop, and no exception is lost."""

import logging
import signal
import sys
import threading

import pytest
from conftest import with_time

import procwright
from procwright import Overflow, Stop, run, spawn

SOON = Stop(grace=0.05)
#: Seconds that a callback would hold a run up: longer than any deadline here.
LONG = 200


class Gate:
    """Holds callbacks up, and knows whether one has come through."""

    def __init__(self):
        self.reached = threading.Event()
        self.open = threading.Event()
        self.passed = False

    def __call__(self, *_):
        self.reached.set()
        self.open.wait(LONG)
        self.passed = True


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.open.set()


@pytest.fixture
def unraisable(monkeypatch):
    told = []
    came = threading.Event()

    def hook(args):
        told.append(args.exc_value)
        came.set()

    monkeypatch.setattr(sys, "unraisablehook", hook)
    told_by = type("Told", (), {"values": told, "wait": lambda self: came.wait(LONG)})
    return told_by()


def test_an_event_hook_that_blocks_holds_up_no_deadline(child, gate):
    def check(seconds):
        options = {"timeout": seconds, "on_timeout": "return", "stop": SOON}
        result = run([child, "fork-holder", "0"], on_event=gate, **options)
        assert gate.reached.is_set()
        assert not gate.passed
        assert result.reason == "timeout"
        assert not result.survivors

    with_time(check)


def test_a_logging_handler_that_blocks_holds_up_no_deadline(child, gate):
    handler = logging.Handler()
    handler.emit = gate
    logger = logging.getLogger("procwright")
    logger.addHandler(handler)

    def check(seconds):
        with pytest.raises(procwright.TimeoutExpired):
            run([child, "fork-holder", "0"], timeout=seconds, stop=SOON)
        assert gate.reached.is_set()
        assert not gate.passed

    try:
        with_time(check)
    finally:
        # The handler has a lock, which its removal waits for.
        gate.open.set()
        logger.removeHandler(handler)


def test_an_event_hook_of_a_child_holds_up_neither_it_nor_others(child, gate):
    flood = spawn(
        [child, "flood", "--out", "1M"],
        overflow=Overflow("drop_oldest", memory=65536),
        on_event=gate,
    )
    gate.reached.wait()
    assert flood.wait() == 0
    with spawn([child, "flood", "--out", "1M"]) as other:
        assert len(other.stdout.read()) == 1 << 20
    assert not gate.passed


def test_ctrl_c_while_an_event_hook_is_at_work(script, child):
    code = (
        "import sys, threading, procwright\n"
        "def hook(event):\n"
        "    print('ready', flush=True)\n"
        "    threading.Event().wait()\n"
        "try:\n"
        "    procwright.run([sys.argv[1], 'fork-holder', '0'], start_new_session=True,\n"
        "                   stop=procwright.Stop(grace=0.1), on_event=hook)\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    process = script(code, child)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate() == ("interrupted\n", "")


def test_the_second_exception_is_told(child, unraisable):
    both = threading.Barrier(2)

    def raises(name):
        def callback(line):
            both.wait(LONG)
            raise KeyError(name)

        return callback

    with pytest.raises(KeyError) as caught:
        run(
            "echo a; echo b >&2; exec sleep 1000000",
            shell=True,
            on_stdout_line=raises("out"),
            on_stderr_line=raises("err"),
        )
    assert unraisable.wait()
    (second,) = unraisable.values
    assert {caught.value.args, second.args} == {("out",), ("err",)}


@pytest.mark.parametrize("name", ["on_event", "on_stdout_line"])
def test_an_exception_after_the_run_is_told(child, gate, unraisable, name):
    def late(_):
        gate()
        raise KeyError("late")

    def check(seconds):
        holds = [child, "fork-holder", "0", "--say", "own"]
        with pytest.raises(procwright.TimeoutExpired):
            run(holds, timeout=seconds, stop=SOON, **{name: late})
        assert gate.reached.is_set()

    with_time(check)
    assert not unraisable.values
    gate.open.set()
    assert unraisable.wait()
    assert unraisable.values[0].args == ("late",)


def test_a_line_callback_has_the_grace(child):
    lines = []

    def slow(line):
        # A hundred of these are far more than what the program needs to end.
        threading.Event().wait(0.015)
        lines.append(line)

    def check(seconds):
        lines.clear()
        result = run(
            "i=0; while [ $i -lt 100 ]; do echo $i; i=$((i+1)); done; exec sleep 1000000",
            shell=True,
            timeout=seconds,
            on_timeout="return",
            stop=Stop(grace=1000),
            on_stdout_line=slow,
        )
        assert len(lines) == 100
        assert result.stdout_info.undelivered_bytes == 0

    with_time(check)


def test_a_child_that_is_stopped_loses_no_line(child):
    lines = []
    done = threading.Event()

    def slow(line):
        threading.Event().wait(0.015)
        lines.append(line)
        if len(lines) == 100:
            done.set()

    it = spawn(
        "i=0; while [ $i -lt 100 ]; do echo $i; i=$((i+1)); done; echo >&2; exec sleep 1000000",
        shell=True,
        on_stdout_line=slow,
    )
    it.stderr.readline()
    it.stop(Stop(grace=1000))
    it.communicate()
    assert len(lines) == 100


def lines_of(how, child, program, **options):
    """The lines that a callback gets, of a run or of a child."""
    lines = []
    if how == "run":
        run([child, *program], on_stdout_line=lines.append, **options)
    else:
        spawn([child, *program], on_stdout_line=lines.append, **options).communicate()
    return lines


SAYS = ["says", "out:one\\n", "out:three four\\n", "out:end"]


@pytest.mark.parametrize("how", ["run", "spawn"])
def test_a_line_that_is_too_long(child, how):
    lines = lines_of(how, child, SAYS, max_length=6)
    assert lines == [b"one\n", b"three ", b"four\n", b"end"]
    assert lines_of(how, child, SAYS, max_length=None) == [b"one\n", b"three four\n", b"end"]
    assert lines_of(how, child, SAYS, max_length=11, too_long="fail")[1] == b"three four\n"
    with pytest.raises(procwright.LineTooLong, match="max_length") as caught:
        lines_of(how, child, SAYS, max_length=10, too_long="fail")
    assert caught.value.max_length == 10
    for bad in ({"max_length": 0}, {"max_length": "x"}, {"too_long": "cut"}):
        with pytest.raises(procwright.InvalidValue):
            lines_of(how, child, SAYS, **bad)


@pytest.mark.parametrize("how", ["run", "spawn"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_character_is_in_one_piece(child, how, encoding):
    text = "\u20ac\u20ac\u20ac\u20ac\nx\n"
    program = ["print-bytes", text.encode(encoding).hex()]
    lines = lines_of(how, child, program, max_length=4, encoding=encoding)
    assert "".join(lines) == text
    assert len(lines) > 2
    assert all(len(line) <= 4 for line in lines)
    with pytest.raises(procwright.LineTooLong):
        lines_of(how, child, program, max_length=4, encoding=encoding, too_long="fail")


WITHOUT_AN_END = """
import resource, sys, procwright
child, how, encoding = sys.argv[1:]
size = 200 << 20
lengths = []
options = {"max_length": 1 << 20, "on_stdout_line": lambda line: lengths.append(len(line))}
if encoding != "bytes":
    options["encoding"] = encoding
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
before = peak()
if how == "run":
    procwright.run([child, "big-line", str(size)], limit=1000, **options)
else:
    it = procwright.spawn(
        [child, "big-line", str(size)], overflow=procwright.Overflow("block"), **options
    )
    it.communicate()
print(max(lengths) <= 1 << 20, sum(lengths) >= size // 2, peak() - before)
"""


@pytest.mark.parametrize("how", ["run", "spawn"])
@pytest.mark.parametrize("encoding", ["bytes", "utf-8", "utf-16-le"])
def test_a_line_without_an_end_does_not_fill_the_memory(script, child, how, encoding):
    process = script(WITHOUT_AN_END, child, how, encoding)
    out, err = process.communicate()
    assert err == ""
    bounded, whole, grown = out.split()
    assert (bounded, whole) == ("True", "True")
    # In KiB: the 16 MiB that wait for a callback, and some lines.
    assert int(grown) < 50 << 10


def test_the_interpreter_ends_though_a_thread_of_ours_was_told_an_event(script):
    # The logger imports `threading`, on that thread if nobody has before.
    process = script(
        "import procwright\n"
        "overflow = procwright.Overflow('drop_oldest', memory='64KiB')\n"
        "with procwright.spawn(['seq', '300000'], overflow=overflow) as child:\n"
        "    child.wait()\n"
        "    print(list(child.stdout.lines())[-1])\n"
    )
    out, told = process.communicate(timeout=300)
    assert (process.returncode, out) == (0, "b'300000'\n")
    # That thread ends with the interpreter, which may be before it has said it.
    assert told == "" or "bytes of it are dropped" in told
