"""Many commands, so many at a time."""

import concurrent.futures
import itertools
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import warnings

import pytest

import procwright
from procwright import Cancel, InvalidValue, Journal, JournalError, Stop


def words(child, *words):
    return [child, *words]


def test_each_is_run_once_and_told_as_it_ends(child):
    commands = [words(child, "echo", str(number)) for number in range(30)]
    seen = {}
    for ended in procwright.map(commands, parallel=4, text=True):
        assert ended.ok
        assert ended.args == commands[ended.index]
        seen[ended.index] = ended.result.stdout
    assert seen == {number: f"{number}\n" for number in range(30)}


def test_results_come_in_order_if_asked(child):
    commands = (words(child, "echo", str(number)) for number in range(30))
    ended = list(procwright.map(commands, parallel=5, ordered=True))
    assert [one.index for one in ended] == list(range(30))
    assert ended[7].result.stdout == b"7\n"


def test_a_command_may_have_options_of_its_own(child, tmp_path):
    commands = [
        words(child, "cat"),
        {"args": words(child, "cat"), "input": b"its own"},
        {"args": ["pwd"], "cwd": tmp_path},
        {"args": "echo $WORD", "shell": True, "extra_env": {"WORD": "set"}},
    ]
    ended = list(procwright.map(commands, ordered=True, input=b"of all"))
    assert [one.result.stdout for one in ended[:2]] == [b"of all", b"its own"]
    assert ended[2].result.stdout == os.fsencode(tmp_path.resolve()) + b"\n"
    assert ended[3].result.stdout == b"set\n"


def test_codes_that_are_no_failure(child):
    commands = [words(child, "exit", "1"), {"args": words(child, "exit", "2"), "ok_codes": [2]}]
    first, second = procwright.map(commands, ordered=True, ok_codes=[1])
    assert (first.ok, second.ok) == (True, True)
    # What a command says is in the place of what is said for all.
    own = {"args": words(child, "exit", "1"), "ok_codes": [2]}
    assert [one.ok for one in procwright.map([own], ok_codes=[1])] == [False]


def test_failures_are_results(child):
    commands = [words(child, "exit", "3"), ["/does/not/exist"], words(child, "exit", "0")]
    failed, missing, well = procwright.map(commands, ordered=True)
    assert not failed.ok
    assert failed.result.returncode == 3
    assert failed.error is None
    assert failed.summary.endswith("exited with code 3")
    with pytest.raises(procwright.CalledProcessError):
        failed.check()
    assert missing.result is None
    assert isinstance(missing.error, FileNotFoundError)
    with pytest.raises(procwright.SpawnError):
        missing.check()
    assert well.ok
    well.check()


def test_so_many_failures_stop_what_runs(child):
    sleeper = words(child, "sleep-forever")
    commands = itertools.chain([sleeper, words(child, "exit", "1")], itertools.repeat(sleeper))
    with procwright.map(commands, parallel=2, stop_after_failures=1) as running:
        ended = list(running)
    assert running.progress.stopped_by == "failures"
    assert {one.result.reason for one in ended if one.result is not None} <= {
        "finished",
        "cancelled",
    }
    assert len(ended) <= 3
    progress = running.progress
    reasons = [one.outcome for one in ended]
    assert (progress.failed, progress.stopped) == (1, len(ended) - 1), reasons


def test_what_was_stopped_for_a_failure_raises_that_failure(child):
    sleeper = words(child, "sleep-forever")
    commands = [sleeper, sleeper, words(child, "exit", "3"), sleeper]
    running = procwright.map(commands, parallel=3, ordered=True, stop_after_failures=1)
    first = next(running)
    assert first.index == 0
    with pytest.raises(procwright.CalledProcessError) as caught:
        first.check()
    assert (caught.value.returncode, caught.value.cmd) == (3, commands[2])
    second, failed, *rest = running
    assert (failed.index, failed.cause, failed.returncode) == (2, None, 3)
    assert all(one.cause.result is failed.result for one in (first, second, *rest))
    assert first.cause == failed == second.cause
    assert {failed, first.cause} == {failed}
    assert first.cause != first
    # As one asks whether there is one.
    assert [one.cause and one.cause.index for one in (first, failed)] == [2, None]
    assert repr(first.cause) == f"<Cause 2: {failed.summary}>"
    with pytest.raises(
        TypeError, match=r"an Ended is neither .*: ask for its ok, as in `if one\.ok`"
    ):
        bool(failed)
    assert running.progress.failed == 1


