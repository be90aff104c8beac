"""A bad value of any parameter of any public call is one error in one shape of words.

The parameters are those of the signatures: one without rows here fails.
"""

import asyncio
import datetime
import gc
import inspect
import io
import math
import os
import pathlib
import pickle
import re
import signal
import socket
import subprocess
import threading

import pytest
from conftest import descriptors

import procwright
from procwright import DEVNULL, INHERIT, PIPE, STDOUT, InvalidValue, _map, queue, testing

#: Values that the library makes. Their constructors are not for users.
MADE = {
    procwright.Budget,
    procwright.Child,
    procwright.Command,
    procwright.Ended,
    procwright.Diagnosis,
    procwright.Event,
    procwright.Figures,
    procwright.Gap,
    procwright.Holder,
    procwright.LivenessClaim,
    procwright.LivenessGuarantee,
    procwright.Map,
    procwright.Merged,
    procwright.MergedLine,
    procwright.Past,
    procwright.Pipeline,
    procwright.Piece,
    procwright.PipelineChild,
    procwright.PipelineResult,
    procwright.Progress,
    procwright.Reader,
    procwright.Result,
    procwright.Stage,
    procwright.StageFunction,
    procwright.Status,
    procwright.StreamInfo,
    procwright.Survivor,
    procwright.TextReader,
    procwright.TextWriter,
    procwright.Waited,
    procwright.Waiting,
    procwright.Writer,
    queue.LaneStat,
    queue.ReceiverStat,
    queue.Reservation,
    queue.Sender,
    queue.Stat,
    queue.View,
    testing.Call,
    testing.Registered,
}

#: Parameters that take any object: for its truth, or to be sent.
ANYTHING = {
    "check",
    "detach",
    "input_wanted",
    "keep_ends",
    "liveness",
    "merged",
    "new_keyring",
    "no_new_privs",
    "obj",
    "ordered",
    "rerun_failed",
    "rerun_unknown",
    "resume",
    "shell",
    "start_new_session",
    "strict",
    "sync",
    "text",
    "wait",
}


class Odd:
    """A value of no type that anything takes."""

    def __repr__(self):
        return "<odd>"


class Row:
    """A bad value. `text` is how the error begins, if not with the parameter and the value."""

    def __init__(self, value, kind, text=None):
        self.value, self.kind, self.text = value, kind, text


def wrong_type(*values):
    return [Row(value, TypeError) for value in values]


def bad(*values):
    return [Row(value, ValueError) for value in values]


HUGE = 2**70
ODD = Odd()
SECONDS = [*wrong_type("x", "1", b"1", ODD, True, [1], datetime.timedelta), *bad(math.nan)]
CALLBACK = wrong_type("x", 5, ODD)
ACCOUNT = [*wrong_type(1.5, True, ODD, [0]), *bad(-1, 2**32 - 1, HUGE)]
ENV = [
    *wrong_type("x", 5, ODD, ["A=1"], dict),
    Row({"A": 1}, TypeError, "env['A'] is 1: "),
    Row({"A": True}, TypeError, "env['A'] is True: "),
    Row({5: "x"}, TypeError, "a name in env is 5: "),
    Row({"A": "\ud800"}, ValueError, r"env['A'] is '\ud800': "),
]
FILE = [*wrong_type(5, ODD, ["x"]), Row("a\0b", ValueError, "cwd is 'a\\x00b', which contains")]
SIGNAL = [*wrong_type(1.5, True, ODD, None), *bad("X", "SIG", -1, 0, 65, HUGE)]
#: A bare number could be seconds.
STOP_SIGNAL = [*wrong_type(1.5, True, ODD, None, 15, 5, -1, HUGE), *bad("X", "SIG", "")]
STOP = [*wrong_type(15, 5, 1.5, True, [15], ODD), *bad("X", "SIG", "", "KILL\0")]
DESCRIPTOR = [*wrong_type("x", 1.5, ODD, True, None), *bad(-1, HUGE)]
SOCKET = [*wrong_type("x", ODD, True, None), *bad(-1, HUGE)]
PROCS = [
    *wrong_type("x", 5, ODD, None),
    Row([ODD], TypeError, "a member of procs is <odd>: "),
    Row([True], TypeError, "process is True: "),
    Row([-1], ValueError, "process is -1: "),
]
EVENT = [*wrong_type(5, None, ODD), *bad("x", "")]
POLICY = [*wrong_type(5, None, ODD), *bad("x")]
BYTES = [
    *wrong_type(1.5, True, ODD, [1], b"1KiB"),
    *bad(-1, HUGE, "x", "", "1 XB", "64KB", "-1", "1e3", "1KiB 1KiB", "9" * 30, "\ud800"),
]
SIZE = [*wrong_type("x", 1.5, ODD), *bad(HUGE)]
OUTPUT = [*wrong_type(5, ["x"], ODD), Row(None, TypeError), *bad("\ud800")]
DATA = wrong_type("x", 5, ODD, None)
PATTERN = [*wrong_type(b"x", 5, ODD, None, re.compile(b"x")), *bad("(", "*")]
CODEC = [*wrong_type(5, b"utf-8", ODD), Row("no such", LookupError), Row("a\0b", LookupError)]
FDS = [
    *wrong_type("x", 5, ODD, None),
    Row(["x"], TypeError, "fds[0] is 'x': "),
    Row([-1], ValueError, "fds[0] is -1: "),
    *bad([], [0], [0, 0, 0]),
]
TICKET = [*wrong_type(5, None, b"x", ODD), *bad("\ud800")]
NAME = [
    *wrong_type(5, None, b"x", ODD),
    *bad("\ud800"),
    Row("a/b", ValueError, 'name is "a/b", which is no name'),
]
STDIN = [
    *wrong_type("text", b"text", bytearray(b"x"), ODD, 1.5, True),
    *bad(-9, HUGE),
    Row(pathlib.Path("a\0b"), ValueError, "stdin is Path('a\\x00b'), which contains"),
    Row(STDOUT, ValueError, "stdin is STDOUT: "),
]
STDOUT_ROWS = [
    *wrong_type(1.5, ODD, True, io.BytesIO(), [1]),
    *bad(-9, HUGE),
    Row("a\0b", ValueError, "stdout is 'a\\x00b', which contains"),
    Row(STDOUT, ValueError, "stdout is STDOUT, which cannot be merged"),
]
SEPARATOR = [*wrong_type(5, ODD), *bad(b"")]
MOST_LENGTH = [*wrong_type("x", 1.5, True, ODD), *bad(-1, 0, HUGE)]
TEXT_SEPARATOR = [*wrong_type(5, b"x", ODD), *bad("", "\ud800")]

