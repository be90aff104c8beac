"""Attributes of others, and what to write in their place. Imported when one was asked for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_CODE = "use returncode"
_EXITS = {
    "code": _CODE,
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
    **_EXITS,
    "all": "pass stderr=STDOUT to run(), and stdout has both; or merged=True",
    "cancelled": 'use reason == "cancelled"',
    "cmd": "use args, or argv",
    "command": "use args, or argv; shlex.join(argv) is its line",
    "cwd": "it is what was passed to run()",
    "duration": "use duration_s",
    "elapsed": "use duration_s",
    "err": "use stderr",
    "error": "use explanation, or outcome, which is its one line",
    "failed": "use not ok",
    "failure": "use not ok",
    "is_canceled": 'use reason == "cancelled"',
    "json": "use json.loads(stdout); to_json() is the result itself",
    "lines": "use stdout.splitlines()",
    "message": "use explanation, or outcome, which is its one line",
    "out": "use stdout",
    "output": "use stdout",
    "raise_for_status": "use check_returncode()",
    "signal": "use status.signal, or status.name",
    "stderr_lines": "use stderr.splitlines()",
    "stdout_lines": "use stdout.splitlines()",
    "success": "use ok",
    "successful": "use ok",
    "tail": "use stdout.splitlines()[-n:]",
    "text": "use stdout, which is text with run(..., text=True)",
    "timed_out": 'use reason == "timeout"',
}
#: What a `Child` has been asked for, as those of pexpect, asyncio, anyio and psutil are.
CHILD = {
    **_EXITS,
    "aclose": "use stop(), or leave its with block",
    "after": "the match that wait_for() gives has it",
    "alive": "use poll() is None",
    "all": "spawn(..., merged=True) has both as child.merged",
    "before": "what wait_for() passes over is read, and gone: iterate over stdout to keep it",
    "cancel": "use stop()",
    "check": "use result().check_returncode()",
    "close": "use stop(), or leave its with block; a stream has close() of its own",
    "cmd": "use args",
    "command": "use args",
    "expect": "use wait_for(pattern, timeout)",
    "id": "use pid, or process.id, which no other process ever has",
    "is_alive": "use poll() is None",
    "is_running": "use poll() is None",
    "isalive": "use poll() is None",
    "iter_lines": "iterate over stdout",
    "join": "use wait()",
    "lines": "iterate over stdout; stdout.lines() has a separator and a longest line",
    "name": "use process.name()",
    "output": "use stdout",
    "ppid": "it is ours: os.getpid()",
    "read": "use stdout.read()",
    "readline": "use stdout.readline(), which has a timeout",
    "readlines": "use stdout.readlines()",
    "running": "use poll() is None",
    "send": "use stdin.write(), of a child with stdin=PIPE",
    "sendcontrol": 'use stdin.write("\\x03") for Ctrl-C, of a child with pty=True and stdin=PIPE',
    "sendeof": "use stdin.close()",
    "sendline": 'use stdin.write(line + "\\n"), of a child with stdin=PIPE',
    "setwinsize": "use resize(rows, columns)",
    "signal": "use send_signal(sig)",
    "stdout_lines": "iterate over stdout",
    "terminated": "use poll() is not None",
    "write": "use stdin.write(), of a child with stdin=PIPE",
}
#: What an `Ended` has been asked for, as a Future and a Result are.
ENDED = {
    **_EXITS,
    "cmd": "use args",
    "command": "use args; summary begins with it",
    "done": "it is over: outcome says how",
    "exception": "use error",
    "failed": "use not ok",
    "name": "use args, or index, its place among the commands",
    "success": "use ok",
    "timed_out": 'use result is not None and result.reason == "timeout"',
}


def missing(
    thing: object, name: str, hints: dict[str, str], of_result: Iterable[str] = (), where: str = ""
) -> AttributeError:
    """The error for an attribute that there is not. `of_result` has those of a `Result`, which
    is had by `where`."""
    text = f"{type(thing).__name__!r} object has no attribute {name!r}"
    hint = hints.get(name)
    if hint is None and not name.startswith("_") and (name in of_result or name in RESULT):
        hint = f"use {where}.{name}" if name in of_result else f"of {where}: {RESULT[name]}"
    if hint is None:
        # Python looks for a name that is like it.
        return AttributeError(text, name=name, obj=thing)
    return AttributeError(f"{text}: {hint}")