def test_what_was_stopped_for_one_that_was_not_started_raises_why(child):
    commands = [words(child, "sleep-forever"), ["/does/not/exist"]]
    with procwright.map(commands, parallel=2, ordered=True, stop_after_failures=1) as running:
        with pytest.raises(procwright.SpawnError):
            next(running).check()
        assert next(running).error.filename == "/does/not/exist"


def test_in_the_order_of_their_ends_the_failure_comes_first(child):
    commands = [words(child, "sleep-forever"), words(child, "exit", "3")]
    failed, stopped = procwright.map(commands, parallel=2, stop_after_failures=1)
    assert (failed.index, failed.cause, stopped.cause.index) == (1, None, 1)


def test_what_was_not_started_wrote_nothing(child):
    commands = [["/does/not/exist"], words(child, "exit", "3")]
    for text, nothing in ((True, ""), (False, b"")):
        lost, failed = procwright.map(commands, text=text, ordered=True)
        assert (lost.result, lost.stdout, lost.stderr) == (None, nothing, nothing)
        assert (failed.stdout, failed.returncode) == (nothing, 3)
    (lost,) = procwright.map(commands[:1], stdout=procwright.DEVNULL, stderr=procwright.STDOUT)
    assert (lost.stdout, lost.stderr) == (None, None)
    (lost,) = procwright.map(commands[:1], pty=True)
    assert (lost.stdout, lost.stderr) == (b"", None)


def test_the_words_of_a_command_are_those_of_a_result(child, tmp_path):
    commands = [[tmp_path / "none", b"x"], words(child, "exit", "0")]
    lost, good = procwright.map(commands, ordered=True)
    assert lost.argv == [str(tmp_path / "none"), "x"]
    assert good.argv == good.result.argv == words(child, "exit", "0")
    (line,) = procwright.map(["exit 0"], shell=True)
    assert line.argv == ["/bin/sh", "-c", "exit 0"] == line.result.argv


@pytest.mark.parametrize("name", ["stdout", "stderr", "keep_full"])
def test_one_file_for_all_is_refused(child, tmp_path, name):
    path = tmp_path / "all"
    commands = [words(child, "exit", "0")] * 2
    for given in (path, str(path), os.fsencode(path)):
        for many in (commands, iter(commands)):
            with pytest.raises(procwright.InvalidValue, match="each command would overwrite it"):
                procwright.map(many, **{name: given})
    assert not path.exists()
    own = [{"args": words(child, "exit", "0"), name: tmp_path / f"{n}"} for n in range(2)]
    assert all(ended.ok for ended in procwright.map(own))
    assert all(ended.ok for ended in procwright.map(commands[:1], **{name: path}))
    if name != "keep_full":
        assert all(ended.ok for ended in procwright.map(commands, **{name: "/dev/null"}))


def test_what_failed_before_raises_what_a_run_would(child, tmp_path):
    killed = ["sh", "-c", "kill -9 $$"]
    commands = [words(child, "exit", "3"), words(child, "exit", "0"), killed, ["/no/such/program"]]
    journal = tmp_path / "journal"
    procwright.map(commands, journal=journal).wait()
    again = procwright.map(
        commands, journal=procwright.Journal(journal, resume=True), ordered=True, text=True
    )
    failed, good, killed, missing = again
    assert [one.returncode for one in (failed, good, killed, missing)] == [3, 0, -9, None]
    assert (failed.before.ok, failed.before.returncode, failed.stdout) == (False, 3, None)
    assert failed.before.status == procwright.Status("exited", code=3)
    assert str(killed.before.status) == "killed by SIGKILL"
    assert missing.before.status is None
    assert "was not started" in missing.outcome
    with pytest.raises(procwright.CalledProcessError, match="exited with code 3") as caught:
        failed.check()
    error = caught.value
    assert (error.result, error.returncode, error.cmd) == (None, 3, commands[0])
    assert (error.stdout, error.stderr) == (None, None)
    unpickled = pickle.loads(pickle.dumps(error))
    assert (str(unpickled), unpickled.returncode) == (str(error), 3)
    for one, code in ((killed, -9), (missing, None)):
        with pytest.raises(procwright.CalledProcessError) as caught:
            one.check()
        assert caught.value.returncode == code
    assert good.check() is None


