"""Commands of a map that run in an executor."""

import itertools
import os
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import pytest
from test_map import gone, press_until_it_ends, words

import procwright
from procwright import Cancel, InvalidValue, Stop


@pytest.fixture
def threads():
    with ThreadPoolExecutor(3) as pool:
        yield pool


def test_each_is_run_once(child, threads):
    commands = (words(child, "echo", str(number)) for number in range(30))
    running = procwright.map(commands, executor=threads, text=True)
    seen = {ended.index: ended.result.stdout for ended in running}
    assert seen == {number: f"{number}\n" for number in range(30)}
    progress = running.progress
    assert (progress.succeeded, progress.all_taken, progress.stopped_by) == (30, True, None)


def test_other_processes_run_them(child):
    with ProcessPoolExecutor(2) as pool:
        commands = [{"args": "echo $PPID; exit 3", "shell": True, "stop": Stop("INT")}] * 4
        commands += [["/does/not/exist"], {"args": words(child, "cat"), "input": b"x", "limit": 9}]
        *ran, missing, fed = procwright.map(commands, executor=pool, ordered=True)
    assert {one.result.returncode for one in ran} == {3}
    assert str(os.getpid()).encode() not in {one.result.stdout.strip() for one in ran}
    assert isinstance(missing.error, FileNotFoundError)
    assert fed.result.stdout == b"x"


def test_codes_that_are_no_failure(child, threads):
    commands = [[child, "exit", str(code)] for code in (0, 1, 2)]
    running = procwright.map(commands, executor=threads, ordered=True, ok_codes=[1])
    assert [ended.ok for ended in running] == [True, True, False]
    assert (running.progress.succeeded, running.progress.failed) == (2, 1)


class Inline(Executor):
    """Runs in the thread that submits, as an executor may."""

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


def test_any_executor_will_do(child):
    commands = [words(child, "exit", code) for code in "0103"]
    running = procwright.map(commands, executor=Inline(), stop_after_failures=1, parallel=1)
    assert [ended.ok for ended in running] == [True, False]
    assert running.progress.stopped_by == "failures"


def test_what_was_stopped_for_a_failure_raises_that_failure(child, threads):
    sleeper = words(child, "sleep-forever")
    commands = [sleeper, words(child, "exit", "3"), sleeper, sleeper, sleeper]
    options = {"parallel": 5, "ordered": True, "stop_after_failures": 1}
    first, failed, *rest = procwright.map(commands, executor=threads, **options)
    with pytest.raises(procwright.CalledProcessError) as caught:
        first.check()
    assert caught.value.returncode == 3
    assert failed.cause is None
    assert all(one.cause.result is failed.result for one in (first, *rest))


def test_no_more_run_than_places(child, threads):
    asked = []

    def commands():
        for number in itertools.count():
            asked.append(number)
            yield words(child, "exit", "0")

    with procwright.map(commands(), executor=threads, parallel=2, ahead=1) as running:
        for number, _ended in enumerate(itertools.islice(running, 10)):
            assert len(asked) <= number + 8
            assert running.progress.running <= 2
    assert list(running) == []


def test_the_iterable_may_raise(child, threads):
    def commands():
        yield words(child, "exit", "0")
        raise KeyError("mine")

    running = procwright.map(commands(), executor=threads, parallel=1)
    assert next(running).ok
    with pytest.raises(KeyError, match="mine"):
        next(running)
    assert list(running) == []


def test_the_deadline_is_that_of_all(child, threads):
    commands = itertools.repeat(words(child, "sleep-forever"))
    running = procwright.map(commands, executor=threads, parallel=2, deadline=0.3)
    assert {one.result.reason for one in running if one.result is not None} <= {"timeout"}
    assert running.progress.stopped_by == "deadline"


def sleepers(tmp_path):
    pids = tmp_path / "pids"
    line = f"echo $$ >> {pids}; exec sleep 1000"
    two_run = lambda: pids.exists() and len(pids.read_text().split()) >= 2  # noqa: E731
    return pids, itertools.repeat({"args": line, "shell": True}), two_run


def test_a_cancel_ends_it(threads, tmp_path):
    pids, commands, two_run = sleepers(tmp_path)
    cancel = Cancel()
    running = procwright.map(commands, executor=threads, parallel=2, cancel=cancel)
    while not two_run():
        os.sched_yield()
    cancel.cancel()
    assert {one.result.reason for one in running if one.result is not None} == {"cancelled"}
    progress = running.progress
    assert (progress.failed, progress.stopped) == (0, progress.taken)
    assert running.progress.stopped_by == "cancel"
    assert all(gone(int(pid)) for pid in pids.read_text().split())


def test_leaving_the_block_leaves_nothing_running(threads, tmp_path):
    pids, commands, two_run = sleepers(tmp_path)

    def leave_when_two_run():
        with procwright.map(commands, executor=threads, parallel=2):
            while not two_run():
                os.sched_yield()

    with pytest.warns(ResourceWarning, match="0 commands have run"):
        leave_when_two_run()
    assert all(gone(int(pid)) for pid in pids.read_text().split())
    # The executor is its owner's.
    assert threads.submit(int, "5").result() == 5


def test_a_handler_that_raises_ends_all(threads, tmp_path):
    pids, commands, two_run = sleepers(tmp_path)
    running = procwright.map(commands, executor=threads, parallel=2)
    assert press_until_it_ends(running, two_run, "take") >= 1
    assert all(gone(int(pid)) for pid in pids.read_text().split())


def test_an_executor_that_takes_nothing_ends_it(child):
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    running = procwright.map([words(child, "exit", "0")], executor=pool)
    with pytest.raises(RuntimeError):
        next(running)
    assert running.progress.stopped_by == "error"
    assert list(running) == []


def test_bad_values(child, threads, tmp_path):
    before = threading.active_count()
    with pytest.raises(InvalidValue, match=r"^executor is 5: pass a concurrent.futures.Executor"):
        procwright.map([["true"]], executor=5)
    with pytest.raises(InvalidValue, match=r"^journal and executor are both given: "):
        procwright.map([["true"]], executor=threads, journal=tmp_path / "journal")
    assert not (tmp_path / "journal").exists()
    assert threading.active_count() == before
