"""`Waiting` and `Diagnosis`: what a program waits for, and why it does not end."""

from __future__ import annotations

from ._hinted import hinted
from ._holder import Holder
from ._record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from ._types import RawWaiting


@hinted
class Waiting(Record):
    """What a program waits for; `str()` says it in words.

    `kind` is "input" (what is typed at its terminal, or comes on its stdin), "output" (room for
    what it writes), "child" (one that goes on), "lock" (of a file, or in memory: another thread,
    for the most part), "timer" (with `terminal` it may be input as well: it looks there with a
    time limit), "peer" (somebody else, over a network, a pipe or a socket) or "nothing" (nothing
    that is known: it runs, is stopped, has ended, or may not be looked at).

    Where the program waits for another of its tree, this is what that one waits for: `pid` and
    `name` are those of the process that waits, `fd` is the descriptor by which it does, None if
    it is none, `terminal` says whether that is its terminal, and `holders` are those who have
    the other end of a pipe or socket.
    """

    __slots__ = ("fd", "holders", "kind", "name", "pid", "terminal", "text")

    def __init__(
        self,
        kind: Literal["input", "output", "child", "lock", "timer", "peer", "nothing"],
        pid: int,
        name: str,
        fd: int | None,
        terminal: bool,
        holders: list[tuple[int, str, tuple[int, int | None] | None]],
        text: str,
    ) -> None:
        self.kind = kind
        self.pid = pid
        self.name = name
        self.fd = fd
        self.terminal = terminal
        self.holders = [Holder(*holder) for holder in holders]
        self.text = text

    def __str__(self) -> str:
        return self.text


@hinted
class Diagnosis(Record):
    """Why a program does not end; `str()` says it as `procwright doctor` does.

    `verdict` is "proven" (a deadlock, for certain), "possible" (what was not seen decides),
    "stopped" (by a signal), "slow" (a reader holds it up), "input" (it waits at its
    terminal for a person), "busy" or "healthy", as one that waits on its stdin for another program
    is: `waiting` says that. `sentence` says it in one sentence. `why` is why it does not go on, in
    one sentence as well, or None if it is well, as far as can be seen. `waiting` is what it
    waits for, None if that was not seen.
    """

    __slots__ = ("_json", "sentence", "text", "verdict", "waiting", "why")

    def __init__(
        self,
        verdict: Literal["proven", "possible", "stopped", "slow", "input", "busy", "healthy"],
        sentence: str,
        why: str | None,
        waiting: RawWaiting | None,
        text: str,
        _json: str,
    ) -> None:
        self.verdict = verdict
        self.sentence = sentence
        self.why = why
        self.waiting = None if waiting is None else Waiting(*waiting)
        self.text = text
        self._json = _json

    def _parts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__ if name != "_json"}

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """All of it, with who waits for whom, as `docs/reference/doctor.schema.json` says."""
        import json

        read: dict[str, Any] = json.loads(self._json)
        return read