def test_what_a_cancel_has_stopped_raises_cancelled(child):
    cancel = Cancel()
    running = procwright.map([words(child, "sleep-forever")], cancel=cancel, stop_after_failures=1)
    while running.progress.running == 0:
        os.sched_yield()
    cancel.cancel()
    (ended,) = running
    assert ended.cause is None
    assert isinstance(ended.error, procwright.Cancelled)
    assert ended.outcome in ended.summary
    with pytest.raises(procwright.Cancelled):
        ended.check()


def test_one_that_was_cancelled_while_it_ran_has_the_same_error(child):
    cancel = Cancel()
    says = words(child, "sleep-forever", "--print-ready")
    running = procwright.map([says], cancel=cancel, on_line=lambda *_: cancel.cancel())
    (ended,) = running
    assert isinstance(ended.error, procwright.Cancelled)
    assert ended.error.result is ended.result
    assert ended.outcome == ended.result.outcome
    assert ended.outcome.startswith("was cancelled")
    assert ended.summary.endswith(ended.outcome)


def test_the_deadline_is_that_of_all(child):
    commands = itertools.repeat(words(child, "sleep-forever"))
    running = procwright.map(commands, parallel=2, deadline=0.3)
    # On a busy machine it comes before they have been started.
    for one in running:
        if one.result is not None:
            with pytest.raises(procwright.TimeoutExpired) as caught:
                one.check()
            assert caught.value.timeout == 0.3
    assert running.progress.stopped_by == "deadline"


def test_an_endless_iterable_is_asked_for_what_there_is_room_for(child):
    asked = itertools.count()
    taken = []

    def commands():
        for number in asked:
            taken.append(number)
            yield words(child, "exit", "0")

    with procwright.map(commands(), parallel=2, ahead=3) as running:
        for number, ended in enumerate(itertools.islice(running, 10)):
            assert ended.ok
            # The first may come last.
            assert len(taken) <= number + 10
    assert not running.progress.all_taken
    assert list(running) == []


def test_the_iterable_may_block_while_results_come(child):
    go_on = threading.Event()

    def commands():
        yield words(child, "exit", "0")
        go_on.wait()
        yield words(child, "exit", "0")

    running = procwright.map(commands(), parallel=4)
    assert next(running).ok
    go_on.set()
    assert next(running).ok
    assert list(running) == []


def test_what_the_iterable_raises_comes_through(child):
    def commands():
        yield words(child, "exit", "0")
        raise KeyError("mine")

    running = procwright.map(commands(), parallel=1)
    assert next(running).ok
    with pytest.raises(KeyError, match="mine"):
        next(running)
    assert list(running) == []


@pytest.mark.parametrize(
    ("command", "begin"),
    [
        ({"args": "true"}, "a command is 'true': pass a list"),
        ({"args": ["true"], "parallel": 3}, "parallel is 3, and a command has no such option"),
        (
            {"args": ["true"], "tag": "x"},
            "tag is 'x', and a command of map() has no such option: ",
        ),
        ({"cwd": "/"}, "a command is {'cwd': '/'}, which has no args"),
        ({"args": ["true"], "timeout": "x"}, "timeout is 'x': "),
        ({"args": ["true"], "stdin": [b"x"]}, "stdin is [b'x']: a command of a map"),
    ],
)
def test_a_bad_command_ends_it(command, begin):
    with pytest.raises(InvalidValue) as caught:
        list(procwright.map([command]))
    assert str(caught.value).startswith(begin)


def test_options_are_looked_at_before_anything_runs():
    def commands():
        pytest.fail("a command for whom?")
        yield

    with pytest.raises(TypeError, match="on_line is 'x'"):
        procwright.map(commands(), on_line="x")
    with pytest.raises(InvalidValue, match="timeout is 'x': "):
        procwright.map(commands(), timeout="x")


