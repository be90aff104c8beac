"""`Child`: a program that was started, and its streams."""

from __future__ import annotations

from weakref import ref

from . import _core
from ._arguments import data, number, word
from ._generic import Both, Err, Generic, In, Out
from ._held import HELD_AFTER_S, Alone, go_on
from ._hinted import hinted, settable
from ._invalid import InvalidValue, bad_type, bad_value
from ._opened import opened_reader, opened_writer
from ._options import quoted
from ._outcome import result_of
from ._process import Process, as_stop
from ._record import Status, Survivor
from ._result import Result
from ._stream import binary
from ._timeout import Deadline, seconds, sooner
from ._told import Patience, asking, in_place_of, raise_reason
from ._words import shown_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Sequence
    from signal import Signals
    from types import TracebackType
    from typing import Any, Literal, NoReturn, Protocol, Self, overload

    from ._callback import Failures, LineCaller
    from ._child_streams import Streams
    from ._errors import WaitTimeout
    from ._explained import Diagnosis, Waiting
    from ._keeper import Keeper
    from ._types import Args, Data, MaybeNone, Seconds

    class _Held(Protocol):
        """What a `with` block holds, as far as its end looks at streams."""

        def _outputs(self) -> list[Any]: ...
        def _has_rest(self, stream: Any) -> bool: ...
        def _named(self) -> str: ...

else:
    Streams = Generic

#: The least seconds of a wait after whose end all processes are looked through.
_WORTH_A_LOOK_S = 0.1


