"""What the tests share: their child processes."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import procwright
from procwright import _keeper

pytest.register_assert_rewrite("played")


def reset_inherited_signals() -> None:
    """Undoes what `nohup`, or `&` in a script, ignores: programs that a test interrupts
    would inherit it, and not end."""
    pythons_own = {signal.SIGPIPE, signal.SIGXFSZ}
    for number in signal.valid_signals() - pythons_own:
        if signal.getsignal(number) == signal.SIG_IGN:
            interrupt = number == signal.SIGINT
            signal.signal(number, signal.default_int_handler if interrupt else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


reset_inherited_signals()


@pytest.fixture(scope="session")
def child() -> str:
    """The program that the tests run in many roles."""
    path = os.environ.get("PROCWRIGHT_TEST_CHILD")
    if path is None:
        root = Path(__file__).resolve().parents[2]
        target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
        path = str(target / "debug" / "test-child")
    if not os.path.exists(path):
        pytest.fail(
            f"{path} is missing: cargo build -p test-children, or set PROCWRIGHT_TEST_CHILD"
        )
    return path


LOOPS = {
    "asyncio": {"backend": "asyncio"},
    "uvloop": {"backend": "asyncio", "backend_options": {"use_uvloop": True}},
    "trio": {"backend": "trio"},
}


def pytest_addoption(parser):
    help = "has tests of calls that block call those of procwright.aio, on such a loop"
    parser.addoption("--on-loop", choices=list(LOOPS), help=help)


def pytest_collection_modifyitems(config, items):
    if config.getoption("--on-loop"):
        import blocking

        items[:], others = blocking.chosen(items)
        config.hook.pytest_deselected(items=others)


def pytest_collection_finish(session):
    """What there is by now stays: the hundreds of collections that tests make, and those that
    Python makes by itself, need not look at it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _on_loop(request, monkeypatch):
    """With --on-loop the calls of `procwright` in this test are those of `procwright.aio`."""
    loop = request.config.getoption("--on-loop")
    if loop is None:
        return
    import blocking

    for name, (was, comes) in blocking.replacements(loop).items():
        monkeypatch.setattr(procwright, name, comes)
        for own, value in list(vars(request.module).items()):
            if value is was:
                monkeypatch.setattr(request.module, own, comes)


@pytest.fixture(params=LOOPS)
def on(request):
    """Runs a function on an event loop: asyncio's, uvloop's and trio's."""
    anyio = pytest.importorskip("anyio")
    pytest.importorskip(request.param)
    return lambda main, *args: anyio.run(main, *args, **LOOPS[request.param])


@pytest.fixture
def script(tmp_path):
    """Runs Python code in a process of its own; gives back the process."""
    import subprocess

    started = []

    def start(code: str, *args: str, **options):
        path = tmp_path / f"script{len(started)}.py"
        path.write_text(code)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen([sys.executable, str(path), *args], text=True, **options)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def is_alive(pid: int) -> bool:
    """Whether a process runs: a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


PARENT = """
import subprocess, sys
child = subprocess.Popen(sys.argv[1:])
for _ in sys.stdin:
    print(child.wait(), flush=True)
"""


class Stranger:
    """A process that is not our child, whose parent reaps it when it is told to."""

    def __init__(self, *argv: str) -> None:
        import subprocess

        self._parent = subprocess.Popen(
            [sys.executable, "-S", "-c", PARENT, *argv, "--print-ready"],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.pid = int(self._parent.stdout.readline().split()[1])

    def reap(self) -> int:
        """Has it waited for, and gives back how it ended."""
        self._parent.stdin.write("reap\n")
        self._parent.stdin.flush()
        return int(self._parent.stdout.readline())

    def close(self) -> None:
        # Its number is its own until its parent is gone.
        if self._parent.poll() is None and is_alive(self.pid):
            os.kill(self.pid, 9)
        self._parent.kill()
        self._parent.communicate()


@pytest.fixture
def stranger():
    """Starts strangers: `stranger(child, "term-exit", "7")`."""
    started = []

    def start(*argv: str) -> Stranger:
        started.append(Stranger(*argv))
        return started[-1]

    yield start
    for one in started:
        one.close()


PEER = """
import os, socket, sys, threading
import procwright
sock = socket.socket(fileno=int(sys.argv[1]))
holder, made = sys.argv[2], []
if holder == "thread":
    made.append(procwright.LivenessToken(holder))
else:
    maker = threading.Thread(target=lambda: made.append(procwright.LivenessToken()))
    maker.start()
    maker.join()
token, = made
token.invite().send(sock)
for line in sock.makefile():
    exec(line)
    sock.send(b"done\\n")
