"""What a plain run gives, and every documented default."""

from __future__ import annotations

import inspect
import io
import json
import os
import pathlib
import pickle
import signal
import subprocess
import tarfile

import pytest

import procwright


def test_hello(child):
    result = procwright.run([child, "echo", "hello"])
    assert result.stdout == b"hello\n"
    assert result.stderr == b""
    assert result.returncode == 0
    assert result.ok
    assert result.args == [child, "echo", "hello"]
    assert result.argv == [child, "echo", "hello"]
    assert result.reason == "finished"
    assert result.pid > 0
    assert result.duration_s > 0
    assert result.survivors == []
    assert result.stdout_info.bytes == result.stdout_info.kept_bytes == 6
    assert result.stdout_info.complete
    assert result.stdout_info.held_by == []
    result.check_returncode()


DEFAULTS = {
    "shell": False,
    "input": None,
    "stdin": None,
    "stdout": procwright.CAPTURE,
    "stderr": procwright.CAPTURE,
    "env": None,
    "extra_env": None,
    "cwd": None,
    "user": None,
    "group": None,
    "extra_groups": None,
    "umask": None,
    "rlimits": None,
    "nice": None,
    "process_group": None,
    "start_new_session": False,
    "die_with_parent": False,
    "pass_fds": (),
    "blocked_signals": None,
    "ignored_signals": None,
    "default_signals": None,
    "cpu_affinity": None,
    "sched_policy": None,
    "ionice": None,
    "oom_score_adj": None,
    "cgroup": None,
    "chroot": None,
    "no_new_privs": False,
    "new_keyring": False,
    "liveness": False,
    "pty": False,
    "timeout": None,
    "idle_timeout": None,
    "input_wanted": False,
    "explain_after": None,
    "stop": None,
    "until": "eof",
    "limit": None,
    "keep_full": None,
    "merged": False,
    "tee": False,
    "on_line": None,
    "on_stdout_line": None,
    "on_stderr_line": None,
    "max_length": 2**24,
    "too_long": "split",
    "text": False,
    "encoding": None,
    "errors": None,
    "check": False,
    "ok_codes": None,
    "on_timeout": "raise",
    "cancel": None,
    "on_event": None,
}


