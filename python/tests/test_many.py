"""Threads, forks, many runs, much data, and the end of the interpreter."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import procwright

run = procwright.run


def test_64_threads(child):
    def many(number):
        for turn in range(20):
            text = f"{number} {turn}"
            result = run([child, "echo", text], text=True)
            assert result.stdout == text + "\n"
            assert result.returncode == 0
        return number

    with ThreadPoolExecutor(64) as pool:
        assert list(pool.map(many, range(64))) == list(range(64))


def test_nothing_grows(child):
    def counts():
        tasks = len(os.listdir("/proc/self/task"))
        return len(os.listdir("/proc/self/fd")), tasks, threading.active_count()

    run([child, "echo", "warm up"])
    before = counts()
    for turn in range(300):
        run([child, "echo", "x"], text=True)
        if turn % 10 == 0:
            run([child, "cat"], stdin=[b"a", b"b"], on_line=lambda line: None)
    # A thread that has said its last word to a run may still be leaving; one that was there
    # before for another test may have left.
    for _ in range(10_000):
        if all(now <= then for now, then in zip(counts(), before, strict=True)):
            return
        os.sched_yield()
        threading.Event().wait(0.01)
    pytest.fail(f"{counts()} descriptors and threads, {before} before")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_after_fork(child):
    run([child, "exit", "0"], die_with_parent=True)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            assert run([child, "cat"], stdin=[b"x"], on_line=len).stdout == b"x"
            assert run([child, "exit", "3"], die_with_parent=True).returncode == 3
            result = run([child, "sleep-forever"], timeout=0.1, on_timeout="return")
            assert result.reason == "timeout"
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_in_a_thread_while_others_compute(child):
    done = threading.Event()

    def burn():
        while not done.is_set():
            pass

    threads = [threading.Thread(target=burn) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        result = run([child, "flood", "--out", "20M", "--err", "20M"])
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert (len(result.stdout), len(result.stderr)) == (20 << 20, 20 << 20)


def test_every_size_comes_back_whole(child):
    sizes = [0, 1, 4096, 65535, 65536, 131007, 131008, 131009, 200_000, 2**21 - 64, 2**21 + 1]
    for size in [*sizes, 10_000_001]:
        data = os.urandom(1000) * (size // 1000) + b"x" * (size % 1000)
        result = run([child, "cat"], input=data)
        assert result.stdout == data
        assert hash(result.stdout) == hash(data)
        assert run([child, "cat"], input=data, limit=size).stdout == data


@pytest.mark.skipif(sys.flags.dev_mode, reason="the debug allocator fills what it gives")
def test_memory_of_a_large_capture(script, child):
    code = (
        "import resource, sys, procwright\n"
        "procwright.run([sys.argv[1], 'flood', '--out', '1M'])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "r = procwright.run([sys.argv[1], 'flood', '--out', '256M', '--chunk', '65536'])\n"
        "assert len(r.stdout) == 256 << 20\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    out, err = script(code, child).communicate()
    assert err == ""
    assert int(out) <= (256 + 32) * 1024


def test_growth_leaves_the_allocator_as_it_is(script, child):
    """The C library goes on to serve a large block by pages of its own, which grow without a
    copy: it would not, once a block of that size was given back."""
    code = (
        "import ctypes, sys, procwright\n"
        "libc = ctypes.CDLL(None)\n"
        "if not hasattr(libc, 'mallinfo2'):\n"
        "    sys.exit(77)\n"
        "class Info(ctypes.Structure):\n"
        "    _fields_ = [(str(at), ctypes.c_size_t) for at in range(10)]\n"
        "libc.mallinfo2.restype = Info\n"
        "libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]\n"
        "done = procwright.run([sys.argv[1], 'flood', '--out', '32M', '--chunk', '65536'])\n"
        "before = getattr(libc.mallinfo2(), '3')\n"
        "block = libc.malloc(4 << 20)\n"
        "print(len(done.stdout) >> 20, getattr(libc.mallinfo2(), '3') - before)\n"
    )
    running = script(code, child)
    told = running.communicate()
    if running.returncode == 77:
        pytest.skip("no mallinfo2 in this C library")
    assert told == ("32 1\n", "")


def test_out_of_memory_keeps_what_was_read(script, child):
    code = (
        "import resource, sys, procwright\n"
        "resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20))\n"
        "try:\n"
        "    procwright.run([sys.argv[1], 'flood', '--out', '1G', '--chunk', '65536'])\n"
        "except procwright.SystemFailure as error:\n"
        "    assert 'out of memory' in str(error)\n"
        "    print(len(error.result.stdout) == error.result.stdout_info.bytes > 0)\n"
    )
    assert script(code, child).communicate() == ("True\n", "")


ENDS = {
    "a callback that sleeps": "on_line=lambda line: [time.sleep(0.0001) for _ in iter(int, 1)]",
    "a callback that computes": "on_line=lambda line: [0 for _ in iter(int, 1)]",
    "an iterator that sleeps": "stdin=(b'' for _ in iter(lambda: time.sleep(0.0001), 1))",
    "a file that sleeps": "tee=Slow()",
}


@pytest.mark.parametrize("what", ENDS)
def test_the_interpreter_ends_while_code_runs(script, child, what):
    code = (
        "import sys, time, threading, procwright\n"
        "class Slow:\n"
        "    def write(self, data):\n"
        "        while True: time.sleep(0.0001)\n"
        "def go():\n"
        f"    procwright.run([sys.argv[1], 'cat'], {ENDS[what]}, timeout=0.2,\n"
        "                   on_timeout='return', stop=procwright.Stop('TERM', grace=0.1),\n"
        "                   **({} if 'stdin' in sys.argv[2] else {'input': b'x' * 100}))\n"
        "go()\n"
        "print('end')\n"
    )
    for _ in range(10 if os.environ.get("STRESS") == "1" else 3):
        process = script(code, child, ENDS[what])
        assert process.communicate() == ("end\n", "")
        assert process.returncode == 0


def test_the_interpreter_ends_while_a_daemon_thread_runs_a_program(script, child):
    code = (
        "import sys, time, threading, procwright\n"
        "def go():\n"
        "    while True: procwright.run([sys.argv[1], 'flood', '--out', '3M'])\n"
        "for _ in range(3): threading.Thread(target=go, daemon=True).start()\n"
        "time.sleep(0.2)\n"
        "print('end')\n"
    )
    for _ in range(5):
        process = script(code, child)
        out, err = process.communicate()
        assert (out, err, process.returncode) == ("end\n", "", 0)