"""


class Peer:
    """A Python program that holds a token, made by a thread that has ended, or by the main one."""

    def __init__(self, holder: str) -> None:
        import socket
        import subprocess

        self.sock, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PEER, str(theirs.fileno()), holder],
                pass_fds=[theirs.fileno()],
            )
        self.invitation = procwright.LivenessInvitation.receive(self.sock)
        self.monitor = procwright.LivenessMonitor(self.invitation)

    def tell(self, line: str) -> None:
        """Has it run a line of Python."""
        self.sock.send(line.encode() + b"\n")

    def do(self, line: str) -> None:
        """The same, and waits until that is done."""
        self.tell(line)
        assert self.sock.recv(5) == b"done\n"

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.sock.close()


@pytest.fixture
def peers():
    """Starts programs that hold a token."""
    started = []

    def start(count: int = 1, holder: str = "process") -> list[Peer]:
        new = [Peer(holder) for _ in range(count)]
        started.extend(new)
        return new

    yield start
    for one in started:
        one.close()


@pytest.fixture
def children(child):
    """Starts children that sleep until they are killed."""
    import subprocess

    started = []

    def start(count: int, *argv: str) -> list[subprocess.Popen[bytes]]:
        argv = argv or ("sleep-forever",)
        new = [
            subprocess.Popen([child, *argv, "--print-ready"], stdout=subprocess.PIPE)
            for _ in range(count)
        ]
        started.extend(new)
        for one in new:
            assert one.stdout.readline().startswith(b"ready")
            one.stdout.close()
        return new

    yield start
    for one in started:
        if one.poll() is None:
            one.kill()
            one.wait()


@pytest.fixture(autouse=True, scope="module")
def _no_garbage():
    """What earlier files left in cycles would be closed while a test here counts."""
    gc.collect()


@pytest.fixture(autouse=True, scope="session")
def _first_wait():
    """The first wait of the main thread makes a pipe for signals, which is kept. A test that
    counts descriptors would find it or not, as its own waits were in time or not."""
    with procwright.spawn(["cat"], stdin=procwright.PIPE) as it, sleeps() as once_asleep:
        once_asleep(lambda: it.stdin.write(b"x\n"))
        assert it.stdout.readline() == b"x\n"


def with_time(check: Callable[[float], None]) -> None:
    """Calls `check(seconds)`, with ever more of them while it fails: how long a program needs for
    its first word is up to the machine."""
    for seconds in (0.3, 3):
        try:
            return check(seconds)
        except AssertionError:
            pass
    return check(60)


def descriptors() -> dict[int, str]:
    """What this process has open."""
    found = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            found[int(number)] = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            continue  # that of the listing itself
    return found


def comes_back(before: dict[int, str]) -> None:
    """Returns once no more is open than `before`. It says what is, before the watchdog ends all."""
    watchdog = time.monotonic() + 100
    while len(now := descriptors()) > len(before):
        assert time.monotonic() < watchdog, {n: now[n] for n in now if now[n] != before.get(n)}
        os.sched_yield()
        # What a finalizer has touched goes with the next collection, and children that nobody
        # kept are let go of by whatever is started next: how many of them have ended by the time
        # of `before` is up to the machine.
        gc.collect()
        _keeper._let_go_of_ended()


def is_asleep(task: int) -> bool:
    """Whether a thread sleeps in a call of the kernel that waits for something to come."""
    try:
        number = Path(f"/proc/self/task/{task}/syscall").read_text().split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    # A thread that waits for a lock, on x86-64 and aarch64, and one that waits for its memory.
    return number not in {"running", "202", "98", "-1"}


@contextmanager
def sleeps() -> Iterator[Callable[..., None]]:
    """Gives `once_asleep(do)`: on another thread, once this one sleeps in the kernel."""
    import threading

    helpers = []
    is_over = threading.Event()

    def start(do: Callable[[], object], task: int | None = None) -> None:
        watched = task or threading.get_native_id()

        def watch() -> None:
            while not is_asleep(watched):
                # The test has failed.
                if is_over.is_set():
                    return
                os.sched_yield()
            do()

        helper = threading.Thread(target=watch)
        helpers.append(helper)
        helper.start()

    yield start
    is_over.set()
    for helper in helpers:
        helper.join()


@contextmanager
def cancelled_once_up(folder: Path) -> Iterator[tuple[procwright.Cancel, str]]:
    """Gives a cancel, and a line for a shell whose program has it cancelled once it runs, and
    sleeps: what is cancelled before its start has no result."""
    import threading

    cancel, up = procwright.Cancel(), folder / "up"
    is_over = threading.Event()

    def cancels() -> None:
        while not up.exists() and not is_over.is_set():
            time.sleep(0.01)
        cancel.cancel()

    helper = threading.Thread(target=cancels)
    helper.start()
    try:
        yield cancel, f"echo > {up}; exec sleep 1000"
    finally:
        is_over.set()
        helper.join()


@pytest.fixture
def when_asleep():
    """`when_asleep(do)`: on another thread, once this one sleeps in the kernel."""
    with sleeps() as once_asleep:
        yield once_asleep