def test_signature():
    parameters = inspect.signature(procwright.run).parameters
    keywords = {name: p.default for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
    assert keywords == DEFAULTS
    assert next(iter(parameters)) == "args"


def test_defaults_do_what_they_say(child, monkeypatch):
    monkeypatch.setenv("PROCWRIGHT_TEST_VARIABLE", "set")
    shown = json.loads(procwright.run([child, "show"]).stdout)
    assert shown["cwd"] == os.getcwd()
    assert shown["umask"] == _umask()
    assert shown["pgid"] == os.getpgrp()
    assert shown["sid"] == os.getsid(0)
    assert shown["uid"] == os.getuid()
    assert shown["nice"] == os.nice(0)
    # Nothing but the three, and no signal is blocked or ignored.
    assert sorted(map(int, shown["fds"])) == [0, 1, 2]
    env = procwright.run([child, "env"]).stdout.split(b"\0")
    assert b"PROCWRIGHT_TEST_VARIABLE=set" in env
    # stdin is empty, and a failure is no exception.
    assert procwright.run([child, "cat"]).stdout == b""
    assert procwright.run([child, "exit", "3"]).returncode == 3
    assert procwright.run([child, "echo", "x"]).merged is None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_stop_defaults():
    stop = procwright.Stop()
    assert (stop.signal, stop.grace, stop.scope) == ("SIGTERM", 5.0, "tree")
    assert procwright.Stop(signal.SIGINT).signal == "SIGINT"
    assert procwright.Stop("int") == procwright.Stop(signal.Signals.SIGINT)
    assert repr(stop) == 'Stop("SIGTERM", grace=5.0, scope="tree")'
    assert procwright.Stop(grace=float("inf")).grace == float("inf")
    assert procwright.Limit(5).beyond == "ends"
    for value in (stop, procwright.Limit(3, "fail")):
        assert pickle.loads(pickle.dumps(value)) == value
        assert hash(value) == hash(pickle.loads(pickle.dumps(value)))


def test_values_that_cannot_be_used():
    for make in (
        lambda: procwright.Stop("NOPE"),
        lambda: procwright.Stop(0),
        lambda: procwright.Stop(grace=float("nan")),
        lambda: procwright.Stop(scope="all"),
        lambda: procwright.Limit(-1),
        lambda: procwright.Limit(1, "tail"),
    ):
        with pytest.raises(procwright.InvalidValue):
            make()
    with pytest.raises(TypeError):
        procwright.Stop(signal=[])


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": float("nan")},
        {"idle_timeout": float("nan")},
        {"until": "soon"},
        {"on_timeout": "ignore"},
        {"umask": 0o1777},
        {"rlimits": {"nofiles": 3}},
        {"rlimits": {"nofile": (9, 3)}},
        {"user": "no-such-user-here"},
        {"group": "no-such-group-here"},
        {"pass_fds": [1]},
        {"extra_env": {"A=B": "c"}},
        {"extra_env": {"": "c"}},
        {"env": {"A": "c\0"}},
        {"cwd": "a\0b"},
        {"limit": -1},
        {"stdout": procwright.STDOUT},
        {"stdout": -9},
        {"stdin": procwright.STDOUT},
        {"stdin": procwright.DEVNULL, "input": b""},
        {"stdout": None, "stderr": None, "limit": 3},
        {"stdout": None, "stderr": None, "idle_timeout": 3},
        {"stdout": None, "on_stdout_line": print},
        {"stdout": None, "stderr": None, "on_line": print},
        {"stdout": None, "stderr": None, "tee": True},
        {"stderr": procwright.STDOUT, "merged": True},
        {"die_with_parent": "NOPE"},
    ],
    ids=str,
)
def test_bad_values_fail_before_anything_starts(child, options, tmp_path):
    trace = tmp_path / "started"
    with pytest.raises(procwright.InvalidValue) as caught:
        procwright.run([child, "sleep-forever", "--pidfile", str(trace)], **options)
    assert not trace.exists()
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "options",
    [
        {"stdin": "text"},
        {"stdin": b"text"},
        {"stdin": 1.5},
        {"stdout": object()},
        {"input": "text"},
        {"input": 3},
        {"tee": 1.5},
        {"extra_env": {"A": 1}},
        {"umask": "022"},
        {"stop": 3},
        {"timeout": "5"},
    ],
    ids=str,
)
def test_bad_types(child, options):
    with pytest.raises(TypeError):
        procwright.run([child, "sleep-forever"], **options)


def test_bad_encodings(child):
    with pytest.raises(LookupError):
        procwright.run([child, "sleep-forever"], encoding="no-such-encoding")
    with pytest.raises(LookupError):
        procwright.run([child, "sleep-forever"], errors="no-such-way")


def test_a_string_is_not_a_list():
    for line in ("ls -l", b"ls -l"):
        with pytest.raises(TypeError) as caught:
            procwright.run(line)
        assert "run(['ls', '-l'])" in str(caught.value)
        assert "shell=True" in str(caught.value)
    with pytest.raises(procwright.InvalidValue):
        procwright.run([])
    with pytest.raises(procwright.InvalidValue):
        procwright.run([""])
    assert procwright.run(iter(["true", "x"])).args == ["true", "x"]
    with pytest.raises(TypeError, match=r"args\[1\] is 5"):
        procwright.run(["echo", 5])


def test_arguments_are_bytes(child, tmp_path):
    words = [b"\xff\xfe", "\udcff", "é", tmp_path, b""]
    result = procwright.run([child, "args", *words])
    assert result.stdout == b"".join(os.fsencode(word) + b"\0" for word in words)
    assert result.argv[2:] == [os.fsdecode(word) for word in words]
    assert json.loads(result.to_json())["argv"][2] == {"base64": "//4="}
    with pytest.raises(ValueError, match="NUL"):
        procwright.run([child, "args", "a\0b"])


