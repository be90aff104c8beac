"""`procwright.aio` as calls that block, each on an event loop of its own, so that the tests of
`procwright.run`, `spawn` and their like are those of event loops too: `pytest --on-loop=trio`.

A call that waits runs a loop on the thread of its caller until it is over. So nothing of a child
may be bound to a loop, an interrupt meets the loop as a Ctrl-C does, and a thread of a test that
waits sleeps in the kernel, as the tests expect of it.
"""

from __future__ import annotations

import functools
import inspect
import weakref

import anyio
import pytest
from conftest import LOOPS

import procwright
from procwright import aio, queue

#: The files whose tests these are. The others are of what has no loop (options as values, the
#: keeper, forks, stand-ins), of several threads in one stream (test_spawn_close.py), of signals,
#: which a loop has for itself (test_spawn_flows.py, test_wait_signals.py), or have a column or
#: tests of their own for aio: conformance, bad values, habits, queues, liveness.
SHARED = [
    "test_callbacks",
    "test_command",
    "test_explained",
    "test_fan",
    "test_liveness_wait",
    "test_many",
    "test_map",
    "test_map_executor",
    "test_pipeline",
    "test_pty",
    "test_queue_wait",
    "test_run",
    "test_spawn",
    "test_spawn_budget",
    "test_spawn_files",
    "test_spawn_limits",
    "test_spawn_lines",
    "test_spawn_stalled",
    "test_spawn_tee",
    "test_spawn_text",
    "test_spawn_wait_for",
    "test_stop",
    "test_stop_after_look",
    "test_streams",
    "test_timed_reads",
    "test_wait",
    "test_wait_process",
]

A_FILE = "a stream of aio is one of anyio's, and no file"
AN_INTERRUPT = "what a signal handler raises ends the loop: test_aio_cancel.py has Ctrl-C"
#: Tests in them that are not, with the reason.
NOT_SHARED = {
    "test_a_closed_file_refuses_also_what_asks_for_nothing": A_FILE,
    "test_a_cancel_and_a_signal_handler_stop_all": AN_INTERRUPT,
    "test_a_handler_that_raises_ends_all": AN_INTERRUPT,
    "test_a_second_ctrl_c_ends_the_grace": AN_INTERRUPT,
    "test_asyncio_keeps_its_status": "it runs a loop itself",
    "test_ctrl_c_ends_all": AN_INTERRUPT,
    **{
        f"test_every_size_of_read[{overflow}-{size}]": "tens of thousands of loops, one for a read"
        for overflow in ("spill", "block")
        for size in (1, 2, 3, 7)
    },
    "test_fork_while_a_wait_is_under_way": "a fork has no part in its parent's loop",
    "test_it_is_a_file": A_FILE,
    "test_paths_and_descriptors[run]": "it asks whether its parameter is the run that blocks",
    "test_who_is_over_holds_no_descriptor[read]": "a stream of aio keeps that of its readiness",
    "test_what_runs_while_a_line_is_decoded_may_read": "a codec would have to await",
}

#: What the calls of a child, a stream and a map that block are called there.
RENAMED = {("Map", "close"): "aclose"}


def chosen(items):
    """The tests of those that pytest has found which run on event loops as well, and the others.
    What a test cannot have there is skipped with the reason."""
    shared = [item for item in items if item.path.stem in SHARED]
    for item in shared:
        reason = NOT_SHARED.get(item.name) or NOT_SHARED.get(item.name.partition("[")[0])
        if "script" in item.fixturenames:
            reason = "its calls are those of a program of its own"
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
    return shared, [item for item in items if item not in shared]


def replacements(loop):
    """What comes into the place of what, in a test module and in `procwright`."""
    run = Blocks(LOOPS[loop])
    ours = {name: run.call(getattr(aio, name)) for name in ("run", "pipeline", "wait")}
    ours |= {name: run.made(getattr(aio, name)) for name in ("spawn", "map", "as_completed", "cmd")}
    return {name: (getattr(procwright, name), call) for name, call in ours.items()}