OK_CODES_OF_STAGES = [
    *wrong_type("x", 5, ODD),
    Row({1: [0]}, ValueError, "a stage in ok_codes is 1: "),
    Row({0: [256]}, ValueError, "ok_codes[0] is 256: "),
    Row({0: 5}, TypeError, "ok_codes[0] is 5: "),
]

#: Bad values by the names of parameters, or by call and parameter, which goes first.
ROWS = {
    "args": [
        *wrong_type("echo x", 5, None, ODD, b"echo"),
        *[Row(value, ValueError, f"args is {value!r}, which ") for value in ([], ())],
        Row(["a", 5], TypeError, "args[1] is 5: "),
        Row(["a", "\ud800"], ValueError, r"args[1] is '\ud800': "),
        Row(["a", "b\0"], ValueError, r"args[1] is 'b\x00', which contains a NUL byte"),
    ],
    "input": wrong_type("text", 5, ODD, ["x"]),
    "stdin": STDIN,
    "stdout": STDOUT_ROWS,
    "stderr": [row for row in STDOUT_ROWS if row.text is None],
    "env": ENV,
    "extra_env": [
        Row(row.value, row.kind, row.text and row.text.replace("env", "extra_env")) for row in ENV
    ],
    "cwd": FILE,
    "user": [*ACCOUNT, Row("no such", ValueError, "user is 'no such', which is not known")],
    "group": [*ACCOUNT, Row("no such", ValueError, "group is 'no such', which is not known")],
    "extra_groups": [
        *wrong_type("x", 5, ODD),
        Row([-1], ValueError, "extra_groups[0] is -1: "),
        Row([0, 1.5], TypeError, "extra_groups[1] is 1.5: "),
        Row([0, 2**32 - 1], ValueError, "extra_groups[1] is 4294967295: "),
    ],
    "umask": [*wrong_type("x", 1.5, True, ODD), *bad(-2, 0o1000, HUGE)],
    "rlimits": [
        *wrong_type("x", 5, ODD, [("nofile", 1)]),
        Row({"nofile": (1,)}, ValueError, "rlimits['nofile'] is (1,): "),
        Row({"nofile": "x"}, TypeError, "rlimits['nofile'] is 'x': "),
        Row({"nofile": (1, None)}, TypeError, "rlimits['nofile'] is (1, None): "),
        Row({"nofile": -2}, ValueError, "rlimits['nofile'] is -2: "),
        Row({"nofile": HUGE}, ValueError, f"rlimits['nofile'] is {HUGE}: "),
        Row({5: 1}, TypeError, "a name in rlimits is 5: "),
        Row({"x": 1}, ValueError, "rlimits is {'x': 1}, which names the unknown resource"),
        Row({"core": (2, 1)}, ValueError, "rlimits is {'core': (2, 1)}, which has a soft limit"),
    ],
    "nice": [*wrong_type("x", 1.5, True, ODD), *bad(HUGE)],
    "process_group": [*wrong_type("x", 1.5, True, ODD), *bad(-2, HUGE)],
    "die_with_parent": [*wrong_type(1.5, ODD), *bad("X", -1, 0, 65, HUGE)],
    **{
        name: [
            *wrong_type("TERM", b"x", 5, ODD),
            Row(["X"], ValueError, f"{name}[0] is 'X': "),
            Row([1.5], TypeError, f"{name}[0] is 1.5: "),
            Row(["INT", 65], ValueError, f"{name}[1] is 65: "),
            Row(["\ud800"], ValueError, rf"{name}[0] is '\ud800': "),
            *[
                Row(["STOP"], ValueError, f"{name} is ['STOP'], which has SIGSTOP, which no")
                for _ in range(name != "default_signals")
            ],
        ]
        for name in ("blocked_signals", "ignored_signals", "default_signals")
    },
    "cpu_affinity": [
        *wrong_type("0-3", 0, ODD),
        Row([True], TypeError, "cpu_affinity[0] is True: "),
        Row([0, -1], ValueError, "cpu_affinity[1] is -1: "),
        Row([HUGE], ValueError, f"cpu_affinity[0] is {HUGE}: "),
        Row([], ValueError, "cpu_affinity is [], which is empty: "),
        Row([8192], ValueError, "cpu_affinity is [8192], which has 8192, and no kernel"),
    ],
    **{
        name: [
            *wrong_type(5, b"idle", ODD, True, ("fifo", 5)),
            *bad("\ud800"),
            *[Row(word, ValueError, f"{name} is {word!r}, which is not known: ") for word in words],
        ]
        for name, words in (
            ("ionice", ["x", "", "best-effort:8", "idle:1", "IDLE", "realtime:-1"]),
            ("sched_policy", ["x", "", "fifo", "rr:0", "fifo:100", "deadline"]),
        )
    },
    "oom_score_adj": [
        *wrong_type("x", 1.5, True, ODD),
        *bad(HUGE),
        Row(1001, ValueError, "oom_score_adj is 1001, which is out of range: "),
        Row(-1001, ValueError, "oom_score_adj is -1001, which is out of range: "),
    ],
    **{
        name: [
            *wrong_type(5, ODD, ["x"]),
            *bad("\ud800"),
            Row("a\0b", ValueError, f"{name} is 'a\\x00b', which contains a NUL"),
        ]
        for name in ("cgroup", "chroot")
    },
    "pass_fds": [
        *wrong_type("x", 5, ODD, None),
        Row([-1], ValueError, "pass_fds[0] is -1: "),
        Row(["x"], TypeError, "pass_fds[0] is 'x': "),
        Row([1], ValueError, "pass_fds is [1], which would replace descriptor 1"),
    ],
    "pty": [*wrong_type("x", 5, ODD), *bad((1,), (0, 1), (1, 1 << 16), (1, "x"), (1, True))],
    "timeout": SECONDS,
    "idle_timeout": SECONDS,
    "explain_after": SECONDS,
    "wait": SECONDS,
    "stall_after": SECONDS,
    "stop": STOP,
    "until": [*wrong_type(5, None, ODD), *bad("x", "")],
    "limit": BYTES,
    "keep_full": [
        *wrong_type(5, ODD),
        Row("a\0b", ValueError, "keep_full is 'a\\x00b', which contains"),
    ],
    "tee": [
        *wrong_type(1.5, None, ODD),
        *bad("stdout", -1, {"out": True}, {5: True}),
        Row("a\0b", ValueError, "tee is 'a\\x00b', which contains"),
    ],
    "on_line": CALLBACK,
    "on_stdout_line": CALLBACK,
    "on_stderr_line": CALLBACK,
    "on_event": CALLBACK,
    "encoding": CODEC,
    "errors": CODEC,
    "on_timeout": EVENT,
    "cancel": wrong_type(5, "x", ODD, threading.Event(), threading.Lock()),
    "commands": wrong_type("x", b"x", 5, None, ODD, {"args": ["true"]}),
    "parallel": [*wrong_type("x", 1.5, True, ODD), *bad(0, -1, 100_001, HUGE)],
    "ahead": [*wrong_type("x", 1.5, True, ODD), *bad(-1, HUGE)],
    "stop_after_failures": [*wrong_type("x", 1.5, True, ODD), *bad(0, -1, HUGE)],
    "deadline": SECONDS,
    "journal": [*wrong_type(5, ODD, ["x"]), *bad("a\0b", pathlib.Path("a\0b"), "\ud800")],
    "path": [*wrong_type(5, None, ODD), *bad("a\0b", b"a\0b", "\ud800")],
    "joblog": [*wrong_type(5, ODD), *bad("a\0b", "\ud800")],
    "executor": wrong_type(5, "x", ODD, ["x"]),
    "overflow": POLICY,
    "channel": [*wrong_type(5, ODD), *bad("x")],
    "Stop.signal": STOP_SIGNAL,
    "grace": SECONDS,
    "scope": POLICY,
    "Limit.bytes": [*BYTES, *wrong_type(None)],
    "beyond": POLICY,
    "holder": POLICY,
    "fds": FDS,
    "ticket": TICKET,
    "sock": SOCKET,
    "peer": [*wrong_type(ODD, None, 1.5), Row(True, TypeError, "process is True: ")],
    "procs": PROCS,
    "mode": [*wrong_type(None, 1.5, True, ODD), *bad("x", 0, -1)],
    "event": EVENT,
    "callback": CALLBACK,
    "wait_procs.timeout": [*SECONDS, *bad(-1)],
    "memory": BYTES,
    "disk": BYTES,
    "policy": POLICY,
    "process": [*wrong_type(ODD, None, 1.5, True), *bad(0, -1, HUGE, "\ud800")],
    "fd": DESCRIPTOR,
    "sig": SIGNAL,
    "pattern": PATTERN,
    "stream": [*wrong_type(5, ODD), *bad("x", "merged")],
    "rows": [*wrong_type("x", 1.5, True, None), *bad(0, -1, 1 << 16)],
    "columns": [*wrong_type("x", 1.5, True, None), *bad(0, -1, 1 << 16)],
    "size": SIZE,
    "hint": SIZE,
    "buffer": wrong_type("x", b"x", 5, None, ODD, memoryview(bytearray(8))[::2]),
    "separator": SEPARATOR,
    "TextReader.separator": TEXT_SEPARATOR,
    "max_length": MOST_LENGTH,
    "too_long": POLICY,
    "data": DATA,
    "Writer.lines": wrong_type("x", b"x", 5, None, ODD),
    "TextWriter.text": wrong_type(b"x", 5, None, ODD),
    "TextWriter.lines": wrong_type("x", b"x", 5, None, ODD),
    "indent": [*wrong_type(1.5, ODD, True), *bad(-1, HUGE)],
    "lanes": [*wrong_type("x", 1.5, True, None), *bad(0, -1, HUGE)],
    "first": BYTES,
    "Receiver.sender.limit": BYTES,
    "Sender.clone.overflow": [*wrong_type(5, ODD), *bad("x")],
    "Receiver.limit": [*BYTES, *wrong_type(None)],
    "keep": [*BYTES, *wrong_type(None)],
    "name": NAME,
    "invitation": wrong_type(None, 5, "x", ODD),
    "most": [*wrong_type("x", 1.5, True, None), *bad(0, -1, HUGE)],
    "length": [*wrong_type("x", 1.5, True, ODD), *bad(-1, HUGE)],
    "Sender.data": wrong_type("x", 5, None, ODD, memoryview(b"12345678")[::2]),
    "messages": [
        *wrong_type("x", 5, None, ODD),
        Row([b"x", "y"], TypeError, "messages[1] is 'y': "),
    ],
    "Fake.args": [
        *wrong_type(5, None, ODD),
        *bad([], ()),
        Row(["a", 5], TypeError, "args[1] is 5: "),
        Row([None], TypeError, "args[0] is None: "),
        Row(["a", re.compile(b"x")], TypeError, "args[1] is re.compile(b'x'): "),
    ],
    "Fake.stdout": OUTPUT,
    "Fake.stderr": OUTPUT,
    "Reply.stdout": OUTPUT,
    "Reply.stderr": OUTPUT,
    "Out.data": OUTPUT,
    "Err.data": OUTPUT,
    "In.data": OUTPUT[:-2] + OUTPUT[-1:],
    "answer": wrong_type(5, "x", ODD, ValueError),
    "returncode": [*wrong_type("x", 1.5, True, None, ODD), *bad(256, -65, HUGE, -HUGE)],
    "times": [*wrong_type("x", 1.5, True, ODD), *bad(-1, HUGE)],
    "when": CALLBACK,
    "success": [*wrong_type(5, None, ODD), *bad("x", "")],
    "ok_codes": [
        *wrong_type("x", 5, ODD, {0: [1]}),
        Row([256], ValueError, "ok_codes[0] is 256: "),
        Row([1, None], TypeError, "ok_codes[1] is None: "),
    ],
    "pipeline.ok_codes": OK_CODES_OF_STAGES,
    "spawn_pipeline.ok_codes": OK_CODES_OF_STAGES,
    "elastic": [
        *wrong_type("x", 5, None, ODD),
        Row({0: True}, ValueError, "a stage in elastic is 0: "),
        Row({"x": True}, TypeError, "a stage in elastic is 'x': "),
    ],
    "patterns": [*wrong_type("x", 5, None, ODD), Row([5], TypeError, "patterns[0] is 5: ")],
    "steps": [*wrong_type("x", 5, None, ODD), Row(["x", 5], TypeError, "steps[1] is 5: ")],
    "seconds": [*SECONDS, *bad(-1, math.inf, HUGE, None)],
    "Reply.of.result": wrong_type(5, None, ODD),
    "not_found.program": wrong_type(5, None, b"x", ODD),
    "Cassette.mode": [*wrong_type(5, None, ODD), *bad("x", "")],
    "match": [*wrong_type("argv", 5, None, ODD), Row(["x"], ValueError, "match[0] is 'x': ")],
    "before_save": CALLBACK,
    "ObjectSender.sender": wrong_type(None, 5, "x", ODD),
    "ObjectReceiver.receiver": wrong_type(None, 5, "x", ODD),
}