def test_shell():
    result = procwright.run("echo $0 $#; exit 4", shell=True, text=True)
    assert (result.stdout, result.returncode) == ("/bin/sh 0\n", 4)
    result = procwright.run(["echo $0 $1", "zero", "one"], shell=True, text=True)
    assert result.stdout == "zero one\n"


def test_environment(child):
    run = procwright.run
    assert run([child, "env"], env={"A": "b", b"C": b"d"}).stdout == b"A=b\0C=d\0"
    env = run([child, "env"], env={"A": "b", "C": "d"}, extra_env={"A": None, "E": "f"}).stdout
    assert env == b"C=d\0E=f\0"


def test_child_setup(child, tmp_path):
    read, write = os.pipe()
    try:
        result = procwright.run(
            [child, "show"],
            cwd=tmp_path,
            umask=0o027,
            rlimits={"nofile": (50, 60), "core": 0},
            nice=3,
            start_new_session=True,
            pass_fds=[write],
        )
    finally:
        os.close(read)
        os.close(write)
    shown = json.loads(result.stdout)
    assert shown["cwd"] == str(tmp_path)
    assert shown["umask"] == 0o027
    assert shown["nice"] == os.nice(0) + 3
    assert shown["sid"] == shown["pgid"] == result.pid
    assert sorted(map(int, shown["fds"])) == [0, 1, 2, write]
    shown = json.loads(procwright.run([child, "show"], process_group=0).stdout)
    assert shown["pgid"] == shown["pid"]
    limits = procwright.run("ulimit -Sn; ulimit -Hn", shell=True, rlimits={"nofile": (50, 60)})
    assert limits.stdout == b"50\n60\n"
    assert procwright.run([child, "show"], die_with_parent=True).ok


def test_errors_of_starting(child, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        procwright.run(["no-such-program-here"])
    error = caught.value
    assert isinstance(error, procwright.SpawnError)
    assert (error.errno, error.filename, error.step) == (2, "no-such-program-here", "exec")
    assert "no-such-program-here" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.step, type(again)) == (str(error), error.step, type(error))
    with pytest.raises(FileNotFoundError) as caught:
        procwright.run([child, "show"], cwd=tmp_path / "missing")
    assert (caught.value.step, caught.value.filename) == ("chdir", str(tmp_path / "missing"))
    (tmp_path / "file").write_text("no program")
    with pytest.raises(PermissionError) as caught:
        procwright.run([tmp_path / "file"])
    assert caught.value.step == "exec"
    with pytest.raises(NotADirectoryError):
        procwright.run([child, "show"], cwd=tmp_path / "file")
    with pytest.raises(OSError, match="Bad file descriptor"):
        procwright.run([child, "show"], stdin=987)
    with pytest.raises(FileNotFoundError) as caught:
        procwright.run([child, "show"], stdout=tmp_path / "missing" / "out")
    assert caught.value.step == "open"


def test_status(child):
    result = procwright.run([child, "signal-self", "USR1"])
    assert result.returncode == -signal.SIGUSR1
    assert result.status.kind == "signaled"
    assert result.status.name == "SIGUSR1"
    assert not result.ok
    assert result.to_dict()["status"]["signal"] == signal.SIGUSR1
    result = procwright.run([child, "exit", "7"])
    assert result.status == procwright.Status("exited", 7)
    assert str(result.status) == result.outcome == "exited with code 7"
    assert result.summary == f"{child} exit 7 exited with code 7"


def test_codes_that_are_no_failure(child):
    result = procwright.run([child, "exit", "1"], check=True, ok_codes=[1, 4])
    assert (result.ok, result.returncode, result.ok_codes) == (True, 1, (1, 4))
    assert result.outcome == "exited with code 1"
    result.check_returncode()
    assert pickle.loads(pickle.dumps(result)).ok
    with pytest.raises(procwright.CalledProcessError):
        procwright.run([child, "exit", "2"], check=True, ok_codes={1})
    # A limit, and a signal, stay what they are.
    stopped = procwright.run(
        "trap 'exit 1' TERM; while :; do sleep 0.1; done",
        shell=True, timeout=0.2, ok_codes=[1], on_timeout="return",
    )  # fmt: skip
    assert (stopped.ok, stopped.reason) == (False, "timeout")
    assert not procwright.run([child, "signal-self", "KILL"], ok_codes=[9, 137]).ok


