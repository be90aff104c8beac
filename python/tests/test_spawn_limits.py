"""Limits of a child that is held: timeouts, a limit of output, a cancel; and what a wait says
that has come to its time."""

import pathlib
import pickle
import subprocess
import threading

import pytest
from conftest import with_time

import procwright
from procwright import PIPE, STDOUT, Cancel, InvalidValue, Limit, Stop, WaitTimeout, spawn

SOON = Stop(grace=0.02)
SHORT = 0.05


def lives(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def sleeper(child, **options):
    return spawn([child, "sleep-forever"], stop=SOON, **options)


def ways():
    """Whatever may be called next, each with the error's result or none."""

    def leave(one):
        with one:
            pass

    return [
        lambda one: one.wait(),
        lambda one: one.communicate(),
        lambda one: one.result(),
        leave,
    ]


@pytest.mark.parametrize("way", ways())
@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"timeout": SHORT}, procwright.TimeoutExpired, "timeout"),
        ({"idle_timeout": SHORT}, procwright.IdleTimeout, "idle_timeout"),
        ({"timeout": 0}, procwright.TimeoutExpired, "timeout"),
    ],
)
def test_a_time_that_is_over_stops_it_and_is_raised(child, way, options, error, reason):
    one = sleeper(child, **options)
    with pytest.raises(error) as caught:
        way(one)
    assert caught.value.result.reason == reason
    assert caught.value.result.processes
    assert caught.value.timeout == next(iter(options.values()))
    assert isinstance(caught.value, subprocess.TimeoutExpired)
    assert "timed out after" in str(caught.value) or "was silent for" in str(caught.value)
    # Each time, and not by those that only ask.
    with pytest.raises(error):
        way(one)
    assert one.poll() == -15
    assert pickle.loads(pickle.dumps(caught.value.result)).reason == reason


def test_what_was_written_is_in_the_result(child):
    def check(seconds):
        for way in (lambda one: one.communicate(), lambda one: one.result()):
            said = ["sh", "-c", "echo out; echo err >&2; sleep 1000"]
            one = spawn(said, text=True, timeout=seconds)
            with pytest.raises(procwright.TimeoutExpired) as caught:
                way(one)
            assert caught.value.result.stdout == "out\n"
            assert caught.value.stderr == "err\n"
            assert "the end of stderr:\n    err" in str(caught.value)
            # What was raised once is raised again, with the same result.
            with pytest.raises(procwright.TimeoutExpired) as again:
                one.result()
            assert again.value.result is caught.value.result

    with_time(check)


def test_on_timeout_return(child):
    one = sleeper(child, timeout=SHORT, on_timeout="return", text=True)
    assert one.wait() == -15
    assert one.communicate() == ("", "")
    assert one.result().reason == "timeout"
    with sleeper(child, idle_timeout=SHORT, on_timeout="return") as one:
        pass
    assert one.result().reason == "idle_timeout"


def test_a_child_that_ends_in_time(child):
    cancel = Cancel()
    limits = {"timeout": 3600, "idle_timeout": 3600, "limit": Limit(2, "fail"), "cancel": cancel}
    with spawn([child, "echo", "x"], text=True, **limits) as one:
        assert one.communicate() == ("x\n", "")
    cancel.cancel()
    assert one.result().reason == "finished"


def test_a_limit_of_output(child):
    one = spawn([child, "flood-forever"], stop=SOON, limit=Limit("64KiB", "fail"))
    with pytest.raises(procwright.OutputLimitExceeded) as caught:
        one.communicate()
    assert len(caught.value.result.stdout) == 65536
    assert "wrote more than 65536 bytes" in str(caught.value)


#: Goes on writing for all of the grace.
FLOODS = "trap '' TERM; exec yes"


@pytest.mark.parametrize("text", [False, True])
def test_whoever_reads_gets_the_limit_and_not_a_byte_more(text):
    limit = Limit("64KiB", "fail")
    one = spawn(FLOODS, shell=True, text=text, stop=Stop(grace=0.1), limit=limit)
    assert len(one.stdout.read()) == 65536
    with pytest.raises(procwright.OutputLimitExceeded) as caught:
        one.wait()
    info = caught.value.result.stdout_info
    assert (info.kept_bytes, info.dropped_bytes > 0) == (65536, True)
    assert info.bytes == info.kept_bytes + info.dropped_bytes


