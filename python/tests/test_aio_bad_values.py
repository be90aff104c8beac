"""Bad values of every parameter of `procwright.aio` are refused as those of the calls that block:
by the table of test_bad_values.py."""

from __future__ import annotations

import inspect
import os

import pytest

from procwright import PIPE, InvalidValue, queue

anyio = pytest.importorskip("anyio")
from test_bad_values import ANYTHING, World, rows_of  # noqa: E402

from procwright import aio  # noqa: E402

#: Parameters that the calls of aio alone have.
OF_ANYIO = {"item", "max_bytes"}


def calls():
    """Every function and method, by its name."""
    for name in aio.__all__:
        thing = getattr(aio, name)
        if not isinstance(thing, type):
            yield name, thing
            continue
        for method in sorted(dir(thing)):
            found = inspect.getattr_static(thing, method)
            # `extra` is anyio's.
            if not method.startswith("_") and inspect.isfunction(found) and method != "extra":
                yield f"{name}.{method}", found


def parameters(call):
    """Those that it has of its own."""
    for one in inspect.signature(call).parameters.values():
        if one.name != "self" and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL):
            yield one


CALLS = dict(calls())
PARAMETERS = [
    (name, one.name)
    for name, call in CALLS.items()
    for one in parameters(call)
    if one.name not in {*ANYTHING, *OF_ANYIO}
]


@pytest.fixture
def world(child, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = AioWorld(child, tmp_path)
    yield made
    made.close()


class AioWorld(World):
    def spawn(self, **options):
        child = aio.spawn([self._child, "exit", "0"], stdin=PIPE, **options)
        self.keep(child._child)
        return child

    def spawn_pipeline(self):
        child = aio.spawn_pipeline([self._child, "exit", "0"], stdin=PIPE)
        self.keep(child._child)
        return child

    def owner(self, name, method):
        makes = {
            "LivenessMonitor": lambda: aio.LivenessMonitor(os.getpid()),
            "Map": lambda: aio.map([]),
            "Process": lambda: aio.Process(os.getpid()),
            "Receiver": lambda: aio.Receiver(self.keep(queue.Receiver())),
            "Sender": lambda: aio.Sender(self.keep(self.keep(queue.Receiver()).sender())),
        }
        return makes[name]() if name in makes else super().owner(name, method)


def test_every_parameter_has_bad_values():
    assert [one for one in PARAMETERS if not rows_of(*one)] == []
    some = {("run", "timeout"), ("Child.wait", "timeout"), ("Reader.read", "size")}
    assert some <= set(PARAMETERS)


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS)
def test_a_bad_value_is_refused(world, name, parameter):
    owner, _, method = name.rpartition(".")

    def call(value):
        arguments = [world.owner(owner, method)] if owner else []
        if name in ("pipeline", "spawn_pipeline"):
            arguments.append(world.value("args"))
        keywords = {**world.good(name, parameter), parameter: value}
        for one in parameters(CALLS[name]):
            if one.name == parameter and one.kind is one.POSITIONAL_ONLY:
                arguments.append(keywords.pop(parameter))
            elif one.name != parameter and one.default is one.empty:
                keywords[one.name] = world.value(one.name)
        return CALLS[name](*arguments, **keywords)

    async def main(value):
        # Also what starts nothing by itself, and is refused at its first step.
        called = call(value)
        if inspect.iscoroutine(called):
            await called
        elif hasattr(called, "__anext__"):
            ended = await anext(called)
            if getattr(ended, "error", None) is not None:
                raise ended.error

    for row in rows_of(name, parameter):
        with pytest.raises(InvalidValue) as caught:
            anyio.run(main, row.value)
        text = str(caught.value)
        assert text.startswith(
            row.text or f"{parameter} is {row.value!r}: ".replace("PosixPath", "Path")
        ), text
        assert not world.mark.exists()
