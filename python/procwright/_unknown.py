"""Parameters of others, and what to write in their place. Imported when one was given."""

from __future__ import annotations

from ._hinted import as_words, one_too_many, unknown_of_method
from ._invalid import _WrongType, shown
from ._slip import slip_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ._invalid import InvalidValue

_CAPTURED = "both outputs come to you unless said otherwise: leave it out"
#: Parameters of subprocess, and what does here what they do there.
_OF_SUBPROCESS = {
    "bufsize": "what is written is in the pipe, and what comes is there: leave it out",
    "capture_output": _CAPTURED,
    "close_fds": "the program gets no descriptors but its streams and pass_fds: leave it out",
    "creationflags": "it is for Windows: leave it out",
    "executable": "the first of args is what is run: pass the program there",
    "pipesize": "what comes is taken at once, whatever the size: leave it out",
    "preexec_fn": (
        "no Python runs between fork and exec: use umask, rlimits, nice, user, process_group, "
        "start_new_session, die_with_parent, blocked_signals, cpu_affinity, cgroup, chroot, ..."
    ),
    "restore_signals": (
        "signals are always restored: leave it out, and name those that the program ignores in "
        "ignored_signals"
    ),
    "startupinfo": "it is for Windows: leave it out",
    "universal_newlines": "pass text=True, which leaves newlines as they are",
}
_NOT_SHOWN = "nothing is shown unless that is asked for: leave it out"
_TRACED = (
    "PROCWRIGHT_TRACE=1 in the environment shows each start and end: set it before your Python "
    "starts its first program, which is when it is read"
)
_ECHOED = (
    "on a terminal, pty=True, the program says what is echoed: leave it out, or have it run by "
    "`stty -echo`, as in ['sh', '-c', 'stty -echo; exec \"$@\"', 'sh', program, ...]; and what is "
    "written to a pipe is not echoed"
)
_DETACHED = (
    "spawn(..., detach=True) lets it live on, in a session of its own",
    "use detach=True, which lets it live on in a session of its own",
)
_ENDED_BY = 'use stop="KILL", stop=signal.SIGINT or stop=Stop("TERM", grace=5.0)'
_FILE = (
    "tee=path has a copy of both outputs there as they come, and so has tee=file, an open one; "
    "stdout=path sends stdout there alone, keep_full=path keeps it besides"
)
_SHOWN_OR_FILE = "tee=sys.stdout, or another file or a path, has a copy as it comes"
#: Names of what has a copy of an output.
_COPIES = {"log", "log_file", "out_stream"}
_TYPED = "spawn() it, and use wait_for() and stdin.write() of the child"
_LATER = "spawn() returns at once"
_WHOLE_ENV = "env is the whole environment, extra_env is added to ours: leave it out"
_NOT_RUN = "leave the call out: shlex.join(args) is the line that it would run"
_OUR_OWN = "pass stdin=INHERIT, stdout=INHERIT and stderr=INHERIT"
_AS_IT_COMES = "what is written is in the pipe, and what comes is there: leave it out"
_AT_ITS_END = (
    "run() returns then",
    "nothing calls back at the end: call child.wait(), on a thread of yours, or for many "
    "procwright.as_completed()",
)
_APPENDED = 'a file is written anew unless it was opened so: stdout=open(path, "ab")'
_LIMITER = "await the call in `async with limiter:`, or pass parallel=n to aio.map()"
_AGAIN_ALONE = (
    "write the loop, `for attempt in range(3):` until result.ok; or have the command do it, "
    'run(["procwright", "run", "--retry", "2", "--", program, ...])'
)
_IN_RUN = "map() runs many: map(commands, parallel=4)"
#: Parameters that other libraries have, and what does here what they do there: of `run` and
#: `spawn`, or of each.
_HABITS: dict[str, str | tuple[str, str]] = {
    "all": "pass stderr=STDOUT, or merged=True",
    "append": _APPENDED,
    "append_stdout": _APPENDED,
    "answers": _TYPED,
    "async": "aio.run() is awaited; spawn() returns at once",
    "asynchronous": _LATER,
    "background": _LATER,
    "bg": _LATER,
    "buffer": ("pass limit=0, which keeps nothing", 'pass overflow="drop_oldest"'),
    "callback": ("use on_line", "use on_stdout_line and on_stderr_line"),
    "capture": _CAPTURED,
    "capture_stderr": _CAPTURED,
    "capture_stdout": _CAPTURED,
    "cancel_signal": "use cancel=Cancel(), whose cancel() ends it from another thread",
    "chdir": "use cwd",
    "check_returncode": ("use check", "call check_returncode() of the child's result()"),
    "cleanup": "use die_with_parent, for our own end by a signal; at any other it is stopped",
    "combine_stderr": "pass stderr=STDOUT",
    "codec_errors": "use errors",
    "command": "it is the first argument: run([program, ...])",
    "daemon": _DETACHED,
    "data": "use input",
    "deadline": "use timeout",
    "decode_errors": "use errors",
    "delaybeforesend": "what is written is in the pipe at once: leave it out",
    "deliver_cancel": (
        'use stop=Stop("TERM", grace=5.0), which a cancellation uses; for more signals than that '
        "and SIGKILL, send_signal() and wait() of aio.spawn() behind a shield"
    ),
    "detached": _DETACHED,
    "dimensions": "use pty=(rows, columns)",
    "dir": "use cwd",
    "disown": _DETACHED,
    "done": _AT_ITS_END,
    "directory": "use cwd",
    "dry": _NOT_RUN,
    "dry_run": _NOT_RUN,
    "echo": (
        "print(shlex.join(args)) before the call shows the line; on a terminal, pty=True, the "
        "program says what is echoed, as stty -echo"
    ),
    "echo_stdin": _ECHOED,
    "err_bufsize": _AS_IT_COMES,
    "err_to_out": "pass stderr=STDOUT",
    "env_add": "use extra_env",
    "env_extra": "use extra_env",
    "environ": "use env for the whole environment, extra_env for what is added to ours",
    "environment": "use env for the whole environment, extra_env for what is added to ours",
    "err": "use stderr",
    "err_stream": "tee={'stderr': file} has a copy of it there as it comes, stderr=file it alone",
    "events": _TYPED,
    "extend_env": _WHOLE_ENV,
    "fallback": "there is one way to run, on every machine: leave it out",
    "exception": ("use check", "call check_returncode() of the child's result()"),
    "fg": _OUR_OWN,
    "force_kill_after_delay": "use stop=Stop(grace=seconds), grace=None for no SIGKILL ever",
    "gid": "use group",
    "graceful_cancel": 'use stop=Stop("TERM", grace=5.0), which a cancel uses',
    "grace": "use stop=Stop(grace=seconds)",
    "grace_period": "use stop=Stop(grace=seconds)",
    "hide": _NOT_SHOWN,
    "order": "stderr=STDOUT has the exact order, in one pipe; merged=True tells the outputs apart",
    "ignore_sighup": 'use ignored_signals=["HUP"]',
    "in": "use stdin, or input for the data itself",
    "in_bufsize": _AS_IT_COMES,
    "in_stream": "use stdin",
    "idle": "use idle_timeout",
    "input_file": "use stdin=pathlib.Path(name)",
    "ipc": ('spawn(..., channel="from_child") has a queue', 'use channel="from_child", a queue'),
    "prefer_local": 'use extra_env={"PATH": f"node_modules/.bin:{os.environ[\'PATH\']}"}',
    "local_dir": 'use extra_env={"PATH": f"node_modules/.bin:{os.environ[\'PATH\']}"}',
    "interactive": _OUR_OWN,
    "internal_bufsize": ("use limit", "use overflow=Overflow(...)"),
    "kill_after": "use stop=Stop(grace=seconds)",
    "kill_signal": _ENDED_BY,
    "iter_noblock": (
        "spawn() it, and iterate over child.stdout",
        "procwright.wait([child.stdout], timeout=0) says whether something is there",
    ),
    "iter": ("iterate over spawn(args).stdout, or pass on_line", "iterate over child.stdout"),
    "limiter": _LIMITER,
    "lines": ("take result.stdout.splitlines(), or pass on_line", "iterate over child.stdout"),
    "log": _FILE,
    "log_file": _FILE,
    "log_msg": _TRACED,
    "logfile": _SHOWN_OR_FILE,
    "logfile_read": _SHOWN_OR_FILE,
    "logfile_send": "what you write is yours: write it to both",
    "maxread": "what has come is there, however much: leave it out",
    "searchwindowsize": "a search looks at each line: leave it out",
    "max_buffer": ("use limit", "use overflow=Overflow(...)"),
    "max_output": ("use limit", "use overflow=Overflow(...)"),
    "new_session": "use start_new_session",
    "newline": "newlines stay as they are: leave it out",
    "no_err": "use stderr=DEVNULL",
    "no_out": "use stdout=DEVNULL",
    "no_output_timeout": "use idle_timeout",
    "on_cancel": "catch procwright.Cancelled, whose result has what came until then",
    "on_exit": _AT_ITS_END,
    "on_output": ("use on_line", "use on_stdout_line and on_stderr_line"),
    "on_stderr": "use on_stderr_line",
    "on_stdout": "use on_stdout_line",
    "out": "use stdout",
    "out_bufsize": _AS_IT_COMES,
    "out_stream": _FILE,
    "output": "use stdout",
    "parallel": _IN_RUN,
    "prefix": "put it into a line: run('cd /srv && make', shell=True)",
    "max_workers": _IN_RUN,
    "jobs": _IN_RUN,
    "pgid": "use process_group",
    "pgroup": "use process_group",
    "piped": "pipeline(*stages) joins programs, and spawn_pipeline(*stages)",
    "quiet": _NOT_SHOWN,
    "raise_on_error": ("use check", "call check_returncode() of the child's result()"),
    "replace_env": _WHOLE_ENV,
    "report": ("take to_json() of the result", "take to_json() of the child's result()"),
    "reject": ("use check", "call check_returncode() of the child's result()"),
    "responders": _TYPED,
    "retries": _AGAIN_ALONE,
    "retry": _AGAIN_ALONE,
    "scope": 'use stop=Stop(scope="group")',
    "setsid": "use start_new_session",
    "show": "use tee=True",
    "signal": _ENDED_BY,
    "silent": _NOT_SHOWN,
    "stdio": "pass stdin, stdout and stderr, each by its name",
    "tag": ("pass on_line, which may put it in front", "put it in front of each line of stdout"),
    "task_status": (
        "to wait for its end, await it; nursery.start() is for what goes on: start a task of your "
        "own, which has `async with aio.spawn(...) as child:`, and there task_status.started(child)"
    ),
    "strict": (
        'use check, and success="strict" of a pipeline, which forgives no stage',
        "call check_returncode() of the child's result()",
    ),
    "strip": "strip what comes: result.stdout.strip()",
    "strip_final_newline": 'the newline stays: result.stdout.removesuffix("\\n")',
    "timeout_signal": _ENDED_BY,
    "tty": "use pty",
    "tty_in": "use pty",
    "tty_out": "use pty",
    "uid": "use user",
    "verbose": _TRACED,
    "wait": _LATER,
    "warn": "a failure raises nothing unless check=True is said: leave it out",
    "watchers": _TYPED,
    "withexitstatus": ("the result has returncode: leave it out", "wait() gives it: leave it out"),
    "workdir": "use cwd",
    "working_directory": "use cwd",
}
_AT_A_TIME = "parallel says how many run at a time"
_NO_MORE = "pass stop_after_failures=1"
_IS_RESULT = "a failure is a result: look at ok of each Ended, or call its check()"
_SHOWN_LIVE = "pass on_line, called with each line, its stream and the place of its command"
_AGAIN = (
    "map what has failed once more, or have the command `procwright run --retry 2` in front of "
    "the arguments of each"
)
_LINES = "leave the call out: shlex.join(command) is the line that it would run for each"
_NO_MORE_SOON = (
    "stop_after_failures=1 is `now`, which stops what runs; for `soon` have the iterable of "
    "commands end once one has failed, and what runs goes on"
)
_A_FILE_EACH = (
    "take stdout and stderr of each Ended; for a file to each pass mappings, "
    'map({"args": args, "stdout": f"{n}.out"} for n, args in enumerate(commands))'
)
_IN_JOURNAL = "pass journal=Journal(path, resume=True), which has it"
#: Parameters of pools, of GNU parallel and of `run`, and what does in `map` what they do there.
_OF_MAP = {
    "attempts": _AGAIN,
    "buffersize": "ahead says how many results may wait to be taken",
    "check": _IS_RESULT,
    "chunksize": "each command is started alone: leave it out",
    "colsep": "a command is a list of words: [program, *line.split(separator)] for each line",
    "concurrency": _AT_A_TIME,
    "dry": _LINES,
    "dry_run": _LINES,
    "explain_after": (
        'the command does it for each: ["procwright", "run", "--explain-after", "30s", '
        '"--", program, ...]; a timeout says in its result why a command did not end'
    ),
    "fail_fast": _NO_MORE,
    "func": "map runs programs: pass their arguments",
    "halt": _NO_MORE,
    "jobs": _AT_A_TIME,
    "input_wanted": "no command of a map has somebody to answer: run() or spawn() it alone",
    "joblog": "pass journal=Journal(path, joblog=path), which has it",
    "keep_order": "pass ordered=True",
    "limiter": _AT_A_TIME,
    "live": _SHOWN_LIVE,
    "max_concurrency": _AT_A_TIME,
    "max_procs": _AT_A_TIME,
    "max_workers": _AT_A_TIME,
    "n": f"each command is a list of all of its words; {_AT_A_TIME}",
    "n_jobs": _AT_A_TIME,
    "num_workers": _AT_A_TIME,
    "on_result": "take the results: map() is an iterator of them",
    "on_stderr_line": _SHOWN_LIVE,
    "on_stdout_line": _SHOWN_LIVE,
    "on_timeout": "a timeout is a result: its result.reason says so",
    "order": "pass ordered=True",
    "pool": "pass executor=",
    "processes": _AT_A_TIME,
    "delay": (
        "have the commands come slowly: a generator that yields one, and calls time.sleep(0.1) "
        "before the next"
    ),
    "progress": "progress of the Map that this gives tells how far it is",
    "raise_on_error": _IS_RESULT,
    "link": "pair them yourself: map([program, a, b] for a, b in zip(these, those))",
    "results": _A_FILE_EACH,
    "rerun_failed": _IN_JOURNAL,
    "rerun_unknown": _IN_JOURNAL,
    "resume": _IN_JOURNAL,
    "retries": _AGAIN,
    "retry": _AGAIN,
    "return_exceptions": _IS_RESULT,
    "return_when": _NO_MORE,
    "sync": "pass journal=Journal(path, sync=True), which has it",
    "tag": _SHOWN_LIVE,
    "tee": _SHOWN_LIVE,
    "threads": _AT_A_TIME,
    "timeout_all": "deadline is that of all, timeout that of each",
    "total_timeout": "deadline is that of all, timeout that of each",
    "workers": _AT_A_TIME,
}
_AT_THE_END = (
    "its output comes at the end: take result.stdout.splitlines(); spawn_pipeline(...) gives it as "
    "it comes, by `for line in child.stdout`"
)
_PASSED_ON = 'put a stage in between, ["tee", path]'
_OWN_TERMINAL = 'no stage has a terminal: run() one program with pty=True, as ["sh", "-c", line]'
#: Parameters that `run` has, and others for the same, and what does in `pipeline` what they do
#: there.
_OF_PIPELINE = {
    "callback": _AT_THE_END,
    "explain_after": (
        'the command does it: run(["procwright", "pipe", program, ..., "--to", program, ...], '
        "explain_after=30)"
    ),
    "from": (
        'stdout is passed on, with stderr=STDOUT both: stderr alone is by a shell, ["sh", "-c", '
        '\'exec "$@" 2>&1 >/dev/null\', "sh", program, ...]'
    ),
    "input_wanted": "no stage has somebody to answer but by the first one's stdin: leave it out",
    "keep_full": _PASSED_ON,
    "log": _PASSED_ON,
    "log_file": _PASSED_ON,
    "max_length": _AT_THE_END,
    "merged": "stderr=STDOUT sends both into the pipe",
    "on_line": _AT_THE_END,
    "on_output": _AT_THE_END,
    "on_stderr": _AT_THE_END,
    "on_stderr_line": _AT_THE_END,
    "on_stdout": _AT_THE_END,
    "on_stdout_line": _AT_THE_END,
    "ok_code": "pass ok_codes={stage: [codes]}, with stages from 0 on",
    "pipefail": 'pass success="strict"',
    "retcode": "pass ok_codes={stage: [codes]}, with stages from 0 on",
    "pty": _OWN_TERMINAL,
    "show": 'stdout=INHERIT and stderr=INHERIT show it; as well as that, ["tee", path] keeps it',
    "tee": 'stdout=INHERIT and stderr=INHERIT show it; a stage ["tee", path] keeps it besides',
    "too_long": _AT_THE_END,
    "tty": _OWN_TERMINAL,
}
_FROM_THE_CHILD = "iterate over child.stdout"
#: Those that `spawn_pipeline` has other words for.
_OF_A_PIPELINE_CHILD = {
    **dict.fromkeys(
        (
            "callback",
            "on_line",
            "on_output",
            "on_stdout",
            "on_stdout_line",
        ),
        _FROM_THE_CHILD,
    ),
    **dict.fromkeys(("on_stderr", "on_stderr_line"), "iterate over each stream of child.stderr"),
    "channel": "spawn() that program alone, or pass on a descriptor by pass_fds",
    "check": "call check_returncode() of the child's result()",
    "detach": "it is ended with us: spawn() a shell that runs the pipeline, with detach=True",
    "max_length": "child.stdout.lines(max_length=n) has it",
    "too_long": "child.stdout.lines(too_long=...) has it",
}
_BY_INDEX = "a command has no name: index of its Ended is its place, as in names[ended.index]"
#: What one command of a map has been given as a label.
_OF_A_COMMAND = {
    "data": f"use input, if the program is to read it; {_BY_INDEX}",
    "id": _BY_INDEX,
    "key": _BY_INDEX,
    "label": _BY_INDEX,
    "meta": _BY_INDEX,
    "metadata": _BY_INDEX,
    "name": _BY_INDEX,
    "tag": _BY_INDEX,
    "title": _BY_INDEX,
}
#: If no name is as alike as this none is near: a list would help nobody.
_NEAR = 0.6
#: Names of parameters that an error lists: those that are most like the one that was given.
_SHOWN = 3
#: A function of so many names has them all listed.
_FEW = 8
#: Names that others have for exit codes that are no failure.
_OK_CODES = {
    "allowed_codes",
    "allowed_exit_codes",
    "expected_codes",
    "expected_exit_codes",
    "ok_code",
    "ok_exit_codes",
    "ok_returncodes",
    "retcode",
    "success_codes",
    "success_exit_codes",
    "valid_exit_codes",
}
#: Parameters of `run`, and what does for a child what they do there.
_OF_A_CHILD = {
    "check": "call check_returncode() of the child's result()",
    "explain_after": "ask the child, by explain() or waiting_for()",
    "on_line": "use on_stdout_line and on_stderr_line, or iterate over merged",
}


