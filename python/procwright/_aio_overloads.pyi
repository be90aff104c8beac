# Written by ci/overloads.py, which says why.

from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Executor
from signal import Signals
from typing import Any, Literal, TypedDict, overload

from typing_extensions import Unpack

from . import _core
from ._aio_child import Child
from ._aio_map import Map
from ._aio_pipeline_child import PipelineChild
from ._event import Event
from ._fan import Fan
from ._journal import Journal
from ._late import LateCommand, LatePipeline
from ._overflow import Overflow
from ._piece import Piece
from ._pipeline import PipelineResult
from ._result import Result
from ._types import (
    AnyTee,
    Args,
    BytesStageFn,
    Data,
    Elsewhere,
    Env,
    ExtraEnv,
    NoPipe,
    Open,
    Pipe,
    Seconds,
    Sink,
    Slip,
    StageFn,
    Stdin,
    StrOrBytesPath,
    Tee,
    TextStageFn,
    TextTee,
)

__all__ = ["map", "pipeline", "run", "spawn", "spawn_pipeline"]

class _Program(TypedDict, total=False):
    shell: Slip | bool | StrOrBytesPath
    env: Slip | Env | None
    extra_env: Slip | ExtraEnv | None
    cwd: Slip | StrOrBytesPath | None
    user: Slip | str | int | None
    group: Slip | str | int | None
    extra_groups: Slip | Iterable[str | int] | None
    umask: Slip | int | None
    rlimits: Slip | Mapping[str, int | tuple[int, int]] | None
    nice: Slip | int | None
    process_group: Slip | int | None
    start_new_session: Slip | bool
    die_with_parent: Slip | bool | str | int
    blocked_signals: Slip | Iterable[str | int] | None
    ignored_signals: Slip | Iterable[str | int] | None
    default_signals: Slip | Iterable[str | int] | None
    cpu_affinity: Slip | Iterable[int] | None
    sched_policy: Slip | str | None
    ionice: Slip | str | None
    oom_score_adj: Slip | int | None
    cgroup: Slip | StrOrBytesPath | None
    chroot: Slip | StrOrBytesPath | None
    no_new_privs: Slip | bool
    new_keyring: Slip | bool
    pass_fds: Slip | Iterable[int]
    liveness: Slip | bool
    stop: Slip | _core.Stop | str | Signals | None

class _Limits(TypedDict, total=False):
    timeout: Slip | Seconds | None
    idle_timeout: Slip | Seconds | None
    until: Slip | str
    ok_codes: Slip | Collection[int] | None
    limit: Slip | int | str | _core.Limit | None
    keep_full: Slip | StrOrBytesPath | None

class _Common(_Program, _Limits, total=False):
    on_timeout: Slip | Literal["raise", "return"]
    cancel: Slip | _core.Cancel | None
    max_length: Slip | int | None
    too_long: Slip | Literal["split", "fail"]
    on_event: Slip | Callable[[Event], object] | None
    input_wanted: Slip | bool

class _Call(_Program, _Limits, total=False):
    stdin: Slip | Stdin

class _Run(_Common, _Call, total=False):
    check: Slip | bool
    explain_after: Slip | Seconds | None

class _RunBytes(_Run, total=False):
    input: Slip | Data | None
    tee: Slip | Tee
    on_line: Slip | Callable[[bytes], object] | None
    on_stdout_line: Slip | Callable[[bytes], object] | None
    on_stderr_line: Slip | Callable[[bytes], object] | None

class _RunText(_Run, total=False):
    input: Slip | Data | str | None
    tee: Slip | TextTee
    on_line: Slip | Callable[[str], object] | None
    on_stdout_line: Slip | Callable[[str], object] | None
    on_stderr_line: Slip | Callable[[str], object] | None

class _MapRules(_Call, total=False):
    parallel: Slip | int | None
    ordered: Slip | bool
    ahead: Slip | int | None
    stop_after_failures: Slip | int | None
    deadline: Slip | Seconds | None
    journal: Slip | StrOrBytesPath | Journal | None
    executor: Slip | Executor | None
    cancel: Slip | _core.Cancel | None
    on_event: Slip | Callable[[Event], object] | None

class _MapBytes(_MapRules, total=False):
    input: Slip | Data | None
    on_line: Slip | Callable[[bytes, Literal["stdout", "stderr"], int], object] | None

class _MapText(_MapRules, total=False):
    input: Slip | Data | str | None
    on_line: Slip | Callable[[str, Literal["stdout", "stderr"], int], object] | None

