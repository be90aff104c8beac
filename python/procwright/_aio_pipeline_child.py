"""`aio.PipelineChild`: programs joined by pipes that were started, on an event loop."""

from __future__ import annotations

from contextlib import ExitStack

from anyio.lowlevel import checkpoint

from . import _pipeline_child, _spawn_pipeline
from ._aio_errors import OF_ANYIO, busy
from ._aio_sleep import first, in_thread
from ._aio_stream import Guard, Reader, Writer
from ._aio_text import TextReader, TextWriter
from ._aio_told import has_waited, in_place_of, tell
from ._child import LeftOff
from ._generic import Err, Generic, In, Out
from ._hinted import hinted, settable
from ._late_calls import of_many, on_top
from ._pipeline import PipelineResult
from ._record import Survivor
from ._timeout import Deadline, sooner
from ._told import Patience, raise_reason, reason_of_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from types import TracebackType
    from typing import Any, NoReturn, Self, overload

    from ._aio_pipeline_streams import PipelineStreams
    from ._fan import Fan
    from ._late import LateCommand, LatePipeline
    from ._types import Args, Data, MaybeNone, Seconds, StageFn
else:
    PipelineStreams = Generic


def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | StageFn | Fan | LateCommand[Any] | LatePipeline,
    **options: Any,
) -> PipelineChild[Any, Any, Any]:
    """Starts programs of which each writes into the next one, and returns at once, with their
    streams: `procwright.spawn_pipeline`, whose parameters, defaults and errors it has, for event
    loops. It is not awaited: `async with aio.spawn_pipeline(...) as child:`.
    """
    stages, options = of_many(stages, on_top(_spawn_pipeline.spawn_pipeline, options))
    return PipelineChild(_spawn_pipeline.spawn_pipeline(*stages, **options))


# For help() and editors.
spawn_pipeline.__wrapped__ = _spawn_pipeline.spawn_pipeline  # type: ignore[attr-defined]