def public_calls():
    """Every public function, constructor and method, by its name."""
    for module in (procwright, queue, testing):
        for name in module.__all__:
            thing = getattr(module, name)
            if not isinstance(thing, type):
                if callable(thing):
                    yield name, thing
                continue
            if issubclass(thing, BaseException):
                continue
            if thing not in MADE:
                yield name, thing
            for method in sorted(dir(thing)):
                found = getattr(thing, method)
                if not method.startswith("_") and callable(found) and not hasattr(tuple, method):
                    yield f"{name}.{method}", found


CALLS = dict(public_calls())


def parameters():
    for name, call in CALLS.items():
        signature = inspect.signature(call)
        if name == "map":
            # Those of `run` that it takes for every command.
            yield from ((name, option) for option in _map._DEFAULTS)
        if signature.return_annotation in ("NoReturn",):
            # A pipe cannot do it, whatever it is asked for.
            continue
        for parameter in signature.parameters.values():
            # What is there to refuse parameters of others is no parameter.
            variable = parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
            if parameter.name != "self" and not variable:
                yield name, parameter.name


def rows_of(name, parameter):
    last = name.rpartition(".")[0] or name
    for key in (f"{name}.{parameter}", f"{last}.{parameter}", parameter):
        if key in ROWS:
            return ROWS[key]
    return None


