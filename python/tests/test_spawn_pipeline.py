"""`spawn_pipeline`: a pipeline that its caller holds."""

import gc
import inspect
import os
import pickle
import signal
import sys
import threading
import time

import pytest
from conftest import is_alive, with_time

import procwright
from procwright import DEVNULL, PIPE, STDOUT, InvalidValue, Overflow, pipeline, spawn_pipeline


def judged(result):
    return [stage.judgement for stage in result.stages]


def shell(line):
    return ["sh", "-c", line]


def until_gone(pids):
    """Waits until none of the processes runs."""
    while any(is_alive(pid) for pid in pids):
        time.sleep(0.01)


def test_a_talk_with_all_stages():
    with spawn_pipeline(["cat"], ["cat"], ["cat"], stdin=PIPE, text=True) as child:
        for said in ("pear\n", "äpple\n"):
            child.stdin.write(said)
            assert child.stdout.readline() == said
        assert child.poll() is None
        assert child.returncode is None
        assert len(child.pids) == 3
        assert all(is_alive(pid) for pid in child.pids)
        assert "goes on" in repr(child)
    assert child.poll() == 0
    assert "ended well" in repr(child)
    result = child.result()
    assert judged(result) == ["success"] * 3
    assert child.args == [["cat"]] * 3 == result.args


def test_lines_and_stderr_of_each_stage():
    stages = shell("echo one >&2; echo a"), shell("echo two >&2; cat"), shell("echo three >&2; cat")
    child = spawn_pipeline(*stages)
    assert list(child.stdout) == [b"a\n"]
    assert [stream.read() for stream in child.stderr] == [b"one\n", b"two\n", b"three\n"]
    assert child.stdin is None
    assert child.wait() == 0
    result = child.result()
    assert (result.stdout, result.stderr) == (b"", b"")
    assert [stage.stderr_info.bytes for stage in result.stages] == [4, 4, 6]


def test_outputs_that_go_elsewhere(tmp_path):
    made = tmp_path / "made"
    child = spawn_pipeline(shell("echo why >&2; echo a"), ["cat"], stdout=made, stderr=DEVNULL)
    assert child.stdout is None
    assert child.stderr == (None, None)
    assert child.communicate() == (None, None)
    assert made.read_bytes() == b"a\n"
    own = {"args": shell("echo why >&2; echo a"), "stderr": DEVNULL}
    child = spawn_pipeline(own, shell("echo two >&2; cat"), text=True)
    assert child.stderr[0] is None
    assert child.communicate() == ("a\n", "two\n")
    both = spawn_pipeline(shell("echo out; echo err >&2"), ["cat"], stderr=STDOUT)
    assert both.communicate() == (b"out\nerr\n", None)


def test_communicate_takes_more_than_pipes_hold():
    data = b"x" * 3_000_000
    child = spawn_pipeline(["cat"], ["cat"], stdin=PIPE)
    assert child.communicate(data) == (data, b"")
    result = child.result()
    assert result.stdout == data
    assert result.ok
    assert child.result() is result
    text = spawn_pipeline(["cat"], ["cat"], stdin=PIPE, encoding="utf-16-le")
    assert text.communicate("äö") == ("äö", "")


def test_text_that_was_begun_goes_on_where_it_was():
    child = spawn_pipeline(
        shell("printf 'a\\n\\303'; read x; printf '\\244\\n'"), ["cat"], stdin=PIPE, text=True
    )
    assert child.stdout.readline() == "a\n"
    assert child.communicate("go\n") == ("ä\n", "")


def test_what_the_first_reads():
    assert spawn_pipeline(["cat"], ["sort"], input="b\na\n", text=True).communicate()[0] == "a\nb\n"
    assert (
        spawn_pipeline(["cat"], ["sort"], stdin=iter([b"b\n", b"a\n"])).result().stdout == b"a\nb\n"
    )
    assert spawn_pipeline(["cat"], ["wc", "-c"]).communicate()[0].strip() == b"0"

    def pieces():
        yield b"x"
        raise KeyError("mine")

    child = spawn_pipeline(["cat"], ["cat"], stdin=pieces())
    with pytest.raises(KeyError, match="mine"):
        child.wait()
    # Told once.
    child.poll()


