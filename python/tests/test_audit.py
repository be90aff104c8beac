"""Audit events: those of `subprocess`, and ours, before anything is started."""

import json

HOOKED = """
import gc, json, os, pathlib, sys, threading
import procwright
seen, refuse = [], []
def hook(event, args):
    if event.startswith(("procwright.", "subprocess.")):
        seen.append([event, *args])
        if refuse and event == refuse[0]:
            raise PermissionError("refused by the hook")
sys.addaudithook(hook)
"""

TOLD = """
calls = {
    "run": lambda **options: procwright.run(["true", "x"], **options),
    "spawn": lambda **options: procwright.spawn(["true", "x"], **options).wait(),
    "map": lambda **options: list(procwright.map([["true", "x"]], **options)),
}
for name, call in calls.items():
    call()
    call(cwd="/", env={"PATH": "/bin:/usr/bin"})
    call(extra_env={"A": "1", "B": None}, env={"PATH": "/bin:/usr/bin", "B": "2"})
    call(shell=True) if name == "none" else None
procwright.run(["exit 0"], shell=True)
procwright.run(pathlib.Path("/bin/true"), extra_env={"NEW": "1"})
for event in seen:
    if event[4] and "HOME" in event[4]:
        event[4] = sorted(set(event[4].items()) - set(os.environ.items()))
print(json.dumps(seen))
"""


def test_events_have_what_those_of_subprocess_have(script):
    out, err = script(HOOKED + TOLD, env={"PATH": "/bin:/usr/bin", "HOME": "/"}).communicate()
    assert not err
    seen = json.loads(out)
    expected = []
    both = ("procwright.{}", "subprocess.Popen")
    for name in ("run", "spawn", "map"):
        for cwd, env in [
            (None, None),
            ("/", {"PATH": "/bin:/usr/bin"}),
            (None, {"PATH": "/bin:/usr/bin", "A": "1"}),
        ]:
            expected += [[one.format(name), "true", ["true", "x"], cwd, env] for one in both]
    line = ["/bin/sh", "-c", "exit 0"]
    expected += [[one.format("run"), line[0], line, None, None] for one in both]
    path = "/bin/true"
    expected += [[one.format("run"), path, [path], None, [["NEW", "1"]]] for one in both]
    assert seen == expected


BESIDE = """
import subprocess
subprocess.run(["true", "x"], cwd="/", env={"PATH": "/bin:/usr/bin"})
procwright.run(["true", "x"], cwd="/", env={"PATH": "/bin:/usr/bin"})
subprocess.run("exit 0", shell=True)
procwright.run("exit 0", shell=True)
print(json.dumps(seen))
"""


def test_cpython_raises_them_with_the_same_values(script):
    out, err = script(HOOKED + BESIDE).communicate()
    assert not err
    theirs, ours, ours_too, shell, own_shell, own_shell_too = json.loads(out)
    assert theirs == ours_too == ["subprocess.Popen", *ours[1:]]
    assert shell == own_shell_too == ["subprocess.Popen", *own_shell[1:]]


REFUSED = """
def children():
    for one in os.listdir("/proc"):
        try:
            stat = one.isdigit() and open(f"/proc/{one}/stat").read()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if stat and stat.rpartition(")")[2].split()[1] == str(os.getpid()):
            yield one

def descriptors():
    for one in os.listdir("/proc/self/fd"):
        try:
            os.readlink(f"/proc/self/fd/{one}")
        except FileNotFoundError:
            continue  # that of the listing
        yield one

def world():
    gc.collect()
    now = {"task": os.listdir("/proc/self/task"), "fd": descriptors()}
    now.update(child=children(), file=os.listdir("."))
    return {(kind, one) for kind, found in now.items() for one in found}

def pieces():
    raise AssertionError("the iterator was asked")
    yield b""

def no(*_):
    raise AssertionError("it was called")

class Thread(threading.Thread):
    def start(self):
        raise AssertionError("a thread was started")

os.chdir(sys.argv[1])
# What the first use makes for good.
procwright.run(["true"], on_line=print)
procwright.spawn(["true"], on_stdout_line=print).communicate()
# One that has to be waited for: the first wait makes a pipe for signals, which is kept.
list(procwright.map([["sleep", "0.2"]]))
before = world()
threading.Thread = Thread
options = {"stdin": pieces(), "on_stdout_line": no, "on_event": no}
files = {"stdout": "out", "stderr": "err"}
for name in ("run", "spawn"):
    function = getattr(procwright, name)
    for refuse[:] in (["procwright." + name], ["subprocess.Popen"]):
        for given in (options, files, {"pty": True}, {"liveness": True}):
            try:
                function(["touch", "ran"], **given)
            except PermissionError as error:
                assert str(error) == "refused by the hook"
            else:
                raise AssertionError("it was started")
            assert world() <= before, (name, given, world() - before)
threading.Thread = Thread.__mro__[1]
for refuse[:] in (["procwright.map"], ["subprocess.Popen"]):
    with procwright.map([["touch", "ran"], ["touch", "too"]], parallel=1) as many:
        try:
            found = list(many)
        except PermissionError as error:
            assert str(error) == "refused by the hook"
        else:
            raise AssertionError(found)
    del many
    # Threads of a map end behind it.
    while not world() <= before:
        os.sched_yield()
print("all refused")
"""


def test_a_hook_that_raises_refuses_and_nothing_is_started(script, tmp_path):
    directory = tmp_path / "work"
    directory.mkdir()
    out, err = script(HOOKED + REFUSED, str(directory)).communicate()
    assert out == "all refused\n", err
    assert list(directory.iterdir()) == []


def test_a_call_that_is_refused_raises_no_event(script):
    code = """
for function in (procwright.run, procwright.spawn):
    for args, options in (([], {}), (["x"], {"timeout": "x"}), (["x"], {"env": 5}), (5, {})):
        try:
            function(args, **options)
        except procwright.InvalidValue:
            pass
print(seen)
"""
    out, err = script(HOOKED + code).communicate()
    assert (out, err) == ("[]\n", "")
