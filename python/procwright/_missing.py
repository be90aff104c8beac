"""Attributes of others, and what to write in their place. Imported when one was asked for."""

from __future__ import annotations

from ._slip import slip_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_CODE = "use returncode"
_PASSED = "it is what was passed to run()"
_EXITS = {
    "code": _CODE,
    "exitCode": _CODE,
    "exit_code": _CODE,
    "exit_status": _CODE,
    "exitcode": _CODE,
    "exited": _CODE,
    "exitstatus": _CODE,
    "rc": _CODE,
    "return_code": _CODE,
    "retcode": _CODE,
}
#: What a `Result` has been asked for, as those of execa, invoke, sh and plumbum are.
RESULT = {
    # That of sh is its output.
    **{name: f"use stdout.{name}()" for name in (*dir(str), "decode") if name[0] != "_"},
    **_EXITS,
    "all": "pass stderr=STDOUT to run(), and stdout has both; or merged=True",
    "cancelled": 'use reason == "cancelled"',
    "check": "use check_returncode()",
    "cmd": "use args, or argv",
    "command": "use args, or argv; shlex.join(argv) is its line",
    "cwd": _PASSED,
    "duration": "use duration_s",
    "elapsed": "use duration_s",
    "encoding": f"{_PASSED}; text=True is UTF-8",
    "env": f"{_PASSED}, or os.environ with its extra_env",
    "err": "use stderr",
    "is_timed_out": 'use reason == "timeout"',
    "is_terminated": "use status.signal, None unless a signal has ended it",
    "error": "use explanation, or outcome, which is its one line",
    "escaped_command": "shlex.join(argv) is the line",
    "failed": "use not ok",
    "failure": "use not ok",
    "hide": "nothing is shown unless tee=True was passed to run()",
    "held_by": "use stdout_info.held_by, or stderr_info.held_by",
    "is_canceled": 'use reason == "cancelled"',
    "json": "use json.loads(stdout); to_json() is the result itself",
    "killed": "use status.signal, None unless a signal has ended it; reason says what for",
    "lines": "use stdout.splitlines()",
    "message": "use explanation, or outcome, which is its one line",
    "out": "use stdout",
    "output": "use stdout",
    "piped_from": "pipeline(*stages) has a result of each in stages",
    "pty": _PASSED,
    "raise_for_status": "use check_returncode()",
    "shell": f"{_PASSED}; argv begins with the shell",
    "short_message": "use outcome, or summary, which begins with the command",
    "signal": "use status.signal, or status.name",
    "stderr_lines": "use stderr.splitlines()",
    "stdout_lines": "use stdout.splitlines()",
    **dict.fromkeys(("succeeded", "success", "successful"), "use ok"),
    "tail": "use stdout.splitlines()[-n:]",
    "text": "use stdout, which is text with run(..., text=True)",
    **dict.fromkeys(("cpu_time", "cpu_s"), "use cpu_user_s + cpu_system_s"),
    **dict.fromkeys(("max_rss", "maxrss", "rusage"), "use max_rss_bytes"),
    **dict.fromkeys(("stdout_text", "stdout_str"), "use stdout, which is text with text=True"),
    "timed_out": 'use reason == "timeout"',
}
#: What a `PipelineResult` has been asked for.
PIPELINE = {
    **RESULT,
    "argv": "use args, or argv of each of its stages",
    "cmd": "use args, a list of lists; summary begins with the line",
    "command": "use args, a list of lists; summary begins with the line",
    "escaped_command": "summary begins with the line",
    "killed": "use status of each of its stages",
    "merged": "stderr=STDOUT sends both outputs into the pipe",
    "piped_from": "use stages",
    "pid": "use [stage.pid for stage in result.stages]",
    "pids": "use [stage.pid for stage in result.stages]",
    "pipestatus": "use [stage.returncode for stage in result.stages]",
    "returncodes": "use [stage.returncode for stage in result.stages]",
    "signal": "use status of each of its stages",
    "status": "use status of each of its stages",
    "statuses": "use [stage.status for stage in result.stages]",
}
_COPIED = "spawn(..., tee=sys.stdout), or tee=path, has a copy of both outputs there, as they come"
_AT_ONCE = "what is written is in the pipe at once: leave it out"
_IS_READ = "what comes is taken at once, whatever the size: leave it out"
_BY_PSUTIL = "psutil.Process(child.pid) tells it"
_OF_GROUP = "os.killpg(child.pid, sig), of a child with process_group=0; stop() ends all of it"
#: What a `Child` has been asked for, as those of pexpect, asyncio, anyio and psutil are.
CHILD = {
    **_EXITS,
    "after": "the match that wait_for() gives has it",
    "alive": "use poll() is None",
    "all": "spawn(..., merged=True) has both as child.merged",
    **dict.fromkeys(("children", "cpu_percent", "cpu_times", "memory_info"), _BY_PSUTIL),
    "buffer": "stdout.read1() gives what has come",
    "cancel": "use stop()",
    "check": "use check_returncode()",
    "close": "use stop(), or leave its with block; a stream has close() of its own",
    "cmd": "use args",
    "command": "use args",
    **dict.fromkeys(("delayafterclose", "delayafterterminate", "delaybeforesend"), _AT_ONCE),
    "expect": "use wait_for(pattern, timeout)",
    "expect_exact": "use wait_for(re.escape(text), timeout)",
    "expect_list": 'use wait_for("(a)|(b)", timeout), and lastindex of the match',
    "flush": _AT_ONCE,
    "getecho": "the program says what is echoed, as by stty -echo",
    "id": "use pid, or process.id, which no other process ever has",
    "interact": "a child that was spoken to is not handed over to a person: "
    "run(args, pty=True, stdin=INHERIT, tee=True) has one speak to it from its beginning",
    "is_alive": "use poll() is None",
    "is_running": "use poll() is None",
    "isalive": "use poll() is None",
    "iterable": "iterate over stdout",
    "iter_lines": "iterate over stdout",
    "join": "use wait()",
    **dict.fromkeys(("kill_group", "signal_group"), _OF_GROUP),
    "kill_tree": "use stop(), which ends what it has started, too",
    "lines": "iterate over stdout; stdout.lines() has a separator and a longest line",
    "name": "use process.name()",
    "output": "use stdout",
    **dict.fromkeys(("getpgid", "pgid"), "os.getpgid(child.pid) tells it"),
    **dict.fromkeys(("getsid", "sid"), "os.getsid(child.pid) tells it"),
    "pipe": "spawn(args, stdin=child.stdout) reads it; spawn_pipeline(*stages) joins programs",
    "ppid": "it is ours: os.getpid()",
    "read_nonblocking": "use stdout.read1(timeout=...) of a child with text=True; of bytes "
    "procwright.wait([child.stdout], timeout=...), and then stdout.read1()",
    "read": "use stdout.read()",
    "read1": "use stdout.read1(), which has a timeout",
    "readline": "use stdout.readline(), which has a timeout",
    "readlines": "use stdout.readlines()",
    "readable": "use stdout, which is a file",
    "ready": "use poll() is not None",
    "running": "use poll() is None",
    "send": "use stdin.write(), of a child with stdin=PIPE",
    "sendcontrol": 'use stdin.write("\\x03") for Ctrl-C, of a child with pty=True and stdin=PIPE',
    "sendeof": 'use stdin.write("\\x04") of a child with pty=True, behind which more can be '
    "written; stdin.close() is the end of all",
    "sendline": 'use stdin.write(line + "\\n"), of a child with stdin=PIPE',
    "eof": "poll() is not None once it has ended; read1() gives what is empty at the end",
    "flag_eof": "poll() is not None once it has ended; read1() gives what is empty at the end",
    **dict.fromkeys(("logfile", "logfile_read"), _COPIED),
    "logfile_send": "what you write is yours: write it to both",
    "match": "it is what wait_for() gives",
    **dict.fromkeys(("maxread", "searchwindowsize"), _IS_READ),
    "sendintr": 'use stdin.write("\\x03"), of a child with pty=True and stdin=PIPE, or '
    'send_signal("INT")',
    "signalstatus": "use status.signal, once it has ended",
    "setecho": "the program says what is echoed, as by stty -echo",
    "setwinsize": "use resize(rows, columns)",
    "signal": "use send_signal(sig)",
    "stdio": "use stdin.write() and stdout.read(), of a child with stdin=PIPE",
    "stdout_lines": "iterate over stdout",
    "terminated": "use poll() is not None",
    "timeout": "wait_for(), readline() and wait() have one each; spawn(..., timeout=) is for all "
    "of it, and stops it then",
    "waitnoecho": 'use wait_for("assword: $"): the program shows it when it is ready',
    "write": "use stdin.write(), of a child with stdin=PIPE",
}
#: What a `PipelineChild` has been asked for.
PIPELINE_CHILD = {
    **CHILD,
    "kill_tree": "use stop(), which ends all of all stages",
    "pipe": "pass all stages to spawn_pipeline()",
    "aclose": "use stop(), or leave its with block",
    "all": "spawn_pipeline(..., stderr=STDOUT) sends both outputs into the pipe",
    "expect": "iterate over stdout, or spawn() the last stage alone",
    "expect_exact": "iterate over stdout, or spawn() the last stage alone",
    "expect_list": "iterate over stdout, or spawn() the last stage alone",
    "explain": "the error of wait(timeout) says which stages have not ended, and why; "
    "`procwright doctor PID` examines one of pids",
    "getecho": "no stage has a terminal",
    "id": "use pids",
    **dict.fromkeys(("children", "cpu_percent", "cpu_times", "memory_info"), "use pids"),
    **dict.fromkeys(("kill_group", "signal_group"), "use stop(), which ends all of all stages"),
    **dict.fromkeys(("getpgid", "getsid", "pgid", "sid"), "use pids"),
    **dict.fromkeys(("logfile", "logfile_read"), 'put a stage in between, ["tee", path]'),
    "timeout": "stdout.readline() and wait() have one each; spawn_pipeline(..., timeout=) is for "
    "all of it, and stops it then",
    "interact": "no stage has a terminal: spawn() one program with pty=True",
    "merged": "spawn_pipeline(..., stderr=STDOUT) sends both outputs into the pipe",
    "name": "use args, or pids",
    "pid": "use pids",
    "process": "use pids: Process(child.pids[0])",
    "processes": "use pids: [Process(pid) for pid in child.pids]",
    "resize": "no stage has a terminal",
    "send_signal": "stop() ends all; Process(child.pids[0]).send_signal(sig) reaches one",
    "sendcontrol": "no stage has a terminal",
    "setecho": "no stage has a terminal",
    "setwinsize": "no stage has a terminal",
    "signal": "stop() ends all; Process(child.pids[0]).send_signal(sig) reaches one",
    "stages": "use result().stages, once it is over; args and pids have those of each",
    "status": "use poll(), or result(), whose stages have a status each",
    "terminate": "use stop(), which waits; kill() returns at once",
    "wait_for": "iterate over stdout, or spawn() the last stage alone",
    "waiting_for": "the error of wait(timeout) says which stages have not ended, and why",
    "waitnoecho": "no stage has a terminal",
}
#: What an `aio.Child` has been asked for.
AIO_CHILD = {
    **CHILD,
    "kill_tree": "use await child.stop(), which ends what it has started, too",
    "pipe": "aio.spawn(args, stdin=child.stdout) reads it; aio.spawn_pipeline() joins programs",
    "stdio": "use await child.stdin.send(), of a child with stdin=PIPE, and await "
    "child.stdout.receive()",
    "buffer": "await child.stdout.receive() gives what has come",
    "read_nonblocking": "use await child.stdout.receive(), which gives what has come",
    "read": "use await child.stdout.read()",
    "read1": "use await child.stdout.receive(), which gives what has come",
    "readline": "use await child.stdout.readline()",
    "readlines": "use await child.stdout.readlines()",
    "expect": "use await child.wait_for(pattern, timeout)",
    "expect_exact": "use await child.wait_for(re.escape(text), timeout)",
    "interact": "a child that was spoken to is not handed over to a person: "
    "run(args, pty=True, stdin=INHERIT, tee=True) has one speak to it from its beginning",
    "send": "use await child.stdin.send(), of a child with stdin=PIPE",
    "write": "use await child.stdin.send(), of a child with stdin=PIPE",
}
_RECEIVED = "use await receive(), which gives what has come, and EndOfStream at the end"
_SENT = "use await send(data), which waits until the pipe has taken it"
_CLOSED = "leave it out: aclose() has closed it when it returns"
_UNTIL = "use async for part in lines(separator), or await child.wait_for(pattern)"
#: What a stream of an `aio.Child` has been asked for, as those of asyncio and trio are.
AIO_STREAM = {
    "at_eof": 'await read() gives b"" at the end, of text "", and receive() raises EndOfStream',
    "can_write_eof": "use aclose(), which ends the input of the child",
    "drain": "leave it out: await write(data) has waited until the pipe has taken it",
    "feed_data": "it comes from the child alone",
    "fileno": "it may be read as it comes: await receive()",
    "is_closing": "use closed",
    "iter_chunks": "use await receive() until EndOfStream",
    "read1": _RECEIVED,
    "readexactly": "use await read(n), which gives fewer at the end alone",
    "readinto": _RECEIVED,
    "readuntil": _UNTIL,
    "receive_exactly": "use await read(n), which gives fewer at the end alone",
    "receive_some": _RECEIVED,
    "receive_until": _UNTIL,
    "send_all": _SENT,
    "send_eof": "use aclose(), which ends the input of the child",
    "wait_closed": _CLOSED,
    "wait_send_all_might_not_block": "leave it out: send() waits",
    "write_eof": "use aclose(), which ends the input of the child",
}
_PSUTIL = "psutil.Process(process.pid) tells it"
#: What a `Process` has been asked for, as those of psutil, multiprocessing and subprocess are.
PROCESS = {
    **dict.fromkeys(("as_dict", "oneshot"), _PSUTIL),
    **dict.fromkeys(("alive", "exists", "running"), "use is_alive()"),
    "is_zombie": "exit says how one has ended that nobody has reaped; psutil tells of the others",
    "children": "procwright.Process knows the one; psutil.Process(process.pid).children() lists "
    "others, and stop() ends all of the tree",
    "cmdline": _PSUTIL,
    "communicate": "only what spawn() gives has streams",
    "connections": _PSUTIL,
    "cpu_percent": _PSUTIL,
    "cpu_times": _PSUTIL,
    "create_time": "use start_time(), or id, which no other process has",
    "cwd": _PSUTIL,
    "environ": _PSUTIL,
    "exit_code": "use returncode",
    "exitcode": "use returncode",
    "ident": "use pid",
    "is_running": "use is_alive()",
    "join": "use wait()",
    "memory_info": _PSUTIL,
    "nice": _PSUTIL,
    "num_threads": _PSUTIL,
    "open_files": _PSUTIL,
    "parent": _PSUTIL,
    "parents": _PSUTIL,
    "poll": "use returncode, which is None while it is alive; exit has all that is known",
    "ppid": _PSUTIL,
    "resume": 'use send_signal("CONT")',
    "send": "use send_signal(sig)",
    "signal": "use send_signal(sig)",
    "status": "use exit, which is None while it is alive, or returncode",
    "suspend": 'use send_signal("STOP")',
    "username": _PSUTIL,
}
#: What an `Ended` has been asked for, as a Future and a Result are.
ENDED = {
    **_EXITS,
    "cmd": "use args",
    "command": "use args; summary begins with it",
    "done": "it is over: outcome says how",
    "item": "use args, or index, its place among the commands",
    "seconds": "use result.duration_s",
    "exception": "use error",
    "failed": "use not ok",
    "name": "use args, or index, its place among the commands",
    **dict.fromkeys(("succeeded", "success", "successful"), "use ok"),
    "timed_out": 'use result is not None and result.reason == "timeout"',
}
_RUN = (
    "use succeeded + failed + stopped, behind a map that was taken up again with succeeded_before, "
    "failed_before and unknown besides"
)
#: What the `Progress` of a map has been asked for, as those of tqdm and rich are.
PROGRESS = {
    **dict.fromkeys(("completed", "done", "finished", "n"), _RUN),
    "elapsed": "time.monotonic() before the map, and now, tell it",
    **dict.fromkeys(("ok", "passed"), "use succeeded; succeeded_before are those of the journal"),
    **dict.fromkeys(("percent", "remaining", "total"), "len(commands) - taken are to come"),
    "skipped": "use succeeded_before, failed_before and unknown: the journal tells of them",
}
#: What a `Map` has been asked for, as an Executor, a Pool and a Future are.
MAP = {
    **dict.fromkeys(("as_completed", "get", "results"), "iterate over it"),
    **dict.fromkeys(("cancel", "terminate"), "use stop(), or close(), which waits as well"),
    **dict.fromkeys(("join", "shutdown"), "iterate over it to the end, or use its block"),
    "done": "use progress",
    **dict.fromkeys(
        ("apply", "submit"),
        "it takes an iterable: one that waits for more, as iter(queue.get, None), may be added to",
    ),
}
#: What a `Command` or a `Pipeline` has been asked for, as those of plumbum and sh are.
SAID = {
    "add_args": "use with_args()",
    "arg": "use with_args()",
    "argv": "use args",
    "bake": "use with_args() and with_options()",
    "bg": "use spawn(), which returns at once",
    "bound_command": "use with_args()",
    "call": "use run()",
    "capture": "use run(), which captures",
    "check_output": "use run(check=True).stdout",
    "cmd": "use args",
    "command": "use args",
    "communicate": "use run(input=...), or spawn().communicate()",
    "cwd": "use with_options(cwd=...), or options",
    "dir": "use with_options(cwd=...)",
    "env": "use with_options(extra_env=...), or options",
    "exec": "use run()",
    "execute": "use run()",
    "fg": "use run(stdin=INHERIT, stdout=INHERIT, stderr=INHERIT)",
    "iter": "use spawn(text=True), and iterate over its stdout",
    "lines": "use run(text=True).stdout.splitlines()",
    "opts": "use options",
    "output": "use run().stdout",
    "pipe": "join commands by |",
    "setenv": "use with_options(extra_env=...)",
    "popen": "use spawn()",
    "Popen": "use spawn()",
    "read": "use run(text=True, check=True).stdout",
    "retcode": "use run().returncode",
    "returncode": "it has not run: use run().returncode",
    "formulate": "use str()",
    "nohup": "use spawn(detach=True)",
    "run_bg": "use spawn(), which returns at once",
    "run_fg": "use run(stdin=INHERIT, stdout=INHERIT, stderr=INHERIT)",
    "run_retcode": "use run().returncode",
    "run_tee": "use run(tee=True)",
    "run_tf": "use run().ok",
    "start": "use spawn()",
    "stdin": "use run(stdin=path), or run(input=...)",
    "stdout": "it has not run: use run().stdout",
    "stderr": "it has not run: use run().stderr",
    "wait": "use run(), or spawn().wait()",
    "with_cwd": "use with_options(cwd=...)",
    "with_env": "use with_options(extra_env=...)",
    "with_": "use with_options()",
}


