"""Closing, interrupting, forking and collecting what others are blocked in."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import signal
import subprocess
import threading

import pytest
from conftest import comes_back, descriptors, is_asleep
from loops import NoDescriptors

from procwright import PIPE, StreamClosed, StreamForked, WaitTimeout, _child, _held, spawn

#: Only against hanging.
LONG = 100

READS = {
    "read": lambda stream: stream.read(),
    "read(n)": lambda stream: stream.read(1000),
    "readline": lambda stream: stream.readline(),
    "readline(n)": lambda stream: stream.readline(1000),
    "for line in": lambda stream: list(stream),
    "lines": lambda stream: list(stream.lines()),
    "readlines": lambda stream: stream.readlines(),
}
BINARY_READS = {
    **READS,
    "read1": lambda stream: stream.read1(),
    "peek": lambda stream: stream.peek(),
    "readinto": lambda stream: stream.readinto(bytearray(1000)),
    "readinto1": lambda stream: stream.readinto1(bytearray(1000)),
}
STREAMS = [(options, how) for options in ({}, {"overflow": "block"}) for how in BINARY_READS] + [
    ({"text": True, "encoding": encoding}, how)
    for encoding in ("utf-8", "utf-16")
    for how in READS
    if (encoding, how) != ("utf-16", "lines")
]


class Blocked:
    """Threads that call `what` and keep what it raises. One of them sleeps in the call, if
    nobody is there before; the others wait for it, or will."""

    def __init__(self, what, count: int = 1, *, is_first: bool = True) -> None:
        self.errors: list[BaseException | None] = []
        self._what = what
        self._threads = [threading.Thread(target=self._run) for _ in range(count)]
        for thread in self._threads:
            thread.start()
        while is_first and not any(is_asleep(thread.native_id) for thread in self._threads):
            os.sched_yield()

    def _run(self) -> None:
        try:
            self._what()
        except BaseException as error:
            self.errors.append(error)
        else:
            self.errors.append(None)

    def join(self) -> list[BaseException | None]:
        for thread in self._threads:
            thread.join()
        return self.errors


@pytest.fixture
def quiet(child):
    """Starts children that say nothing and read nothing."""
    started = []

    def start(*argv, **options):
        it = spawn([child, *(argv or ("sleep-forever",))], stdin=PIPE, **options)
        started.append(it)
        return it

    yield start
    for it in started:
        it.stop()


@pytest.mark.parametrize(("options", "how"), STREAMS)
def test_a_close_ends_every_read_in_the_call(quiet, options, how):
    it = quiet(**options)
    blocked = Blocked(lambda: BINARY_READS[how](it.stdout), 3)
    it.stdout.close()
    assert [type(error) for error in blocked.join()] == [StreamClosed] * 3


@pytest.mark.parametrize("text", [False, True])
def test_a_close_ends_writes(quiet, text):
    it = quiet(text=text)
    data = "x" * (1 << 20) if text else b"x" * (1 << 20)
    blocked = Blocked(lambda: it.stdin.write(data), 3)
    it.stdin.close()
    assert [type(error) for error in blocked.join()] == [StreamClosed] * 3


def test_a_close_ends_communicate(quiet):
    it = quiet(stderr=None)
    blocked = Blocked(it.communicate)
    it.stdout.close()
    (error,) = blocked.join()
    assert isinstance(error, StreamClosed)
    assert "stdout of" in str(error)


@pytest.mark.parametrize("overflow", ["spill", "block"])
def test_one_close_for_200_threads(quiet, overflow):
    it = quiet(overflow=overflow)
    other = quiet(overflow=overflow)
    untouched = Blocked(other.stdout.readline)
    blocked = Blocked(it.stdout.readline, 200)
    it.stdout.close(wait=True)
    assert [type(error) for error in blocked.join()] == [StreamClosed] * 200
    assert not other.stdout.closed
    other.kill()
    assert untouched.join() == [None]


def test_many_closers(quiet):
    it = quiet()
    blocked = Blocked(it.stdout.read, 5)
    closers = [threading.Thread(target=it.stdout.close, args=(i % 2 == 0,)) for i in range(20)]
    for closer in closers:
        closer.start()
    for closer in closers:
        closer.join()
    assert [type(error) for error in blocked.join()] == [StreamClosed] * 5
    assert it.stdout.closed


def test_the_child_learns_of_a_close(child):
    for overflow in ("spill", "block"):
        it = spawn([child, "flood-forever"], overflow=overflow)
        it.stdout.read(1)
        it.stdout.close()
        assert it.wait() == -signal.SIGPIPE


def test_close_races_with_everything(child):
    for turn in range(300):
        it = spawn([child, "cat"], stdin=PIPE, overflow=("spill", "block")[turn % 2])
        out = it.stdout

        def use(out=out):
            try:
                while out.readline() or out.read(3):
                    pass
            except StreamClosed:
                pass

        threads = [threading.Thread(target=use) for _ in range(2)]
        threads.append(threading.Thread(target=out.close))
        for thread in threads:
            thread.start()
        it.stdin.write(b"a\nb\nc")
        it.stdin.close()
        for thread in threads:
            thread.join()
        it.wait()


@pytest.mark.parametrize(("options", "how"), STREAMS)
def test_ctrl_c_ends_every_read_and_loses_nothing(child, when_asleep, options, how):
    encoding = options.get("encoding", "utf-8")
    it = spawn([child, "cat"], stdin=PIPE, **options)
    into = getattr(it.stdin, "buffer", it.stdin)
    begins_empty = "1" in how or how == "peek"
    if not begins_empty:
        into.write("begun".encode(encoding))
    before = descriptors()
    when_asleep(lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        BINARY_READS[how](it.stdout)
    assert len(descriptors()) <= len(before) + 3, "the wake-up of a handle, and a bell that is kept"
    assert signal.set_wakeup_fd(-1) == -1
    into.write(("" if begins_empty else " and done\n").encode(encoding.replace("16", "16-le")))
    it.stdin.close()
    rest = it.stdout.read()
    expected = "" if begins_empty else "begun and done\n"
    assert rest == (expected if options.get("text") else expected.encode())


def test_one_bell_is_kept_for_all_waits(child, when_asleep):
    it = spawn([child, "cat"], stdin=PIPE)
    other = spawn([child, "cat"], stdin=PIPE)
    heard = []

    def waits_too(*_):
        when_asleep(lambda: other.stdin.write(b"inner\n"))
        heard.append(other.stdout.readline())
        it.stdin.write(b"outer\n")

    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    before = signal.signal(signal.SIGUSR1, waits_too)
    owner = signal.set_wakeup_fd(write)
    try:
        counts = []
        for _ in range(3):
            when_asleep(lambda: os.kill(os.getpid(), signal.SIGUSR1))
            assert it.stdout.readline() == b"outer\n"
            # Whose descriptor it is hears of each signal once.
            assert os.read(read, 100) == bytes([signal.SIGUSR1])
            # And of none when there was none.
            when_asleep(lambda: it.stdin.write(b"quiet\n"))
            assert it.stdout.readline() == b"quiet\n"
            with pytest.raises(BlockingIOError):
                os.read(read, 100)
            counts.append(len(descriptors()))
        assert heard == [b"inner\n"] * 3
        # Those of earlier tests may go meanwhile.
        assert counts == sorted(counts, reverse=True)
        assert signal.set_wakeup_fd(write) == write
    finally:
        signal.set_wakeup_fd(owner)
        signal.signal(signal.SIGUSR1, before)
        os.close(read)
        os.close(write)
        it.stop()
        other.stop()


def test_no_bell_is_kept_where_no_signals_are(quiet):
    it = quiet()
    first = Blocked(it.stdout.readline)
    before = descriptors()
    # Those who queue have no descriptors.
    others = Blocked(it.stdout.readline, 20, is_first=False)
    assert len(descriptors()) <= len(before)
    it.stdout.close()
    assert {type(error) for error in first.join() + others.join()} == {StreamClosed}


def test_ctrl_c_ends_a_write(quiet, when_asleep):
    it = quiet()
    when_asleep(lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        it.stdin.write(b"x" * (1 << 20))
    assert 0 < it.stdin.bytes_written < 1 << 20


def test_ctrl_c_in_the_queue_behind_another_thread(quiet, when_asleep):
    it = quiet()
    blocked = Blocked(it.stdout.readline)
    when_asleep(lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        it.stdout.readline()
    it.stdout.close()
    assert [type(error) for error in blocked.join()] == [StreamClosed]


def test_a_handler_that_does_not_raise(child, when_asleep):
    it = spawn([child, "cat"], stdin=PIPE)
    before = signal.signal(signal.SIGUSR1, lambda *_: it.stdin.write(b"from the handler\n"))
    try:
        when_asleep(lambda: os.kill(os.getpid(), signal.SIGUSR1))
        assert it.stdout.readline() == b"from the handler\n"
    finally:
        signal.signal(signal.SIGUSR1, before)
    it.stop()


def test_a_handler_that_closes_what_it_interrupts(quiet, when_asleep):
    it = quiet()
    before = signal.signal(signal.SIGUSR1, lambda *_: it.stdout.close(wait=True))
    try:
        when_asleep(lambda: os.kill(os.getpid(), signal.SIGUSR1))
        with pytest.raises(StreamClosed):
            it.stdout.readline()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_handler_that_reads_the_same_stream(child, when_asleep):
    it = spawn([child, "cat"], stdin=PIPE)
    got = []

    def handler(*_):
        it.stdin.write(b"one\ntwo\n")
        got.append(it.stdout.readline())

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        when_asleep(lambda: os.kill(os.getpid(), signal.SIGUSR1))
        assert it.stdout.readline() == b"two\n"
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert got == [b"one\n"]
    it.stop()


def test_a_finaliser_runs_inside(child):
    it = spawn([child, "cat"], stdin=PIPE)
    used = []

    class Finalised:
        def __init__(self):
            self.cycle = self

        def __del__(self):
            it.stdin.write(b"f\n")
            used.append(it.stdout.readline())

    threshold = gc.get_threshold()
    gc.set_threshold(10)
    try:
        for _ in range(200):
            Finalised()
            it.stdin.write(b"m\n")
            it.stdout.readline()
    finally:
        gc.set_threshold(*threshold)
    gc.collect()
    assert len(used) == 200
    it.stop()


@pytest.mark.filterwarnings("ignore:nobody keeps:ResourceWarning")
def test_streams_that_nobody_closed_are_collected(child):
    def one(text):
        it = spawn([child, "cat"], stdin=PIPE, text=text)
        it._cycle = it
        it.stdin.write("x\n" if text else b"x\n")
        assert len(it.stdout.readline()) == 2

    one(False)
    one(True)
    gc.collect()
    before, threads = descriptors(), len(os.listdir("/proc/self/task"))
    for i in range(40):
        one(i % 2 == 0)
    gc.collect()
    # Pump, spiller and reaper come and go with the work, and so do those that stop children that
    # nobody keeps. Else the watchdog comes.
    while len(os.listdir("/proc/self/task")) > threads + 3:
        os.sched_yield()
    # The pump and the reaper let go of theirs when they get to it.
    comes_back(before)


def test_the_stream_outlives_its_child(child):
    out = spawn([child, "echo", "x"]).stdout
    gc.collect()
    assert out.read() == b"x\n"


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_has_none_of_it(child):
    it = spawn([child, "cat"], stdin=PIPE)
    it.stdin.write(b"line\nmore")
    it.stdout.readline()
    text = spawn([child, "cat"], stdin=PIPE, text=True)
    uses = [
        it.stdout.read,
        it.stdout.readline,
        it.stdout.peek,
        lambda: next(it.stdout),
        lambda: list(it.stdout.lines()),
        lambda: it.stdin.write(b"x"),
        it.stdout.readiness_fd,
        it.stdin.readiness_fd,
        it.communicate,
        text.stdout.read,
        text.stdout.readline,
        lambda: next(text.stdout),
        lambda: text.stdin.write("x"),
    ]
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        told = []
        for use in uses:
            try:
                use()
                told.append("nothing")
            except StreamForked:
                told.append("forked")
            except BaseException as error:
                told.append(repr(error))
        it.stdout.close()
        it.stdin.close(wait=True)
        repr(it.stdout)
        os.write(writes, repr(told).encode())
        os._exit(0)
    os.close(writes)
    with open(reads) as file:
        assert file.read() == repr(["forked"] * len(uses))
    assert os.waitpid(pid, 0)[1] == 0
    it.stdin.write(b" line\n")
    assert it.stdout.readline() == b"more line\n"
    it.stdin.close()
    text.stdin.close()
    assert it.wait() == text.wait() == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("options", [{}, {"text": True}, {"encoding": "utf-16"}])
def test_a_fork_waits_for_no_thread_of_its_parents(quiet, options):
    it = quiet(**options)
    blocked = Blocked(it.stdout.readline)
    pid = os.fork()
    if pid == 0:
        # Against hanging: it ends the fork.
        signal.alarm(LONG)
        for use in (it.stdout.readline, it.stdout.read, lambda: next(it.stdout)):
            with pytest.raises(StreamForked):
                use()
        it.stdout.close(wait=True)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    it.stdout.close()
    assert [type(error) for error in blocked.join()] == [StreamClosed]


def _serve(ready, over):
    ready.set()
    over.wait()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_ends_come_while_a_forked_worker_lives(child):
    context = multiprocessing.get_context("fork")
    it = spawn([child, "cat"], stdin=PIPE)
    flood = spawn([child, "flood-forever"])
    flood.stdout.read(1)
    ready, over = context.Event(), context.Event()
    worker = context.Process(target=_serve, args=(ready, over))
    worker.start()
    ready.wait()
    # The worker has copies of neither end: both children learn of the close.
    it.stdin.close()
    assert it.stdout.read() == b""
    assert it.wait() == 0
    flood.stdout.close()
    assert flood.wait() == -signal.SIGPIPE
    over.set()
    worker.join()
    assert worker.exitcode == 0


def _spawns(child, queue):
    queue.put(spawn([child, "echo", "in the fork"]).stdout.read())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_worker_has_children_of_its_own(child):
    context = multiprocessing.get_context("fork")
    it = spawn([child, "cat"], stdin=PIPE)
    queue = context.SimpleQueue()
    worker = context.Process(target=_spawns, args=(child, queue))
    worker.start()
    assert queue.get() == b"in the fork\n"
    worker.join()
    it.stop()


def test_popen_beside_open_children_holds_no_ends(child):
    it = spawn([child, "cat"], stdin=PIPE)
    other = subprocess.Popen([child, "sleep-forever"], close_fds=False)
    it.stdin.close()
    assert it.stdout.read() == b""
    other.kill()
    other.wait()


class _StopsIt(logging.Handler):
    """Stops the child once a text is logged."""

    def __init__(self, text):
        super().__init__()
        self.text = text
        self.child = None
        self.told = []

    def emit(self, record):
        if self.text in record.getMessage():
            self.told.append(record.getMessage())
            self.child.stop("KILL")


SLOW_TALK = ["sh", "-c", "while :; do echo; sleep 0.1; done"]


@pytest.mark.parametrize("talk", [["yes"], SLOW_TALK])
@pytest.mark.parametrize("options", [{}, {"text": True}, {"merged": True}])
def test_the_end_of_a_block_tells_that_nobody_reads_the_rest(options, talk):
    handler = _StopsIt("waits for")
    logger = logging.getLogger("procwright")
    logger.addHandler(handler)
    try:
        with spawn(talk, **options) as child:
            handler.child = child
            for _line in child.merged or child.stdout:
                break
    finally:
        logger.removeHandler(handler)
    [told] = handler.told
    assert f"(pid {child.pid}), and nobody reads the rest of " in told
    assert child.returncode == -signal.SIGKILL


@pytest.mark.parametrize("merged", [False, True])
def test_the_end_of_a_block_that_has_left_off_reading_is_told(merged, monkeypatch):
    """Whether or not the program says any more."""
    monkeypatch.setattr(_child, "_LEFT_OFF_S", 0.05)
    told = threading.Event()
    handler = logging.Handler()
    records = []
    handler.emit = lambda record: (records.append(record), told.set())
    logger = logging.getLogger("procwright")
    logger.addHandler(handler)
    left = []

    def leave():
        with spawn("echo a; exec sleep 1000", shell=True, text=True, merged=merged) as it:
            left.append(it)
            next(it.merged if merged else it.stdout)

    thread = threading.Thread(target=leave)
    try:
        thread.start()
        assert told.wait(100)
    finally:
        left[0].stop("KILL")
        thread.join()
        logger.removeHandler(handler)
    [record] = [one for one in records if f"(pid {left[0].pid})" in one.getMessage()]
    assert "the end of the with block waits for" in record.getMessage()
    assert "stop() it, or close the stream, before a break" in record.getMessage()


def test_the_end_of_a_block_whose_output_has_ended_is_not_told_of(caplog, monkeypatch):
    monkeypatch.setattr(_child, "_LEFT_OFF_S", 0.01)
    script = "echo a; exec >&- 2>&-; read line <&3; sleep 0.2"
    reading, writing = os.pipe()
    with spawn(["bash", "-c", script.replace("<&3", f"<&{reading}")], pass_fds=[reading]) as it:
        assert it.stdout.read() == b"a\n"
        os.close(reading)
        threading.Timer(0.2, os.close, [writing]).start()
    assert f"(pid {it.pid})" not in caplog.text


@pytest.mark.parametrize("call", ["communicate", "result"])
def test_who_holds_the_outputs_of_a_killed_program_is_told(call):
    told = []

    def on_event(event):
        told.append(event)
        child.stop()

    # The shell has started it before it says so.
    child = spawn("sleep 1000 & echo half; wait", shell=True, text=True, on_event=on_event)
    child.wait_for("half")
    child.kill()
    # Without the event it would wait for the sleep.
    getattr(child, call)()
    [event] = told
    assert event.kind == "held"
    assert event.streams == "stdout and stderr"
    assert [holder.name for holder in event.holders] == ["sleep"]


def test_who_holds_the_outputs_is_logged_unless_somebody_listens():
    handler = _StopsIt("held open by sleep (pid ")
    logger = logging.getLogger("procwright")
    logger.addHandler(handler)
    try:
        handler.child = spawn("sleep 1000 & echo half; wait", shell=True, text=True)
        handler.child.wait_for("half")
        handler.child.kill()
        handler.child.communicate()
    finally:
        logger.removeHandler(handler)
    assert len(handler.told) == 1


def call_of(child, results):
    """Has the child communicated with on a thread, which puts what comes of it in a list."""

    def calls():
        try:
            results.append(child.communicate())
        except BaseException as error:
            results.append(error)

    thread = threading.Thread(target=calls, daemon=True)
    thread.start()
    return thread


def test_a_second_caller_is_refused_however_long_the_first_has_waited(monkeypatch):
    for module in (_child, _held):
        monkeypatch.setattr(module, "HELD_AFTER_S", 0.01)
    told, results = threading.Event(), []
    line = "sleep 1000 & echo half"
    child = spawn(line, shell=True, text=True, on_event=lambda _: told.set())
    first = call_of(child, results)
    # Who is told is in its second part, between two steps.
    assert told.wait(LONG)
    for call in (child.communicate, child.result):
        with pytest.raises(RuntimeError, match="somebody communicates with this child already"):
            call(timeout=1)
    child.stop()
    first.join(LONG)
    assert results == [("half\n", "")]


def test_an_interrupt_of_a_communication_locks_nobody_out():
    alone = _held.Alone()
    block = alone()
    block.__enter__()
    with (
        pytest.raises(RuntimeError, match="somebody communicates with this child already"),
        alone(),
    ):
        pass
    # As the frame does that an interrupt leaves before the block's end has begun.
    del block
    with alone():
        pass


def test_what_waits_for_long_needs_no_descriptor(monkeypatch):
    refused, results = threading.Event(), []
    real = _held._told

    def told(*args):
        try:
            return real(*args)
        except OSError:
            refused.set()
            raise

    for module in (_child, _held):
        monkeypatch.setattr(module, "HELD_AFTER_S", 0.01)
    monkeypatch.setattr(_held, "_told", told)
    reading, writing = os.pipe()
    child = spawn(
        ["bash", "-c", f"read word <&{reading}; echo $word"], text=True, pass_fds=[reading]
    )
    with pytest.raises(WaitTimeout):
        # From here on it has what tells of its streams.
        child.communicate(timeout=0.05)
    with child, NoDescriptors() as none:
        none.take()
        first = call_of(child, results)
        assert refused.wait(LONG)
        os.write(writing, b"said\n")
        first.join(LONG)
    assert results == [("said\n", "")]
    os.close(reading)
    os.close(writing)


def test_after_a_stop_communicate_gives_what_was_read():
    child = spawn("echo half; sleep 1000; true", shell=True, text=True)
    came = None
    while not came:
        with pytest.raises(WaitTimeout) as caught:
            child.communicate(timeout=0.2)
        came = caught.value.output
    child.stop()
    assert child.communicate() == ("half\n", "")
