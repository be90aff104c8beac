"""`spawn()`: starts a program and hands it over."""

from __future__ import annotations

from . import _core
from ._arguments import callback as checked_callback
from ._arguments import word
from ._child import Child
from ._invalid import InvalidValue, bad_value
from ._keeper import Keeper, line_of_caller
from ._options import RUN, SPAWN, argv, longest_line, quoted, too_long_fails, translated
from ._starting import audit, start
from ._stdio import PIPE, captures, data_source, source, text_decoding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from signal import Signals
    from typing import Any, Literal

    from ._callback import Failures, LineCaller
    from ._event import Event
    from ._late import LateCommand, LatePipeline
    from ._overflow import Overflow
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


def spawn(
    args: Args | LateCommand[Any] | LatePipeline,
    *words: object,
    shell: bool | StrOrBytesPath = False,
    input: Data | str | None = None,
    stdin: Stdin = None,
    stdout: Sink = PIPE,
    stderr: Sink = PIPE,
    text: bool = False,
    encoding: str | None = None,
    errors: str | None = None,
    overflow: Overflow | Literal["spill", "block", "drop_oldest", "drop_newest", "fail"] = "spill",
    stall_after: Seconds | None = 30,
    merged: bool = False,
    on_stdout_line: Callable[[Any], object] | None = None,
    on_stderr_line: Callable[[Any], object] | None = None,
    max_length: int | None = 2**24,
    too_long: Literal["split", "fail"] = "split",
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
    channel: Literal["from_child", "to_child"] | None = None,
    pty: bool | tuple[int, int] = False,
    detach: bool = False,
    timeout: Seconds | None = None,
    idle_timeout: Seconds | None = None,
    stop: _core.Stop | str | Signals | None = None,
    until: str = "eof",
    limit: int | str | _core.Limit | None = None,
    keep_full: StrOrBytesPath | None = None,
    tee: Tee = False,
    ok_codes: Collection[int] | None = None,
    on_timeout: Literal["raise", "return"] = "raise",
    cancel: _core.Cancel | None = None,
    on_event: Callable[[Event], object] | None = None,
    input_wanted: bool = False,
    **unknown: object,
) -> Child[Any, Any, Any, Any]:
    """Starts a program and returns at once, with the child and its streams.

    The program reads nothing, and both of its outputs are pipes, unless said
    otherwise. It never waits for its reader before memory and disk are used up: see
    `Overflow`.

    args, shell, env, extra_env, cwd, user, group, extra_groups, umask, rlimits, nice,
    process_group, start_new_session, die_with_parent, pass_fds, liveness, blocked_signals,
    ignored_signals, default_signals, cpu_affinity, sched_policy, ionice, oom_score_adj, cgroup,
    chroot, no_new_privs, new_keyring
        As with `run`.
    channel
        A queue between us and the program. "from_child": it sends, by
        `queue.Sender.of_parent()`, to `child.receiver()`. "to_child": it receives, by
        `queue.Receiver.of_parent()`, from `child.sender()`.
    input, stdin
        PIPE gives `child.stdin` to write to. Else as with `run`: `input` is the data
        itself; `stdin` a path object, a file or descriptor, an iterable of bytes or an
        object with `read()`, INHERIT, or None or DEVNULL for nothing.
    pty
        As with `run`; then `stdin=PIPE` types into the terminal, closing it types the key
        that means the end (Ctrl-D), `resize()` says how large it is, and closing `stdout`
        hangs up, for which most programs end. Not with overflow="block".
    stdout, stderr
        PIPE gives `child.stdout` and `child.stderr` to read from. Else INHERIT (or
        None), DEVNULL, a path, a file or descriptor; for stderr also STDOUT.
    text, encoding, errors
        The streams are those of text: UTF-8 and "replace" if not said otherwise, and
        no translation of newlines.
    overflow
        What becomes of output that is not read as fast as it comes: an `Overflow` or
        the name of one.
    stall_after
        For so many seconds nobody may have begun to read output that is full, memory,
        disk and pipe, before a `wait()` or a write raises `Stalled`. None for ever.
    merged
        Both outputs are read as one, `child.merged`, each line with its stream and time.
    on_stdout_line, on_stderr_line
        Called with each line and its end, in order, on a thread of its own. It reads
        the stream in your place. What it raises closes the stream, is logged at once as an
        error of the logger `procwright`, and is raised once, by the next `wait()`, `poll()`,
        `wait_for()`, `communicate()`, `result()` or end of the `with` block. The last three
        wait until the last call has returned.
    max_length, too_long
        The longest line, with its end, that these get: in bytes, of text in characters. A
        longer one comes in pieces, or is a `LineTooLong` that is raised in their place.
    detach
        True for a program that is to live on: it leads a session of its own, and neither our
        end, nor that nobody has the `Child` any more, nor leaving a `with` block ends it. What
        would end with us is refused: `PIPE`, the default of both outputs, an `input` or iterable
        for stdin, `pty`, `die_with_parent`, `channel`, `timeout`, `idle_timeout`, `limit`,
        `cancel`, `until`, `keep_full` and `tee`.
    timeout, idle_timeout, cancel
        As with `run`, and whether or not anybody waits: the child is stopped as `stop` says,
        with all of its processes, and `wait()`, `communicate()`, `result()` and leaving the
        `with` block raise `TimeoutExpired`, `IdleTimeout` or `Cancelled`. They look at the
        child's time, and their own timeouts at theirs. While nobody reads output that is full
        the silence is not the program's.
    ok_codes
        As with `run`: `ok` of the `result()` goes by them, and its `check_returncode()`.
    until
        "exit": the streams end with the program, whoever else holds them.
    limit
        `Limit(n, "fail")` stops the child when a stream has brought more, and those calls
        raise `OutputLimitExceeded`; whoever reads gets no byte beyond it. What is kept for a
        reader is said by `overflow`.
    keep_full, tee
        As with `run`: a file that gets everything, and places where the output is shown while it
        comes; the streams have it all the same. `wait()` is for these, too. What a file's `write`
        raises is logged and raised as that of a callback for lines, and ends this copy alone.
        Not with overflow="block". A file that is slow holds up the program.
    on_timeout
        With "return" those calls raise nothing for `timeout` and `idle_timeout`: the `reason`
        of the `result()` says so. A `limit` and a `cancel` raise all the same.
    stop
        How `stop()`, a limit, and leaving a `with` block by an exception, end the child.
    on_event
        Called with an `Event` when output goes to disk ("spilling"), cannot go there
        ("degraded"), is dropped ("dropping") or is too much ("overflowed"), on a thread
        of its own; the default logs a warning. Of more than 64 that wait for it the rest
        is counted, in one of kind "missed". What it raises is logged and raised as that of a
        callback for lines, and the next event is told all the same.
    input_wanted
        As with `run`: `on_event` is told of each wait for input, of the program's or of one that
        it has started. Not with `detach`.

    Raises `InvalidValue` (a `ValueError`) and `SpawnError` (an `OSError`).
    """
    given = locals()
    if hasattr(args, "_is_late_command") or hasattr(args, "_is_late_pipeline"):
        from . import _late_calls

        args, more = _late_calls.of_one("spawn", args, words, _late_calls.given_to(spawn, given))
        return spawn(args, **more)
    if words:
        from ._unknown import words_behind

        raise words_behind("spawn", args, words, shell)
    if unknown:
        from ._unknown import refusal

        raise refusal("spawn", unknown, given, {"on_line", *RUN}, shell)
    decoding = text_decoding(text, encoding, errors)
    word("on_timeout", on_timeout, ("raise", "return"))
    if merged and decoding is not None and "\n".encode(decoding[0]) != b"\n":
        raise InvalidValue(
            f"merged=True cuts lines at the byte of a newline, which {decoding[0]} has not: "
            "leave text out, and decode what comes"
        )
    if pty and on_stderr_line is not None:
        raise InvalidValue("on_stderr_line: with pty both streams are one, use on_stdout_line")
    if input is not None and stdin is not None:
        raise InvalidValue("stdin and input are both given: input is what the program reads")
    for name, sink, callback in (
        ("stdout", stdout, on_stdout_line),
        ("stderr", stderr, on_stderr_line),
    ):
        if callback is None:
            continue
        if merged or not captures(sink):
            raise InvalidValue(f"on_{name}_line needs {name}=PIPE, and not merged=True")
        checked_callback(f"on_{name}_line", callback, ("line",))
    if input is not None:
        stdin_source = data_source(input, decoding)
    else:
        stdin_source = ("pipe", None) if captures(stdin) else source(stdin, decoding)
    tees, taps = _tees(tee, detach, pty, decoding, given)
    failures: Failures | None = None
    if taps or not (on_stdout_line is on_stderr_line is on_event is None):
        from ._callback import Failures

        failures = Failures(quoted(args))
    if on_event is not None and failures is not None:
        checked_callback("on_event", on_event, ("event",))
        given["on_event"] = failures.of_event_hook(on_event)
    if failures is not None:
        taps = [(stream, by_line, failures.of_tee(tap)) for stream, by_line, tap in taps]
    options = {
        "argv": argv("spawn", args, shell),
        **translated(SPAWN, given),
        "stdin": stdin_source,
        "tee": tees,
        "taps": taps,
    }
    audit("spawn", options, given)

    limits = on_timeout, timeout, idle_timeout

    def native(raw: dict[str, Any]) -> Child[Any, Any, Any, Any]:
        if detach:
            return Child(args, _core.spawn(raw), decoding, stop, failures, None, limits)
        # Made before the program is there: a signal handler that raises leaves none behind.
        keeper = Keeper(args, stop, line_of_caller())
        try:
            core = keeper.start(raw)
            return Child(args, core, decoding, stop, failures, keeper, limits)
        except BaseException:
            # Nobody has seen it, and the traceback may be kept for long.
            keeper.stop()
            raise

    longest = longest_line(max_length), too_long_fails(too_long)
    callbacks = {"on_stdout_line": on_stdout_line, "on_stderr_line": on_stderr_line}
    if failures is None:
        return start("spawn", native, options, given)
    callers: list[LineCaller | None] = []
    try:
        for name, callback in callbacks.items():
            callers.append(_caller(name, callback, *longest, failures))
        child = start("spawn", native, options, given)
    except BaseException:
        for caller in callers:
            if caller is not None:
                caller.leave()
        raise
    for stream, caller in zip((child.stdout, child.stderr), callers, strict=True):
        if caller is not None:
            child._begin_caller(stream, caller)
    return child


