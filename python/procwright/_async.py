"""Sleeping on whatever event loop runs: asyncio's or trio's, and imports neither."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from typing import Any

#: Some loops count milliseconds in a C integer. A longer sleep is several.
_LONGEST_S = 86_400.0


async def readable(fd: int, seconds: float | None) -> None:
    """Returns once `fd` is readable or about so many seconds have passed.

    No trace of `fd` is left with the loop, however it ends. Nothing else may watch
    that descriptor: a loop of asyncio's has room for one.
    """
    if seconds is not None:
        seconds = min(seconds, _LONGEST_S)
    trio = _running_trio()
    if trio is not None:
        with trio.move_on_after(float("inf") if seconds is None else seconds):
            await trio.lowlevel.wait_readable(fd)
        return
    loop = _running_asyncio()
    woken: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, _wake, woken)
    timer = None if seconds is None else loop.call_later(seconds, _wake, woken)
    try:
        await woken
    finally:
        loop.remove_reader(fd)
        if timer is not None:
            timer.cancel()


async def checkpoint() -> None:
    """Lets others run where that is the custom: on trio every await does."""
    trio = _running_trio()
    if trio is not None:
        await trio.lowlevel.checkpoint()


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)


def _running_trio() -> Any:
    # A program that runs on trio has imported it.
    trio = sys.modules.get("trio")
    if trio is None:
        return None
    try:
        trio.lowlevel.current_task()
    except (AttributeError, RuntimeError):
        return None
    return trio


def _running_asyncio() -> asyncio.AbstractEventLoop:
    module: Any = sys.modules.get("asyncio")
    try:
        if module is not None:
            loop: asyncio.AbstractEventLoop = module.get_running_loop()
            return loop
    except RuntimeError:
        pass
    raise RuntimeError("no event loop runs here that is known: asyncio's or trio's")