_OTHER_FAKE = "make another Fake for what follows"
#: What `register` gives has been asked for, as a mock is.
REGISTERED = {
    "assert_any_call": "use fake.assert_calls([[...], ...]), or look at calls",
    "assert_called_once": "use assert_called(times=1)",
    "assert_called_once_with": "the pattern says with what: use assert_called(times=1)",
    "assert_called_with": "the pattern says with what: use assert_called()",
    "assert_has_calls": "use fake.assert_calls([[...], ...]), or look at calls",
    "assert_not_called": "use assert_called(times=0)",
    "call_args": "use calls[-1].args, and calls[-1].parameters",
    "call_args_list": "use [call.args for call in calls]",
    "count": "use call_count",
    "method_calls": "use calls",
    "mock_calls": "use calls",
    "reset_mock": _OTHER_FAKE,
    "return_value": "pass the answer to register()",
    "side_effect": "pass the answer to register(), which may be a function of the Call",
}
#: What a `Fake` has been asked for, as a mock and the fakes of others are.
FAKE = {
    **REGISTERED,
    "allow_unregistered": "use allow([...]): any program is run",
    "any": "unittest.mock.ANY is any word, ... any number of them",
    "assert_any_call": "use assert_calls([[...], ...]), or look at calls",
    "assert_called": "ask what register() gives, registered.assert_called(); or "
    "assert_all_called()",
    "assert_called_once": "ask what register() gives: registered.assert_called(times=1)",
    "assert_called_once_with": "use assert_calls([[...]])",
    "assert_called_with": "use assert_calls([[...]])",
    "assert_has_calls": "use assert_calls([[...], ...]), or look at calls",
    "assert_not_called": "use assert_calls([])",
    "call_count": "use len(calls), or call_count of what register() gives",
    "called": "use bool(calls), or called of what register() gives",
    "count": "use len(calls), or call_count of what register() gives",
    "keep_last_process": "leave it out: register() answers any number of calls unless times= "
    "is said",
    "pass_command": "use allow(args): it is run",
    "register_subprocess": "use register(args, stdout=...)",
}
#: What an error has been asked for that has no result, as that of a wait.
_STILL = "nothing has ended, and there is no result yet: the child tells it then"
OF_A_WAIT = {
    "pid": "use pending, which are those that have not ended",
    **dict.fromkeys([*_EXITS, "returncode", "signal", "status", "outcome", "summary"], _STILL),
    "duration": "use timeout, which is how long was waited",
    "duration_s": "use timeout, which is how long was waited",
    "seconds": "use timeout",
}
#: What the error of a run has been asked for.
ERROR = {
    "seconds": "use timeout",
    "command": "use cmd",
    "message": "use str(error)",
}