@pytest.mark.parametrize(
    ("stages", "options"),
    [
        ([["yes"], ["head", "-1"]], {}),
        ([["yes"], ["head", "-1"]], {"success": "strict"}),
        ([["false"], ["cat"]], {}),
        ([["false"], ["true"]], {"success": "last"}),
        ([["echo", "a"], ["grep", "b"]], {"ok_codes": {1: [1]}}),
        ([["yes"], ["sh", "-c", "read x; echo why >&2; exit 3"]], {}),
        ([["sh", "-c", "echo half; exit 3"], ["cat"]], {"elastic": True}),
        ([{"args": "echo $W", "shell": True, "extra_env": {"W": "own"}}, ["cat"]], {}),
    ],
)
def test_it_is_judged_as_one_that_is_run(stages, options):
    run = pipeline(*stages, **options)
    held = spawn_pipeline(*stages, **options).result()
    assert judged(held) == judged(run)
    facts = ("ok", "outcome", "rule", "reason", "returncode", "stdout", "stderr", "explanation")
    assert [getattr(held, one) for one in facts] == [getattr(run, one) for one in facts]
    assert [(stage.elastic is None) for stage in held.stages] == [
        (stage.elastic is None) for stage in run.stages
    ]


def test_what_has_failed_is_told_with_the_last_words_also_of_what_was_read():
    child = spawn_pipeline(["yes"], shell("read x; echo why >&2; exit 3"), text=True)
    assert child.stderr[1].read() == "why\n"
    assert child.wait() == 3
    with pytest.raises(procwright.CalledProcessError, match="why") as raised:
        child.result().check_returncode()
    assert "stage 1 of 2: yes was killed by SIGPIPE" in str(raised.value)


def test_a_wait_says_which_stages_have_not_ended():
    child = spawn_pipeline(["true"], ["sleep", "1000"], ["cat"], stop="KILL")
    try:

        def check(seconds):
            with pytest.raises(procwright.WaitTimeout) as raised:
                child.wait(seconds)
            text = str(raised.value)
            assert text.startswith("true | sleep 1000 | cat did not end within ")
            assert f"stage 2 of 3 has not ended: sleep 1000 (pid {child.pids[1]})" in text
            assert "stage 1 of 3" not in text
            assert raised.value.pending == (child,)

        # The first stage may take a moment.
        with_time(check)
        with pytest.raises(procwright.WaitTimeout, match=r"why: .*sleep"):
            child.wait(1)
        with pytest.raises(procwright.WaitTimeout):
            child.communicate(timeout=0)
        with pytest.raises(procwright.WaitTimeout):
            child.result(timeout=0.01)
    finally:
        assert child.stop() == []
    assert child.result().reason == "cancelled"


def test_a_limit_holds_while_nobody_waits_and_names_who_held_up_the_rest():
    def check(seconds):
        child = spawn_pipeline(["yes"], ["sleep", "1000"], ["cat"], timeout=seconds, stop="KILL")
        until_gone(child.pids)
        for _ in range(2):
            with pytest.raises(procwright.TimeoutExpired) as raised:
                child.wait()
            assert "stage 2 of 3 held up the rest: sleep 1000" in str(raised.value)
        with pytest.raises(procwright.TimeoutExpired) as raised:
            child.communicate()
        assert judged(raised.value.result) == ["collateral", "failed", "collateral"]

    with_time(check)
    child = spawn_pipeline(["sleep", "1000"], ["cat"], timeout=0.3, on_timeout="return")
    assert child.result().reason == "timeout"
    with pytest.raises(procwright.IdleTimeout):
        spawn_pipeline(["sleep", "1000"], ["cat"], idle_timeout=0.3).wait()
    with pytest.raises(procwright.OutputLimitExceeded):
        spawn_pipeline(["yes"], ["cat"], limit=procwright.Limit(1000, "fail")).wait()
    cancel = procwright.Cancel()
    child = spawn_pipeline(["sleep", "1000"], ["cat"], cancel=cancel)
    cancel.cancel()
    with pytest.raises(procwright.Cancelled):
        child.wait()


def test_who_has_dealt_with_a_limit_in_a_block_gets_it_once():
    with (
        spawn_pipeline(["sleep", "1000"], ["cat"], timeout=0.1) as child,
        pytest.raises(procwright.TimeoutExpired),
    ):
        child.wait()
    with pytest.raises(procwright.TimeoutExpired), spawn_pipeline(["sleep", "9"], timeout=0.1):
        pass


def test_stop_and_kill():
    child = spawn_pipeline(["sleep", "1000"], ["sleep", "1000"])
    assert child.stop() == []
    assert not any(is_alive(pid) for pid in child.pids)
    # Who has stopped it needs no exception for that.
    assert child.wait() == child.returncode
    assert not child.result().ok
    stubborn = shell("trap '' TERM; while :; do sleep 1; done")
    child = spawn_pipeline(stubborn, stubborn, stop=procwright.Stop("TERM", grace=1000))
    child.kill()
    child.wait()
    assert child.result().stages[0].returncode == -signal.SIGKILL
    assert child.stop() == []
    child.kill()