@hinted
class Child(Streams[Out, Err, In, Both]):
    """A program that was started: what `spawn` gives.

    `Child[str]` is one whose `stdout` and `stderr` both come as text, `Child[bytes, None]` one
    whose `stdout` comes as bytes and whose `stderr` goes elsewhere; without types it is any.
    Behind them stand the types of stdin and of `merged`.

    As a context manager: leaving normally closes `stdin` and its `sender()`, and waits for the
    program, leaving by an exception stops it.

    It is kept by whoever has it or one of its streams. Once nobody has, and at the end of the
    interpreter, a program that still runs is told of by a ResourceWarning, with the line that has
    spawned it, and stopped as its `stop` says: in the background, and while its outputs are still
    taken. So dropping it does not block, but for 0.2 s where one of two outputs has come to its
    end: then the program may be about to end. One that has been killed, or has let go of all
    outputs that come to us, is about to end, and left to itself; so is one of which a pipe was
    handed on by its `fileno()`. Spawned with `detach=True` it goes on, and a `with` block neither
    waits for it nor stops it.
    """

    def __init__(
        self,
        args: Args,
        core: _core.Child,
        decoding: tuple[str, str] | None,
        stop: _core.Stop | str | Signals | None,
        failures: Failures | None = None,
        keeper: Keeper | None = None,
        limits: tuple[str, Seconds | None, Seconds | None] = ("raise", None, None),
    ) -> None:
        #: The arguments that `spawn` was given.
        self.args: Any = args
        self._core = core
        #: None if it was detached.
        self._keeper = keeper
        self._decoding = decoding
        self._stop = stop
        #: `on_timeout`, `timeout` and `idle_timeout` of the spawn.
        self._limits = limits
        #: Whether a call has raised what it was stopped for, since a `with` block began.
        self._has_told_stop = False
        #: Whether somebody has stopped it, who may want nothing of its outputs.
        self._was_stopped = False
        self._communication: _core.Communication | None = None
        #: What `communicate` has read of a program that has failed, for its error.
        self._communicated_bytes: tuple[bytes | None, bytes | None] = (None, None)
        self._alone = Alone()
        self._result: Result[Any, Any, Any] | None = None
        #: Tells in the report of a fake of the program that it plays.
        self._played: Callable[[_core.RawResult], None] | None = None
        self._process: Process | None = None
        #: The number of the process, which is its own until the child has been waited for.
        self.pid = core.handle().pid
        streams = core.streams()
        #: The stream to its stdin, None unless that is a pipe.
        self.stdin = None
        #: The stream from its stdout, None unless that is a pipe.
        self.stdout = None
        #: The stream from its stderr, None unless that is a pipe.
        self.stderr = None
        #: The lines of both outputs in one stream, None unless that was asked for.
        self.merged = None
        #: What the latest `wait_for` has passed over, whether or not it has found a match: what
        #: stood before that, else all whole lines that came. Of both outputs unless it was given a
        #: `stream`, and of more than 1 MiB the end. None before the first.
        self.before = None
        self._callers: list[LineCaller] = []
        self._failures = failures
        self._receiver: _core.Receiver | None = None
        self._sender: _core.Sender | None = None
        if streams.has_stdin:
            self.stdin = opened_writer(streams, keeper, decoding)
            binary(self.stdin)._ask = asking(ref(self))
        if streams.has_stdout:
            self.stdout = opened_reader(streams, 1, keeper, decoding)
        if streams.has_stderr:
            self.stderr = opened_reader(streams, 2, keeper, decoding)
        if streams.has_merged:
            from ._merged import Merged

            both: Merged[Any] = Merged(streams)
            both._decoding = decoding
            both._keeper = keeper
            self.merged = both

    @property
    def status(self) -> Status | None:
        """How it ended, None while it is alive. Does not wait."""
        parts = self._core.poll()
        return None if parts is None else Status(*parts)

    @property
    def returncode(self) -> int | MaybeNone:
        """The exit code, -N after signal N, None while it is alive or if unknown."""
        status = self.status
        return None if status is None else status.returncode

    def poll(self) -> int | None:
        """The `returncode`, as in `subprocess`. Raises what a callback has raised, once."""
        self._raise_failure()
        return self.returncode

    def _raise_failure(self) -> None:
        """Raises what a callback has raised, unless a call has told it."""
        if self._failures is not None:
            self._failures.raise_next()

    def wait(self, timeout: Seconds | None = None) -> int | MaybeNone:
        """Waits until it has ended, and returns the exit code. -N after signal N.

        For the exit alone: what it wrote can be read afterwards. Raises
        `WaitTimeout`, a `subprocess.TimeoutExpired`, if the time comes first, and
        `Stalled` if the child cannot go on because its output is not read; either
        way it can be called again. What a callback has raised, or an iterable that stdin
        came from, is raised here, once. If the child was stopped for a limit that it was
        spawned with, it raises what `run` does, each time: `TimeoutExpired`, `IdleTimeout`,
        `OutputLimitExceeded` or `Cancelled`, whose `result` has no output but what
        `communicate()` or `result()` had read.
        """
        self._raise_failure()
        status = self._wait(timeout)
        self._raise_failure()
        self._raise_if_stopped()
        return status.returncode

    def _wait(self, timeout: Seconds | None) -> Status:
        parts = self._core.wait(seconds(timeout))
        if parts is None:
            raise self._timeout_of(timeout, read_so_far(self._communication))
        return Status(*parts)

    def _timeout_of(
        self, timeout: Seconds | None, read: Sequence[bytes | None] | None
    ) -> WaitTimeout:
        """The error of a wait that has come to its time, having read so much."""
        explain = self._explanation(timeout, read)
        return self._timeout_error(timeout, read, None if explain is None else explain())

    def _explanation(
        self, timeout: Seconds | None, read: Sequence[bytes | None] | None
    ) -> Callable[[], str] | None:
        """What gives the text for that error, and looks through all processes; None if nobody
        is to pay for that."""
        waited = seconds(timeout)
        # Who asks again and again does not pay for it each time, and the process of a fake is
        # not the program that it plays.
        if waited is None or waited < _WORTH_A_LOOK_S or self._played is not None:
            return None
        # Not the child itself: the call may be left on a thread.
        core, (out, err) = self._core, read or (None, None)
        return lambda: core.explain_timeout(waited, out, err)

    def _timeout_error(
        self, timeout: Seconds | None, read: Sequence[bytes | None] | None, text: str | None
    ) -> WaitTimeout:
        from ._errors import WaitTimeout

        if text is None:
            text = f"{self._command()} did not end within {shown_seconds(seconds(timeout))}"
        error = WaitTimeout(self.args, timeout, (self,), text)
        if read is not None:
            # Text where that was asked for, as the error of a run has it; subprocess has bytes.
            error.output, error.stderr = map(_told_so_far, (self.stdout, self.stderr), read)
        return error

    def _raise_if_stopped(self) -> None:
        """Raises what a limit is to raise that the child was stopped for, if that is over."""
        if self._core.stopped_for() is not None:
            result = self._past_result()
            if result is not None:
                self._raise_stopped(result)

    def _past_result(self) -> Result[Any, Any, Any] | None:
        """What came of it so far, None while it is alive or being stopped."""
        if self._result is not None:
            return self._result
        if self.status is None or self._core.is_stopping():
            return None
        out, err = read_so_far(self._communication) or self._communicated_bytes
        return self._report(out, err)

    def _stop_reason(self) -> BaseException | None:
        """What `wait` raises if it was stopped for a limit, None while the stop goes on."""
        from ._outcome import error_for

        if self._core.stopped_for() is None:
            return None
        result = self._past_result()
        return None if result is None else error_for(result, None, *self._limits)

    def _raise_stopped(self, result: Result[Any, Any, Any]) -> None:
        from ._outcome import raise_for

        on_timeout, timeout, idle_timeout = self._limits
        if self._core.stopped_for() is not None:
            self._has_told_stop = True
            raise_for(result, None, False, on_timeout, timeout, idle_timeout)

    def _report(self, out: bytes | None, err: bytes | None) -> Result[Any, Any, Any]:
        raw = self._core.report(out, err)
        assert raw is not None
        if self._played is not None:
            self._played(raw)
        return result_of(self.args, raw, self._decoding)

    if TYPE_CHECKING:
        # Bytes go to a program that is told text as well, and text to that alone.
        @overload
        def communicate(
            self: Child[Out, Err, bytes | None, Any],
            input: Data | None = None,
            timeout: Seconds | None = None,
        ) -> tuple[Out, Err]: ...
        @overload
        def communicate(
            self: Child[Out, Err, str | None, Any],
            input: Data | str | None = None,
            timeout: Seconds | None = None,
        ) -> tuple[Out, Err]: ...
        @overload
        def communicate(
            self, input: Data | None = None, timeout: Seconds | None = None
        ) -> tuple[Out, Err]: ...

    def communicate(
        self, input: Data | str | None = None, timeout: Seconds | None = None
    ) -> tuple[Any, Any]:
        """Writes `input`, closes stdin, reads both outputs to the end, and waits.

        As in `subprocess`; both outputs are read while stdin is written, so that
        neither side waits for the other. What is not a pipe is None, and what a callback reads;
        those have been called with all, and what one raised is raised here. Raises `WaitTimeout`, a
        `subprocess.TimeoutExpired`, if the time comes first, and `Stalled` if the child
        waits for a callback that does not read its output; after these, and after a
        KeyboardInterrupt, it can be called again, without `input`, and nothing is lost.
        What had come when the time was up is the error's `output` and `stderr`, text where that
        was asked for. For a limit that the child was stopped for it raises as `wait` does; what
        was read is in the error's `result`.
        """
        self._refuse_merged()
        with self._alone():
            self._communicate_all(input, timeout)
            return self._communicated()

    def _refuse_merged(self) -> None:
        if self.merged is not None:
            raise InvalidValue(
                "communicate() gives stdout and stderr, which are merged: iterate over "
                "child.merged, and wait()"
            )

    def _refuse_unread(self) -> None:
        """Refuses to give a result in the place of merged lines that nobody has read."""
        if self.merged is None or self._was_stopped or self._core.stopped_for() is not None:
            return
        if self._has_rest(self.merged):
            raise InvalidValue(
                "result() has stdout and stderr, which are merged, and not read to their end: "
                "iterate over child.merged first, and result() says how it ended; "
                "run(..., merged=True) has a result with both"
            )

    def _communicated(self) -> tuple[Any, Any]:
        """What `communicate` gives, once all is read."""
        if self._core.stopped_for() is not None:
            result = self._finish()
            self._raise_stopped(result)
            return result.stdout, result.stderr
        communication, self._communication = self._communication, None
        assert communication is not None
        out, err = communication.take()
        if self.returncode != 0:
            self._communicated_bytes = (out and out[0], err and err[0])
        # The streams are closed before decoding, which may raise.
        self._close_outputs()
        return self._read_out(self.stdout, out), self._read_out(self.stderr, err)

    def _communicate_all(self, input: Any, timeout: Seconds | None) -> None:
        """Goes on until all is written and read and the child has ended."""
        deadline = Deadline(timeout)
        communication = self._begin_communication(input)
        if not self._go_on(communication, deadline):
            self._raise_timeout(timeout, communication)
        if self._core.wait(deadline.left()) is None:
            self._raise_timeout(timeout, communication)
        for caller in self._callers:
            if not caller.finish(deadline):
                self._raise_timeout(timeout, communication)
        self._raise_failure()

    def _go_on(self, communication: _core.Communication, deadline: Deadline) -> bool:
        """Goes on until all is written and read; false if the time comes first."""
        # Most are over by then, without what follows.
        if communication.go_on(sooner(HELD_AFTER_S, deadline.left())):
            return True
        return go_on(self._core, communication, deadline)

    def _begin_communication(self, input: Any) -> _core.Communication:
        """What is gone on with, begun before or now."""
        self._raise_failure()
        if self._communication is None:
            self._communication = self._communicate(input)
        elif input is not None:
            raise bad_value("input", input, "it was given before; leave it out to go on")
        return self._communication

    def _called(self) -> list[Any]:
        """The streams that callbacks read."""
        return [caller.stream for caller in self._callers]

    def _close_outputs(self) -> None:
        called = self._called()
        for stream in (self.stdout, self.stderr):
            if stream is not None and stream not in called:
                stream.close()

    def _communicate(self, input: Any) -> _core.Communication:
        input = encoded_input(input, self.stdin)
        called = self._called()
        stdout, stderr = (
            None if stream in called else open_stream(stream)
            for stream in (self.stdout, self.stderr)
        )
        return _core.Communication(self._core, open_stream(self.stdin), input, [stdout, stderr])

    def _read_out(self, stream: Any, read: tuple[bytes, list[int]] | None) -> Any:
        if read is None:
            is_called = stream in self._called()
            return None if stream is None or is_called else ("" if self._decoding else b"")
        data, edges = read
        return data if self._decoding is None else stream._decode(data, edges)

    def _raise_timeout(
        self, timeout: Seconds | None, communication: _core.Communication
    ) -> NoReturn:
        raise self._timeout_of(timeout, communication.peek()) from None

    if TYPE_CHECKING:

        @overload
        def wait_for(
            self: Child[bytes | None, bytes | None, Any, Any],
            pattern: bytes | re.Pattern[bytes],
            timeout: Seconds | None = None,
            *,
            stream: Literal["stdout", "stderr"] | None = None,
        ) -> re.Match[bytes]: ...
        @overload
        def wait_for(
            self: Child[str | None, str | None, Any, Any],
            pattern: str | re.Pattern[str],
            timeout: Seconds | None = None,
            *,
            stream: Literal["stdout", "stderr"] | None = None,
        ) -> re.Match[str]: ...

    def wait_for(
        self,
        pattern: Any,
        timeout: Seconds | None = None,
        *,
        stream: Literal["stdout", "stderr"] | None = None,
    ) -> re.Match[Any]:
        """Reads lines until one has a match for `pattern`, and returns the match.

        "Start the server, wait until it listens." Of both streams, unless `stream`
        names one. `pattern` is a regular expression or a compiled one, for text or for
        bytes as the streams are. It is searched in each line without its end, and in
        one that is not complete when nothing more comes for the moment: a prompt has
        no newline. All up to the end of the match is consumed, with the line's end if
        nothing else is behind it; what is behind it stays, on the same line too. A match
        of nothing takes the line. `ready\\n` waits for the end of the line. What was passed over
        is `before` of the child.

        Raises `MatchTimeout`, a `WaitTimeout`, if the time comes first, and
        `EndedBeforeMatch` if the streams end, or the child fails, without a match:
        both tell the last lines. If the child is stopped for a limit of its own it raises what
        `wait()` does. Whole lines that it has looked at are consumed then as well:
        `before` has them, and the next call does not look at them again. A line without its end
        stays for that. `InvalidValue` if a callback reads one of the streams.
        """
        from ._wait_for import wait_for

        self._raise_failure()
        streams = self._searched(stream)
        return wait_for(self, streams, self._decoding, pattern, timeout)

    def _searched(self, stream: Literal["stdout", "stderr"] | None) -> list[Any]:
        """The streams in which `wait_for` searches."""
        if stream is not None:
            word("stream", stream, ("stdout", "stderr"), ", or None for both")
        names = ("stdout", "stderr") if stream is None else (stream,)
        called = self._called()
        piped = [name for name in names if getattr(self, name) is not None]
        taken = [name for name in piped if getattr(self, name) in called]
        free = [name for name in piped if name not in taken]
        if taken:
            # Half a search would wait for what the callback has had long since.
            verb = "are read by their callbacks" if len(taken) > 1 else "is read by its callback"
            besides = f'; stream="{free[0]}" searches that alone' if free else ""
            raise InvalidValue(f"{' and '.join(taken)} of the child {verb}: look there{besides}")
        if free:
            return [getattr(self, name) for name in free]
        which = " and ".join(names)
        if self.merged is not None:
            raise InvalidValue(f"{which} of the child are merged: iterate over child.merged")
        raise InvalidValue(f"{which} of the child cannot be read: spawn with PIPE")

    @property
    def process(self) -> Process:
        """The process, for all that is not the child's alone.

        Asked for while it lives, it keeps a descriptor for as long as this object is there.
        """
        process = self._process
        if process is None:
            process = self._process = Process._from_handle(self._core.process())
        return process

    @property
    def _handle(self) -> _core.ProcessHandle:
        """The process to the core, which has no descriptor of it once it has been waited for."""
        return self._core.handle()

    def send_signal(self, sig: int | str) -> None:
        """Sends it a signal, by number or name. Nothing if it has ended."""
        sig = _core.checked_signal("sig", sig)
        if self.status is None:
            try:
                self._handle.signal(sig)
            except ProcessLookupError:
                # The process has ended at this very moment.
                return
            if sig == _KILL:
                # Whoever drops it now has ended it.
                self._leave()

    def terminate(self) -> None:
        """Sends SIGTERM. Nothing if it has ended."""
        self.send_signal("TERM")

    def kill(self) -> None:
        """Sends SIGKILL. Nothing if it has ended.

        What it has started lives on, and a read of an output that this holds waits for it: `stop()`
        ends all.
        """
        self.send_signal("KILL")

    def waiting_for(self) -> Waiting:
        """What it waits for: input, room for its output, a child, a lock, time, somebody else,
        or nothing that is known.

        Looks once at all processes of the machine, which takes some milliseconds, and more where
        there are thousands. Raises `OSError` where there is no `/proc`.
        """
        from ._explained import Waiting

        return Waiting(*self._core.waiting_for())

    def explain(self) -> Diagnosis:
        """Why it does not end: who of its tree waits for whom, whether that is a deadlock, and
        what to do. What `procwright doctor` says of it.

        Looks twice at all processes of the machine, 200 ms apart. Raises `NoSuchProcess` if it
        has ended, and `OSError` where there is no `/proc`.
        """
        from ._explained import Diagnosis

        return Diagnosis(*self._core.explain())

    def resize(self, rows: int, columns: int) -> None:
        """Says how large its terminal is, of a child that was spawned with `pty`.

        If that is new, the program gets SIGWINCH. Raises InvalidValue for numbers
        that no terminal has, RuntimeError if it has no terminal, and BrokenPipeError
        once no process has that any more.
        """
        for name, value in (("rows", rows), ("columns", columns)):
            number(
                name, value, 1, 65535, "pass a number of rows and one of columns, 1 to 65535 each"
            )
        self._core.resize(rows, columns)

    def stop(self, stop: _core.Stop | str | Signals | None = None) -> list[Survivor]:
        """Ends it as `stop` or its own says, with its descendants by default, and reaps it.

        Gives back the processes that could not be ended. If it has ended before, whether or not
        anybody has waited for it or asked how it ended, what it has left behind is ended.
        Signal handlers run meanwhile; if one raises, the rest is killed at once.
        """
        policy = None if stop is None else as_stop(stop)
        self._was_stopped = True
        return [Survivor(*survivor) for survivor in self._core.stop(policy)]

    def result(self, timeout: Seconds | None = None) -> Result[Out, Err, None]:
        """Reads what is left of both outputs, waits, and gives a `Result` as `run` does.

        Closes stdin, as `communicate` does: a program that reads it to its end ends. Its
        `stdout` and `stderr` are what was not read before, and None of merged ones, which are
        to be read to their end first; `stdout_info` and `stderr_info`
        count all. Raises as `communicate`, and may be called again: once it has
        been read, the result is the same.
        """
        self._refuse_unread()
        if self._result is None:
            with self._alone():
                self._communicate_all(None, timeout)
                self._finish()
        result = self._finish()
        self._raise_stopped(result)
        return result

    def check_returncode(self) -> None:
        """Raises `CalledProcessError` unless it has ended with code 0, or one of its `ok_codes`.

        Waits for its end, as `wait` does, and raises as that. Reads nothing, so that somebody else
        may read its outputs: the error's `result` has of these what `communicate()` or `result()`
        had read. If it was stopped for a limit, raises what `wait` does, and otherwise what
        `check_returncode()` of its `result()` would.
        """
        self._raise_failure()
        # Its outputs may have ended, and the program not yet. A stop may begin behind its end.
        while self._past_result() is None:
            self._wait(None)
        self._check_ended()

    def _check_ended(self) -> None:
        """Raises unless it has ended, and well. Does not wait."""
        self._raise_failure()
        result = self._past_result()
        if result is None:
            raise not_ended(self._command())
        self._raise_stopped(result)
        result.check_returncode()

    def _finish(self) -> Result[Any, Any, Any]:
        """The result, once all is read."""
        if self._result is None:
            communication, self._communication = self._communication, None
            assert communication is not None
            read = communication.take()
            out, err = (None if one is None else one[0] for one in read)
            self._result = self._report(out, err)
            self._close_outputs()
            out_read, err_read = read
            self._set_decoded("stdout", self.stdout, out_read)
            self._set_decoded("stderr", self.stderr, err_read)
        return self._result

    def _set_decoded(
        self,
        name: Literal["stdout", "stderr"],
        stream: Any,
        read: tuple[bytes, list[int]] | None,
    ) -> None:
        # A stream with `_peek_line` may have decoded more than it gave out.
        if read is not None and hasattr(stream, "_peek_line") and self._decoding is not None:
            assert self._result is not None
            self._result._set_text(name, stream._decode(*read))

    def _begin_caller(self, stream: Any, caller: LineCaller) -> None:
        caller.begin(stream)
        self._callers.append(caller)

    def __enter__(self) -> Self:
        self._has_told_stop = False
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._core.is_ours() or self._keeper is None:
            # A fork has no part in it, nor in its end, which may wait for the fork's; and who is
            # meant to live on is left alone.
            return
        if kind is not None:
            self.stop()
            raise_reason(self, error)
            return
        if self.stdin is not None:
            self.stdin.close()
        if self._sender is not None:
            self._sender.close()
        self._core.close_sender()
        try:
            self._wait_after_block()
            for caller in self._callers:
                caller.finish(Deadline(None))
            self._raise_failure()
        except BaseException:
            self.stop()
            raise

    def _wait_after_block(self) -> None:
        """Waits, and warns if that is for a program whose reader has left off."""
        left_off = LeftOff(self, self._types_end())
        while left_off.looks and self._core.wait(left_off.look_after_s) is None:
            left_off.look()
        # What a callback has raised by now is raised behind this, and the program has its way
        # until then: raised at once, it would end a program that is well in its middle.
        self._wait(None)
        self._raise_failure()
        # Who has caught in the block what it was stopped for has dealt with it: a second
        # exception would end the program that did.
        if not self._has_told_stop:
            self._raise_if_stopped()

    def _outputs(self) -> list[Any]:
        """The streams that somebody reads."""
        return [self.stdout, self.stderr, self.merged]

    def _named(self) -> str:
        return f"{self._command()} (pid {self.pid})"

    def _command(self) -> str:
        """What was started, in a line."""
        # The process of a fake is not the program that it plays.
        return self._core.command_line() if self._played is None else quoted(self.args)

    def _types_end(self) -> Callable[[], bool] | None:
        """What types the end at its terminal again, if its stdin is that."""
        return self._type_end if self.stdin is not None and self._core.has_terminal() else None

    def _type_end(self) -> bool:
        """Types the end again if it waits for input at its terminal: it has not taken the first.
        Whether it does."""
        try:
            waiting = self.waiting_for()
        except OSError:
            # Nobody can tell where there is no /proc.
            return False
        is_asking = waiting.kind == "input" and waiting.terminal
        if is_asking:
            self._core.type_end()
        return is_asking

    def _has_rest(self, stream: Any) -> bool:
        """Whether something of a stream is unread, or may come."""
        # Before the figures: what comes between the two looks is in these.
        out, err = self._core.open_outputs()
        may_come = out if stream is self.stdout else err if stream is self.stderr else out or err
        figures = None if stream.closed else stream.figures
        return figures is not None and (may_come or figures.lag_bytes > 0)

    def receiver(self) -> _core.Receiver:
        """The queue to which it sends, if it was spawned with `channel="from_child"`.

        Always the same. It was there before the child, so that nothing is too early for it;
        once the child has ended and what it had sent is received, it says `queue.Closed`, and how
        that has failed, and iterating over it ends. Of a child that was stopped for a limit that it
        was spawned with, its calls raise what `wait` does: for that they wait once, within their
        timeout, and `try_recv` tells what is known then. Not so `recv_async` and awaiting it: of
        these `aio.Child.receiver` has such. The end of a `with` block raises it as well. Raises
        `queue.NoChannel` if there is none.
        """
        if self._receiver is None:
            self._take_receiver()._ask(asking(ref(self)))
        assert self._receiver is not None
        return self._receiver

    def _take_receiver(self) -> _core.Receiver:
        if self._receiver is None:
            self._receiver = self._core.receiver()
            self._leave()
        return self._receiver

    def sender(self, timeout: Seconds | None = None) -> _core.Sender:
        """Sends to it, if it was spawned with `channel="to_child"`. Always the same.

        Waits until the child has made its `queue.Receiver.of_parent()`. Signal handlers run
        as usual. Leaving a `with` block of the child closes it, so that the child comes to
        the end of what it iterates over.

        Raises `queue.NoChannel` if there is none, or the child ends before, with how that has
        failed; `queue.TimedOut`, a `TimeoutError`, if the time comes first: then it can be called
        again. It and the calls of the sender raise what `wait` does of a child that was stopped for
        a limit that it was spawned with.
        """
        if self._sender is None:
            from ._queue_errors import NoChannel

            until = Deadline(timeout)
            try:
                self._sender = self._core.sender(seconds(timeout))
            except NoChannel as error:
                found = in_place_of(self, error, Patience(), until.left())
                if found is error:
                    raise
                raise found from found.__cause__
            self._sender._ask(asking(ref(self)))
            self._leave()
        return self._sender

    def _leave(self) -> None:
        """Leaves the program to itself: an end of its queue may be all that somebody has."""
        if self._keeper is not None:
            self._keeper.release()

    def monitor(self) -> _core.LivenessMonitor:
        """A monitor of its process: whether it is alive, for one load from memory.

        The child in turn asks for its parent with `LivenessMonitor.of_parent()`, if it was
        spawned with `liveness=True`.
        """
        return _core.LivenessMonitor(self)

    def readiness_fd(self) -> int:
        """A descriptor that is readable once it has ended. It stays this object's."""
        return self.process.readiness_fd()

    if not TYPE_CHECKING:

        def __iter__(self) -> NoReturn:
            raise TypeError(
                "a Child is not iterable: iterate over child.stdout or child.stderr, or with "
                "merged=True over child.merged, which has both"
            )

        def __getattr__(self, name: str) -> NoReturn:
            from ._missing import CHILD, missing

            raise missing(self, name, CHILD, dir(Result), "child.result()")

        __setattr__ = settable(
            "CHILD", "args", "pid", "before", "stdin", "stdout", "stderr", "merged"
        )

    def __repr__(self) -> str:
        status = self.status
        if status is None:
            state = "alive"
        else:
            state = "ended" if status.returncode is None else f"returncode {status.returncode}"
        return f"<procwright.Child {self.args!r}, pid {self.pid}, {state}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Child cannot be pickled: pass the id of its process")