def not_set(thing: object, name: str, hints: dict[str, str]) -> AttributeError:
    """The error for setting an attribute that there is not."""
    hint = hints.get(name, "nothing would look at it: keep it beside the child")
    kind = type(thing).__name__
    return without_guess(f"{kind!r} object has no attribute {name!r} to set: {hint}", name)


def missing(
    thing: object,
    name: str,
    hints: dict[str, str],
    of_result: Iterable[str] = (),
    where: str = "",
    otherwise: str | None = None,
) -> AttributeError:
    """The error for an attribute that there is not. `of_result` has those of a `Result`, which
    is had by `where`; `otherwise` is what to type where the name is none that is known, and no
    slip."""
    text = f"{type(thing).__name__!r} object has no attribute {name!r}"
    # Other languages write timedOut.
    snake = name if name.islower() else "".join(f"_{c}" if c.isupper() else c for c in name).lower()
    hint = hints.get(name) or hints.get(snake)
    if hint is None and where and not name.startswith("_"):
        if snake in of_result:
            hint = f"use {where}.{snake}"
        elif snake in RESULT:
            hint = f"of {where}: {RESULT[snake]}"
    elif hint is None and snake != name and hasattr(type(thing), snake):
        hint = f"use {snake}"
    if hint is None and otherwise and not name.startswith("_"):
        hint = None if slip_of(name, dir(type(thing))) else otherwise
    if hint is None:
        # Python looks for a name that is like it.
        return AttributeError(text, name=name, obj=thing)
    return without_guess(f"{text}: {hint}", name)


def without_guess(text: str, name: str) -> AttributeError:
    """The error for an attribute whose text has what to type: Python is not to put a name behind
    it that is like this one, as it does of each object that it knows, and did of a private one."""
    return AttributeError(text, name=name, obj=None)
