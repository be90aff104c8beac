"""Methods that say what to type in the place of parameters of others."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, ParamSpec, TypeVar

    _P = ParamSpec("_P")
    _T = TypeVar("_T")

#: The flag of the code of `async def`.
_IS_AWAITED = 0x80


def hinted(hints: Mapping[str, str]) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Has a method refuse what it has not with what to type, and not with a bare TypeError."""

    def decorated(method: Any) -> Any:
        code = method.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

        def check(options: Mapping[str, object]) -> None:
            for name, value in options.items():
                if name not in names:
                    from ._unknown import unknown_of_method

                    raise unknown_of_method(method.__name__, name, value, names[1:], hints)

        async def awaited(self: Any, *args: Any, **options: Any) -> Any:
            check(options)
            return await method(self, *args, **options)

        def called(self: Any, *args: Any, **options: Any) -> Any:
            check(options)
            return method(self, *args, **options)

        call: Any = awaited if code.co_flags & _IS_AWAITED else called
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(call, name, getattr(method, name))
        # Its signature, for help() and editors.
        call.__wrapped__ = method
        return call

    return decorated


_GRACE = 'pass Stop("TERM", grace=seconds): SIGKILL follows after that'
#: Of `stop` of a child or process.
STOP = {
    "force": "leave it out: SIGKILL follows after the grace of the Stop; or stop('KILL')",
    "grace": _GRACE,
    "kill_after": _GRACE,
    "signal": "it is the first argument: stop('INT'), stop(Stop('INT', grace=2))",
    "sig": "it is the first argument: stop('INT'), stop(Stop('INT', grace=2))",
    "timeout": _GRACE + ", so that it takes that and little more",
}
#: Of `terminate` and `kill`.
TERMINATE = {
    "force": "use stop(), which sends SIGTERM, and SIGKILL after a grace",
    "grace": "use stop(Stop(grace=seconds)), which sends SIGKILL after that",
    "timeout": "use stop(Stop(grace=seconds)), which sends SIGKILL after that, and waits",
}
