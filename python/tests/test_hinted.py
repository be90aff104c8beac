"""Arguments that a method does not have are refused with what to type."""

from __future__ import annotations

import inspect

import pytest

import procwright
from procwright import Cancel, InvalidValue, Limit, Overflow, Stop, aio, testing
from procwright._hinted import _ARE_HOT, HINTS, hinted

CLASSES = [
    getattr(module, name)
    for module in (procwright, aio, testing)
    for name in module.__all__
    if inspect.isclass(getattr(module, name)) and not issubclass(getattr(module, name), Exception)
]


def methods():
    for cls in dict.fromkeys(CLASSES):
        if not cls.__module__.startswith("procwright._") or cls is procwright.Status:
            # Native, or below what tells: Python names their arguments.
            continue
        for name in dir(cls):
            attribute = inspect.getattr_static(cls, name)
            if isinstance(attribute, (staticmethod, classmethod)):
                attribute = attribute.__func__
            is_own = str(getattr(attribute, "__module__", "")).startswith("procwright")
            # Those are called for each line or message.
            if name in _ARE_HOT or name.startswith("_"):
                continue
            if inspect.isfunction(attribute) and is_own:
                yield pytest.param(attribute, id=f"{cls.__module__}.{cls.__name__}.{name}")


@pytest.mark.parametrize("method", list(methods()))
def test_every_method_refuses_what_it_has_not(method):
    name = method.__name__
    if not inspect.signature(method).parameters.keys() - {"self"} and name not in HINTS:
        # Of what takes none Python says so, without a frame more for each call.
        assert not hasattr(method, "__wrapped__")
        for words, options in (((None, 1), {}), ((None,), {"no_such": 1})):
            with pytest.raises(TypeError, match=rf"{name}\(\) (got|takes) "):
                method(*words, **options)
        return
    assert hasattr(method, "__wrapped__")
    kinds = [one.kind.name for one in inspect.signature(method).parameters.values()]
    if "VAR_KEYWORD" not in kinds:
        with pytest.raises(InvalidValue, match=rf"^no_such is 1, and {name}\(\) has no such"):
            done(method(None, no_such=1))
    if "VAR_POSITIONAL" not in kinds:
        with pytest.raises(InvalidValue, match=rf"is an argument more than {name}\(\) has"):
            done(method(None, *range(1, 20)))


def done(call):
    """What a coroutine gives that does not wait."""
    if inspect.iscoroutine(call):
        try:
            call.send(None)
        finally:
            call.close()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: Cancel(0.2),
            r"0.2 is an argument more than Cancel\(\) has, .* pass timeout=seconds",
        ),
        (lambda: Cancel(timeout=1), r"timeout is 1, and Cancel\(\) .*: pass it to the call"),
        (
            lambda: Limit(5, "ends", 1),
            r"1 is an argument more than Limit\(\) has, which takes bytes, b",
        ),
        (lambda: Limit(5, beyon="ends"), r"did you mean beyond\?"),
        (lambda: Stop("TERM", timeout=5), r"timeout is 5, and Stop\(\) .*: use grace"),
        (lambda: Overflow("spill", maxsize=5), r"maxsize is 5, and Overflow\(\) .*: use memory"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_constructors(call, text):
    with pytest.raises(InvalidValue, match=text):
        call()


def test_what_is_asked_of_a_child(child):
    with procwright.spawn([child, "cat"], stdin=procwright.PIPE) as cat:
        for call, text in [
            (lambda: cat.result(check=True), "call check_returncode() of what it gives"),
            (lambda: cat.wait_for("x", flags=2), "pass re.compile(pattern, flags)"),
            (lambda: cat.kill("INT"), "use send_signal('INT')"),
            (lambda: cat.wait(1, 2), "2 is an argument more than wait() has, which takes timeout"),
            (lambda: cat.stdout.lines(b"x", 5), "pass the others by name, max_length=, too_long="),
        ]:
            with pytest.raises(InvalidValue) as caught:
                call()
            assert isinstance(caught.value, TypeError)
            assert text in str(caught.value)
    # A stop that is refused has stopped nothing.
    pipeline = procwright.spawn_pipeline(["cat"], ["cat"], stdin=procwright.PIPE)
    with pipeline:
        with pytest.raises(InvalidValue, match=r'pass Stop\("TERM", grace=seconds\)'):
            pipeline.stop(grace=1)
        assert pipeline.poll() is None


def test_what_a_method_itself_raises_comes_through():
    @hinted
    class Asked:
        def ask(self, number):
            return "a" + number

        @staticmethod
        def of(number):
            return number

        async def later(self, number):
            return "a" + number

    with pytest.raises(TypeError, match="can only concatenate") as caught:
        Asked().ask(5)
    assert not isinstance(caught.value, InvalidValue)
    assert Asked().ask("b") == "ab"
    assert Asked.of(5) == Asked().of(5) == 5
    assert inspect.iscoroutinefunction(Asked.later)
    assert list(inspect.signature(Asked.ask).parameters) == ["self", "number"]
    with pytest.raises(InvalidValue, match=r"^7 is an argument more than of\(\) has, which "):
        Asked.of(5, 7)
    # What is missing Python names.
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'number'"):
        Asked().ask()
    with pytest.raises(InvalidValue, match=r"^nummber is 1, .*: did you mean number"):
        done(Asked().later(nummber=1))


def test_every_hint_is_of_a_method_that_there_is():
    names = {name for cls in CLASSES for name in dir(cls)} | {cls.__name__ for cls in CLASSES}
    assert HINTS.keys() <= names
