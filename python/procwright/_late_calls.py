"""What `run`, `spawn`, `map`, `pipeline` and `spawn_pipeline` take a command or a pipeline for that
was said and is started now."""

from __future__ import annotations

from ._fan import Fan
from ._invalid import InvalidValue, _WrongType, bad_type, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def is_late(stage: object) -> bool:
    """Whether it is a command or a pipeline that was said, or a `Fan` that has one."""
    if isinstance(stage, Fan):
        return any(map(is_late, stage.programs))
    return hasattr(stage, "_is_late_command") or hasattr(stage, "_is_late_pipeline")


def given_to(function: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a call was given, of its parameters: those that are `on_top`."""
    own = {name: given[name] for name in function.__kwdefaults__ or {}}
    more = given.get("unknown") or given.get("options") or {}
    return {**on_top(function, own), **more}


def on_top(function: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a call that come on top of those of its command: all that are not the defaults
    of `function`, which a call with parameters cannot tell from what was left out. One that could
    goes by the same rule."""
    defaults = function.__kwdefaults__ or {}
    return {
        name: value
        for name, value in options.items()
        if name not in defaults or value is not defaults[name]
    }


def of_one(function: str, args: Any, words: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """The arguments of a command, and its options with those of the call on top. `words` are what
    the call has behind it."""
    if hasattr(args, "_is_late_pipeline"):
        several = "spawn_pipeline" if function == "spawn" else "pipeline"
        hint = f"these are several programs, and {function}() is for one: {several}(...)"
        if function == "map":
            hint = "a command of a map is one program: ['sh', '-c', 'a | b']"
        raise bad_type("args", args, hint)
    if words:
        listed = ", ".join(shown(one) for one in words)
        hint = f"add words to a command by {shown(args)}.with_args({listed})"
        raise _WrongType(f"{function}() takes a command alone, and {listed} is behind it: {hint}")
    return _args_of(args), {**args._options, **options}


def of_many(
    stages: tuple[Any, ...], options: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The stages as lists and mappings, and the options of the whole with those of the call on top:
    those of a pipeline that is all that there is."""
    of_whole: dict[str, Any] = {}
    flat: list[Any] = []
    for place, stage in enumerate(stages):
        if not hasattr(stage, "_is_late_pipeline"):
            flat.append(_plain(stage))
            continue
        if len(stages) == 1:
            of_whole = stage._options
        else:
            refuse_options(f"stages[{place}]", stage)
        flat += map(_plain, stage._stages)
    return tuple(flat), {**of_whole, **options}


def refuse_options(name: str, pipeline: Any) -> None:
    """Refuses a pipeline with options where it is to be a part of another."""
    if pipeline._options:
        names = ", ".join(pipeline._options)
        raise InvalidValue(
            f"{name} is {shown(pipeline)}, whose options ({names}) are those of a whole pipeline: "
            "join its stages first, and call with_options() of all"
        )


def _plain(stage: Any) -> Any:
    """A stage without values of this kind."""
    if isinstance(stage, Fan):
        return Fan(*map(_plain, stage.programs))
    if hasattr(stage, "_is_late_command"):
        return {"args": _args_of(stage), **stage._options} if stage._options else _args_of(stage)
    return stage


def _args_of(command: Any) -> Any:
    """The arguments as a call takes them, and as its result shows them."""
    return list(command._args) if isinstance(command._args, tuple) else command._args
