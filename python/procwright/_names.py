"""Names of the modules of others, and what to write in their place. Imported when one was asked
for."""

from __future__ import annotations

import re

from ._missing import without_guess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

_OUR_OWN = "stdin=INHERIT, stdout=INHERIT, stderr=INHERIT"
_FAILED = "CalledProcessError, raised where check=True was passed"
_CWD = "cwd= of each call, or cmd(...).with_options(cwd=...)"
_FUNCTIONS = (
    "anyio.to_process, or concurrent.futures: what runs here are programs, and no functions"
)
_PATTERNS = "wait_for(pattern) of what spawn(args, stdin=PIPE, text=True) gives, then stdin.write()"
_SPOKEN_TO = "spawn(args, pty=True, stdin=PIPE, text=True), and wait_for() and stdin.write() of it"
_STARTED = "spawn, or aio.spawn on an event loop"
#: Of `procwright`, and of `procwright.aio` where that has no words of its own: names of
#: subprocess, os, anyio, asyncio, trio, psutil, pexpect, invoke, plumbum, sh and execa.
MODULE = {
    "AccessDenied": "PermissionError",
    "BG": "spawn(), which returns at once",
    "CommandNotFound": "FileNotFoundError, which a SpawnError is",
    "CommandTimedOut": "TimeoutExpired",
    "CompletedProcess": "Result",
    "Context": "run(line, shell=True), which needs none",
    "EOF": "EndedBeforeMatch, which wait_for() raises",
    "ERROUT": "stderr=STDOUT",
    "Error": "RunError, from which all of a run derive",
    "ErrorReturnCode": _FAILED,
    "ExecaError": "RunError, from which all of a run derive",
    "ExceptionPexpect": "subprocess.SubprocessError, from which all of waits and runs derive",
    "FG": f"run({_OUR_OWN})",
    "FailingResponder": _PATTERNS,
    "Failure": _FAILED,
    "NOHUP": "spawn(args, detach=True)",
    "Pool": "map(commands, parallel=n)",
    "Popen": "spawn, which gives a Child",
    "ProcessExecutionError": _FAILED,
    "ProcessTimedOut": "TimeoutExpired",
    "Queue": "queue.Receiver",
    "RETCODE": "run().returncode",
    "Responder": _PATTERNS,
    "SignalException": f"{_FAILED}; its result.status.signal",
    "SubprocessError": "subprocess.SubprocessError, from which all of runs and waits derive; "
    "RunError is that of a run alone",
    "TEE": "run(tee=True)",
    "TF": "run().ok",
    "TIMEOUT": "MatchTimeout, which wait_for() raises",
    "TimeoutError": "TimeoutExpired, which is a TimeoutError",
    "TimeoutException": "TimeoutExpired",
    "UnexpectedExit": _FAILED,
    "ZombieProcess": "Process(pid).exit, which says how a zombie has ended",
    "contrib": "cmd(program, ...), of any program",
    "call": "run(args, stdout=INHERIT, stderr=INHERIT).returncode",
    "cd": _CWD,
    "check_call": "run(args, stdout=INHERIT, stderr=INHERIT, check=True)",
    "check_output": "run(args, check=True).stdout",
    "create_subprocess_exec": "aio.spawn([program, *args])",
    "create_subprocess_shell": "aio.spawn(line, shell=True)",
    "doctor": "the command `procwright doctor`",
    "execa": "run([program, ...])",
    "execute": "run([program, ...])",
    "explain": "child.explain(), of what spawn() gives; or the command `procwright doctor`",
    "getoutput": "run(line, shell=True, stderr=STDOUT, text=True).stdout, with the last newline",
    "getstatusoutput": "run(line, shell=True, stderr=STDOUT, text=True)",
    "glob": "glob.glob(pattern): arguments are passed as they are",
    "list2cmdline": "shlex.join(args)",
    "local": "cmd(program, ...)",
    "open_process": _STARTED,
    "parallel": "map(commands, parallel=n)",
    "parse_command_string": "shlex.split(line)",
    "pid_exists": "Process(pid), which raises NoSuchProcess",
    "pids": "psutil.pids()",
    "pipe": "pipeline(*stages)",
    "popen": _STARTED,
    "popen_spawn": "spawn(args, stdin=PIPE, text=True), and wait_for() and stdin.write() of it",
    "prefix": 'run(f"{prefix} && {line}", shell=True)',
    "process_iter": "psutil.process_iter(); Process(one) takes what it gives",
    "pushd": _CWD,
    "pxssh": 'spawn(["ssh", host], pty=True, stdin=PIPE, text=True), and wait_for() of it',
    "replwrap": _SPOKEN_TO,
    "run_node": 'run(["node", ...])',
    "run_process": "run(args, check=True), or aio.run on an event loop",
    "run_sync": f"run; of anyio {_FUNCTIONS}",
    "sh": "run([program, ...]), or run(line, shell=True)",
    "shell": "run(line, shell=True)",
    "spawnu": _SPOKEN_TO,
    "split_command_line": "shlex.split(line)",
    "sudo": 'run(["sudo", program, ...])',
    "system": f"run(line, shell=True, {_OUR_OWN}).returncode",
    "to_process": _FUNCTIONS,
    "to_thread": "anyio.to_thread, or asyncio.to_thread: what runs here are programs",
    "which": "shutil.which(name)",
}
#: Of `procwright.aio`.
AIO = {
    "Popen": "aio.spawn(args), which gives an aio.Child",
    "as_completed_async": "async for one in aio.as_completed(procs)",
    "create_subprocess_exec": "aio.spawn([program, *args]), which is not awaited",
    "create_subprocess_shell": "aio.spawn(line, shell=True), which is not awaited",
    "ObjectReceiver": "procwright.queue.ObjectReceiver, whose recv_async is awaited",
    "ObjectSender": "procwright.queue.ObjectSender",
    "open_process": "async with aio.spawn(args, stdin=PIPE) as child",
    "run_process": "await aio.run(args, check=True)",
    "wait_async": "await aio.wait(procs)",
}
#: Classes that sh makes of a number or a signal.
_MADE = re.compile(r"(ErrorReturnCode|SignalException)_\w+")


def unknown(module: str, name: str, caller: FrameType, own: Mapping[str, str] = {}) -> Exception:
    """The error for a name that `module` has not, of which `own` has words before all others."""
    hint = None if name.startswith("__") else _hint(name, own)
    text = f"module {module!r} has no attribute {name!r}{f': use {hint}' if hint else ''}"
    if hint and _is_imported(caller):
        # Python would put a text of its own in the place of that of an AttributeError.
        return ImportError(text, name=module)
    return without_guess(text, name) if hint else AttributeError(text)


def _hint(name: str, own: Mapping[str, str]) -> str | None:
    made = _MADE.fullmatch(name)
    for one in (name, name.lstrip("_"), made and made[1]):
        if one and (hint := own.get(one) or MODULE.get(one)):
            return hint
    import shutil

    # sh has each program as a name.
    is_program = name.isidentifier() and not name.startswith("_") and shutil.which(name)
    return f'run(["{name}", ...]) for the program of this name' if is_program else None


def _is_imported(caller: FrameType) -> bool:
    """Whether it asks by `from procwright import name`."""
    import opcode

    return caller.f_code.co_code[caller.f_lasti] == opcode.opmap["IMPORT_FROM"]
