"""`run()`."""

from __future__ import annotations

from . import _core
from ._arguments import callback, flag, word
from ._invalid import InvalidValue
from ._options import RUN, SPAWN, argv, given_args, longest_line, too_long_fails, translated
from ._outcome import raise_for, result_of
from ._starting import audit, start
from ._stdio import CAPTURE, captures, data_source, source, text_decoding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from signal import Signals
    from typing import Any, Literal

    from ._event import Event
    from ._late import LateCommand, LatePipeline
    from ._result import Result
    from ._types import (
        Args,
        Data,
        Env,
        ExtraEnv,
        Seconds,
        Sink,
        Stdin,
        StrOrBytesPath,
        Tap,
        Tee,
    )


def run(
    args: Args | LateCommand[Any] | LatePipeline,
    *words: object,
    shell: bool | StrOrBytesPath = False,
    input: Data | str | None = None,
    stdin: Stdin = None,
    stdout: Sink = CAPTURE,
    stderr: Sink = CAPTURE,
    env: Env | None = None,
    extra_env: ExtraEnv | None = None,
    cwd: StrOrBytesPath | None = None,
    user: str | int | None = None,
    group: str | int | None = None,
    extra_groups: Iterable[str | int] | None = None,
    umask: int | None = None,
    rlimits: Mapping[str, int | tuple[int, int]] | None = None,
    nice: int | None = None,
    process_group: int | None = None,
    start_new_session: bool = False,
    die_with_parent: bool | str | int = False,
    blocked_signals: Iterable[str | int] | None = None,
    ignored_signals: Iterable[str | int] | None = None,
    default_signals: Iterable[str | int] | None = None,
    cpu_affinity: Iterable[int] | None = None,
    sched_policy: str | None = None,
    ionice: str | None = None,
    oom_score_adj: int | None = None,
    cgroup: StrOrBytesPath | None = None,
    chroot: StrOrBytesPath | None = None,
    no_new_privs: bool = False,
    new_keyring: bool = False,
    pass_fds: Iterable[int] = (),
    liveness: bool = False,
    pty: bool | tuple[int, int] = False,
    timeout: Seconds | None = None,
    idle_timeout: Seconds | None = None,
    stop: _core.Stop | str | Signals | None = None,
    until: str = "eof",
    limit: int | str | _core.Limit | None = None,
    keep_full: StrOrBytesPath | None = None,
    merged: bool = False,
    tee: Tee = False,
    on_line: Callable[[Any], object] | None = None,
    on_stdout_line: Callable[[Any], object] | None = None,
    on_stderr_line: Callable[[Any], object] | None = None,
    max_length: int | None = 2**24,
    too_long: Literal["split", "fail"] = "split",
    text: bool = False,
    encoding: str | None = None,
    errors: str | None = None,
    check: bool = False,
    ok_codes: Collection[int] | None = None,
    on_timeout: Literal["raise", "return"] = "raise",
    cancel: _core.Cancel | None = None,
    on_event: Callable[[Event], object] | None = None,
    input_wanted: bool = False,
    explain_after: Seconds | None = None,
    **unknown: object,
) -> Result[Any, Any, Any]:
    """Runs a program, waits until the run is over, and returns all that came of it.

    The program reads nothing and both of its outputs are captured, unless said
    otherwise. No pipe can fill up and block it for good, every deadline holds,
    and a run that has to be stopped leaves no process behind: each that could
    not be stopped is named in `survivors`.

    args
        The program and its arguments, or a path object alone; or a `Command`, whose options have
        those that are given here on top. With `shell=True` a line for
        `/bin/sh`, with `shell="/bin/bash"` one for that.
    input, stdin
        What the program reads. `input` is the data itself. `stdin` is a path
        object, a file or descriptor (which the program reads itself), an iterable
        of bytes or an object with `read()` (which are read on a thread of its
        own), INHERIT, or None or DEVNULL for nothing. What is no plain file, such as
        that of `gzip.open`, is read by its `read()`.
    stdout, stderr
        CAPTURE, INHERIT (or None), DEVNULL, a path, a file or descriptor (which
        the program writes itself); for stderr also STDOUT. What is no plain file is
        refused: it goes into `tee`.
    env, extra_env
        The whole environment; what is set, or with None removed, on top of it.
    cwd, user, group, extra_groups, umask, nice, process_group, start_new_session, pass_fds
        As in `subprocess`, done without running Python in the child.
    rlimits
        Resource limits by their names in lower case, `{"nofile": 100}`; a pair is
        (soft, hard), -1 is no limit.
    liveness
        The program can watch this process: `LivenessMonitor.of_parent()` tells it of our
        end, for one load from memory.
    pty
        Run it on a terminal of its own, so that it shows colours and writes line by
        line: True for the size of ours, or 24 by 80; `(rows, columns)` for another.
        Both outputs come as `stdout`, their line ends as `\\r\\n`. `stdin` stays as it
        is said, but for INHERIT where ours is a terminal: then what is typed there is
        passed on.
    die_with_parent
        The signal that the kernel sends the program when this process ends; True
        is SIGKILL.
    blocked_signals, ignored_signals, default_signals
        Signals, by name or number, that are blocked when the program starts, that it
        ignores, and that have their default action whatever this process ignores.
    cpu_affinity, sched_policy, ionice
        The processors that it runs on, by number; "batch", "idle", "other", "fifo:10" or
        "rr:10", as by `chrt`; "idle", "best-effort:7" or "realtime:0", as by `ionice`.
    oom_score_adj
        How readily the kernel kills it where memory is short, from -1000, never, to 1000.
    cgroup
        The directory of the cgroup that it starts in.
    chroot
        The directory that is its root. `cwd` is in there, and "/" unless given.
    no_new_privs, new_keyring
        No exec gives it more rights; it has an empty session keyring of its own.
    timeout, idle_timeout
        Seconds for the whole run; seconds without a byte of output; as a number or a
        `timedelta`. 0 or less has expired, infinity or None never does.
    stop
        How the run is ended by a timeout, a limit, `cancel` or Ctrl-C:
        `Stop("TERM", grace=5.0, scope="tree")`, or a signal alone, "KILL" or
        `signal.SIGINT`.
    until
        "eof": the run is over when every process that holds the program's pipes
        is gone; "exit": when the program itself has exited; "silent:2s": when it has
        exited and nothing has come for so long since, or nobody holds the pipes.
    limit, keep_full
        How many bytes of each stream are kept: a number, text as "64KiB", or `Limit(n)`
        keeps the first and the last half, `Limit(n, "fail")` stops the run. `keep_full` is
        a file that gets everything (stderr in one with `.stderr` appended).
    merged
        Also record in which order the two streams were read.
    tee
        Show the output while it comes: True on our own stdout and stderr; a path, a file to write
        to (`sys.stdout` is what that is now) or a descriptor; of one stream alone
        `{"stderr": True}`, with any of these for each.
    on_line, on_stdout_line, on_stderr_line
        Called as on_line(line) with each line and its end, on a thread of its own.
    max_length, too_long
        The longest line in bytes, with its end, that these get. A longer one comes in
        pieces, or stops the run, which raises `LineTooLong`. With None a line takes as
        much memory as it is long, whatever the `limit`.
    text, encoding, errors
        `stdout` and `stderr` of the result are `str`: UTF-8 and "replace" if not
        said otherwise, and no translation of newlines. They are decoded when they are asked
        for: with "strict" it is `result.stdout` that raises `UnicodeDecodeError`.
    check
        Raise `CalledProcessError` unless the program exits with code 0, or one of `ok_codes`.
    ok_codes
        Exit codes that are no failure besides 0, `[1]` for a grep that may find nothing: `ok` of
        the result and `check` go by them. `returncode` is what it is.
    on_timeout
        "return" gives back the result of a run that came to its `timeout` or `idle_timeout`,
        whose `reason` says so; "raise" raises `TimeoutExpired` or `IdleTimeout` with the result
        attached. `OutputLimitExceeded` and `Cancelled` are raised in either case.
    cancel
        A `Cancel`, whose `cancel()` ends the run from another thread. If it is cancelled
        already, nothing is started.
    on_event
        Called with what there is to tell while the run goes on, on a thread of its
        own; the default logs a warning.
    input_wanted
        Tell `on_event` when the program, or one that it has started, begins to wait for input, by
        an event of kind "input_wanted" for each wait, with its `prompt`: on its terminal, or on a
        stdin that somebody holds. It is noticed when the output has paused for 0.1 s.
    explain_after
        Seconds after which `on_event` is told why the program has not ended, by an event of
        kind "explained": who waits for whom, and whether it waits for input. It goes on.

    Callbacks hold up no deadline: from the beginning of a stop they have its grace, and
    half a second more. One that is then still at work goes on behind the run's back, and
    what it raises is told by `sys.unraisablehook`.

    Raises `InvalidValue` (a `ValueError`), `SpawnError` (an `OSError`),
    `TimeoutExpired`, `IdleTimeout`, `OutputLimitExceeded`, `Cancelled`,
    `CalledProcessError`; and whatever an iterator or callback raises.
    """
    given = locals()
    if hasattr(args, "_is_late_command") or hasattr(args, "_is_late_pipeline"):
        from . import _late_calls

        args, options = _late_calls.of_one("run", args, words, _late_calls.given_to(run, given))
        return run(args, **options)
    if words:
        from ._unknown import words_behind

        raise words_behind("run", args, words, shell)
    if unknown:
        from ._unknown import refusal

        raise refusal("run", unknown, given, SPAWN, shell)
    call = RunCall(given)
    return call.outcome(start("run", _core.run, call.options, given))