@hinted
class PipelineChild(PipelineStreams[Out, Err, In]):
    """Programs joined by pipes that were started: what `aio.spawn_pipeline` gives. A
    `procwright.PipelineChild` whose calls that may wait are awaited, and whose streams are anyio's.

    As an asynchronous context manager: leaving normally closes `stdin` and waits until all stages
    are over, leaving by an exception, also a cancellation, stops them and all of their processes.
    """

    def __init__(self, child: _pipeline_child.PipelineChild[Any, Any, Any]) -> None:
        self._child = child
        core = self._core = child._core
        stdin: Any = child.stdin
        #: The stream to stdin of the first stage, None unless that is a pipe.
        self.stdin = None
        if stdin is not None:
            self.stdin = TextWriter(stdin, core) if child._decoding else Writer(stdin, core)
        #: The stream from stdout of the last stage, None unless that is a pipe.
        self.stdout = self._output(child.stdout)
        #: The stream from stderr of each stage, None where that is no pipe.
        self.stderr = tuple(self._output(one) for one in child.stderr)
        tell(self, self.stdin, (self.stdout, *self.stderr))

    def _output(self, stream: Any) -> Reader | TextReader | None:
        if stream is None:
            return None
        return TextReader(stream, self._core) if self._child._decoding else Reader(stream)

    @property
    def args(self) -> list[Any]:
        """The arguments of each stage."""
        return self._child.args

    @property
    def pids(self) -> list[int]:
        """The numbers of the stages' processes, each its stage's own until all are over."""
        return self._child.pids

    @property
    def returncode(self) -> int | MaybeNone:
        """As `procwright.PipelineChild.returncode`. Does not wait."""
        return self._child.returncode

    def poll(self) -> int | MaybeNone:
        """The `returncode`, as in `subprocess`. Raises what a callback has raised, once."""
        return self._child.poll()

    async def wait(self, timeout: Seconds | None = None) -> int | MaybeNone:
        """Waits until all stages are over, and returns the `returncode`.

        Raises as `procwright.PipelineChild.wait` does. Cancelled, it changes nothing: any number
        of tasks may wait, and wait again.
        """
        self._child._raise_failure()
        if not await self._until_over(Deadline(timeout)):
            raise await self._timeout_of(timeout)
        return self._child._waited()

    async def _until_over(self, deadline: Deadline) -> bool:
        """False if the time comes first."""
        await checkpoint()
        wait = self._core.begin_wait(False)
        while not self._core.wait_step():
            left = deadline.left()
            if left == 0:
                return False
            _, fds, seconds = wait.sleep()
            await first(fds, sooner(seconds, left))
        return True

    async def _in_place_of(
        self, error: BaseException, patience: Patience, left: float | None
    ) -> BaseException:
        """The exception to raise for `error`, as that of `procwright.PipelineChild`."""
        return await in_place_of(self._child, self._until_over, error, patience, left)

    async def _why_stopped(self, error: BaseException) -> BaseException | None:
        """What it was stopped for, None if it was not. A stop that goes on is waited for."""
        if self._core.is_ours() and self._core.is_stopping():
            await has_waited(self._until_over, None)
        return reason_of_end(self._child, error)

    async def _timeout_of(self, timeout: Seconds | None) -> Exception:
        """The error of a wait that has come to its time."""
        child = self._child
        # All processes are looked through.
        text = await in_thread("procwright-explain", child._explanation(timeout))
        return child._timeout_error(timeout, text)

    if TYPE_CHECKING:
        # Bytes go to a program that is told text as well, and text to that alone.
        @overload
        async def communicate(
            self: PipelineChild[Out, Err, bytes | None],
            input: Data | None = None,
            timeout: Seconds | None = None,
        ) -> tuple[Out, Err]: ...
        @overload
        async def communicate(
            self: PipelineChild[Out, Err, str | None],
            input: Data | str | None = None,
            timeout: Seconds | None = None,
        ) -> tuple[Out, Err]: ...
        @overload
        async def communicate(
            self, input: Data | None = None, timeout: Seconds | None = None
        ) -> tuple[Out, Err]: ...

    async def communicate(
        self, input: Data | str | None = None, timeout: Seconds | None = None
    ) -> tuple[Any, Any]:
        """Writes `input`, closes stdin, reads all outputs to the end, and waits.

        As `procwright.PipelineChild.communicate`. After a `WaitTimeout` or a cancellation it can
        be called again, without `input`, and nothing is lost.
        """
        result = await self._finished(input, timeout)
        return result.stdout, result.stderr

    async def result(self, timeout: Seconds | None = None) -> PipelineResult[Out, Out | Err]:
        """Reads what is left of all outputs, waits, and gives a `PipelineResult`.

        As `procwright.PipelineChild.result`, which closes stdin; after a cancellation it may be
        called again.
        """
        return await self._finished(None, timeout)

    def check_returncode(self) -> None:
        """Raises `CalledProcessError` unless it was a success by its rule.

        As `procwright.PipelineChild.check_returncode`, but for afterwards, as behind
        `await child.wait()` or the block: it does not wait, is not awaited, and raises InvalidValue
        while it goes on. Reads nothing.
        """
        self._child._check_ended()

    async def _finished(self, input: Any, timeout: Seconds | None) -> PipelineResult[Any]:
        if self._child._result is None:
            with OF_ANYIO, self._child._alone(busy), ExitStack() as held:
                for guard in self._guards():
                    held.enter_context(guard)
                await self._communicate(input, timeout)
        return self._child._concluded()

    def _guards(self) -> list[Guard]:
        """Those of its streams."""
        stdin = self.stdin
        writer = stdin.buffer if isinstance(stdin, TextWriter) else stdin
        streams: list[Any] = [writer, self.stdout, *self.stderr]
        return [one._guard for one in streams if one is not None]

    async def _communicate(self, input: Any, timeout: Seconds | None) -> None:
        deadline = Deadline(timeout)
        talk = self._child._begin_communication(input)
        await checkpoint()
        while not talk.go_on_now():
            left = deadline.left()
            if left == 0:
                raise await self._timeout_of(timeout)
            fds = talk.sleep()
            if fds is None:
                await checkpoint()
            else:
                await first(fds, left)
        if not await self._until_over(deadline):
            raise await self._timeout_of(timeout)

    async def stop(self) -> list[Survivor]:
        """Ends all stages with all of their processes, as `stop` of the spawn says, the last stage
        first, and reaps them.

        Gives back the processes that could not be ended. Takes the grace and 2 s at most, on a
        thread of its own; a cancellation comes when that is over.
        """
        self._child._is_stopped_by_us = True
        await in_thread("procwright-stop", lambda: self._core.stop(False))
        return self._child._survivors()

    def kill(self) -> None:
        """Has all stages killed, with all of their processes, and returns at once. Nothing if it
        is over."""
        self._child.kill()

    def readiness_fd(self) -> int:
        """A descriptor that is readable once it is over. It stays this object's."""
        return self._child.readiness_fd()

    def __await__(self) -> Generator[Any, Any, Self]:
        """Itself: `await aio.spawn_pipeline(...)` is what `aio.spawn_pipeline(...)` is."""
        return self._itself().__await__()

    async def _itself(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        self._child._has_told_stop = False
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        child = self._child
        if not self._core.is_ours():
            # A fork has no part in it.
            return
        if kind is not None:
            if not issubclass(kind, GeneratorExit):
                await self.stop()
                raise_reason(child, error)
            return
        if child.stdin is not None:
            child.stdin.close()
        try:
            left_off = LeftOff(child)
            while left_off.streams and not await self._until_over(Deadline(left_off.look_after_s)):
                left_off.look()
            await self._until_over(Deadline(None))
            child._left()
        except GeneratorExit:
            # Nothing can be awaited any more. Whoever drops the child has it stopped.
            raise
        except BaseException:
            await self.stop()
            raise

    if not TYPE_CHECKING:

        def __iter__(self) -> NoReturn:
            raise TypeError("an aio.PipelineChild is not iterable: async for line in child.stdout")

        def __aiter__(self) -> NoReturn:
            raise TypeError("an aio.PipelineChild is not iterable: async for line in child.stdout")

        def __enter__(self) -> NoReturn:
            raise TypeError(
                "the block of an aio.PipelineChild is asynchronous: "
                "async with aio.spawn_pipeline(...)"
            )

        def __exit__(self, *_: object) -> None: ...

        def __getattr__(self, name: str) -> NoReturn:
            from ._missing import PIPELINE_CHILD, missing

            where = "(await child.result())"
            raise missing(self, name, PIPELINE_CHILD, dir(PipelineResult), where)

        __setattr__ = settable("PIPELINE_CHILD", "stdin", "stdout", "stderr")

    def __repr__(self) -> str:
        return repr(self._child).replace("procwright.", "procwright.aio.", 1)