def test_copies_and_callbacks_end_at_the_limit(tmp_path):
    seen: list[bytes] = []
    options = {"stop": Stop(grace=0.1), "limit": Limit("64KiB", "fail")}
    full, log = tmp_path / "full", tmp_path / "log"
    one = spawn(FLOODS, shell=True, on_stdout_line=seen.append, tee=log, keep_full=full, **options)
    with pytest.raises(procwright.OutputLimitExceeded) as caught:
        # Returns when the callback has been called with all.
        one.communicate()
    assert sum(map(len, seen)) == log.stat().st_size == full.stat().st_size == 65536
    assert "ends at the limit" in caught.value.result.stdout_info.kept_error


def test_a_cancel_ends_all_that_have_it(child):
    cancel = Cancel()
    many = [sleeper(child, cancel=cancel) for _ in range(8)]
    threading.Timer(SHORT, cancel.cancel).start()
    for one in many:
        with pytest.raises(procwright.Cancelled):
            one.wait()
    with pytest.raises(procwright.Cancelled) as caught:
        sleeper(child, cancel=cancel)
    assert caught.value.result is None


#: Leaves a program that is called `sleep` by the time that its number is told.
LEAVES = (
    "sleep 1000 & until read name < /proc/$!/comm && [ $name = sleep ]; do :; done; echo $!; exit 3"
)


def test_until_exit(child):
    with spawn(["sh", "-c", LEAVES], text=True, until="exit") as one:
        pid = int(one.stdout.read())
        assert lives(pid)
    result = one.result()
    assert result.returncode == 3
    assert [holder.pid for holder in result.stderr_info.held_by] == [pid]
    procwright.Process(pid).send_signal("KILL")


def test_the_timeout_of_a_wait_is_another(child):
    with sleeper(child, timeout=3600) as one:
        with pytest.raises(WaitTimeout):
            one.wait(SHORT)
        assert one.poll() is None
        one.stop()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"limit": 9}, "limit is 9, which keeps both ends, and what comes is yours to keep: bou"),
        ({"limit": Limit(9, "fail"), "overflow": "block"}, "limit is "),
        ({"idle_timeout": 9, "overflow": "block"}, "idle_timeout is 9, which needs output to be "),
        ({"until": "exit", "overflow": "block"}, "until is 'exit', which needs output to be "),
        (
            {"idle_timeout": 9, "stdout": None, "stderr": None},
            "idle_timeout is 9, which needs a ca",
        ),
        ({"until": "silent:2s"}, "until is 'silent:2s', which is for run(), not for spawn(): "),
        ({"timeout": "9"}, "timeout is '9': pass seconds as a number"),
        ({"on_timeout": "ignore"}, "on_timeout is 'ignore': "),
    ],
)
def test_what_makes_no_sense_is_refused(options, text):
    with pytest.raises(InvalidValue) as caught:
        spawn(["x"], **options)
    assert str(caught.value).startswith(text)


def test_a_wait_that_times_out_says_what_it_does(child):
    with sleeper(child) as one:
        for call in (one.wait, lambda timeout: one.communicate(timeout=timeout), one.result):
            with pytest.raises(WaitTimeout) as caught:
                call(0.2)
            text = str(caught.value)
            assert text.startswith(f"{child} sleep-forever did not end within 0.2 s"), text
            assert "\n  its processes:\n" in text, text
            assert f"{one.pid}" in text
            assert str(pickle.loads(pickle.dumps(caught.value))) == text
        # Who asks again and again is not kept by a look at all processes.
        with pytest.raises(WaitTimeout) as caught:
            one.wait(0.01)
        assert str(caught.value) == f"{child} sleep-forever did not end within 0.01 s"
        one.stop()


