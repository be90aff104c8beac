"""What becomes of a child that nobody keeps, and of a pipeline."""

from __future__ import annotations

import atexit
import sys
from weakref import ref

from . import _core
from ._options import quoted, quoted_pipeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from signal import Signals
    from typing import Any, TypeAlias

    from ._types import Args

    #: What was started.
    _Started: TypeAlias = _core.Child | _core.PipelineChild

#: The keepers that there are, for the end of the interpreter: by their `id`, since a dictionary
#: is changed and listed by one step each, whatever other threads do.
_keepers: dict[int, ref[Keeper]] = {}
#: The children that are being stopped, by their `id`, each with how: the thread that does it ends
#: with the interpreter, which therefore waits for them.
_stopping: dict[int, tuple[_Started, _core.Stop]] = {}
#: Whether the interpreter ends, and has stopped all that there were.
_ends = False


#: Seconds after which the core looks; before that a thread for it would be for nothing.
_WORTH_A_LOOK_S = 1.0


class Keeper:
    """Knows that somebody has a child: the `Child` and each of its streams refer to it, and it
    to none of them.

    So it goes, without a garbage collection, when the last of them goes. A program that runs on
    then has nobody who reads it or waits for it, and would be killed by SIGPIPE at its next
    word, whatever it is about. It is warned of, and stopped as its `stop` says.
    """

    __slots__ = ("__weakref__", "args", "_line", "_policy", "_started", "is_played")

    #: The child, none before its start and once the program is left to itself.
    _started: list[_Started]

    def __init__(
        self, args: Args, policy: _core.Stop | str | Signals | None, line: tuple[str, int, str]
    ) -> None:
        # First, since a handler of a signal may end this anywhere, and `__del__` comes then, too.
        self._started = []
        #: Whether a fake plays the program.
        self.is_played = False
        #: What was started, as it was given.
        self.args = args
        # A signal alone has the grace and the scope of all.
        self._policy = policy if isinstance(policy, _core.Stop) else _core.Stop()
        self._line = line
        _let_go_of_ended()
        _keepers[id(self)] = ref(self)

    def start(self, options: dict[str, Any]) -> _core.Child:
        """Starts the program, which is kept from its first moment on."""
        # No handler of a signal runs between the start and the list: both are in C. One that
        # raises behind `core = _core.spawn(options)` comes before the assignment.
        self._started.extend(map(_core.spawn, (options,)))
        core: Any = self._started[0]
        started: _core.Child = core
        return started

    def start_pipeline(self, options: dict[str, Any]) -> _core.PipelineChild:
        """Starts programs that are joined by pipes; `args` of the keeper are those of each."""
        self._started.extend(map(_core.spawn_pipeline, (options,)))
        core: Any = self._started[0]
        started: _core.PipelineChild = core
        return started

    def look(self, waited: float | None) -> Callable[[], str] | None:
        """What gives the lines that say why the program has not gone on for so many seconds, or
        what it does, and looks through all processes; None if nobody is to pay for that."""
        # The process of a fake is not the program that it plays.
        if waited is None or waited < _WORTH_A_LOOK_S or not self._started or self.is_played:
            return None
        core, long = self._started[0], waited
        # Not the keeper itself: the call may be left on a thread.
        return lambda: core.explain_silence(long)

    def release(self) -> None:
        """Leaves the program to itself from now on."""
        self._started.clear()

    def stop(self) -> _Started | None:
        """Has the program stopped, if it runs: that child."""
        started: list[_Started] = getattr(self, "_started", [])
        _let_go_of_ended()
        if not started:
            return None
        core = started[0]
        is_stopped = core.stop_in_background()
        if is_stopped:
            _stopping[id(core)] = core, self._policy
        # Last: a handler of a signal may raise anywhere before, and then this is called anew.
        started.clear()
        return core if is_stopped else None

    def tell(self, core: _Started) -> None:
        """Warns of the program, which is being stopped."""
        try:
            import warnings
        except ImportError:
            # Nothing can be imported when the last modules go.
            return

        filename, number, module = self._line
        if isinstance(core, _core.PipelineChild):
            stages: Any = self.args
            command = quoted_pipeline(stages)
            pids = ", ".join(str(pid) for pid in core.pids())
            what, holder, or_detached = f"pipeline {command} (pids {pids})", "PipelineChild", ""
        else:
            # The process of a fake is not the program that it plays.
            line = quoted(self.args) if self.is_played else core.command_line()
            what, holder = f"child {line} (pid {core.handle().pid})", "Child"
            or_detached = "; or spawn with detach=True what is to live on"
        text = (
            f"nobody keeps the {what}, which still ran: it is stopped. Keep the {holder}, or one "
            "of its streams, for as long as it is to run; start it in a `with` block"
            f"{or_detached}"
        )
        warnings.warn_explicit(text, ResourceWarning, filename, number, module)

    def __del__(self) -> None:
        try:
            self._leave_program()
        except BaseException:
            # Python tells of what a handler of a signal has raised here, and goes on: what that
            # has kept from being done is done now.
            self._leave_program()
            raise

    def _leave_program(self) -> None:
        """Stops the program and tells of it; what has been done is not done again."""
        # The program is stopped, whatever becomes of the warning.
        core = self.stop()
        _keepers.pop(id(self), None)
        if core is None:
            return
        try:
            self.tell(core)
        finally:
            if _ends or sys.is_finalizing():
                # Nobody comes after this who could wait.
                _wait_for(core, self._policy)


