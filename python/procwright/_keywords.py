"""The options of `run`, `spawn`, `map`, `pipeline`, `spawn_pipeline` and `cmd` by which no type of
theirs is chosen: for type checkers, imported by nothing else.

A test holds them to the signatures.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Executor
from signal import Signals
from typing import Any, Literal, TypedDict

from . import _core
from ._event import Event
from ._journal import Journal
from ._overflow import Overflow
from ._types import (
    AnyTee,
    Data,
    Env,
    ExtraEnv,
    NoPipe,
    Seconds,
    Sink,
    Stdin,
    StrOrBytesPath,
    Tee,
    TextTee,
)


class Program(TypedDict, total=False):
    """What `run`, `spawn`, `map` and `pipeline` take."""

    shell: bool | StrOrBytesPath
    env: Env | None
    extra_env: ExtraEnv | None
    cwd: StrOrBytesPath | None
    user: str | int | None
    group: str | int | None
    extra_groups: Iterable[str | int] | None
    umask: int | None
    rlimits: Mapping[str, int | tuple[int, int]] | None
    nice: int | None
    process_group: int | None
    start_new_session: bool
    die_with_parent: bool | str | int
    blocked_signals: Iterable[str | int] | None
    ignored_signals: Iterable[str | int] | None
    default_signals: Iterable[str | int] | None
    cpu_affinity: Iterable[int] | None
    sched_policy: str | None
    ionice: str | None
    oom_score_adj: int | None
    cgroup: StrOrBytesPath | None
    chroot: StrOrBytesPath | None
    no_new_privs: bool
    new_keyring: bool
    pass_fds: Iterable[int]
    liveness: bool
    stop: _core.Stop | str | Signals | None


class Limits(TypedDict, total=False):
    """What ends a program that does not end by itself, what end is no failure, and a file that has
    all that it said."""

    timeout: Seconds | None
    idle_timeout: Seconds | None
    until: str
    ok_codes: Collection[int] | None
    limit: int | str | _core.Limit | None
    keep_full: StrOrBytesPath | None


class Common(Program, Limits, total=False):
    """What `run` and `spawn` take besides."""

    on_timeout: Literal["raise", "return"]
    cancel: _core.Cancel | None
    max_length: int | None
    too_long: Literal["split", "fail"]
    on_event: Callable[[Event], object] | None
    input_wanted: bool


class Call(Program, Limits, total=False):
    """What `run` and `map` take besides."""

    stdin: Stdin


class Run(Common, Call, total=False):
    """What `run` takes besides."""

    check: bool
    explain_after: Seconds | None


class RunBytes(Run, total=False):
    """What `run` takes where the outputs are bytes."""

    input: Data | None
    tee: Tee
    on_line: Callable[[bytes], object] | None
    on_stdout_line: Callable[[bytes], object] | None
    on_stderr_line: Callable[[bytes], object] | None


class RunText(Run, total=False):
    """What `run` takes where they are text."""

    input: Data | str | None
    tee: TextTee
    on_line: Callable[[str], object] | None
    on_stdout_line: Callable[[str], object] | None
    on_stderr_line: Callable[[str], object] | None


class RunAny(Run, total=False):
    """What `run` takes where only the running program knows which."""

    input: Data | None
    tee: AnyTee
    on_line: Callable[[str | bytes], object] | None
    on_stdout_line: Callable[[str | bytes], object] | None
    on_stderr_line: Callable[[str | bytes], object] | None


class MapCommand(Call, total=False):
    """What `map` takes for every command."""

    input: Data | str | None
    stdout: Sink
    stderr: Sink
    pty: bool | tuple[int, int]
    merged: bool
    text: bool
    encoding: str | None
    errors: str | None


class MapRules(Call, total=False):
    """What `map` takes besides what its results have types by."""

    parallel: int | None
    ordered: bool
    ahead: int | None
    stop_after_failures: int | None
    deadline: Seconds | None
    journal: StrOrBytesPath | Journal | None
    executor: Executor | None
    cancel: _core.Cancel | None
    on_event: Callable[[Event], object] | None


class MapBytes(MapRules, total=False):
    """What `map` takes where the outputs are bytes."""

    input: Data | None
    on_line: Callable[[bytes, Literal["stdout", "stderr"], int], object] | None


class MapAny(MapRules, total=False):
    """What `map` takes where only the running program knows which, or each command says it."""

    input: Data | None
    # It is called with what each command has.
    on_line: Callable[[Any, Literal["stdout", "stderr"], int], object] | None


class MapText(MapRules, total=False):
    """What `map` takes where they are text."""

    input: Data | str | None
    on_line: Callable[[str, Literal["stdout", "stderr"], int], object] | None


class Spawn(Common, total=False):
    """What `spawn` takes besides."""

    overflow: Overflow | Literal["spill", "block", "drop_oldest", "drop_newest", "fail"]
    stall_after: Seconds | None
    channel: Literal["from_child", "to_child"] | None
    detach: bool


class SpawnBytes(Spawn, total=False):
    """What `spawn` takes where the streams are bytes."""

    input: Data | None
    tee: Tee


class SpawnText(Spawn, total=False):
    """What `spawn` takes where they are text."""

    input: Data | str | None
    tee: TextTee


class SpawnAny(Spawn, total=False):
    """What `spawn` takes where only the running program knows which."""

    input: Data | None
    tee: AnyTee


class Pipeline(Program, total=False):
    """What `pipeline` takes besides what its result has a type by."""

    stdin: Stdin
    stderr: Sink
    limit: int | str | _core.Limit | None
    timeout: Seconds | None
    idle_timeout: Seconds | None
    success: Literal["forgiving", "strict", "last"]
    ok_codes: Mapping[int, Iterable[int]] | None
    elastic: bool | Overflow | Mapping[int, bool | Overflow]
    check: bool
    on_timeout: Literal["raise", "return"]
    cancel: _core.Cancel | None
    on_event: Callable[[Event], object] | None


class SpawnPipeline(Program, total=False):
    """What `spawn_pipeline` takes besides what its child has a type by."""

    limit: int | str | _core.Limit | None
    timeout: Seconds | None
    idle_timeout: Seconds | None
    success: Literal["forgiving", "strict", "last"]
    ok_codes: Mapping[int, Iterable[int]] | None
    elastic: bool | Overflow | Mapping[int, bool | Overflow]
    overflow: Overflow | Literal["spill", "drop_oldest", "drop_newest", "fail"]
    stall_after: Seconds | None
    on_timeout: Literal["raise", "return"]
    cancel: _core.Cancel | None
    on_event: Callable[[Event], object] | None


class SpawnPipelineBytes(SpawnPipeline, total=False):
    """What `spawn_pipeline` takes where the streams are bytes."""

    input: Data | None


class SpawnPipelineText(SpawnPipeline, total=False):
    """What `spawn_pipeline` takes where they are text."""

    input: Data | str | None


class SpawnPipelineAny(SpawnPipelineBytes, total=False):
    """What `spawn_pipeline` takes where only the running program knows which."""


class PipelineBytes(Pipeline, total=False):
    """What `pipeline` takes where the output is bytes."""

    input: Data | None


class PipelineText(Pipeline, total=False):
    """What `pipeline` takes where it is text."""

    input: Data | str | None


class PipelineAny(PipelineBytes, total=False):
    """What `pipeline` takes where only the running program knows which."""


class _AnyCommandOptions(Spawn, total=False):
    """What `cmd` takes besides what results and children have types by."""

    check: bool
    explain_after: Seconds | None
    input: Data | str | None
    tee: AnyTee


class OpenCommandOptions(_AnyCommandOptions, total=False):
    """What `cmd` takes where the call alone says what comes."""

    stdin: NoPipe


class CommandOptions(_AnyCommandOptions, total=False):
    """What `cmd` takes."""

    stdin: Stdin
    stdout: Sink
    stderr: Sink
    pty: bool | tuple[int, int]
    merged: bool
    on_line: Callable[[Any], object] | None
    on_stdout_line: Callable[[Any], object] | None
    on_stderr_line: Callable[[Any], object] | None
    text: bool
    encoding: str | None
    errors: str | None


class OpenPipelineOptions(SpawnPipeline, total=False):
    """What a `Pipeline` takes besides what results have types by."""

    check: bool