PARAMETERS = list(parameters())


def test_every_parameter_is_here():
    missing = [one for one in PARAMETERS if one[1] not in ANYTHING and not rows_of(*one)]
    assert missing == []
    names = {parameter for _, parameter in PARAMETERS}
    unknown = {key for key in ROWS if key.rpartition(".")[2] not in names}
    assert not unknown
    assert names >= ANYTHING
    assert {("run", "user"), ("Stop", "grace"), ("Sender.send", "data")} <= set(PARAMETERS)


@pytest.fixture
def world(child, tmp_path, monkeypatch):
    """Objects on which methods are called, and good values of the other parameters."""
    monkeypatch.chdir(tmp_path)
    made = World(child, tmp_path)
    yield made
    made.close()


class World:
    def __init__(self, child, directory):
        self._child = child
        #: The file that a program makes which is started.
        self.mark = directory / "mark"
        self._open = []

    def keep(self, one):
        self._open.append(one)
        return one

    def close(self):
        for one in reversed(self._open):
            getattr(one, "stop", None) and one.stop()
            getattr(one, "close", None) and one.close()

    @staticmethod
    def now():
        """The children, threads and open descriptors of this process."""
        found = {("thread", one) for one in os.listdir("/proc/self/task")}
        for _, one in list(found):
            try:
                text = pathlib.Path(f"/proc/self/task/{one}/children").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended
            found |= {("process", child) for child in text.split()}
        found |= {("descriptor", *one) for one in descriptors().items()}
        return found

    def is_as(self, before, name):
        """Nothing was started, and nothing is left. Else the watchdog comes."""
        assert {one for one in self.now() - before if one[0] == "process"} == set()
        assert not self.mark.exists()
        # The threads of a map, which takes a command before the core refuses it, end behind it.
        while name != "map" and not self.now() <= before:
            gc.collect()
            # What there was before may end meanwhile, and its threads with it.
            os.sched_yield()

    def spawn(self, **options):
        # It ends by itself: no call that takes a bad value waits for ever.
        child = procwright.spawn([self._child, "exit", "0"], stdin=PIPE, **options)
        return self.keep(child)

    def spawn_pipeline(self):
        return self.keep(procwright.spawn_pipeline([self._child, "exit", "0"], stdin=PIPE))

    def token(self):
        return procwright.LivenessToken()

    def owner(self, name, method):
        """The object whose method is called."""
        receiver = self.keep(queue.Receiver()) if "er" in name or "Inv" in name else None
        return {
            "Child": lambda: self.spawn(text=method == "wait_for"),
            "LivenessInvitation": lambda: self.token().invite(),
            "LivenessMonitor": lambda: procwright.LivenessMonitor(os.getpid()),
            "Merged": lambda: self.spawn(merged=True).merged,
            "Process": lambda: procwright.Process(os.getpid()),
            "Reader": lambda: self.spawn().stdout,
            "PipelineChild": lambda: self.spawn_pipeline(),
            "PipelineResult": lambda: procwright.pipeline([self._child, "exit", "0"]),
            "Result": lambda: procwright.run([self._child, "exit", "0"]),
            "Stage": lambda: procwright.pipeline([self._child, "exit", "0"]).stages[0],
            "TextReader": lambda: self.spawn(text=True).stdout,
            "TextWriter": lambda: self.spawn(text=True).stdin,
            "Writer": lambda: self.spawn().stdin,
            "Invitation": lambda: receiver.invite(),
            "ObjectReceiver": lambda: queue.ObjectReceiver(receiver),
            "ObjectSender": lambda: queue.ObjectSender(self.keep(receiver.sender())),
            "Receiver": lambda: receiver,
            "Reservation": lambda: self.keep(receiver.sender()).reserve(4),
            "Sender": lambda: self.keep(receiver.sender()),
            "Fake": testing.Fake,
            "Registered": lambda: testing.Fake().register(["x"]),
        }[name]()

    def good(self, name, parameter):
        """Values of the parameters that have to be given, and of those that go with this one."""
        if parameter == "keep_full":
            return {} if name == "spawn" else {"limit": 5}
        if parameter == "errors":
            return {"encoding": "utf-8"}
        return {}

    def value(self, parameter):
        return {
            "args": ["touch", str(self.mark)],
            "bytes": 5,
            "columns": 80,
            "commands": [["touch", str(self.mark)]],
            "data": b"x",
            "fds": (0, 1),
            "invitation": self.keep(queue.Receiver()).invite(),
            "length": 1,
            "obj": 1,
            "most": 1,
            "name": "x",
            "path": "x",
            "pattern": "x",
            "patterns": [],
            "procs": [],
            "program": "x",
            "result": None,
            "rows": 24,
            "seconds": 1,
            "ticket": "x",
        }[parameter]