def _let_go_of_ended() -> None:
    """Forgets the children that were stopped and have ended."""
    for key, (core, _) in list(_stopping.items()):
        if not core.is_alive():
            _stopping.pop(key, None)


def _wait_for(core: _Started, policy: _core.Stop) -> None:
    """Waits until the stop that is under way is over. Handlers of signals run meanwhile."""
    try:
        # The stop's own wait for the other one hears no signal. Behind the grace comes SIGKILL.
        core.wait(policy.grace + _KILLED_WITHIN_S)
    except Exception as error:
        # Such as Stalled: the stop goes on.
        del error
    _outlast(core)


def _outlast(core: _Started) -> None:
    """Returns when the stop that is under way is over."""
    if isinstance(core, _core.PipelineChild):
        core.stop(False)
    else:
        core.stop(None)


#: Seconds in which a program that is sent SIGKILL has ended, if it can.
_KILLED_WITHIN_S = 2.0


def _kill_all(children: list[tuple[_Started, _core.Stop]]) -> None:
    """Ends without any grace what is being stopped."""
    for core, policy in children:
        if isinstance(core, _core.PipelineChild):
            core.begin_stop(True)
            continue
        try:
            scope: Any = policy.scope
            core.handle().stop(_core.Stop("KILL", 0, scope))
        except Exception as error:
            # Such as one of a process that has ended.
            del error
    for core, _ in children:
        _outlast(core)


def line_of_caller() -> tuple[str, int, str]:
    """File and number of the line outside of this package that has called, and its module."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        frame = frame.f_back
    name = frame.f_globals.get("__name__", "<unknown>")
    return frame.f_code.co_filename, frame.f_lineno, name


@atexit.register
def _stop_all() -> None:
    """At the end of the interpreter nobody is left who could keep a child."""
    global _ends
    _ends = True
    keepers = [keeper for one in list(_keepers.values()) if (keeper := one()) is not None]
    try:
        # All are stopped before any is told of, and told of before any is waited for.
        stopped = [(keeper, core) for keeper in keepers if (core := keeper.stop()) is not None]
        for keeper, core in stopped:
            _Telling(keeper, core)
        for core, policy in _ours():
            _wait_for(core, policy)
    except BaseException:
        # Ctrl-C: who asks for the end has waited for long enough.
        for keeper in keepers:
            keeper.stop()
        _kill_all(_ours())
        raise


def _ours() -> list[tuple[_Started, _core.Stop]]:
    """The children that are being stopped, but in a fork those of its parent."""
    return [one for one in list(_stopping.values()) if one[0].is_ours()]


class _Telling:
    """Warns of a child when it goes. A filter may make errors of warnings, and Python tells of one
    of a finaliser (`sys.unraisablehook`) and goes on."""

    def __init__(self, keeper: Keeper, core: _Started) -> None:
        self._of = keeper, core

    def __del__(self) -> None:
        keeper, core = self._of
        keeper.tell(core)