_BOUND = 'limit is how much a lane takes, as "1MiB"; how many messages that are is not counted'
#: Parameters of other queues.
_OF_A_RECEIVER = {
    "capacity": _BOUND,
    "maxlen": _BOUND,
    "maxsize": _BOUND,
    "name": "Receiver.open(name) makes a queue that has one",
    "senders": "lanes is how many there may be at a time",
    "size": _BOUND,
    "timeout": "recv(timeout=) has one",
}


#: What is said of one function alone, before what is said of all.
_OF_A_FUNCTION = {
    "Receiver": _OF_A_RECEIVER,
    "a command": {**_OF_MAP, **_OF_A_COMMAND},
    "map": _OF_MAP,
    "pipeline": _OF_PIPELINE,
    "spawn": _OF_A_CHILD,
    "spawn_pipeline": {**_OF_PIPELINE, **_OF_A_PIPELINE_CHILD},
}


def refusal(
    function: str,
    unknown: Mapping[str, object],
    known: Iterable[str],
    others: Iterable[str],
    shell: object = False,
    where: str = "",
) -> InvalidValue:
    """The error for parameters that `function` does not have. `others` are those of its
    sibling, `shell` is what it was given, and `where` the module in front of its name."""
    name, value = next(iter(unknown.items()))
    known = [one for one in known if one not in ("unknown", "words")]
    if name == "executable" and shell:
        hint = f"shell names the shell: pass shell={shown(value)} in place of both"
    else:
        hint = _hint(function, name, known, others)
    whose = f"{where}{function}() has no such parameter"
    if function == "cmd" and "help(" in hint:
        hint = as_words(name, value)
    if shell and name in ("echo", "dry", "dry_run"):
        # It is a line already.
        hint = hint.replace("shlex.join(args)", "args")
    hint = _by_value(function, name.lstrip("_"), value) or hint
    if function == "a command":
        whose = "a command of map() has no such option"
    return _WrongType(f"{name} is {shown(value)}, and {whose}: {hint}")