def test_a_cancel_ends_it(child):
    cancel = Cancel()
    running = procwright.map(
        itertools.repeat(words(child, "sleep-forever")), parallel=2, cancel=cancel
    )
    threading.Timer(0.1, cancel.cancel).start()
    assert {getattr(one.result, "reason", None) for one in running} <= {"cancelled", None}
    assert running.progress.stopped_by == "cancel"


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_leaving_the_block_leaves_nothing_running(child, tmp_path):
    pids = tmp_path / "pids"
    line = f"echo $$ >> {pids}; exec sleep 1000"
    commands = itertools.repeat({"args": line, "shell": True})

    def leave_when_three_run():
        with procwright.map(commands, parallel=3):
            while not pids.exists() or len(pids.read_text().split()) < 3:
                os.sched_yield()

    with pytest.warns(ResourceWarning, match="0 commands have run"):
        leave_when_three_run()
    assert all(gone(int(pid)) for pid in pids.read_text().split())


def test_the_end_of_the_object_is_its_end(child, tmp_path):
    pids = tmp_path / "pids"
    line = f"echo $$ >> {pids}; exec sleep 1000"
    running = procwright.map([{"args": line, "shell": True}])
    while not pids.exists() or not pids.read_text().strip():
        os.sched_yield()
    with pytest.warns(ResourceWarning, match="1 of 1 commands have not run"):
        del running
    assert gone(int(pids.read_text()))


def test_a_map_that_is_dropped_tells_how_many_have_not_run(child):
    def run(**options):
        for ended in procwright.map([words(child, "exit", "0")] * 3, parallel=1, **options):
            assert ended.ok
            break

    with pytest.warns(ResourceWarning, match=r"[0-2] of 3 commands have not run"):
        run(ahead=0)


def test_what_has_been_told_to_end_gives_no_warning(child):
    commands = [words(child, "exit", "0")] * 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(procwright.map(commands))) == 3
        procwright.map(commands).close()
        with procwright.map(commands, parallel=1) as running:
            next(running)
        procwright.map([])


def test_wait_runs_all_of_them(child, tmp_path):
    lines = [f"echo x >> {tmp_path}/{number}; exit {number % 2}" for number in range(300)]
    progress = procwright.map(lines, shell=True, parallel=4).wait()
    assert (progress.succeeded, progress.failed, progress.all_taken) == (150, 150, True)
    assert len(list(tmp_path.iterdir())) == 300


def test_the_arguments_of_one_command_are_not_many():
    with pytest.raises(InvalidValue, match=r"map\(\[\['echo', 'a'\]\]\)"):
        procwright.map(["echo", "a"])
    with pytest.raises(InvalidValue, match=r"a command is 'echo': .*shell=True"):
        list(procwright.map(word for word in ["echo", "a"]))
    ended = list(procwright.map(["echo a", "echo b"], shell=True, ordered=True))
    assert [one.stdout for one in ended] == [b"a\n", b"b\n"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("jobs", "parallel says how many"),
        ("max_workers", "parallel says how many"),
        ("keep_order", "ordered=True"),
        ("halt", "stop_after_failures=1"),
        ("colsep", "line.split(separator)"),
        ("n", "a list of all of its words"),
        ("check", "ok of each Ended"),
        ("tee", "on_line"),
        ("retries", "procwright run --retry"),
        ("resume", "Journal(path, resume=True)"),
        ("paralel", "did you mean parallel?"),
        ("capture_output", "leave it out"),
    ],
)
def test_parameters_of_others_say_what_to_write(name, hint):
    with pytest.raises(InvalidValue) as caught:
        procwright.map([["true"]], **{name: 1})
    assert isinstance(caught.value, TypeError)
    assert str(caught.value).startswith(f"{name} is 1, and map() has no such parameter: ")
    assert hint in str(caught.value)