def test_a_signal_handler_ends_the_grace():
    class Rung(Exception):
        pass

    def ring(*_):
        raise Rung

    def rung():
        # It may ring at once.
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        child.stop()

    # It tells when the trap stands.
    stubborn = shell("trap '' TERM; echo up; while :; do sleep 1; done")
    child = spawn_pipeline(stubborn, ["cat"], stop=procwright.Stop("TERM", grace=1000))
    before = signal.signal(signal.SIGALRM, ring)
    try:
        assert child.stdout.readline() == b"up\n"
        with pytest.raises(Rung):
            rung()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not is_alive(child.pids[0])


def test_a_block_leaves_nothing_running():
    with pytest.raises(KeyError), spawn_pipeline(["sleep", "1000"], ["cat"], stop="KILL") as child:
        raise KeyError
    assert not any(is_alive(pid) for pid in child.pids)
    with spawn_pipeline(["cat"], ["cat"], stdin=PIPE) as child:
        pass
    assert child.returncode == 0


def test_the_end_of_a_block_warns_of_output_that_nobody_reads(caplog):
    endless = shell("echo a; while echo b; do :; done")

    def stop():
        while not caplog.records:
            time.sleep(0.05)
        child.kill()

    with spawn_pipeline(endless, ["cat"]) as child:
        assert child.stdout.readline() == b"a\n"
        thread = threading.Thread(target=stop)
        thread.start()
    thread.join()
    assert (
        f"| cat (pids {child.pids[0]}, {child.pids[1]}), and nobody reads the rest" in caplog.text
    )


def test_a_reader_that_leaves_is_told_to_the_stages():
    child = spawn_pipeline(["yes"], ["cat"])
    assert child.stdout.readline() == b"y\n"
    child.stdout.close()
    assert child.wait() == -signal.SIGPIPE
    assert judged(child.result()) == ["collateral", "failed"]


def test_unread_output_is_a_stall():
    child = spawn_pipeline(
        ["yes"], ["cat"], overflow=Overflow(memory=65536, disk=0), stall_after=0.2
    )
    with pytest.raises(procwright.Stalled, match="cat cannot go on: its stdout is full"):
        child.wait()
    child.stop()


def test_all_are_started_or_none(tmp_path):
    made = tmp_path / "made"
    with pytest.raises(procwright.SpawnError, match="stage 3 of 3, no-such-program"):
        spawn_pipeline(["mkdir", made], ["cat"], ["no-such-program"])
    assert not made.exists()


def test_bad_values_are_those_of_pipeline(tmp_path):
    for stages, options, text in [
        (["cat"], {}, r"pass each stage as a list, spawn_pipeline\(\['cat'\]\)"),
        ([[["cat"], ["cat"]]], {}, r"pass spawn_pipeline\(\*stages\)"),
        ([["cat"]], {"check": True}, r"spawn_pipeline\(\) has no such parameter: call check_ret"),
        ([["cat"]], {"pty": True}, "no stage has a terminal"),
        ([["cat"]], {"overflow": "block"}, "overflow is 'block': the outputs of a pipeline are"),
        ([["cat"]], {"stall_after": "x"}, "stall_after is 'x'"),
        ([["cat"], ["cat"]], {"limit": 5}, "stage 1: limit is 5, which keeps both ends"),
        ([{"args": ["cat"], "text": True}], {}, r"it is one of the whole, spawn_pipeline\(..., t"),
        ([["cat"]], {"stdin": PIPE, "input": b"x"}, "stdin and input are both given"),
        ([], {}, "stages is empty"),
        ([["cat"]], {"on_event": 5}, "on_event is 5"),
    ]:
        with pytest.raises(InvalidValue, match=text):
            spawn_pipeline(*stages, **options)
    with spawn_pipeline(["cat"], ["cat"], stdin=PIPE) as child:
        with pytest.raises(InvalidValue, match="pass bytes"):
            child.communicate("text")
        with pytest.raises(TypeError, match=r"iterate over child\.stdout"):
            iter(child)
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(child)
    with (
        spawn_pipeline(["true"]) as child,
        pytest.raises(InvalidValue, match="stdin is no pipe"),
    ):
        child.communicate(b"x")