def _by_value(function: str, name: str, value: Any) -> str | None:
    """What to write where the value of a parameter says what is meant by it."""
    if name == "echo" and value is False and function in ("run", "spawn"):
        return _ECHOED
    if name == "halt" and isinstance(value, str) and value.startswith("soon"):
        return _NO_MORE_SOON
    if name in _OK_CODES and value is None:
        return "any exit code is a result unless check=True is said: leave it out"
    if name in _OK_CODES and "pipeline" not in function:
        return f"pass ok_codes={as_codes(value)}"
    if function not in ("run", "spawn"):
        return None
    if name in ("hide", "silent", "quiet") and value is False:
        return "use tee=True, which shows both outputs as they come"
    if name == "warn" and value is False:
        return "use check=True, with which a failure raises"
    if name in ("out", "err") and callable(value):
        called = getattr(value, "__name__", "function")
        return f"use on_std{name}_line={called}, which is called with each line"
    if name in ("hide", "silent", "quiet") and value in ("err", "stderr", "out", "stdout"):
        left = "stdout" if "err" in value else "stderr"
        return f'nothing is shown unless that is asked for: tee={{"{left}": True}} shows the other'
    if name in _COPIES and hasattr(value, "write"):
        return "pass it as tee: its write() is called with what comes of both outputs"
    return None