def test_it_quotes_the_end_of_stderr(child):
    with spawn(["sh", "-c", "echo words >&2; sleep 1000"], stdin=PIPE) as one:
        assert one.stderr.peek()
        with pytest.raises(WaitTimeout) as caught:
            one.communicate(timeout=0.3)
        assert "\n  the end of stderr:\n    words" in str(caught.value)
        assert caught.value.stderr == b"words\n"
        one.stop()


@pytest.mark.parametrize("stderr", [PIPE, STDOUT])
def test_it_tells_an_exit_from_a_stream_that_others_hold(stderr):
    with spawn(["sh", "-c", LEAVES], text=True, stderr=stderr) as one:
        pid = int(one.stdout.readline())
        assert one.wait() == 3
        for call in (one.communicate, one.result):
            with pytest.raises(WaitTimeout) as caught:
                call(timeout=0.5)
            streams = "stdout and stderr are" if stderr is PIPE else "stdout is"
            text = f"exited with code 3; after 0.5 s {streams} still held open by sleep (pid {pid})"
            assert text in str(caught.value)
        one.stop()


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"timeout": SHORT}, procwright.TimeoutExpired, "timeout"),
        ({"idle_timeout": SHORT}, procwright.IdleTimeout, "idle_timeout"),
    ],
)
def test_a_search_that_ends_with_a_limit_says_which(child, options, error, reason):
    with pytest.raises(error) as caught:
        sleeper(child, text=True, **options).wait_for("never")
    assert caught.value.result.reason == reason


def test_a_search_that_ends_with_a_limit_of_output_says_so():
    one = spawn(["sh", "-c", "yes"], limit=Limit(1000, beyond="fail"), stop=SOON, text=True)
    with pytest.raises(procwright.OutputLimitExceeded) as caught:
        one.wait_for("never")
    assert caught.value.result.reason == "output_limit"


def test_a_search_that_ends_with_a_cancel_says_so(child):
    cancel = Cancel()
    one = sleeper(child, cancel=cancel, text=True)
    cancel.cancel()
    with pytest.raises(procwright.Cancelled) as caught:
        one.wait_for("never")
    assert caught.value.result.reason == "cancelled"


def test_a_search_that_ends_with_a_timeout_that_is_returned_finds_nothing(child):
    one = sleeper(child, timeout=SHORT, on_timeout="return", text=True)
    with pytest.raises(procwright.EndedBeforeMatch):
        one.wait_for("never")
    assert one.result().reason == "timeout"


def test_what_was_caught_in_the_block_is_not_raised_by_its_end(child):
    with spawn([child, "sleep-forever"], timeout=0.05) as it:
        with pytest.raises(procwright.TimeoutExpired):
            it.wait()
        # Each call tells it.
        with pytest.raises(procwright.TimeoutExpired):
            it.wait()
    assert it.status is not None
    with (
        spawn([child, "sleep-forever"], idle_timeout=0.05) as it,
        pytest.raises(procwright.IdleTimeout),
    ):
        it.communicate()
    # Where nobody has been told, the end of the block tells.
    with (
        pytest.raises(procwright.TimeoutExpired),
        spawn([child, "sleep-forever"], timeout=0.05) as it,
    ):
        assert it.stdout.read() == b""


@pytest.mark.parametrize(
    ("args", "shell", "shown"),
    [(["sleep", "1000"], False, "sleep 1000"), ("sleep 1000", True, "/bin/sh -c 'sleep 1000'")],
)
def test_the_cmd_of_a_wait_is_what_was_started(args, shell, shown):
    one = spawn(args, shell=shell, stop=SOON, text=True)
    for wait in (
        lambda: one.wait(0),
        lambda: one.wait(0.1),
        lambda: one.stdout.readline(timeout=0),
        lambda: one.wait_for("x", 0),
        lambda: one.communicate(timeout=0),
    ):
        with pytest.raises(WaitTimeout) as caught:
            wait()
        for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
            assert error.cmd == args
            assert shown in str(error)
            assert f"'{shown}" not in str(error)
    one.stop()
    with pytest.raises(procwright.EndedBeforeMatch) as caught:
        spawn("true 1", shell=True, text=True).wait_for("x")
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert error.cmd == "true 1"
        assert str(error).startswith("/bin/sh -c 'true 1' exited")