class Blocks:
    """Runs what is awaited, and has what comes block as well."""

    def __init__(self, loop):
        self._loop = loop
        #: What stands for each object: the same for the same.
        self._standing = weakref.WeakKeyDictionary()

    def result(self, awaitable):
        async def main():
            return await awaitable

        return self.standing(anyio.run(main, **self._loop))

    def call(self, function):
        """A function that awaits, as one that blocks."""
        return self._calls(function, self.result)

    def made(self, function):
        """A function that awaits nothing, but gives something whose methods do."""
        return self._calls(function, self.standing)

    def _calls(self, function, comes):
        @functools.wraps(function)
        def calls(*args, **options):
            options = {name: given(one) for name, one in options.items()}
            return comes(function(*map(given, args), **options))

        return calls

    def standing(self, value):
        """What stands for a value in a test: itself, unless it has something to await."""
        if type(value) in (list, tuple):
            return type(value)(map(self.standing, value))
        if isinstance(value, procwright.Waited):
            return procwright.Waited(*map(self.standing, value))
        if not isinstance(value, AWAITED):
            return Iterates(value, self) if hasattr(value, "__anext__") else value
        if isinstance(value, (aio.Command, aio.Pipeline)):
            return Said(value, self)
        stands = self._standing.get(value)
        stands = stands and stands()
        if stands is None:
            stands = Standing(value, self)
            self._standing[value] = weakref.ref(stands)
        return stands


AWAITED = tuple(getattr(aio, name) for name in aio.__all__ if isinstance(getattr(aio, name), type))


def given(value):
    """What a call of aio is given for an argument."""
    if isinstance(value, Standing):
        return value._of
    if type(value) in (list, tuple):
        return type(value)(map(given, value))
    return value


def only_with(method, name, call):
    """Skips the test where a method of aio has fewer parameters than the one that blocks."""

    @functools.wraps(method)
    def calls(*args, **options):
        try:
            inspect.signature(method).bind(*args, **options)
        except TypeError as error:
            pytest.skip(f"{name}: {error}")
        return call(*args, **options)

    return calls


class Standing:
    """Stands for something of aio in a test, with calls that block."""

    def __init__(self, of, blocks):
        self._of, self._blocks = of, blocks

    def __getattr__(self, name):
        kind = type(self._of).__name__
        blocks = self._blocks
        blocking = getattr(getattr(procwright, kind, None) or getattr(queue, kind), name, None)
        name = RENAMED.get((kind, name), name)
        if blocking is not None and not hasattr(self._of, name):
            pytest.skip(f"aio.{kind} has no {name}")
        value = getattr(self._of, name)
        if inspect.iscoroutinefunction(value):
            return only_with(value, f"aio.{kind}.{name}", blocks.call(value))
        if inspect.ismethod(value):
            return only_with(value, f"aio.{kind}.{name}", blocks.made(value))
        return blocks.standing(value)

    def __setattr__(self, name, value):
        if name in ("_of", "_blocks"):
            super().__setattr__(name, value)
        else:
            setattr(self._of, name, value)

    def __iter__(self):
        return Iterates(aiter(self._of), self._blocks)

    def __next__(self):
        return next(iter(self))

    def __enter__(self):
        return self._blocks.result(self._of.__aenter__())

    def __exit__(self, *error):
        return self._blocks.result(self._of.__aexit__(*error))

    def __repr__(self):
        return repr(self._of).replace("procwright.aio.", "procwright.")


class Said(Standing):
    """Stands for a command or a pipeline, which is joined to others, and compared."""

    def __or__(self, other):
        return self._blocks.standing(self._of | given(other))

    def __ror__(self, other):
        return self._blocks.standing(other | self._of)

    def __eq__(self, other):
        return self._of == given(other)

    def __hash__(self):
        return hash(self._of)

    def __str__(self):
        return str(self._of)


class Iterates:
    """An iterator over what is awaited."""

    def __init__(self, of, blocks):
        self._of, self._blocks = of, blocks

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return self._blocks.result(anext(self._of))
        except StopAsyncIteration:
            raise StopIteration from None