class _Spawn(_Common, total=False):
    overflow: Slip | Overflow | Literal["spill", "block", "drop_oldest", "drop_newest", "fail"]
    stall_after: Slip | Seconds | None
    channel: Slip | Literal["from_child", "to_child"] | None
    detach: Slip | bool

class _SpawnBytes(_Spawn, total=False):
    input: Slip | Data | None
    tee: Slip | Tee

class _SpawnText(_Spawn, total=False):
    input: Slip | Data | str | None
    tee: Slip | TextTee

class _Pipeline(_Program, total=False):
    stdin: Slip | Stdin
    stderr: Slip | Sink
    limit: Slip | int | str | _core.Limit | None
    timeout: Slip | Seconds | None
    idle_timeout: Slip | Seconds | None
    success: Slip | Literal["forgiving", "strict", "last"]
    ok_codes: Slip | Mapping[int, Iterable[int]] | None
    elastic: Slip | bool | Overflow | Mapping[int, bool | Overflow]
    check: Slip | bool
    on_timeout: Slip | Literal["raise", "return"]
    cancel: Slip | _core.Cancel | None
    on_event: Slip | Callable[[Event], object] | None

class _SpawnPipeline(_Program, total=False):
    limit: Slip | int | str | _core.Limit | None
    timeout: Slip | Seconds | None
    idle_timeout: Slip | Seconds | None
    success: Slip | Literal["forgiving", "strict", "last"]
    ok_codes: Slip | Mapping[int, Iterable[int]] | None
    elastic: Slip | bool | Overflow | Mapping[int, bool | Overflow]
    overflow: Slip | Overflow | Literal["spill", "drop_oldest", "drop_newest", "fail"]
    stall_after: Slip | Seconds | None
    on_timeout: Slip | Literal["raise", "return"]
    cancel: Slip | _core.Cancel | None
    on_event: Slip | Callable[[Event], object] | None

class _SpawnPipelineBytes(_SpawnPipeline, total=False):
    input: Slip | Data | None

class _SpawnPipelineText(_SpawnPipeline, total=False):
    input: Slip | Data | str | None

class _PipelineBytes(_Pipeline, total=False):
    input: Slip | Data | None

class _PipelineText(_Pipeline, total=False):
    input: Slip | Data | str | None