def call_with(world, name, parameter, value):
    owner, _, method = name.rpartition(".")
    call = CALLS[name]
    signature = inspect.signature(call)
    names = list(signature.parameters)
    arguments = []
    if names and names[0] == "self":
        arguments.append(world.owner(owner, method))
    if name in ("pipeline", "spawn_pipeline"):
        arguments.append(world.value("args"))
    keywords = {}
    if parameter not in names:
        keywords[parameter] = value
    for one in signature.parameters.values():
        if one.name == "self" or one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL):
            continue
        if one.name == parameter:
            given = value
        elif one.default is inspect.Parameter.empty:
            given = world.value(one.name)
        else:
            continue
        if one.kind is inspect.Parameter.POSITIONAL_ONLY:
            arguments.append(given)
        else:
            keywords[one.name] = given
    good = world.good(name, parameter)
    before = World.now()
    try:
        return finished(world, call(*arguments, **keywords, **good))
    finally:
        world.is_as(before, name)


def finished(world, result):
    if inspect.iscoroutine(result):
        return asyncio.run(result)
    if hasattr(result, "__anext__"):
        return asyncio.run(anext(result))
    if hasattr(result, "__next__"):
        # What waits with the first item, or takes the first command.
        error = getattr(next(result, None), "error", None)
        getattr(result, "close", list)()
        del result
        if error is not None:
            raise error
        return None
    # Never got here with a bad value: what was started is ended.
    world.keep(result)
    return result


