"""`aio.Child`: a program that was started, on an event loop."""

from __future__ import annotations

from contextlib import ExitStack
from weakref import ref

from anyio.lowlevel import checkpoint

from . import _core
from ._aio_errors import OF_ANYIO, busy
from ._aio_held import Held
from ._aio_liveness import LivenessMonitor
from ._aio_queue import Receiver, Sender
from ._aio_sleep import ThreadCall, first, in_thread
from ._aio_stream import Guard, Reader, Writer
from ._aio_text import Merged, TextReader, TextWriter
from ._aio_told import asking, has_waited, in_place_of, tell
from ._aio_wait import Process
from ._async import readable
from ._child import LeftOff, read_so_far
from ._errors import WaitTimeout
from ._generic import Both, Err, Generic, In, Out
from ._held import HeldAt
from ._hinted import hinted, settable
from ._process import as_stop
from ._record import Status, Survivor
from ._result import Result
from ._timeout import Deadline, Earlier, sooner
from ._told import Patience, raise_reason, reason_of_end
from ._wait_for import EndWait, Look, Sleep, searching

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Generator
    from signal import Signals
    from types import TracebackType
    from typing import Any, Literal, NoReturn, Self, overload

    from . import _child
    from ._aio_child_streams import Streams
    from ._callback import LineCaller
    from ._explained import Diagnosis, Waiting
    from ._types import Data, MaybeNone, Seconds
else:
    Streams = Generic