def test_lines_come_while_their_command_runs(child, tmp_path):
    go_on = tmp_path / "go_on"
    os.mkfifo(go_on)
    seen = []

    def see(line, stream, index):
        seen.append((index, stream, line))
        if line == "one\n":
            # It waits for that.
            go_on.write_text("x")

    commands = [f"echo one; read x < {go_on}; printf 'two\\r' >&2", "printf 'a\\nb'"]
    ended = list(procwright.map(commands, shell=True, text=True, on_line=see, ordered=True))
    assert sorted(seen[:]) == [
        (0, "stderr", "two\r"),
        (0, "stdout", "one\n"),
        (1, "stdout", "a\n"),
        (1, "stdout", "b"),
    ]
    assert [one.stdout for one in ended] == ["one\n", "a\nb"]


def test_lines_of_bytes_and_of_one_stream(child):
    seen = []
    progress = procwright.map(
        [words(child, "says", "out:a\\nb", "err:c\\n", "out:\\r\\nd")],
        stderr=procwright.DEVNULL,
        on_line=lambda *line: seen.append(line),
    ).wait()
    assert progress.succeeded == 1
    assert seen == [(b"a\n", "stdout", 0), (b"b\r\n", "stdout", 0), (b"d", "stdout", 0)]
    with pytest.raises(InvalidValue, match="on_line needs a captured stream"):
        procwright.map(
            [["true"]], stdout=procwright.DEVNULL, stderr=procwright.DEVNULL, on_line=print
        ).wait()


def test_what_a_callback_of_lines_raises_is_the_error_of_its_command(child):
    def see(line, stream, index):
        if index == 0:
            raise KeyError("mine")

    first, second = procwright.map(["echo a", "echo b"], shell=True, on_line=see, ordered=True)
    assert isinstance(first.error, KeyError)
    assert not first.ok
    assert second.ok


def test_lines_in_an_executor():
    seen = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        procwright.map(
            ["echo a"], shell=True, executor=pool, on_line=lambda *line: seen.append(line)
        ).wait()
    assert seen == [(b"a\n", "stdout", 0)]
    with (
        concurrent.futures.ProcessPoolExecutor(1) as pool,
        pytest.raises(InvalidValue, match="on_line is called by threads"),
    ):
        procwright.map([["true"]], executor=pool, on_line=print)


def test_an_ended_has_the_parts_of_its_result_or_none(child, tmp_path):
    journal = tmp_path / "journal"
    commands = [words(child, "exit", "3"), ["/does/not/exist"]]
    failed, missing = procwright.map(commands, ordered=True, journal=journal, text=True)
    assert (failed.returncode, failed.stdout, failed.stderr) == (3, "", "")
    assert failed.outcome == "exited with code 3"
    assert (missing.returncode, missing.stdout, missing.stderr) == (None, "", "")
    assert "/does/not/exist" in missing.outcome
    [missing_here] = procwright.map([["no-such-program"]])
    for line in (missing.outcome, missing.summary, missing_here.outcome, missing_here.summary):
        assert "\n" not in line
    assert "hint" in str(missing_here.error)
    again = Journal(journal, resume=True)
    before, _ = procwright.map(commands, ordered=True, journal=again)
    assert (before.returncode, before.outcome) == (3, "exited with code 3")


class Pressed(BaseException):
    """What the handler of these tests raises, in the place of a KeyboardInterrupt."""


def press_until_it_ends(running, may_begin=lambda: True, function="__next__"):
    """Presses Ctrl-C again and again while a result is waited for, until nothing runs."""
    is_over = threading.Event()

    def handler(_number, frame):
        # Elsewhere it would be an exception of the test.
        while frame is not None and frame.f_code.co_name != function:
            frame = frame.f_back if function != "__next__" else None
        if frame is not None:
            raise Pressed

    def press():
        while not may_begin():
            os.sched_yield()
        while not is_over.is_set():
            os.kill(os.getpid(), signal.SIGINT)
            is_over.wait(0.05)

    before = signal.signal(signal.SIGINT, handler)
    thread = threading.Thread(target=press)
    thread.start()
    raised = 0
    while True:
        try:
            next(running)
        except Pressed:
            raised += 1
        except StopIteration:
            break
    is_over.set()
    thread.join()
    signal.signal(signal.SIGINT, before)
    return raised