@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_RunBytes],
) -> Result[bytes, bytes, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_RunBytes],
) -> Result[bytes, None, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_RunBytes],
) -> Result[None, bytes, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_RunBytes],
) -> Result[None, None, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_RunBytes],
) -> Result[bytes, bytes, list[Piece[bytes]]]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_RunBytes],
) -> Result[bytes, None, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_RunBytes],
) -> Result[bytes, bytes | None, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_RunBytes],
) -> Result[bytes, None, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_RunBytes],
) -> Result[bytes | None, bytes | None, list[Piece[bytes]] | None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_RunText],
) -> Result[str, str, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_RunText],
) -> Result[str, None, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_RunText],
) -> Result[None, str, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_RunText],
) -> Result[None, None, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_RunText],
) -> Result[str, str, list[Piece[str]]]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_RunText],
) -> Result[str, None, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_RunText],
) -> Result[str, str | None, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_RunText],
) -> Result[str, None, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_RunText],
) -> Result[str | None, str | None, list[Piece[str]] | None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_RunText],
) -> Result[str, str, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_RunText],
) -> Result[str, None, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_RunText],
) -> Result[None, str, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_RunText],
) -> Result[None, None, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_RunText],
) -> Result[str, str, list[Piece[str]]]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_RunText],
) -> Result[str, None, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_RunText],
) -> Result[str, str | None, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_RunText],
) -> Result[str, None, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_RunText],
) -> Result[str | None, str | None, list[Piece[str]] | None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_RunText],
) -> Result[str, str, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_RunText],
) -> Result[str, None, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_RunText],
) -> Result[None, str, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_RunText],
) -> Result[None, None, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_RunText],
) -> Result[str, str, list[Piece[str]]]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_RunText],
) -> Result[str, None, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_RunText],
) -> Result[str, str | None, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_RunText],
) -> Result[str, None, None]: ...
@overload
async def run(
    args: Args | LateCommand[Open],
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_RunText],
) -> Result[str | None, str | None, list[Piece[str]] | None]: ...
@overload
async def run(
    args: Args | LateCommand,
    *,
    no_such_parameter: Slip,
    **options: Any,
) -> Result[Any, Any, Any]: ...
@overload
async def run(
    args: Args | LateCommand | Slip,
    *,
    stdout: Slip | Sink = -1,
    stderr: Slip | Sink = -1,
    pty: Slip | bool | tuple[int, int] = False,
    merged: Slip | bool = False,
    text: Slip | bool = ...,
    encoding: Slip | str | None = ...,
    errors: Slip | str | None = ...,
    shell: Slip | bool | StrOrBytesPath = ...,
    env: Slip | Env | None = ...,
    extra_env: Slip | ExtraEnv | None = ...,
    cwd: Slip | StrOrBytesPath | None = ...,
    user: Slip | str | int | None = ...,
    group: Slip | str | int | None = ...,
    extra_groups: Slip | Iterable[str | int] | None = ...,
    umask: Slip | int | None = ...,
    rlimits: Slip | Mapping[str, int | tuple[int, int]] | None = ...,
    nice: Slip | int | None = ...,
    process_group: Slip | int | None = ...,
    start_new_session: Slip | bool = ...,
    die_with_parent: Slip | bool | str | int = ...,
    blocked_signals: Slip | Iterable[str | int] | None = ...,
    ignored_signals: Slip | Iterable[str | int] | None = ...,
    default_signals: Slip | Iterable[str | int] | None = ...,
    cpu_affinity: Slip | Iterable[int] | None = ...,
    sched_policy: Slip | str | None = ...,
    ionice: Slip | str | None = ...,
    oom_score_adj: Slip | int | None = ...,
    cgroup: Slip | StrOrBytesPath | None = ...,
    chroot: Slip | StrOrBytesPath | None = ...,
    no_new_privs: Slip | bool = ...,
    new_keyring: Slip | bool = ...,
    pass_fds: Slip | Iterable[int] = ...,
    liveness: Slip | bool = ...,
    stop: Slip | _core.Stop | str | Signals | None = ...,
    timeout: Slip | Seconds | None = ...,
    idle_timeout: Slip | Seconds | None = ...,
    until: Slip | str = ...,
    ok_codes: Slip | Collection[int] | None = ...,
    limit: Slip | int | str | _core.Limit | None = ...,
    keep_full: Slip | StrOrBytesPath | None = ...,
    on_timeout: Slip | Literal["raise", "return"] = ...,
    cancel: Slip | _core.Cancel | None = ...,
    max_length: Slip | int | None = ...,
    too_long: Slip | Literal["split", "fail"] = ...,
    on_event: Slip | Callable[[Event], object] | None = ...,
    input_wanted: Slip | bool = ...,
    stdin: Slip | Stdin = ...,
    check: Slip | bool = ...,
    explain_after: Slip | Seconds | None = ...,
    input: Slip | Data | None = ...,
    tee: Slip | AnyTee = ...,
    on_line: Slip | Callable[[str | bytes], object] | None = ...,
    on_stdout_line: Slip | Callable[[str | bytes], object] | None = ...,
    on_stderr_line: Slip | Callable[[str | bytes], object] | None = ...,
    **no_such_parameter: Slip,
) -> Result: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnBytes],
) -> Child[bytes, bytes, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnBytes],
) -> Child[bytes, bytes, bytes, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: Callable[[bytes], object],
    on_stderr_line: None = None,
    **options: Unpack[_SpawnBytes],
) -> Child[bytes | None, bytes, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: Callable[[bytes], object],
    on_stderr_line: None = None,
    **options: Unpack[_SpawnBytes],
) -> Child[bytes | None, bytes, bytes, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: None = None,
    on_stderr_line: Callable[[bytes], object],
    **options: Unpack[_SpawnBytes],
) -> Child[bytes, bytes | None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: None = None,
    on_stderr_line: Callable[[bytes], object],
    **options: Unpack[_SpawnBytes],
) -> Child[bytes, bytes | None, bytes, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnBytes],
) -> Child[bytes, None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnBytes],
) -> Child[bytes, None, bytes, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnBytes],
) -> Child[None, bytes, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnBytes],
) -> Child[None, bytes, bytes, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnBytes],
) -> Child[None, None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnBytes],
) -> Child[None, None, bytes, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnBytes],
) -> Child[None, None, None, bytes]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnBytes],
) -> Child[None, None, bytes, bytes]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnBytes],
) -> Child[bytes, None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnBytes],
) -> Child[bytes, None, bytes, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnBytes],
) -> Child[bytes, bytes | None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnBytes],
) -> Child[bytes, bytes | None, bytes, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnBytes],
) -> Child[bytes, None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnBytes],
) -> Child[bytes, None, bytes, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: Callable[[bytes], object] | None = None,
    on_stderr_line: Callable[[bytes], object] | None = None,
    **options: Unpack[_SpawnBytes],
) -> Child[bytes | None, bytes | None, None, bytes | None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    on_stdout_line: Callable[[bytes], object] | None = None,
    on_stderr_line: Callable[[bytes], object] | None = None,
    **options: Unpack[_SpawnBytes],
) -> Child[bytes | None, bytes | None, bytes, bytes | None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, str, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, str, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: Callable[[str], object],
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str | None, str, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: Callable[[str], object],
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str | None, str, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: Callable[[str], object],
    **options: Unpack[_SpawnText],
) -> Child[str, str | None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: Callable[[str], object],
    **options: Unpack[_SpawnText],
) -> Child[str, str | None, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, None, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[None, str, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[None, str, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[None, None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[None, None, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[None, None, None, str]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[None, None, str, str]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, None, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, str | None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, str | None, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, None, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: Callable[[str], object] | None = None,
    on_stderr_line: Callable[[str], object] | None = None,
    **options: Unpack[_SpawnText],
) -> Child[str | None, str | None, None, str | None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    on_stdout_line: Callable[[str], object] | None = None,
    on_stderr_line: Callable[[str], object] | None = None,
    **options: Unpack[_SpawnText],
) -> Child[str | None, str | None, str, str | None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, str, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, str, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: Callable[[str], object],
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str | None, str, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: Callable[[str], object],
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str | None, str, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: Callable[[str], object],
    **options: Unpack[_SpawnText],
) -> Child[str, str | None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: Callable[[str], object],
    **options: Unpack[_SpawnText],
) -> Child[str, str | None, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, None, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[None, str, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[None, str, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[None, None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[None, None, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[None, None, None, str]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[None, None, str, str]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, None, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, str | None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, str | None, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, None, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: Callable[[str], object] | None = None,
    on_stderr_line: Callable[[str], object] | None = None,
    **options: Unpack[_SpawnText],
) -> Child[str | None, str | None, None, str | None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    on_stdout_line: Callable[[str], object] | None = None,
    on_stderr_line: Callable[[str], object] | None = None,
    **options: Unpack[_SpawnText],
) -> Child[str | None, str | None, str, str | None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, str, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, str, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: Callable[[str], object],
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str | None, str, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: Callable[[str], object],
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str | None, str, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: None = None,
    on_stderr_line: Callable[[str], object],
    **options: Unpack[_SpawnText],
) -> Child[str, str | None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: None = None,
    on_stderr_line: Callable[[str], object],
    **options: Unpack[_SpawnText],
) -> Child[str, str | None, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, None, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[None, str, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[None, str, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[None, None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[None, None, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[None, None, None, str]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[None, None, str, str]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, None, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, str | None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, str | None, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, None, None, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: None = None,
    on_stderr_line: None = None,
    **options: Unpack[_SpawnText],
) -> Child[str, None, str, None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: NoPipe = None,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: Callable[[str], object] | None = None,
    on_stderr_line: Callable[[str], object] | None = None,
    **options: Unpack[_SpawnText],
) -> Child[str | None, str | None, None, str | None]: ...
@overload
def spawn(
    args: Args | LateCommand[Open],
    *,
    stdin: Pipe,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    on_stdout_line: Callable[[str], object] | None = None,
    on_stderr_line: Callable[[str], object] | None = None,
    **options: Unpack[_SpawnText],
) -> Child[str | None, str | None, str, str | None]: ...
@overload
def spawn(
    args: Args | LateCommand,
    *,
    no_such_parameter: Slip,
    **options: Any,
) -> Any: ...
@overload
def spawn(
    args: Args | LateCommand | Slip,
    *,
    stdin: Slip | Stdin = None,
    stdout: Slip | Sink = -1,
    stderr: Slip | Sink = -1,
    pty: Slip | bool | tuple[int, int] = False,
    merged: Slip | bool = False,
    text: Slip | bool = ...,
    encoding: Slip | str | None = ...,
    errors: Slip | str | None = ...,
    on_stdout_line: Slip | Callable[[str | bytes], object] | None = None,
    on_stderr_line: Slip | Callable[[str | bytes], object] | None = None,
    shell: Slip | bool | StrOrBytesPath = ...,
    env: Slip | Env | None = ...,
    extra_env: Slip | ExtraEnv | None = ...,
    cwd: Slip | StrOrBytesPath | None = ...,
    user: Slip | str | int | None = ...,
    group: Slip | str | int | None = ...,
    extra_groups: Slip | Iterable[str | int] | None = ...,
    umask: Slip | int | None = ...,
    rlimits: Slip | Mapping[str, int | tuple[int, int]] | None = ...,
    nice: Slip | int | None = ...,
    process_group: Slip | int | None = ...,
    start_new_session: Slip | bool = ...,
    die_with_parent: Slip | bool | str | int = ...,
    blocked_signals: Slip | Iterable[str | int] | None = ...,
    ignored_signals: Slip | Iterable[str | int] | None = ...,
    default_signals: Slip | Iterable[str | int] | None = ...,
    cpu_affinity: Slip | Iterable[int] | None = ...,
    sched_policy: Slip | str | None = ...,
    ionice: Slip | str | None = ...,
    oom_score_adj: Slip | int | None = ...,
    cgroup: Slip | StrOrBytesPath | None = ...,
    chroot: Slip | StrOrBytesPath | None = ...,
    no_new_privs: Slip | bool = ...,
    new_keyring: Slip | bool = ...,
    pass_fds: Slip | Iterable[int] = ...,
    liveness: Slip | bool = ...,
    stop: Slip | _core.Stop | str | Signals | None = ...,
    timeout: Slip | Seconds | None = ...,
    idle_timeout: Slip | Seconds | None = ...,
    until: Slip | str = ...,
    ok_codes: Slip | Collection[int] | None = ...,
    limit: Slip | int | str | _core.Limit | None = ...,
    keep_full: Slip | StrOrBytesPath | None = ...,
    on_timeout: Slip | Literal["raise", "return"] = ...,
    cancel: Slip | _core.Cancel | None = ...,
    max_length: Slip | int | None = ...,
    too_long: Slip | Literal["split", "fail"] = ...,
    on_event: Slip | Callable[[Event], object] | None = ...,
    input_wanted: Slip | bool = ...,
    overflow: Slip
    | Overflow
    | Literal["spill", "block", "drop_oldest", "drop_newest", "fail"] = ...,
    stall_after: Slip | Seconds | None = ...,
    channel: Slip | Literal["from_child", "to_child"] | None = ...,
    detach: Slip | bool = ...,
    input: Slip | Data | None = ...,
    tee: Slip | AnyTee = ...,
    **no_such_parameter: Slip,
) -> Child: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_MapBytes],
) -> Map[bytes, bytes, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_MapBytes],
) -> Map[bytes, None, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_MapBytes],
) -> Map[None, bytes, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_MapBytes],
) -> Map[None, None, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_MapBytes],
) -> Map[bytes, bytes, list[Piece[bytes]]]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_MapBytes],
) -> Map[bytes, None, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_MapBytes],
) -> Map[bytes, bytes | None, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_MapBytes],
) -> Map[bytes, None, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_MapBytes],
) -> Map[bytes | None, bytes | None, list[Piece[bytes]] | None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_MapText],
) -> Map[str, str, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_MapText],
) -> Map[str, None, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_MapText],
) -> Map[None, str, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_MapText],
) -> Map[None, None, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_MapText],
) -> Map[str, str, list[Piece[str]]]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_MapText],
) -> Map[str, None, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_MapText],
) -> Map[str, str | None, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_MapText],
) -> Map[str, None, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_MapText],
) -> Map[str | None, str | None, list[Piece[str]] | None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_MapText],
) -> Map[str, str, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_MapText],
) -> Map[str, None, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_MapText],
) -> Map[None, str, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_MapText],
) -> Map[None, None, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_MapText],
) -> Map[str, str, list[Piece[str]]]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_MapText],
) -> Map[str, None, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_MapText],
) -> Map[str, str | None, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_MapText],
) -> Map[str, None, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_MapText],
) -> Map[str | None, str | None, list[Piece[str]] | None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_MapText],
) -> Map[str, str, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_MapText],
) -> Map[str, None, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_MapText],
) -> Map[None, str, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_MapText],
) -> Map[None, None, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_MapText],
) -> Map[str, str, list[Piece[str]]]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_MapText],
) -> Map[str, None, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_MapText],
) -> Map[str, str | None, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: bool | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_MapText],
) -> Map[str, None, None]: ...
@overload
def map(
    commands: Iterable[Args | LateCommand[Open]],
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_MapText],
) -> Map[str | None, str | None, list[Piece[str]] | None]: ...
@overload
def map(
    commands: Iterable[Args | Mapping[str, Any] | LateCommand],
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_MapBytes],
) -> Map[Any, Any, Any]: ...
@overload
def map(
    commands: Iterable[Args | Mapping[str, Any] | LateCommand],
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_MapText],
) -> Map[Any, Any, Any]: ...
@overload
def map(
    commands: Iterable[Args | Mapping[str, Any] | LateCommand],
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_MapText],
) -> Map[Any, Any, Any]: ...
@overload
def map(
    commands: Iterable[Args | Mapping[str, Any] | LateCommand],
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_MapText],
) -> Map[Any, Any, Any]: ...
@overload
def map(
    commands: Iterable[Args | Mapping[str, Any] | LateCommand],
    *,
    no_such_parameter: Slip,
    **options: Any,
) -> Map[Any, Any, Any]: ...
@overload
def map(
    commands: Iterable[Args | Mapping[str, Any] | LateCommand] | Slip,
    *,
    stdout: Slip | Sink = -1,
    stderr: Slip | Sink = -1,
    pty: Slip | bool | tuple[int, int] = False,
    merged: Slip | bool = False,
    text: Slip | bool = ...,
    encoding: Slip | str | None = ...,
    errors: Slip | str | None = ...,
    shell: Slip | bool | StrOrBytesPath = ...,
    env: Slip | Env | None = ...,
    extra_env: Slip | ExtraEnv | None = ...,
    cwd: Slip | StrOrBytesPath | None = ...,
    user: Slip | str | int | None = ...,
    group: Slip | str | int | None = ...,
    extra_groups: Slip | Iterable[str | int] | None = ...,
    umask: Slip | int | None = ...,
    rlimits: Slip | Mapping[str, int | tuple[int, int]] | None = ...,
    nice: Slip | int | None = ...,
    process_group: Slip | int | None = ...,
    start_new_session: Slip | bool = ...,
    die_with_parent: Slip | bool | str | int = ...,
    blocked_signals: Slip | Iterable[str | int] | None = ...,
    ignored_signals: Slip | Iterable[str | int] | None = ...,
    default_signals: Slip | Iterable[str | int] | None = ...,
    cpu_affinity: Slip | Iterable[int] | None = ...,
    sched_policy: Slip | str | None = ...,
    ionice: Slip | str | None = ...,
    oom_score_adj: Slip | int | None = ...,
    cgroup: Slip | StrOrBytesPath | None = ...,
    chroot: Slip | StrOrBytesPath | None = ...,
    no_new_privs: Slip | bool = ...,
    new_keyring: Slip | bool = ...,
    pass_fds: Slip | Iterable[int] = ...,
    liveness: Slip | bool = ...,
    stop: Slip | _core.Stop | str | Signals | None = ...,
    timeout: Slip | Seconds | None = ...,
    idle_timeout: Slip | Seconds | None = ...,
    until: Slip | str = ...,
    ok_codes: Slip | Collection[int] | None = ...,
    limit: Slip | int | str | _core.Limit | None = ...,
    keep_full: Slip | StrOrBytesPath | None = ...,
    stdin: Slip | Stdin = ...,
    parallel: Slip | int | None = ...,
    ordered: Slip | bool = ...,
    ahead: Slip | int | None = ...,
    stop_after_failures: Slip | int | None = ...,
    deadline: Slip | Seconds | None = ...,
    journal: Slip | StrOrBytesPath | Journal | None = ...,
    executor: Slip | Executor | None = ...,
    cancel: Slip | _core.Cancel | None = ...,
    on_event: Slip | Callable[[Event], object] | None = ...,
    input: Slip | Data | None = ...,
    on_line: Slip | Callable[[Any, Literal["stdout", "stderr"], int], object] | None = ...,
    **no_such_parameter: Slip,
) -> Map: ...
@overload
async def pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | BytesStageFn,
    stdout: Pipe = -1,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_PipelineBytes],
) -> PipelineResult[bytes]: ...
@overload
async def pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | BytesStageFn,
    stdout: Elsewhere,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_PipelineBytes],
) -> PipelineResult[None, bytes]: ...
@overload
async def pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdout: Pipe = -1,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_PipelineText],
) -> PipelineResult[str]: ...
@overload
async def pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdout: Elsewhere,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_PipelineText],
) -> PipelineResult[None, str]: ...
@overload
async def pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdout: Pipe = -1,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_PipelineText],
) -> PipelineResult[str]: ...
@overload
async def pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdout: Elsewhere,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_PipelineText],
) -> PipelineResult[None, str]: ...
@overload
async def pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdout: Pipe = -1,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_PipelineText],
) -> PipelineResult[str]: ...
@overload
async def pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdout: Elsewhere,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_PipelineText],
) -> PipelineResult[None, str]: ...
@overload
async def pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | StageFn,
    no_such_parameter: Slip,
    **options: Any,
) -> PipelineResult[Any]: ...
@overload
async def pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | StageFn | Slip,
    stdout: Slip | Sink = -1,
    text: Slip | bool = ...,
    encoding: Slip | str | None = ...,
    errors: Slip | str | None = ...,
    shell: Slip | bool | StrOrBytesPath = ...,
    env: Slip | Env | None = ...,
    extra_env: Slip | ExtraEnv | None = ...,
    cwd: Slip | StrOrBytesPath | None = ...,
    user: Slip | str | int | None = ...,
    group: Slip | str | int | None = ...,
    extra_groups: Slip | Iterable[str | int] | None = ...,
    umask: Slip | int | None = ...,
    rlimits: Slip | Mapping[str, int | tuple[int, int]] | None = ...,
    nice: Slip | int | None = ...,
    process_group: Slip | int | None = ...,
    start_new_session: Slip | bool = ...,
    die_with_parent: Slip | bool | str | int = ...,
    blocked_signals: Slip | Iterable[str | int] | None = ...,
    ignored_signals: Slip | Iterable[str | int] | None = ...,
    default_signals: Slip | Iterable[str | int] | None = ...,
    cpu_affinity: Slip | Iterable[int] | None = ...,
    sched_policy: Slip | str | None = ...,
    ionice: Slip | str | None = ...,
    oom_score_adj: Slip | int | None = ...,
    cgroup: Slip | StrOrBytesPath | None = ...,
    chroot: Slip | StrOrBytesPath | None = ...,
    no_new_privs: Slip | bool = ...,
    new_keyring: Slip | bool = ...,
    pass_fds: Slip | Iterable[int] = ...,
    liveness: Slip | bool = ...,
    stop: Slip | _core.Stop | str | Signals | None = ...,
    stdin: Slip | Stdin = ...,
    stderr: Slip | Sink = ...,
    limit: Slip | int | str | _core.Limit | None = ...,
    timeout: Slip | Seconds | None = ...,
    idle_timeout: Slip | Seconds | None = ...,
    success: Slip | Literal["forgiving", "strict", "last"] = ...,
    ok_codes: Slip | Mapping[int, Iterable[int]] | None = ...,
    elastic: Slip | bool | Overflow | Mapping[int, bool | Overflow] = ...,
    check: Slip | bool = ...,
    on_timeout: Slip | Literal["raise", "return"] = ...,
    cancel: Slip | _core.Cancel | None = ...,
    on_event: Slip | Callable[[Event], object] | None = ...,
    input: Slip | Data | None = ...,
    **no_such_parameter: Slip,
) -> PipelineResult: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | BytesStageFn,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_SpawnPipelineBytes],
) -> PipelineChild[bytes, bytes, None]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | BytesStageFn,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_SpawnPipelineBytes],
) -> PipelineChild[bytes, bytes, bytes]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | BytesStageFn,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_SpawnPipelineBytes],
) -> PipelineChild[bytes, None, None]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | BytesStageFn,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_SpawnPipelineBytes],
) -> PipelineChild[bytes, None, bytes]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | BytesStageFn,
    stdin: NoPipe = None,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_SpawnPipelineBytes],
) -> PipelineChild[None, bytes, None]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | BytesStageFn,
    stdin: Pipe,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_SpawnPipelineBytes],
) -> PipelineChild[None, bytes, bytes]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | BytesStageFn,
    stdin: NoPipe = None,
    stdout: Elsewhere,
    stderr: Elsewhere,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_SpawnPipelineBytes],
) -> PipelineChild[None, None, None]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | BytesStageFn,
    stdin: Pipe,
    stdout: Elsewhere,
    stderr: Elsewhere,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_SpawnPipelineBytes],
) -> PipelineChild[None, None, bytes]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | BytesStageFn,
    stdin: NoPipe = None,
    stdout: Sink = -1,
    stderr: Sink = -1,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_SpawnPipelineBytes],
) -> PipelineChild[bytes | None, bytes | None, None]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | BytesStageFn,
    stdin: Pipe,
    stdout: Sink = -1,
    stderr: Sink = -1,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[_SpawnPipelineBytes],
) -> PipelineChild[bytes | None, bytes | None, bytes]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[str, str, None]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[str, str, str]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[str, None, None]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[str, None, str]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: NoPipe = None,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[None, str, None]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: Pipe,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[None, str, str]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: NoPipe = None,
    stdout: Elsewhere,
    stderr: Elsewhere,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[None, None, None]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: Pipe,
    stdout: Elsewhere,
    stderr: Elsewhere,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[None, None, str]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: NoPipe = None,
    stdout: Sink = -1,
    stderr: Sink = -1,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[str | None, str | None, None]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: Pipe,
    stdout: Sink = -1,
    stderr: Sink = -1,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[str | None, str | None, str]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[str, str, None]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[str, str, str]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[str, None, None]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[str, None, str]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: NoPipe = None,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[None, str, None]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: Pipe,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[None, str, str]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: NoPipe = None,
    stdout: Elsewhere,
    stderr: Elsewhere,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[None, None, None]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: Pipe,
    stdout: Elsewhere,
    stderr: Elsewhere,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[None, None, str]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: NoPipe = None,
    stdout: Sink = -1,
    stderr: Sink = -1,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[str | None, str | None, None]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: Pipe,
    stdout: Sink = -1,
    stderr: Sink = -1,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[str | None, str | None, str]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[str, str, None]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[str, str, str]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: NoPipe = None,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[str, None, None]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: Pipe,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[str, None, str]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: NoPipe = None,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[None, str, None]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: Pipe,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[None, str, str]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: NoPipe = None,
    stdout: Elsewhere,
    stderr: Elsewhere,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[None, None, None]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: Pipe,
    stdout: Elsewhere,
    stderr: Elsewhere,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[None, None, str]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: NoPipe = None,
    stdout: Sink = -1,
    stderr: Sink = -1,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[str | None, str | None, None]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | TextStageFn,
    stdin: Pipe,
    stdout: Sink = -1,
    stderr: Sink = -1,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[_SpawnPipelineText],
) -> PipelineChild[str | None, str | None, str]: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | StageFn,
    no_such_parameter: Slip,
    **options: Any,
) -> Any: ...
@overload
def spawn_pipeline(
    *stages: Args | Mapping[str, Any] | LateCommand | LatePipeline | Fan | StageFn | Slip,
    stdin: Slip | Stdin = None,
    stdout: Slip | Sink = -1,
    stderr: Slip | Sink = -1,
    text: Slip | bool = ...,
    encoding: Slip | str | None = ...,
    errors: Slip | str | None = ...,
    shell: Slip | bool | StrOrBytesPath = ...,
    env: Slip | Env | None = ...,
    extra_env: Slip | ExtraEnv | None = ...,
    cwd: Slip | StrOrBytesPath | None = ...,
    user: Slip | str | int | None = ...,
    group: Slip | str | int | None = ...,
    extra_groups: Slip | Iterable[str | int] | None = ...,
    umask: Slip | int | None = ...,
    rlimits: Slip | Mapping[str, int | tuple[int, int]] | None = ...,
    nice: Slip | int | None = ...,
    process_group: Slip | int | None = ...,
    start_new_session: Slip | bool = ...,
    die_with_parent: Slip | bool | str | int = ...,
    blocked_signals: Slip | Iterable[str | int] | None = ...,
    ignored_signals: Slip | Iterable[str | int] | None = ...,
    default_signals: Slip | Iterable[str | int] | None = ...,
    cpu_affinity: Slip | Iterable[int] | None = ...,
    sched_policy: Slip | str | None = ...,
    ionice: Slip | str | None = ...,
    oom_score_adj: Slip | int | None = ...,
    cgroup: Slip | StrOrBytesPath | None = ...,
    chroot: Slip | StrOrBytesPath | None = ...,
    no_new_privs: Slip | bool = ...,
    new_keyring: Slip | bool = ...,
    pass_fds: Slip | Iterable[int] = ...,
    liveness: Slip | bool = ...,
    stop: Slip | _core.Stop | str | Signals | None = ...,
    limit: Slip | int | str | _core.Limit | None = ...,
    timeout: Slip | Seconds | None = ...,
    idle_timeout: Slip | Seconds | None = ...,
    success: Slip | Literal["forgiving", "strict", "last"] = ...,
    ok_codes: Slip | Mapping[int, Iterable[int]] | None = ...,
    elastic: Slip | bool | Overflow | Mapping[int, bool | Overflow] = ...,
    overflow: Slip | Overflow | Literal["spill", "drop_oldest", "drop_newest", "fail"] = ...,
    stall_after: Slip | Seconds | None = ...,
    on_timeout: Slip | Literal["raise", "return"] = ...,
    cancel: Slip | _core.Cancel | None = ...,
    on_event: Slip | Callable[[Event], object] | None = ...,
    input: Slip | Data | None = ...,
    **no_such_parameter: Slip,
) -> PipelineChild: ...