def test_check(child):
    result = procwright.run([child, "echo", "x"], check=True)
    assert result.ok
    with pytest.raises(subprocess.CalledProcessError) as caught:
        procwright.run("echo out; echo err >&2; exit 3", shell=True, check=True)
    error = caught.value
    assert isinstance(error, procwright.CalledProcessError)
    assert error.returncode == 3
    assert error.cmd == "echo out; echo err >&2; exit 3"
    assert (error.output, error.stdout, error.stderr) == (b"out\n", b"out\n", b"err\n")
    assert error.result.returncode == 3
    assert "exited with code 3" in str(error)
    assert "err" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.result.stdout) == (str(error), b"out\n")
    with pytest.raises(procwright.CalledProcessError):
        procwright.run([child, "exit", "9"]).check_returncode()


def test_result_as_json(child):
    result = procwright.run([child, "print-bytes", "ff00"])
    shown = json.loads(result.to_json(indent=1))
    assert shown == result.to_dict()
    schema = pathlib.Path(__file__).parents[2] / "docs" / "reference" / "result.schema.json"
    of_command = {"attempts", "left", "log", "total_s", "input_wanted"}
    of_others = of_command | {"judgement", "elastic", "fan", "function"}
    assert set(shown) == set(json.loads(schema.read_text())["properties"]) - of_others
    assert (shown["stdout"], shown["stderr"]) == ({"base64": "/wA="}, "")
    assert shown["stdout_info"]["bytes"] == 2
    assert shown["status"] == {"kind": "exited", "code": 0}
    assert procwright.run([child, "exit", "0"], stdout=None).to_dict()["stdout"] is None
    again = pickle.loads(pickle.dumps(result))
    assert again.to_dict() == result.to_dict()
    assert "returncode=0" in repr(result)
    assert repr(procwright.run([child, "flood", "--out", "1K"])).endswith("stderr=b'')")


def test_repr_marks_what_a_limit_has_left_out(child):
    def shown(*argv, **options):
        return repr(procwright.run([child, *argv], **options))

    assert "stdout=b'01' [… 7 bytes dropped …] b'9\\n'," in shown("echo", "0123456789", limit=4)
    # Two characters, each of which is cut in two.
    half = shown("says", "out:aéxéb", text=True, limit=4)
    assert "stdout='a\ufffd' [… 3 bytes dropped …] '\ufffdb'," in half
    assert "stdout=<300 of 1,024 bytes>," in shown("flood", "--out", "1K", limit=300)
    assert "dropped" not in shown("echo", "012", limit=4)


def test_import_is_light(script):
    process = script(
        "import sys\n"
        "before = set(sys.modules)\n"
        "import procwright\n"
        "heavy = {'subprocess', 'typing', 'dataclasses', 'inspect', 'json', 'logging',\n"
        "         'threading', 'signal', 'enum', 're', 'collections', 'codecs'}\n"
        "print(sorted(heavy & (set(sys.modules) - before)))\n"
        "procwright.run(['true'])\n"
        "print('subprocess' in sys.modules)\n"
        "procwright.TimeoutExpired\n"
        "print('subprocess' in sys.modules)\n"
        "assert set(procwright.__all__) <= set(dir(procwright))\n"
        "for name in procwright.__all__: getattr(procwright, name)\n"
    )
    assert process.communicate() == ("[]\nFalse\nTrue\n", "")


def test_a_member_of_an_archive_is_read():
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        member = tarfile.TarInfo("log")
        member.size = 4
        archive.addfile(member, io.BytesIO(b"b\na\n"))
    held.seek(0)
    with tarfile.open(fileobj=held) as archive:
        assert procwright.run(["sort"], stdin=archive.extractfile("log")).stdout == b"a\nb\n"