def refused_by_new(
    name: str, known: list[str], words: tuple[Any, ...], unknown: Mapping[str, object] | None
) -> InvalidValue:
    """The error for what the constructor of a native class does not have."""
    if unknown:
        return unknown_of_method(name, *next(iter(unknown.items())), known)
    return one_too_many(name, words[0], known, ())


def as_codes(given: Any) -> list[int]:
    """The exit codes, besides 0, of what was given in the place of `ok_codes`; where none is known,
    an example."""
    several = given if isinstance(given, (list, tuple, set, frozenset, range)) else [given]
    return sorted({code for code in several if type(code) is int and code != 0}) or [1]


def words_behind(function: str, args: Any, words: tuple[Any, ...], shell: Any) -> InvalidValue:
    """The error for words that stand behind the arguments, and not among them."""
    given = list(args) if isinstance(args, (list, tuple)) else [args]
    if shell:
        # The first word behind the line is its $0, which is a name.
        line = [*given, "sh", *words] if len(given) == 1 else [*given, *words]
        hint = (
            f"pass one list, in which they are $1, $2, ...: {function}({shown(line)}, shell=True)"
        )
    else:
        hint = f"pass one list: {function}({shown([*given, *words])})"
    what = "is one argument" if len(words) == 1 else f"are {len(words)} arguments"
    return _WrongType(f"{_listed(words)} {what} more than the one that {function}() takes: {hint}")


