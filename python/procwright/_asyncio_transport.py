"""Transports of asyncio's for a child and its pipes: what `asyncio_subprocess` has under asyncio's
own `Process`, `StreamReader` and `StreamWriter`."""

from __future__ import annotations

import asyncio
import signal
import warnings
from collections import deque

from . import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._child import Child
    from ._stream import Reader, Writer
    from ._types import Data

#: Bytes that are read at once, as asyncio's own pipes do.
_PIECE = 256 * 1024
#: What asyncio says of a child whose status nobody can tell.
_UNKNOWN = 255


class ChildTransport(asyncio.SubprocessTransport):
    """A child on an event loop of asyncio's.

    Its end is waited for by a descriptor of the core's: there is no child watcher, and no thread.
    The loop keeps it until then, whoever drops it.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        protocol: asyncio.SubprocessProtocol,
        child: Child[Any, Any, Any, Any],
    ) -> None:
        super().__init__({"subprocess": child})
        self._loop = loop
        self._protocol: asyncio.SubprocessProtocol | None = protocol
        self._child = child
        self._pid = child.pid
        self._returncode: int | None = None
        self._closed = False
        self._waiters: list[asyncio.Future[int]] = []
        self._pipes: dict[int, _Pipe] = {}
        self._ended = _core.WaitSet(None)
        try:
            # A process that has ended, and was reaped by others, is a member that has come.
            self._ended.add(0, child._core.handle(), "exited")
            loop.add_reader(self._ended.fileno(), self._on_end)
        except BaseException:
            self._ended.close()
            raise
        if child.stdin is not None:
            self._pipes[0] = _WritePipe(self, 0, child.stdin)
        for fd, stream in ((1, child.stdout), (2, child.stderr)):
            if stream is not None:
                self._pipes[fd] = _ReadPipe(self, fd, stream)

    def begin(self) -> None:
        """Tells the protocol of all this, and begins to read."""
        assert self._protocol is not None
        self._protocol.connection_made(self)
        for pipe in self._pipes.values():
            pipe.begin()

    def __repr__(self) -> str:
        words = ["closed"] if self._closed else []
        words.append(f"pid={self._pid}")
        has_ended = self._returncode is not None
        words.append(f"returncode={self._returncode}" if has_ended else "running")
        return f"<{type(self).__name__} {' '.join(words)}>"

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Has this protocol told from now on."""
        self._protocol = protocol  # type: ignore[assignment]

    def get_protocol(self) -> asyncio.BaseProtocol:
        """The protocol that is told."""
        return self._protocol  # type: ignore[return-value]

    def get_pid(self) -> int:
        """The number of the process."""
        return self._pid

    def get_returncode(self) -> int | None:
        """How it ended, None until the loop was told."""
        return self._returncode

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport | None:
        """The transport of its stdin, stdout or stderr, None unless that is a pipe."""
        return self._pipes.get(fd)

    def send_signal(self, signal: int) -> None:
        """Sends it a signal; ProcessLookupError once the loop was told of its end."""
        if self._protocol is None or self._returncode is not None:
            raise ProcessLookupError
        self._child.send_signal(signal)

    def terminate(self) -> None:
        """Sends SIGTERM, as `send_signal`."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL, as `send_signal`."""
        self.send_signal(signal.SIGKILL)

    def is_closing(self) -> bool:
        """True once it was closed."""
        return self._closed

    def close(self) -> None:
        """Closes its pipes, and kills the program if it runs."""
        if self._closed:
            return
        self._closed = True
        for pipe in self._pipes.values():
            pipe.close()
        child = self._child
        if self._returncode is None and child.poll() is None:
            child.kill()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            warnings.warn(f"unclosed transport {self!r}", ResourceWarning, 2, source=self)
            self.close()

    async def _wait(self) -> int:
        """Waits until it has ended: what asyncio's `Process` calls."""
        if self._returncode is not None:
            return self._returncode
        waiter: asyncio.Future[int] = self._loop.create_future()
        self._waiters.append(waiter)
        return await waiter

    def _on_end(self) -> None:
        if not self._ended.poll(0, []):
            return
        self._loop.remove_reader(self._ended.fileno())
        self._ended.close()
        returncode = self._child.returncode
        self._returncode = _UNKNOWN if returncode is None else returncode
        for waiter in self._waiters:
            if not waiter.cancelled():
                waiter.set_result(self._returncode)
        self._waiters.clear()
        if self._protocol is not None:
            self._protocol.process_exited()
        self._finish_if_over()

    def _finish_if_over(self) -> None:
        if self._returncode is not None and all(pipe.is_over for pipe in self._pipes.values()):
            self._loop.call_soon(self._finish)

    def _finish(self) -> None:
        protocol, self._protocol = self._protocol, None
        if protocol is not None:
            protocol.connection_lost(None)