@pytest.mark.parametrize(
    ("name", "parameter"),
    [one for one in PARAMETERS if one[1] not in ANYTHING],
    ids=lambda one: one,
)
def test_a_bad_value_says_what_and_which_and_what_would_do(world, name, parameter):
    for row in rows_of(name, parameter) or ():
        with pytest.raises(InvalidValue) as caught:
            call_with(world, name, parameter, row.value)
        error = caught.value
        text = str(error)
        begin = row.text or f"{parameter} is {row.value!r}: ".replace("PosixPath", "Path")
        assert text.startswith(begin), text
        # What would do stands behind.
        assert re.search(r": [^ :]+ [^ ]", text[len(begin) - 2 :]), text
        assert isinstance(error, ValueError)
        assert isinstance(error, TypeError) == (row.kind is TypeError), text
        assert isinstance(error, LookupError) == (row.kind is LookupError), text
        assert type(error).__name__ == "InvalidValue"
        assert type(error).__module__ == "procwright"
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == text


#: Values that most parameters refuse, and the kind of each.
KINDS = {
    "of no type": lambda: ODD,
    "NaN": lambda: math.nan,
    "huge": lambda: HUGE,
    "NUL": lambda: "a\0b",
    "surrogate": lambda: "\ud800",
    "closed file": lambda: closed(io.FileIO(os.devnull)),
    "closed socket": lambda: closed(socket.socket()),
    "closed memory": lambda: closed(io.BytesIO(b"data")),
}


def closed(file):
    file.close()
    return file


SECONDS_NAMES = {name for name, rows in ROWS.items() if rows is SECONDS}
SECONDS_NAMES |= {"grace", "wait_procs.timeout", "timeout"}
#: Texts in which a NUL is as good as any character.
TEXTS = {"Out.data", "Err.data", "In.data", "stdout", "stderr", "program"}
#: What the core says of a NUL shows the value in its own quotes.
SAID_BY_CORE = {"ticket", "name", "process", "peer"}
#: What a value is called that stands for something else.
PARTS = ("process", "a member of procs")

#: Parameters, by call or alone, that take values of these kinds, or tell of them in other words.
TAKES = {
    # 2**70 seconds are a time, and so are as many that wait for nothing.
    "huge": SECONDS_NAMES | {"mode"},
    "NUL": {"pattern", "indent", "TextReader.separator", "Fake.args", *SAID_BY_CORE, *TEXTS},
    "surrogate": {"pattern", "indent", "Fake.args", "program"},
    # They are gone through, and what code of the value raises is left alone.
    "closed file": {"fds", "messages", "procs"},
    "closed memory": {"fds", "messages", "procs"},
}


@pytest.mark.parametrize(
    ("name", "parameter"),
    [one for one in PARAMETERS if one[1] not in ANYTHING],
    ids=lambda one: one,
)
def test_a_value_of_each_kind_is_refused_or_known_to_be_good(world, name, parameter):
    """For parameters that are new as well: who takes such a value says so above."""
    owner = name.rpartition(".")[0] or name
    keys = {parameter, f"{owner}.{parameter}", f"{name}.{parameter}"}
    for kind, make in KINDS.items():
        if keys & TAKES.get(kind, set()):
            continue
        value = make()
        with pytest.raises(InvalidValue) as caught:
            call_with(world, name, parameter, value)
        said = (f"{parameter} is {value!r}", *[f"{one} is {value!r}" for one in PARTS])
        assert str(caught.value).startswith(said), kind