@hinted
class Child(Streams[Out, Err, In, Both]):
    """A program that was started: what `aio.spawn` gives. A `procwright.Child` whose calls that
    may wait are awaited, and whose streams are anyio's.

    As an asynchronous context manager: leaving normally closes `stdin` and waits for the program,
    leaving by an exception, also a cancellation, stops it and all of its processes.
    """

    def __init__(self, child: _child.Child[Any, Any, Any, Any]) -> None:
        self._child = child
        core = self._core = child._core
        self._process: Process | None = None
        #: The ends of its queue, once they were asked for.
        self._receiver: Receiver | None = None
        self._sender: Sender | None = None
        #: The wait for the receiver that the child makes, while there is one.
        self._sending: ThreadCall | None = None
        #: The stream to its stdin, None unless that is a pipe.
        self.stdin = None
        #: The stream from its stdout, None unless that is a pipe.
        self.stdout = self._output(child.stdout)
        #: The stream from its stderr, None unless that is a pipe.
        self.stderr = self._output(child.stderr)
        #: The lines of both outputs in one stream, None unless that was asked for.
        self.merged = None
        #: What the latest `wait_for` has passed over, as of `procwright.Child`.
        self.before = None
        stdin: Any = child.stdin
        if stdin is not None:
            self.stdin = TextWriter(stdin, core) if child._decoding else Writer(stdin, core)
        tell(self, self.stdin, (self.stdout, self.stderr))
        if child.merged is not None:
            both: Merged[Any] = Merged(child.merged)
            self.merged = both

    def _output(self, stream: Any) -> Reader | TextReader | None:
        if stream is None:
            return None
        return TextReader(stream, self._core) if self._child._decoding else Reader(stream)

    @property
    def args(self) -> Any:
        """The arguments that `spawn` was given."""
        return self._child.args

    @property
    def pid(self) -> int:
        """The number of the process, which is its own until the child has been waited for."""
        return self._child.pid

    @property
    def status(self) -> Status | None:
        """How it ended, None while it is alive. Does not wait."""
        return self._child.status

    @property
    def returncode(self) -> int | MaybeNone:
        """The exit code, -N after signal N, None while it is alive or if unknown."""
        return self._child.returncode

    def poll(self) -> int | MaybeNone:
        """The `returncode`, as in `subprocess`. Raises what a callback has raised, once."""
        return self._child.poll()

    async def wait(self, timeout: Seconds | None = None) -> int | MaybeNone:
        """Waits until it has ended, and returns the exit code. -N after signal N.

        Raises as `procwright.Child.wait` does: `WaitTimeout`, `Stalled`, what a callback has
        raised, and what the child was stopped for. Cancelled, it changes nothing: any number of
        tasks may wait, and wait again.
        """
        child = self._child
        child._raise_failure()
        status = await self._wait(timeout)
        child._raise_failure()
        child._raise_if_stopped()
        return status.returncode

    async def _wait(self, timeout: Seconds | None) -> Status:
        child = self._child
        parts = await self._until_ended(Deadline(timeout))
        if parts is None:
            raise await self._timeout_of(timeout, child._communication)
        return Status(*parts)

    async def _timeout_of(
        self, timeout: Seconds | None, talk: _core.Communication | None
    ) -> WaitTimeout:
        """The error of a wait that has come to its time."""
        child = self._child
        read = read_so_far(talk)
        explain = child._explanation(timeout, read)
        # All processes are looked through.
        text = None if explain is None else await in_thread("procwright-explain", explain)
        return child._timeout_error(timeout, read, text)

    async def _until_ended(self, deadline: Deadline) -> Any:
        """The parts of its `Status`, None if the time comes first."""
        await checkpoint()
        core = self._core
        wait = core.begin_wait(False)
        while (parts := core.wait_step()) is None:
            left = deadline.left()
            if left == 0:
                return None
            await first(*_members(core, wait, left))
        return parts

    if TYPE_CHECKING:
        # Bytes go to a program that is told text as well, and text to that alone.
        @overload
        async def communicate(
            self: Child[Out, Err, bytes | None, Any],
            input: Data | None = None,
            timeout: Seconds | None = None,
        ) -> tuple[Out, Err]: ...
        @overload
        async def communicate(
            self: Child[Out, Err, str | None, Any],
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
        """Writes `input`, closes stdin, reads both outputs to the end, and waits.

        As `procwright.Child.communicate`. After a `WaitTimeout` or a cancellation it can be
        called again, without `input`, and nothing is lost.
        """
        self._child._refuse_merged()
        await self._communicate_all(input, timeout)
        return self._child._communicated()

    async def _communicate_all(self, input: Any, timeout: Seconds | None) -> None:
        """Goes on until all is written and read and the child has ended."""
        with OF_ANYIO, self._child._alone(busy), ExitStack() as held:
            for guard in self._guards():
                held.enter_context(guard)
            await self._communicate_alone(input, timeout)

    def _guards(self) -> list[Guard]:
        """Those of its three streams."""
        stdin = self.stdin
        writer = stdin.buffer if isinstance(stdin, TextWriter) else stdin
        return [one._guard for one in (writer, self.stdout, self.stderr) if one is not None]

    async def _communicate_alone(self, input: Any, timeout: Seconds | None) -> None:
        child = self._child
        deadline = Deadline(timeout)
        talk = child._begin_communication(input)
        is_over = await self._talked(talk, deadline)
        for caller in child._callers:
            is_over = is_over and await _finished(caller, deadline)
        if not is_over:
            raise await self._timeout_of(timeout, talk)
        child._raise_failure()

    async def _talked(self, talk: _core.Communication, deadline: Deadline) -> bool:
        """Goes on until all is written and read and the child has ended, and has its listener told
        once who holds its outputs. False if the time comes first."""
        core = self._core
        until_told = Earlier(HeldAt(core), deadline)
        is_over = await talked(core, talk, until_told)
        if is_over or deadline.left() == 0:
            return is_over
        held = Held(core.tell_held)
        try:
            is_over = await talked(core, talk, deadline, is_begun=True)
        except GeneratorExit:
            # Nothing can be awaited any more.
            held.silence()
            raise
        except BaseException:
            await held.end()
            raise
        await held.end()
        return is_over

    async def result(self, timeout: Seconds | None = None) -> Result[Out, Err, None]:
        """Reads what is left of both outputs, waits, and gives a `Result` as `run` does.

        As `procwright.Child.result`, which closes stdin; after a cancellation it may be called
        again.
        """
        child = self._child
        child._refuse_unread()
        if child._result is None:
            await self._communicate_all(None, timeout)
        result: Result[Any, Any, None] = child._finish()
        child._raise_stopped(result)
        return result

    def check_returncode(self) -> None:
        """Raises `CalledProcessError` unless it has ended with code 0, or one of its `ok_codes`.

        As `procwright.Child.check_returncode`, but for afterwards, as behind `await child.wait()`
        or the block: it does not wait, is not awaited, and raises InvalidValue while the program is
        alive. Reads nothing, so that another task may read the outputs.
        """
        self._child._check_ended()

    if TYPE_CHECKING:

        @overload
        async def wait_for(
            self: Child[bytes | None, bytes | None, Any, Any],
            pattern: bytes | re.Pattern[bytes],
            timeout: Seconds | None = None,
            *,
            stream: Literal["stdout", "stderr"] | None = None,
        ) -> re.Match[bytes]: ...
        @overload
        async def wait_for(
            self: Child[str | None, str | None, Any, Any],
            pattern: str | re.Pattern[str],
            timeout: Seconds | None = None,
            *,
            stream: Literal["stdout", "stderr"] | None = None,
        ) -> re.Match[str]: ...

    async def wait_for(
        self,
        pattern: Any,
        timeout: Seconds | None = None,
        *,
        stream: Literal["stdout", "stderr"] | None = None,
    ) -> re.Match[Any]:
        """Reads lines until one has a match for `pattern`, and returns the match.

        As `procwright.Child.wait_for`: raises `MatchTimeout` and `EndedBeforeMatch`. Lines that
        have no match are consumed, also if it is cancelled, and `before` of the child has them.
        """
        child = self._child
        child._raise_failure()
        with OF_ANYIO, ExitStack() as held:
            searched = child._searched(stream)
            for one in (self.stdout, self.stderr):
                if one is not None and one._stream in searched:
                    held.enter_context(one._guard)
            await checkpoint()
            steps = searching(child, searched, child._decoding, pattern, timeout)
            try:
                return await self._search(steps)
            finally:
                steps.close()
                self.before = child.before

    async def _search(
        self, steps: Generator[Sleep | EndWait | Look, Any, re.Match[Any]]
    ) -> re.Match[Any]:
        answer: Any = None
        try:
            while True:
                step = steps.send(answer)
                if isinstance(step, Sleep):
                    answer = await first(step.members, step.seconds)
                    continue
                if isinstance(step, Look):
                    answer = await in_thread("procwright-look", step.look)
                    continue
                try:
                    answer = await self.wait(step.seconds)
                except WaitTimeout:
                    answer = None
        except StopIteration as over:
            match: re.Match[Any] = over.value
            return match

    async def waiting_for(self) -> Waiting:
        """What it waits for: `procwright.Child.waiting_for`, on a thread of its own."""
        return await in_thread("procwright-look", self._child.waiting_for)

    async def explain(self) -> Diagnosis:
        """Why it does not end: `procwright.Child.explain`, on a thread of its own."""
        return await in_thread("procwright-look", self._child.explain)

    def send_signal(self, sig: int | str) -> None:
        """Sends it a signal, by number or name. Nothing if it has ended."""
        self._child.send_signal(sig)

    def terminate(self) -> None:
        """Sends SIGTERM. Nothing if it has ended."""
        self._child.terminate()

    def kill(self) -> None:
        """Sends SIGKILL. Nothing if it has ended."""
        self._child.kill()

    def resize(self, rows: int, columns: int) -> None:
        """Says how large its terminal is, of a child that was spawned with `pty`."""
        self._child.resize(rows, columns)

    async def stop(self, stop: _core.Stop | str | Signals | None = None) -> list[Survivor]:
        """Ends it as `stop` or its own says, with its descendants by default, and reaps it.

        Gives back the processes that could not be ended. Takes the grace and 2 s at most, on a
        thread of its own; a cancellation comes when that is over.
        """
        policy = None if stop is None else as_stop(stop)
        self._child._was_stopped = True
        survivors = await in_thread("procwright-stop", lambda: self._core.stop(policy))
        return [Survivor(*survivor) for survivor in survivors]

    async def receiver(self) -> Receiver:
        """The queue to which it sends, if it was spawned with `channel="from_child"`. Always the
        same; `async for` iterates over it."""
        await checkpoint()
        if self._receiver is None:
            self._receiver = Receiver(self._child._take_receiver())
            self._receiver._ask = asking(ref(self))
        return self._receiver

    async def sender(self, timeout: Seconds | None = None) -> Sender:
        """Sends to it, if it was spawned with `channel="to_child"`. Always the same.

        Waits until the child has made its `queue.Receiver.of_parent()`, on a thread. Raises as
        `procwright.Child.sender`.
        """
        from ._queue_errors import NoChannel

        child = self._child
        core = self._core
        deadline = Deadline(timeout)
        while child._sender is None:
            if self._sending is None:
                # Neither of the core's steps can be taken back, so those that call this after a
                # cancellation share one. It has the core alone: nobody else keeps the child.
                self._sending = ThreadCall("procwright-sender", lambda: core.sender(None))
            sending = self._sending
            if not sending.over.cancelled:
                left = deadline.left()
                if left == 0:
                    from ._queue_errors import _no_room_in_time

                    raise _no_room_in_time("the child has made no receiver within the time")
                await first([sending.over], left)
            elif self._sending is sending:
                self._sending = None
                try:
                    child._sender = sending.value()
                except NoChannel as error:
                    found = await self._in_place_of(error, Patience(), deadline.left())
                    if found is error:
                        raise
                    raise found from found.__cause__
                child._leave()
        if self._sender is None:
            self._sender = Sender(child._sender)
            self._sender._ask = asking(ref(self))
        return self._sender

    async def _in_place_of(
        self, error: BaseException, patience: Patience, left: float | None
    ) -> BaseException:
        """The exception to raise for `error`, as that of `procwright.Child`."""
        return await in_place_of(self._child, self._until_ended, error, patience, left)

    async def _why_stopped(self, error: BaseException) -> BaseException | None:
        """What it was stopped for, None if it was not. A stop that goes on is waited for."""
        if self._core.is_ours() and self._core.is_stopping():
            await has_waited(self._until_ended, None)
        return reason_of_end(self._child, error)

    def monitor(self) -> LivenessMonitor:
        """A monitor of its process: whether it is alive, for one load from memory."""
        return LivenessMonitor(self._child.monitor())

    @property
    def process(self) -> Process:
        """The process, for all that is not the child's alone. As that of `procwright.Child`."""
        process = self._process
        if process is None:
            process = self._process = Process._from_handle(self._core.process())
        return process

    @property
    def _handle(self) -> _core.ProcessHandle:
        return self._child._handle

    def readiness_fd(self) -> int:
        """A descriptor that is readable once it has ended. It stays this object's."""
        return self._child.readiness_fd()

    async def aclose(self) -> None:
        """Closes its streams, so that a program that goes on writing gets SIGPIPE, and waits for
        its end as leaving the block does, which leaves the outputs open. Raises as that, and stops
        the program where it does or is cancelled."""
        for stream in (self.stdout, self.stderr, self.merged):
            if stream is not None:
                # Without a checkpoint, at which a scope that is cancelled already would end this.
                stream.close()
        await self.__aexit__(None, None, None)

    def __await__(self) -> Generator[Any, Any, Self]:
        """Itself: `await aio.spawn(...)` is what `aio.spawn(...)` is."""
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
        if not self._core.is_ours() or child._keeper is None:
            # A fork has no part in it, and who is meant to live on is left alone.
            return
        if kind is not None:
            if not issubclass(kind, GeneratorExit):
                await self.stop()
                raise_reason(child, error)
            return
        if child.stdin is not None:
            child.stdin.close()
        if child._sender is not None:
            child._sender.close()
        self._core.close_sender()
        try:
            await self._wait_after_block()
            for caller in child._callers:
                await _finished(caller, Deadline(None))
            child._raise_failure()
        except GeneratorExit:
            # Nothing can be awaited any more. Whoever drops the child has it stopped.
            raise
        except BaseException:
            await self.stop()
            raise

    async def _wait_after_block(self) -> None:
        """Waits, and warns if that is for a program whose reader has left off."""
        left_off = LeftOff(self._child, self._child._types_end())
        while left_off.looks:
            if await self._until_ended(Deadline(left_off.look_after_s)) is not None:
                break
            if left_off.type_end is None:
                left_off.look()
            else:
                await in_thread("procwright-look", left_off.look)
        # As in Child: a program in its middle is not ended by what a callback has raised.
        await self._wait(None)
        self._child._raise_failure()
        if not self._child._has_told_stop:
            self._child._raise_if_stopped()

    if not TYPE_CHECKING:

        def __iter__(self) -> NoReturn:
            raise TypeError(_NOT_ITERABLE)

        def __aiter__(self) -> NoReturn:
            raise TypeError(_NOT_ITERABLE)

        def __enter__(self) -> NoReturn:
            raise TypeError("the block of an aio.Child is asynchronous: async with aio.spawn(...)")

        def __exit__(self, *_: object) -> None: ...

        def __getattr__(self, name: str) -> NoReturn:
            from ._missing import AIO_CHILD, missing

            raise missing(self, name, AIO_CHILD, dir(Result), "(await child.result())")

        __setattr__ = settable("AIO_CHILD", "before", "stdin", "stdout", "stderr", "merged")

    def __repr__(self) -> str:
        return repr(self._child).replace("procwright.Child", "procwright.aio.Child", 1)


_NOT_ITERABLE = (
    "an aio.Child is not iterable: async for line in child.stdout, or with merged=True over "
    "child.merged, which has both"
)


async def talked(
    core: _core.Child, talk: _core.Communication, deadline: Deadline, is_begun: bool = False
) -> bool:
    """Goes on until all is written and read and the child has ended. False if the time comes
    first. May be called again, if it has begun without a checkpoint: it ends in time however
    often it is cancelled and called again."""
    if not is_begun:
        await checkpoint()
    steps = _core.Talk(core, talk)
    try:
        while True:
            is_over, seconds = steps.step()
            if is_over:
                return True
            left = deadline.left()
            if left == 0:
                return False
            if seconds == 0:
                await checkpoint()
            else:
                await readable(steps.fileno(), sooner(seconds, left))
    finally:
        steps.close()


async def _finished(caller: LineCaller, deadline: Deadline) -> bool:
    """Waits until all lines were called back with. False if the time comes first."""
    steps = caller.finishing(deadline)
    try:
        while True:
            await first([caller.over()], next(steps))
    except StopIteration as over:
        is_over: bool = over.value
        return is_over


def _members(
    core: _core.Child, wait: _core.ChildWait, left: float | None
) -> tuple[list[_core._Member], float | None]:
    """What ends a sleep of a wait for the child, and the seconds until then at the latest."""
    is_for_process, fds, seconds = wait.sleep()
    members: list[_core._Member] = [core.handle()] if is_for_process else []
    return [*members, *fds], sooner(seconds, left)