#: What `kill()` sends.
_KILL = _core.checked_signal("sig", "KILL")
#: Seconds after which the end of a block looks first whether it waits for a program that nobody
#: listens to.
_LEFT_OFF_S = 1.0
#: How often the end of its input is typed again before it is said that a program takes none.
_TAKES_NO_END = 2


class LeftOff:
    """The streams of a child, or of a pipeline, whose reader may have left off, at the end of a
    `with` block.

    That of `tail -f` may say nothing more for hours: nobody knows that nobody reads but this. And
    a program at a terminal may wait for input for as long, since it has thrown away what was typed
    before it read, with the end that the block has typed.
    """

    __slots__ = ("_child", "_typed", "look_after_s", "streams", "type_end")

    def __init__(self, child: _Held, type_end: Callable[[], bool] | None = None) -> None:
        self._child = child
        #: Types the end again if the program waits for input, and says whether it does, for which
        #: it looks through all processes.
        self.type_end = type_end
        #: How often that was done.
        self._typed = 0
        streams = child._outputs()
        #: Each with how much was read of it. None are left once there is nothing to look for.
        self.streams = [(stream, read) for stream in streams if (read := _bytes_read(stream))]
        #: Seconds before the next look: ever more, the program may have said nothing more yet.
        self.look_after_s = _LEFT_OFF_S

    @property
    def looks(self) -> bool:
        """Whether there is anything to look for."""
        return self.type_end is not None or bool(self.streams)

    def look(self) -> None:
        """Types the end again to who waits for input, and warns once if that does not take it.
        Else warns, once, if something waits for a reader that does not come."""
        self.look_after_s *= 2
        if self.type_end is not None and self.type_end():
            self._typed += 1
            if self._typed == _TAKES_NO_END:
                import logging

                logging.getLogger("procwright").warning(
                    "the end of the with block waits for %s, which waits for input at its "
                    "terminal and does not end for the Ctrl-D that is typed again and again: "
                    "stop() it",
                    self._child._named(),
                )
                # What asks again and again may count how often: a password, a key.
                self.type_end = None
            return
        # A thread that reads on has read since.
        left = [(stream, read) for stream, read in self.streams if _bytes_read(stream) == read]
        idle = [binary(stream).label for stream, _ in left if self._child._has_rest(stream)]
        self.streams = [] if idle else left
        if idle:
            import logging

            logging.getLogger("procwright").warning(
                "the end of the with block waits for %s, and nobody reads the rest "
                "of %s: stop() it, or close the stream, before a break",
                self._child._named(),
                " and ".join(idle),
            )