@pytest.mark.parametrize("value", [b"x" * 10**6, ["x" * 10**6], "ä" * 10**6])
def test_a_long_value_is_shown_in_part(value):
    with pytest.raises(InvalidValue) as caught:
        procwright.Stop(signal=value)
    assert len(str(caught.value)) < 500


def test_a_value_that_cannot_be_shown_is_named():
    class Broken:
        def __repr__(self):
            raise RuntimeError("no")

    with pytest.raises(InvalidValue, match=r"^timeout is <Broken>: "):
        procwright.run(["x"], timeout=Broken())


def test_what_code_of_the_value_raises_is_left_alone():
    class Number:
        def __float__(self):
            raise KeyError("mine")

        def __index__(self):
            raise KeyError("mine")

    for call in (
        lambda: procwright.run(["x"], timeout=Number()),
        lambda: procwright.run(["x"], umask=Number()),
        lambda: queue.Receiver(lanes=Number()),
        lambda: procwright.Stop(grace=Number()),
    ):
        with pytest.raises(KeyError, match="mine"):
            call()


@pytest.mark.parametrize(
    ("function", "name", "value", "hint"),
    [
        ("run", "order", "exact", "stderr=STDOUT has the exact order, in one pipe; merged=True"),
        ("run", "capture_output", True, "both outputs come to you unless said otherwise: leave"),
        ("spawn", "universal_newlines", True, "pass text=True, which leaves newlines as"),
        ("run", "preexec_fn", len, "no Python runs between fork and exec: use umask"),
        ("spawn", "close_fds", False, "the program gets no descriptors but"),
        ("run", "timout", 5, "did you mean timeout?"),
        ("spawn", "check", True, "call check_returncode() of the child's result()"),
        ("run", "overflow", "spill", "spawn() has it"),
        ("spawn", "on_line", print, "use on_stdout_line and on_stderr_line"),
        ("run", "qqq", None, "all that it has is in help(procwright.run)"),
        ("run", "input_fd", "x", "it has input, "),
    ],
)
def test_a_parameter_of_others_says_what_to_type(function, name, value, hint):
    with pytest.raises(InvalidValue) as caught:
        getattr(procwright, function)(["x"], **{name: value})
    text = f"{name} is {value!r}, and {function}() has no such parameter: {hint}"
    assert str(caught.value).startswith(text)
    assert isinstance(caught.value, TypeError)


def test_every_parameter_of_subprocess_is_known_or_says_what_to_type():
    parameters = set(inspect.signature(subprocess.Popen).parameters)
    parameters |= {"capture_output", "timeout", "check", "input"}
    for function in (procwright.run, procwright.spawn):
        for name in parameters - set(inspect.signature(function).parameters):
            with pytest.raises(InvalidValue, match=rf"^{name} is None, and ") as caught:
                function(["x"], **{name: None})
            assert "it has args" not in str(caught.value), name
            assert "did you mean" not in str(caught.value), name


def test_functions_of_subprocess_say_what_to_type():
    for name in subprocess.__all__:
        if name.isupper() or hasattr(procwright, name):
            continue
        with pytest.raises(AttributeError, match=rf"no attribute '{name}': use "):
            getattr(procwright, name)


def test_a_path_names_a_program(tmp_path):
    program = tmp_path / "a program"
    program.write_text("#!/bin/sh\necho it ran\n")
    program.chmod(0o755)
    for path in (program, path_of_bytes(program)):
        result = procwright.run(path, text=True)
        assert result.stdout == "it ran\n"
        assert result.args is path
        assert procwright.spawn(path, text=True).communicate() == ("it ran\n", "")
        # A shell would take it apart.
        with pytest.raises(InvalidValue, match="a path names a program, not a line") as caught:
            procwright.run(path, shell=True)
        assert isinstance(caught.value, TypeError)


def path_of_bytes(path):
    class Path:
        def __fspath__(self):
            return os.fsencode(path)

    return Path()


def test_a_signal_alone_is_a_stop():
    for stop, name in [("INT", "SIGINT"), ("SIGUSR1", "SIGUSR1"), (signal.SIGQUIT, "SIGQUIT")]:
        result = procwright.run(["sleep", "60"], timeout=0, stop=stop, on_timeout="return")
        assert result.status.name == name
        with pytest.raises(ZeroDivisionError), procwright.spawn(["sleep", "60"], stop=stop) as one:
            raise ZeroDivisionError
        assert one.status.name == name
        one = procwright.spawn(["sleep", "60"])
        one.stop(stop)
        assert one.status.name == name
        one = procwright.spawn(["sleep", "60"])
        one.process.stop(stop)
        assert one.wait() == -getattr(signal, name)