class RunCall:
    """A call of `run` whose parameters were looked at, and which is about to be made."""

    __slots__ = ("_decoding", "_given", "args", "options")

    def __init__(self, given: Mapping[str, Any]) -> None:
        """`given` has every parameter by its name."""
        decoding = text_decoding(given["text"], given["encoding"], given["errors"])
        word("on_timeout", given["on_timeout"], ("raise", "return"))
        _check(given["check"])
        by_line = tuple(given[name] for name in _LINE_CALLBACKS)
        which = "; on_stdout_line and on_stderr_line know the stream"
        for name in _LINE_CALLBACKS:
            callback(name, given[name], ("line",), which if name == "on_line" else "")
        stdin, input, tee = given["stdin"], given["input"], given["tee"]
        if input is not None and stdin is not None:
            raise InvalidValue("stdin and input are both given: input is what the program reads")
        #: The arguments as the result shows them.
        self.args = given_args(given["args"])
        sinks = (1, given["stdout"]), (2, given["stderr"])
        captured = [stream for stream, to in sinks if captures(to)]
        if given["pty"] and 2 in captured:
            captured.remove(2)
            if given["on_stderr_line"] is not None:
                raise InvalidValue(
                    "on_stderr_line: with pty both streams are one, use on_stdout_line"
                )
        if not captured and given["on_line"] is not None:
            raise InvalidValue("on_line needs a captured stream: capture stdout or stderr")
        taps: list[Tap] = []
        if by_line != (None, None, None):
            from ._taps import line_taps

            longest = longest_line(given["max_length"]), too_long_fails(given["too_long"])
            taps += line_taps(decoding, longest, captured, *by_line)
        tees: list[tuple[int, str, Any]] = []
        if tee is not False:
            from ._tee import copies

            tees, teed = copies(tee, captured, decoding)
            taps += teed
        #: What the core takes.
        self.options = {
            "argv": argv("run", self.args, given["shell"]),
            **translated(RUN, given),
            "stdin": source(stdin, decoding) if input is None else data_source(input, decoding),
            "tee": tees,
            "taps": taps,
        }
        self._decoding = decoding
        self._given = given
        audit("run", self.options, given)

    def result(self, raw: _core.RawResult) -> Result[Any, Any, Any]:
        """The result of what the core gave, whatever came of the run."""
        return result_of(self.args, raw, self._decoding)

    def outcome(self, raw: _core.RawResult) -> Result[Any, Any, Any]:
        """The result of what the core gave. Raises what a run is to raise."""
        if raw["error"] is not None:
            raise raw["error"]
        result = self.result(raw)
        if raw["io_error"] is not None or not result.ok:
            given = self._given
            limits = given["on_timeout"], given["timeout"], given["idle_timeout"]
            raise_for(result, raw["io_error"], given["check"], *limits)
        return result


def _check(check: object) -> None:
    """Refuses what is no truth, such as codes that are no failure."""
    try:
        flag("check", check)
    except InvalidValue as error:
        from ._unknown import as_codes

        hint = f"where other codes are no failure, check=True, ok_codes={as_codes(check)}"
        error.args = (f"{error}; {hint}",)
        raise


#: The parameters of `run` that are called with lines.
_LINE_CALLBACKS = ("on_line", "on_stdout_line", "on_stderr_line")