def test_ctrl_c_ends_all(tmp_path):
    pids = tmp_path / "pids"
    line = f"echo $$ >> {pids}; exec sleep 1000"
    running = procwright.map(itertools.repeat({"args": line, "shell": True}), parallel=2)
    two_run = lambda: pids.exists() and len(pids.read_text().split()) == 2  # noqa: E731
    assert press_until_it_ends(running, two_run) >= 1
    assert all(gone(int(pid)) for pid in pids.read_text().split())


def test_a_second_ctrl_c_ends_the_grace(child):
    stubborn = {"args": words(child, "ignore-term"), "stop": Stop("TERM", grace=float("inf"))}
    assert press_until_it_ends(procwright.map([stubborn])) >= 1


def test_another_thread_may_take_the_results(child):
    running = procwright.map([words(child, "exit", "0")] * 5)
    ended = []
    thread = threading.Thread(target=lambda: ended.extend(running))
    thread.start()
    thread.join()
    assert len(ended) == 5


def test_what_was_done_is_not_done_again(child, tmp_path):
    done = tmp_path / "done"
    journal = tmp_path / "journal"

    def commands(*names):
        return [["sh", "-c", f"printf x >> {done}-$0; exit $1", name, "0"] for name in names]

    assert all(one.ok for one in procwright.map(commands("a", "b"), journal=journal))
    with pytest.raises(JournalError, match="is not empty") as caught:
        procwright.map(commands("a"), journal=str(journal))
    assert caught.value.errno is None
    resumed = procwright.map(
        commands("c", "b", "a"), ordered=True, journal=Journal(journal, resume=True)
    )
    new, *before = resumed
    assert new.ok
    assert new.result is not None
    assert [one.result for one in before] == [None, None]
    assert all(one.ok and one.before.outcome == "exited with code 0" for one in before)
    assert resumed.progress.succeeded_before == 2
    for name in "abc":
        assert pathlib.Path(f"{done}-{name}").read_text() == "x"


def test_the_environment_is_no_part_of_a_command(child, tmp_path, monkeypatch):
    command = words(child, "exit", "0")
    journal = tmp_path / "journal"
    list(procwright.map([command], journal=journal))
    monkeypatch.setenv("SOMETHING", "else")
    (again,) = procwright.map([command], journal=Journal(journal, resume=True))
    assert again.before is not None
    own = {"args": command, "extra_env": {"SOMETHING": "own"}}
    (other,) = procwright.map([own], journal=Journal(journal, resume=True))
    assert other.result is not None


#: How many commands the map has that is killed, and when.
ALL, KILLED_AT = (4_000, 2_000) if os.environ.get("STRESS") == "1" else (1000, 40)

KILLED = f"""
import procwright, sys
commands = ([sys.argv[1], "echo", str(number)] for number in range({ALL}))
for ended in procwright.map(commands, parallel=4, journal="journal"):
    print(ended.index, flush=True)
"""


def test_after_a_kill_each_is_done_once_or_told_of(child, tmp_path):
    command = [sys.executable, "-c", KILLED, child]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) as controller:
        for _ in range(KILLED_AT):
            controller.stdout.readline()
        controller.kill()
        told = KILLED_AT + len(controller.stdout.read().splitlines())
    script = f"""
import procwright, sys
from procwright import Journal
commands = [[sys.argv[1], "echo", str(number)] for number in reversed(range({ALL}))]
journal = Journal("journal", resume=True)
running = procwright.map(commands, parallel=4, journal=journal)
ended = list(running)
assert len(set(one.index for one in ended)) == {ALL}
before = sum(one.before is not None and not one.unknown for one in ended)
unknown = sum(one.unknown for one in ended)
ran = sum(one.result is not None and one.ok for one in ended)
print(before, unknown, ran)
"""
    out = subprocess.run(
        [sys.executable, "-c", script, child], cwd=tmp_path, stdout=subprocess.PIPE, check=True
    ).stdout
    before, unknown, ran = map(int, out.split())
    assert before + unknown + ran == ALL
    assert before >= told - 1
    assert unknown <= 4


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_has_no_part_in_it(child):
    running = procwright.map(itertools.repeat(words(child, "sleep-forever")), parallel=1)
    while running.progress.running == 0:
        os.sched_yield()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            next(running)
        except RuntimeError:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert running.progress.running == 1
    running.close()