class _Pipe(asyncio.BaseTransport):
    """What both kinds of pipes have in common."""

    def __init__(self, transport: ChildTransport, number: int, stream: Any) -> None:
        super().__init__({"pipe": stream})
        self._transport = transport
        self._loop = transport._loop
        self._number = number
        self._stream = stream
        #: The descriptor that the loop watches.
        self._watched: int | None = None
        #: Whether it is being closed, has been, and the protocol was told of its end.
        self._closing = False
        self._has_ended = False
        self.is_over = False

    def begin(self) -> None:
        """Called once the protocol knows of it."""

    def __repr__(self) -> str:
        state = "closed" if self.is_over else "closing" if self._closing else "open"
        return f"<{type(self).__name__} {self._stream.label} {state}>"

    def is_closing(self) -> bool:
        return self._closing

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        # The protocol of the child is told of each pipe.
        self._transport.set_protocol(protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._transport.get_protocol()

    def close(self) -> None:
        raise NotImplementedError

    def _watch(self, call: Any) -> None:
        if self._watched is None:
            self._watched = self._stream.readiness_fd()
            self._loop.add_reader(self._watched, call)

    def _unwatch(self) -> None:
        watched, self._watched = self._watched, None
        if watched is not None and not self._loop.is_closed():
            self._loop.remove_reader(watched)

    def _end(self, error: Exception | None) -> None:
        """Closes the stream, and has the protocol told."""
        self._closing = True
        if self._has_ended:
            return
        self._has_ended = True
        self._unwatch()
        self._stream.close()
        if self._loop.is_closed():
            return
        self._loop.call_soon(self._tell_end, error)

    def _tell_end(self, error: Exception | None) -> None:
        self.is_over = True
        protocol = self._transport._protocol
        if protocol is not None:
            protocol.pipe_connection_lost(self._number, error)
        self._transport._finish_if_over()


class _ReadPipe(_Pipe, asyncio.ReadTransport):
    """A child's stdout or stderr."""

    _stream: Reader

    def __init__(self, transport: ChildTransport, number: int, stream: Reader) -> None:
        super().__init__(transport, number, stream)
        self._is_paused = False

    def begin(self) -> None:
        self._watch(self._on_readable)

    def is_reading(self) -> bool:
        return not (self._is_paused or self._closing)

    def pause_reading(self) -> None:
        if self.is_reading():
            self._is_paused = True
            self._unwatch()

    def resume_reading(self) -> None:
        if self._is_paused and not self._closing:
            self._is_paused = False
            self._watch(self._on_readable)

    def close(self) -> None:
        self._end(None)

    def _on_readable(self) -> None:
        try:
            data = self._stream._read_now(_PIECE)
        except OSError as error:
            self._end(error)
            return
        if data is None:
            return
        if not data:
            self._end(None)
            return
        protocol = self._transport._protocol
        if protocol is not None:
            protocol.pipe_data_received(self._number, data)


#: Bytes that wait to be written before a writer is told to pause, and to go on: asyncio's.
_HIGH_WATER = 64 * 1024
_LOW_WATER = _HIGH_WATER // 4


class _WritePipe(_Pipe, asyncio.WriteTransport):
    """A child's stdin."""

    _stream: Writer

    def __init__(self, transport: ChildTransport, number: int, stream: Writer) -> None:
        super().__init__(transport, number, stream)
        #: What waits to be written, how far the first has gone, and the size of it all.
        self._pieces: deque[bytes] = deque()
        self._sent = 0
        self._size = 0
        self._high, self._low = _HIGH_WATER, _LOW_WATER
        self._is_paused = False
        #: The end of the pipe, while the loop watches for the end of those who read it.
        self._guarded: int | None = None

    def begin(self) -> None:
        # Who writes no more would never hear of their end, and `connection_lost` not come. A loop
        # tells of an error whatever is asked for, and the writing end of a pipe has nothing else.
        guarded = self._stream._pipe()
        self._loop.add_reader(guarded, self._on_no_reader)
        self._guarded = guarded

    def _on_no_reader(self) -> None:
        error = BrokenPipeError() if self._pieces else None
        self._drop()
        self._end(error)

    def _end(self, error: Exception | None) -> None:
        guarded, self._guarded = self._guarded, None
        if guarded is not None and not self._loop.is_closed():
            self._loop.remove_reader(guarded)
        super()._end(error)

    def write(self, data: Data) -> None:
        if not isinstance(data, (bytes, bytearray, memoryview)):
            kind = type(data).__name__
            raise TypeError(f"data argument must be a bytes-like object, not {kind!r}")
        if self._closing or not data:
            return
        # A copy, since the caller may change it before it is written.
        piece = bytes(data)
        self._pieces.append(piece)
        self._size += len(piece)
        if self._watched is None:
            self._write_on()
        if self._size > self._high and not self._is_paused and not self._closing:
            self._is_paused = True
            self._tell_protocol("pause_writing")

    def _write_on(self) -> None:
        """Writes what there is room for, and has the loop tell when there is more."""
        try:
            while self._pieces:
                piece = self._pieces[0]
                taken = self._stream._write_now(piece, self._sent)
                if not taken:
                    break
                self._sent += taken
                self._size -= taken
                if self._sent == len(piece):
                    self._pieces.popleft()
                    self._sent = 0
        except OSError as error:
            self._drop()
            self._end(error)
            return
        if self._pieces:
            self._watch(self._write_on)
        else:
            self._unwatch()
        if self._is_paused and self._size <= self._low:
            self._is_paused = False
            self._tell_protocol("resume_writing")
        if self._closing and not self._pieces:
            self._end(None)

    def _tell_protocol(self, name: str) -> None:
        protocol = self._transport._protocol
        if protocol is not None:
            getattr(protocol, name)()

    def _drop(self) -> None:
        self._pieces.clear()
        self._size = self._sent = 0

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        """The child comes to the end of its input, behind what waits to be written."""
        if self._closing:
            return
        self._closing = True
        if not self._pieces:
            self._end(None)

    def close(self) -> None:
        self.write_eof()

    def abort(self) -> None:
        """Closes it, and drops what waits to be written."""
        self._drop()
        self._end(None)

    def get_write_buffer_size(self) -> int:
        return self._size

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = 4 * low if low is not None else _HIGH_WATER
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high!r}) must be >= low ({low!r}) must be >= 0")
        self._high, self._low = high, low