def test_a_number_where_text_goes_is_told_as_text():
    for text, options in [
        ("env['N'] is 1: pass a str, bytes or a path, here '1'", {"env": {"N": 1}}),
        (
            "extra_env['N'] is 1.5: pass a str, bytes or a path, here '1.5'",
            {"extra_env": {"N": 1.5}},
        ),
        # "1", "true", "yes"?
        ("env['N'] is True: pass a str, bytes or a path", {"env": {"N": True}}),
    ]:
        with pytest.raises(InvalidValue) as caught:
            procwright.run(["x"], **options)
        assert str(caught.value) == text
    with pytest.raises(InvalidValue, match=r"^args\[1\] is 5: .*, here '5'$"):
        procwright.run(["head", 5])


def test_a_number_alone_is_no_stop():
    # Signal 5, or five seconds?
    with pytest.raises(InvalidValue, match=r"^stop is 5: a number may be a signal or seconds; "):
        procwright.run(["x"], stop=5)


def test_check_is_no_set_of_codes():
    hint = {procwright.run: "where other codes", procwright.pipeline: "which codes"}
    for call in (procwright.run, procwright.pipeline):
        for wrong in ({0, 1}, [0], "all"):
            said = f"^check is .*: pass True or False; {hint[call]}"
            with pytest.raises(InvalidValue, match=said):
                call(["true"], check=wrong)
        for truth in (None, False, 0):
            call(["false"], check=truth)


def test_bytes_with_a_unit():
    for text, number in [
        ("64KiB", 65536),
        ("1K", 1024),
        ("2m", 2 << 20),
        ("1 mib", 1 << 20),
        ("1.5KiB", 1536),
        ("10", 10),
    ]:
        assert procwright.Limit(text).bytes == number
        assert procwright.Overflow(memory=text).memory == number
    assert procwright.run(["seq", "30000"], limit="1KiB").stdout_info.kept_bytes == 1024
    with queue.Receiver(limit="1MiB", first="4KiB", keep="1MiB") as receiver:
        sender = receiver.sender(limit="64KiB")
        with pytest.raises(queue.TooLarge):
            sender.send(b"x" * (1 << 20))


def test_a_timedelta_is_seconds():
    second = datetime.timedelta(milliseconds=1500)
    assert procwright.Stop(grace=second).grace == 1.5
    past = datetime.timedelta(seconds=-1)
    with pytest.raises(procwright.TimeoutExpired) as caught:
        procwright.run(["sleep", "60"], timeout=past, stop="KILL")
    assert caught.value.timeout == -1.0
    with pytest.raises(procwright.IdleTimeout) as caught:
        procwright.run(["sleep", "60"], idle_timeout=datetime.timedelta(0), stop="KILL")
    assert caught.value.timeout == 0.0
    with procwright.spawn(["sleep", "60"], stall_after=second) as one:
        for call in (one.wait, one.process.wait, one.monitor().wait, one.result):
            with pytest.raises(procwright.WaitTimeout) as caught:
                call(timeout=past)
            assert caught.value.timeout == -1.0
        assert procwright.wait([one], timeout=past).done == []
        assert procwright.wait_procs([one], timeout=datetime.timedelta(0))[0] == []
        one.stop("KILL")
    with queue.Receiver() as receiver:
        sender = receiver.sender()
        with pytest.raises(queue.TimedOut):
            receiver.recv(timeout=datetime.timedelta(microseconds=1))
        sender.close()


def test_an_event_is_no_cancel():
    # To wait for one takes a thread that nothing can end, or polling.
    for call in (
        lambda: procwright.run(["x"], cancel=threading.Event()),
        lambda: procwright.wait([threading.Event()]),
    ):
        with pytest.raises(InvalidValue, match="an Event wakes threads alone; pass a Cancel, "):
            call()


def test_a_pty_leaves_the_words_for_a_bad_sink_alone():
    # The sink is looked at before the core is asked whether it goes with a pty.
    with pytest.raises(InvalidValue, match=r"^stdout is <odd>: "):
        procwright.run(["x"], pty=True, stdout=ODD)
    with pytest.raises(
        InvalidValue, match=r"^stdout is DEVNULL, and with pty it is the terminal: "
    ):
        procwright.run(["x"], pty=True, stdout=DEVNULL)
    with pytest.raises(InvalidValue, match=r"^stdin is INHERIT, and nobody"):
        procwright.spawn(["x"], pty=True, stdin=INHERIT)


def test_large_and_infinite_seconds_are_no_error():
    one, other = socket.socketpair()
    with one, other:
        for forever in (math.inf, 10**400):
            other.send(b"x")
            assert procwright.wait([one], timeout=forever).done == [one]
        for past in (-(10**400), -math.inf, 0):
            one.recv(100, socket.MSG_DONTWAIT) if past == -(10**400) else None
            assert procwright.wait([one], timeout=past).done == []
    assert procwright.Stop(grace=10**400).grace == math.inf
    assert procwright.Stop(grace=None).grace == math.inf
    assert procwright.Stop(grace=None) == procwright.Stop(grace=math.inf)
    assert procwright.Stop(signal=signal.SIGINT).signal == "SIGINT"
