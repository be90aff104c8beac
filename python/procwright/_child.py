"""`Child`: a program that was started, and its streams."""

from __future__ import annotations

from . import _core
from ._process import Process
from ._result import Status, Survivor
from ._stream import Reader, Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, NoReturn

    from ._text import TextReader, TextWriter


class Child:
    """A program that was started: what `spawn` gives.

    Dropping it neither blocks nor kills, and leaves no zombie: the program goes on,
    its streams are closed, and it is reaped in the background. As a context manager:
    leaving normally closes `stdin` and waits for the program, leaving by an exception
    stops it.
    """

    def __init__(
        self,
        args: Any,
        core: _core.Child,
        decoding: tuple[str, str] | None,
        stop: _core.Stop | None,
    ) -> None:
        #: What `spawn` was given.
        self.args = args
        self._core = core
        self._decoding = decoding
        self._stop = stop
        #: The process, for all that is not the child's alone.
        self.process = Process._of(core.process())
        #: Its number. It is its own until the child has been waited for.
        self.pid = self.process.pid
        has_stdin, has_stdout, has_stderr = core.streams()
        #: Where to write what it reads, None unless that is a pipe.
        self.stdin: Any = None
        #: Where to read what it writes, None unless that is a pipe.
        self.stdout: Any = None
        #: Where to read its errors, None unless that is a pipe.
        self.stderr: Any = None
        if has_stdin:
            self.stdin = self._text_writer(Writer(core))
        if has_stdout:
            self.stdout = self._text_reader(Reader(core, 1))
        if has_stderr:
            self.stderr = self._text_reader(Reader(core, 2))

    def _text_writer(self, binary: Writer) -> Writer | TextWriter:
        if self._decoding is None:
            return binary
        from ._text import TextWriter

        return TextWriter(binary, *self._decoding)

    def _text_reader(self, binary: Reader) -> Reader | TextReader:
        if self._decoding is None:
            return binary
        from ._text import _reader

        return _reader(binary, *self._decoding)

    @property
    def status(self) -> Status | None:
        """How it ended, None while it is alive. Does not wait."""
        parts = self._core.poll()
        return None if parts is None else Status(*parts)

    @property
    def returncode(self) -> int | None:
        """The exit code, -N after signal N, None while it is alive or if unknown."""
        status = self.status
        return None if status is None else status.returncode

    def poll(self) -> int | None:
        """As `returncode`."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int | None:
        """Waits until it has ended, and returns the exit code. -N after signal N.

        For the exit alone: what it wrote can be read afterwards. Raises
        `WaitTimeout`, a `subprocess.TimeoutExpired`, if the time comes first.
        """
        if self.status is None:
            self.process.wait(timeout)
        return self.returncode

    def send_signal(self, sig: int | str) -> None:
        """Sends it a signal, by number or name. Nothing if it has ended."""
        if self.status is None:
            try:
                self.process.signal(sig)
            except ProcessLookupError:
                # It ended at this very moment.
                return

    def terminate(self) -> None:
        """Sends SIGTERM. Nothing if it has ended."""
        self.send_signal("TERM")

    def kill(self) -> None:
        """Sends SIGKILL. Nothing if it has ended."""
        self.send_signal("KILL")

    def stop(self) -> list[Survivor]:
        """Ends it as its `Stop` says, with its descendants by default, and reaps it.

        Gives back who could not be ended. Nothing if it has been waited for.
        """
        return [Survivor(*one) for one in self._core.stop()]

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.stop()
            return
        if self.stdin is not None:
            self.stdin.close()
        try:
            self.wait()
        except BaseException:
            self.stop()
            raise

    def readiness_fd(self) -> int:
        """A descriptor that is readable once it has ended. It stays this object's."""
        return self.process.readiness_fd()

    def __repr__(self) -> str:
        status = self.status
        if status is None:
            state = "alive"
        else:
            state = "ended" if status.returncode is None else f"returncode {status.returncode}"
        return f"<procwright.Child {self.args!r}, pid {self.pid}, {state}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Child cannot be pickled: pass the id of its process")