def test_a_communicate_goes_on_where_it_was(tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with spawn_pipeline(shell(f"cat; cat {gate}"), ["cat"], stdin=PIPE) as child:
        with pytest.raises(procwright.WaitTimeout):
            child.communicate(b"x", timeout=0.1)
        with pytest.raises(InvalidValue, match="it was given before"):
            child.communicate(b"x")
        gate.write_bytes(b"y")
        assert child.communicate() == (b"xy", b"")


def test_it_takes_what_pipeline_takes():
    held = set(inspect.signature(spawn_pipeline).parameters)
    run = set(inspect.signature(pipeline).parameters)
    assert held - run == {"overflow", "stall_after"}
    assert run - held == {"check"}


def test_attributes_of_others_are_told():
    from procwright import _missing

    child = spawn_pipeline(["true"])
    child.wait()
    for name, hint in _missing.PIPELINE_CHILD.items():
        if not hasattr(child, name):
            with pytest.raises(AttributeError) as caught:
                getattr(child, name)
            assert hint in str(caught.value), name
    with pytest.raises(AttributeError, match=r"use child.result\(\).ok"):
        assert child.ok
    assert {name for name in _missing.PIPELINE_CHILD if hasattr(child, name)} == set()


def test_events_are_told_and_what_the_callback_raises_is_raised():
    told = threading.Event()
    events = []

    def hook(event):
        events.append(event.kind)
        told.set()
        raise KeyError("mine")

    child = spawn_pipeline(
        ["head", "-c", "1000000", "/dev/zero"], ["cat"],
        overflow=Overflow(memory=65536), on_event=hook,
    )  # fmt: skip
    assert told.wait(600)
    assert events == ["spilling"]
    with pytest.raises(KeyError, match="mine"):
        child.wait()
    assert len(child.result().stdout) == 1_000_000


def test_who_holds_the_output_of_a_stage_is_told(tmp_path):
    told = threading.Event()
    events = []

    def hook(event):
        events.append(event)
        told.set()

    gate = tmp_path / "gate"
    os.mkfifo(gate)
    # What it leaves behind has its stderr until it may go on.
    line = f"cat {gate} >/dev/null & exit 0"
    child = spawn_pipeline(shell(line), ["cat"], on_event=hook)
    assert told.wait(600)
    assert events[0].kind == "held"
    assert "until='exit'" in str(events[0]) or 'until="exit"' in str(events[0])
    gate.write_bytes(b"")
    assert child.wait() == 0


def test_nobody_keeps_it():
    kept = [spawn_pipeline(["sleep", "1000"], ["sleep", "1000"])]
    line = inspect.currentframe().f_lineno - 1
    pids = kept[0].pids
    with pytest.warns(ResourceWarning, match=r"the pipeline sleep 1000 \| sleep") as told:
        kept.clear()
    assert (told[0].filename, told[0].lineno) == (__file__, line)
    until_gone(pids)


def test_a_stream_keeps_it():
    for name in ("stdin", "stdout"):
        # Not cat, which ends with its stdin when that goes.
        kept = [getattr(spawn_pipeline(["sleep", "1000"], ["cat"], stdin=PIPE), name)]
        with pytest.warns(ResourceWarning, match="nobody keeps the pipeline sleep"):
            kept.clear()


@pytest.mark.filterwarnings("error")
def test_one_that_is_over_or_about_to_be_is_not_told_of():
    for line in spawn_pipeline(["yes"], ["head", "-1"]).stdout:
        assert line == b"y\n"
    spawn_pipeline(["true"], ["true"]).wait()
    gc.collect()


def test_the_end_of_the_interpreter_stops_it(script):
    process = script(
        "import procwright, warnings\n"
        "warnings.simplefilter('always')\n"
        "child = procwright.spawn_pipeline(['sleep', '1000'], ['sleep', '1000'])\n"
        "print(*child.pids, flush=True)\n"
    )
    out, err = process.communicate()
    pids = [int(pid) for pid in out.split()]
    assert len(pids) == 2
    assert not any(is_alive(pid) for pid in pids)
    assert "nobody keeps the pipeline" in err


def test_a_fork_has_no_part_in_it():
    with spawn_pipeline(["cat"], ["cat"], stdin=PIPE) as child:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                try:
                    child.wait(0)
                except ChildProcessError:
                    child.__exit__(None, None, None)
                    code = 0
            finally:
                os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0
        assert child.poll() is None


def test_nothing_is_left_over_many():
    def counts():
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    for _ in range(5):
        spawn_pipeline(["true"], ["true"]).wait()
    gc.collect()
    before = counts()
    for _ in range(30):
        with spawn_pipeline(["cat"], ["cat"], stdin=PIPE) as child:
            child.stdin.write(b"x")
            child.stdin.close()
            assert child.stdout.read() == b"x"
        del child
    gc.collect()
    # The threads that looked after them end a moment later.
    while counts() > before:
        time.sleep(0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="no such limits elsewhere")
def test_children_that_were_started_are_in_audit_events():
    seen = []

    def hook(event, args):
        if event == "procwright.pipeline":
            seen.append(args[1])

    sys.addaudithook(hook)
    spawn_pipeline(["true"], ["cat"]).wait()
    assert seen[:2] == [["true"], ["cat"]]