def items_behind(commands: Any, items: tuple[Any, ...]) -> InvalidValue:
    """The error for what stands behind the commands of a map, as the items of an executor's."""
    program = list(commands) if isinstance(commands, (list, tuple)) else ["program"]
    one = "[" + ", ".join([*(repr(word) for word in program if word != "{}"), "item"]) + "]"
    return _WrongType(
        f"{_listed(items)} {'is' if len(items) == 1 else 'are'} behind the commands, and map() "
        f"takes these alone: pass each with its words, map([{one} for item in items])"
    )


def _listed(values: tuple[Any, ...]) -> str:
    return ", ".join(shown(value) for value in values[:3]) + (", ..." if len(values) > 3 else "")


def _hint(function: str, name: str, known: list[str], others: Iterable[str]) -> str:
    import difflib
    import re

    # sh writes _cwd.
    name = name.lstrip("_") or name
    own = _OF_A_FUNCTION.get(function, {}).get(name)
    if own is not None:
        return own
    if name in _OF_SUBPROCESS:
        return _OF_SUBPROCESS[name]
    # Other languages write killSignal.
    snake = re.sub("([A-Z])", r"_\1", name).lower().lstrip("_")
    if snake in known:
        return f"it is {snake} here"
    if name in others:
        return f"{'run' if function == 'spawn' else 'spawn'}() has it"
    habit = _HABITS.get(snake)
    if habit is not None:
        return habit if isinstance(habit, str) else habit[function == "spawn"]
    if meant := slip_of(name, known):
        return meant
    alike = difflib.SequenceMatcher(None, b=snake)

    def distance(other: str) -> tuple[float, str]:
        alike.set_seq1(other)
        # By the name where two are as near, whatever the order of a set.
        return -alike.ratio(), other

    nearest = sorted(known, key=distance)
    if len(nearest) <= _FEW:
        return f"it has {', '.join(nearest)}"
    place = "map" if function == "a command" else function
    if -distance(nearest[0])[0] < _NEAR:
        return f"all that it has is in help(procwright.{place})"
    listed = ", ".join(nearest[:_SHOWN])
    return f"it has {listed} and {len(nearest) - _SHOWN} more, all in help(procwright.{place})"