def _tees(
    tee: Tee,
    detach: bool,
    pty: bool | tuple[int, int],
    decoding: tuple[str, str] | None,
    given: Mapping[str, Any],
) -> tuple[list[tuple[int, str, Any]], list[Tap]]:
    """The copies that the core makes, and those that it calls for."""
    if tee is False:
        return [], []
    from ._overflow import as_overflow
    from ._tee import copies

    if detach:
        hint = (
            "it is written by us, and with detach=True the program lives on: pass a file as stdout"
        )
        raise bad_value("tee", tee, hint)
    if as_overflow(given["overflow"]).policy == "block":
        hint = (
            'it needs output to be read ahead, and overflow="block" keeps none: use "spill", '
            '"drop_oldest", "drop_newest" or "fail"'
        )
        raise bad_value("tee", tee, hint)
    names = ("stdout",) if pty else ("stdout", "stderr")
    captured = [place for place, name in enumerate(names, 1) if captures(given[name])]
    return copies(tee, captured, decoding)


def _caller(
    name: str,
    callback: Callable[[Any], object] | None,
    longest: int | None,
    fails: bool,
    failures: Failures,
) -> LineCaller | None:
    if callback is None:
        return None
    from ._callback import LineCaller

    return LineCaller(name, callback, longest, fails, failures)
