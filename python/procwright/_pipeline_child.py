"""`PipelineChild`: programs joined by pipes that were started, and their streams."""

from __future__ import annotations

from weakref import ref

from . import _core
from ._child import LeftOff, encoded_input, not_ended, open_stream, read_so_far
from ._errors import WaitTimeout
from ._generic import Err, Generic, In, Out
from ._held import Alone
from ._hinted import hinted, settable
from ._invalid import bad_value
from ._opened import opened_reader, opened_writer
from ._options import quoted_pipeline
from ._outcome import error_for, raise_for
from ._pipeline import PipelineResult, result_of
from ._record import Survivor
from ._stream import binary
from ._timeout import Deadline, seconds
from ._told import asking, raise_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Any, NoReturn, Self, overload

    from ._callback import Failures
    from ._keeper import Keeper
    from ._pipeline_streams import PipelineStreams
    from ._types import Data, MaybeNone, Seconds
else:
    PipelineStreams = Generic


@hinted
class PipelineChild(PipelineStreams[Out, Err, In]):
    """Programs joined by pipes that were started: what `spawn_pipeline` gives.

    `PipelineChild[str]` is one whose streams come as text, `PipelineChild[bytes, None]` one whose
    `stderr` goes elsewhere; behind these stands the type of stdin.

    As a context manager: leaving normally closes `stdin` and waits until all stages are over,
    leaving by an exception stops them.

    It is kept by whoever has it or one of its streams. Once nobody has, and at the end of the
    interpreter, a pipeline that goes on is told of by a ResourceWarning, with the line that has
    spawned it, and stopped as its `stop` says: as a `Child` is.
    """

    def __init__(
        self,
        args: list[Any],
        core: _core.PipelineChild,
        decoding: tuple[str, str] | None,
        keeper: Keeper,
        failures: Failures | None,
        limits: tuple[str, Seconds | None, Seconds | None],
    ) -> None:
        #: The arguments of each stage.
        self.args = args
        self._core = core
        self._keeper = keeper
        self._decoding = decoding
        self._failures = failures
        #: `on_timeout`, `timeout` and `idle_timeout` of the spawn.
        self._limits = limits
        #: What has ended it and was not raised yet, and what the system has answered.
        self._error: BaseException | None = None
        self._io_error: tuple[int, str] | None = None
        #: Whether the caller has stopped it, who needs no exception for that.
        self._is_stopped_by_us = False
        #: Whether a call has raised what it was stopped for, since a `with` block began.
        self._has_told_stop = False
        self._communication: _core.Communication | None = None
        self._alone = Alone()
        #: What came of it, without output, and with what was left of that.
        self._past: PipelineResult[Any] | None = None
        self._result: PipelineResult[Any] | None = None
        #: The numbers of the stages' processes, each its stage's own until all are over.
        self.pids = core.pids()
        streams = core.streams()
        first, last = streams[0], streams[-1]
        #: The stream to stdin of the first stage, None unless that is a pipe.
        self.stdin = opened_writer(first, keeper, decoding) if first.has_stdin else None
        if self.stdin is not None:
            binary(self.stdin)._ask = asking(ref(self))
        #: The stream from stdout of the last stage, None unless that is a pipe.
        self.stdout = opened_reader(last, 1, keeper, decoding) if last.has_stdout else None
        #: The stream from stderr of each stage, None where that is no pipe.
        self.stderr = tuple(
            opened_reader(one, 2, keeper, decoding) if one.has_stderr else None for one in streams
        )

    @property
    def returncode(self) -> int | MaybeNone:
        """That of its `PipelineResult`: 0 if it was a success by its rule. None while it goes on.
        Does not wait."""
        past = self._ended()
        return None if past is None else past.returncode

    def poll(self) -> int | None:
        """The `returncode`, as in `subprocess`. Raises what a callback has raised, once."""
        self._raise_failure()
        return self.returncode

    def _ended(self) -> PipelineResult[Any] | None:
        """What came of it, with what a `communicate` that was not over has read; None while it
        goes on."""
        if self._past is not None:
            return self._past
        talk = self._communication
        read = read_so_far(talk)
        past = self._report([None] * (1 + len(self.args)) if read is None else read)
        if talk is None or read is not None:
            self._past = past
        # Else that of a later call has what another thread is reading just now.
        return past

    def _report(self, read: Sequence[bytes | None]) -> PipelineResult[Any] | None:
        out, *err = read
        raw = self._core.report(out, err)
        if raw is None:
            return None
        # The core tells of a failure once.
        if raw["error"] is not None:
            self._error = raw["error"]
        if raw["io_error"] is not None:
            self._io_error = raw["io_error"]
        return result_of(self.args, raw, self._decoding)

    def _raise_failure(self) -> None:
        """Raises what a callback has raised, unless a call has told it."""
        if self._failures is not None:
            self._failures.raise_next()

    _past_result = _ended

    def _stop_reason(self) -> BaseException | None:
        """What `wait` raises of what it was stopped for, None while it goes on."""
        past = self._ended()
        if past is None:
            return None
        if self._error is not None:
            return self._error
        if self._needs_no_error(past):
            return None
        return error_for(past, self._io_error, *self._limits)

    def _raise_stopped(self, result: PipelineResult[Any]) -> None:
        """Raises what it was stopped for."""
        error, self._error = self._error, None
        if error is not None:
            self._has_told_stop = True
            raise error
        if self._needs_no_error(result):
            return
        self._has_told_stop = True
        on_timeout, timeout, idle_timeout = self._limits
        raise_for(result, self._io_error, False, on_timeout, timeout, idle_timeout)

    def _needs_no_error(self, result: PipelineResult[Any]) -> bool:
        return self._io_error is None and (
            result.reason == "finished" or (result.reason == "cancelled" and self._is_stopped_by_us)
        )

    def wait(self, timeout: Seconds | None = None) -> int | MaybeNone:
        """Waits until all stages are over, and returns the `returncode`.

        What they wrote can be read afterwards. Raises `WaitTimeout`, a
        `subprocess.TimeoutExpired`, if the time comes first, with the stages that have not ended;
        and `Stalled` if one cannot go on because its output is not read; either way it can be
        called again. What a callback has raised, or an iterable that stdin came from, is raised
        here, once. If all were stopped for a limit or by a `Cancel`, it raises what `pipeline`
        does, each time, whose `result` has no output but what `communicate()` or `result()` had
        read. That a stage has failed raises nothing: see `result()`.
        """
        self._raise_failure()
        if not self._core.wait(seconds(timeout)):
            raise self._timeout_error(timeout, self._explanation(timeout)())
        return self._waited()

    def _waited(self) -> int | MaybeNone:
        """What `wait` gives once all are over."""
        self._raise_failure()
        past = self._ended()
        assert past is not None
        self._raise_stopped(past)
        return past.returncode

    def _explanation(self, timeout: Seconds | None) -> Callable[[], str]:
        """What gives the text of the error of a wait that has come to its time."""
        core, waited = self._core, seconds(timeout)
        # Not the child itself: the call may be left on a thread.
        return lambda: core.explain_timeout(waited)

    def _timeout_error(self, timeout: Seconds | None, text: str) -> WaitTimeout:
        return WaitTimeout(self.args, timeout, (self,), text)

    def _command(self) -> str:
        return quoted_pipeline(self.args)

    if TYPE_CHECKING:
        # Bytes go to a program that is told text as well, and text to that alone.
        @overload
        def communicate(
            self: PipelineChild[Out, Err, bytes | None],
            input: Data | None = None,
            timeout: Seconds | None = None,
        ) -> tuple[Out, Err]: ...
        @overload
        def communicate(
            self: PipelineChild[Out, Err, str | None],
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
        """Writes `input`, closes stdin, reads all outputs to the end, and waits.

        Gives stdout of the last stage, and what all stages wrote to stderr, one stage after the
        other; None for what is no pipe. Raises as `wait` does, and then can be called again,
        without `input`, and nothing is lost: what was read is in the `result` of the error.
        """
        result = self._finished(input, timeout)
        return result.stdout, result.stderr

    def result(self, timeout: Seconds | None = None) -> PipelineResult[Out, Out | Err]:
        """Reads what is left of all outputs, waits, and gives a `PipelineResult`.

        Closes stdin, as `communicate` does. Its `stdout` and `stderr` are what was not read
        before. Raises as `communicate`, and may be called again: once all has been read, the
        result is the same.
        """
        return self._finished(None, timeout)

    def check_returncode(self) -> None:
        """Raises `CalledProcessError` unless it was a success by its rule.

        Waits until all stages are over, as `wait` does, and raises as that. Reads nothing, so that
        somebody else may read its outputs: the error's `result` has of these what `communicate()`
        or `result()` had read. If all were stopped for a limit or by a `Cancel`, raises what `wait`
        does.
        """
        self._raise_failure()
        while self._ended() is None:
            self._core.wait(None)
        self._check_ended()

    def _check_ended(self) -> None:
        """Raises unless it is over, and was a success. Does not wait."""
        self._raise_failure()
        past = self._ended()
        if past is None:
            raise not_ended(self._command())
        self._raise_stopped(past)
        past.check_returncode()

    def _finished(self, input: Any, timeout: Seconds | None) -> PipelineResult[Any]:
        if self._result is not None:
            return self._concluded()
        with self._alone():
            deadline = Deadline(timeout)
            talk = self._begin_communication(input)
            if not (talk.go_on(deadline.left()) and self._core.wait(deadline.left())):
                raise self._timeout_error(timeout, self._explanation(timeout)())
            return self._concluded()

    def _begin_communication(self, input: Any) -> _core.Communication:
        """What is gone on with, begun before or now."""
        self._raise_failure()
        if self._communication is not None:
            if input is not None:
                raise bad_value("input", input, "it was given before; leave it out to go on")
            return self._communication
        data = encoded_input(input, self.stdin)
        outputs = [open_stream(one) for one in (self.stdout, *self.stderr)]
        self._communication = _core.Communication(
            self._core, open_stream(self.stdin), data, outputs
        )
        return self._communication

    def _concluded(self) -> PipelineResult[Any]:
        """The result, once all is read and over."""
        self._raise_failure()
        if self._result is None:
            talk, self._communication = self._communication, None
            assert talk is not None
            read = talk.take()
            result = self._report([None if one is None else one[0] for one in read])
            assert result is not None
            self._past = self._result = result
            streams: list[Any] = [self.stdout, *self.stderr]
            for stream in streams:
                if stream is not None:
                    stream.close()
            self._set_decoded(result, streams, read)
        self._raise_stopped(self._result)
        return self._result

    def _set_decoded(
        self,
        result: PipelineResult[Any],
        streams: list[Any],
        read: list[tuple[bytes, list[int]] | None],
    ) -> None:
        """Has the result have the text as the streams decode it, who may have begun."""
        if self._decoding is None:
            return
        (out, *err), (out_stream, *err_streams) = read, streams
        if out is not None:
            result.stages[-1]._set_text("stdout", out_stream._decode(*out))
        for stage, one, stream in zip(result.stages, err, err_streams, strict=True):
            if one is not None:
                stage._set_text("stderr", stream._decode(*one))

    def stop(self) -> list[Survivor]:
        """Ends all stages with all of their processes, as `stop` of the spawn says, the last stage
        first, and reaps them.

        Gives back the processes that could not be ended. Takes the grace and 2 s at most. Nothing
        is done to one that is over. Signal handlers run meanwhile; if one raises, the rest is
        killed at once.
        """
        self._is_stopped_by_us = True
        self._core.stop(False)
        return self._survivors()

    def _survivors(self) -> list[Survivor]:
        past = self._ended()
        return [] if past is None else [one for stage in past.stages for one in stage.survivors]

    def kill(self) -> None:
        """Has all stages killed, with all of their processes, and returns at once. Nothing if it
        is over."""
        self._is_stopped_by_us = True
        self._core.begin_stop(True)

    def __enter__(self) -> Self:
        self._has_told_stop = False
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._core.is_ours():
            # A fork has no part in it, nor in its end.
            return
        if kind is not None:
            self.stop()
            raise_reason(self, error)
            return
        if self.stdin is not None:
            self.stdin.close()
        try:
            left_off = LeftOff(self)
            while left_off.streams and not self._core.wait(left_off.look_after_s):
                left_off.look()
            self._core.wait(None)
            self._left()
        except BaseException:
            self.stop()
            raise

    def _left(self) -> None:
        """Raises what the end of a block is to raise, once all are over."""
        self._raise_failure()
        past = self._ended()
        # Who has caught in the block what it was stopped for has dealt with it.
        if past is not None and not self._has_told_stop:
            self._raise_stopped(past)

    def _outputs(self) -> list[Any]:
        """The streams that somebody reads."""
        return [self.stdout, *self.stderr]

    def _has_rest(self, stream: Any) -> bool:
        """Whether something of a stream is unread."""
        figures = None if stream.closed else stream.figures
        return figures is not None and figures.lag_bytes > 0

    def _named(self) -> str:
        pids = ", ".join(str(pid) for pid in self.pids)
        return f"{self._command()} (pids {pids})"

    def readiness_fd(self) -> int:
        """A descriptor that is readable once it is over. It stays this object's."""
        return self._core.readiness_fd()

    if not TYPE_CHECKING:

        def __iter__(self) -> NoReturn:
            raise TypeError("a PipelineChild is not iterable: iterate over child.stdout")

        def __getattr__(self, name: str) -> NoReturn:
            from ._missing import PIPELINE_CHILD, missing

            raise missing(self, name, PIPELINE_CHILD, dir(PipelineResult), "child.result()")

        __setattr__ = settable("PIPELINE_CHILD", "args", "pids", "stdin", "stdout", "stderr")

    def __repr__(self) -> str:
        past = self._ended()
        state = "goes on" if past is None else past.outcome
        return f"<procwright.PipelineChild {self._named()}, {state}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a PipelineChild cannot be pickled: pass its result()")