def _bytes_read(stream: Any) -> int:
    """How much of an open stream was read. 0 too if nobody but the kernel knows."""
    if stream is None or stream.closed or (figures := stream.figures) is None:
        return 0
    read: int = figures.bytes_out
    return read


def not_ended(command: str) -> InvalidValue:
    """The error for who asks whether something has failed that goes on."""
    return InvalidValue(f"{command} has not ended, and so has not failed: await child.wait() first")


def read_so_far(talk: _core.Communication | None) -> Sequence[bytes | None] | None:
    """What a `communicate` that is not over has read of each output. None if there is none, or
    another thread is within it, which has what was read."""
    try:
        return None if talk is None else talk.peek()
    except RuntimeError:
        return None


def _told_so_far(stream: Any, data: bytes | None) -> str | bytes | None:
    """What has come of a stream as its reads would give it, of text without a character that has
    not come whole."""
    if data is None or not hasattr(stream, "_decode_so_far"):
        return data
    text: str = stream._decode_so_far(data)
    return text


def encoded_input(input: Any, stdin: Any) -> Any:
    """What `communicate` writes to `stdin`, as bytes."""
    if input is not None and stdin is None:
        raise InvalidValue("input is given, but stdin is no pipe: spawn with stdin=PIPE")
    if isinstance(input, str):
        if not hasattr(stdin, "_encode"):
            raise bad_type("input", input, "spawn with text=True to pass a str, or pass bytes")
        input = stdin._encode(input)
    elif input is not None:
        input = data("input", input, "pass bytes, or a str to a child with text=True")
    if input:
        # Input for a closed stdin would be dropped without a word.
        binary(stdin)._alive()
    return input


def open_stream(stream: Any) -> Any:
    """The binary stream, none if it is closed. Raises `StreamForked` in a fork."""
    if stream is None:
        return None
    found = binary(stream)
    if stream.closed:
        from ._stream_errors import StreamClosed

        try:
            found._alive()
        except StreamClosed:
            return None
    return found
