# Written by ci/overloads.py, which says why.

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, overload

from typing_extensions import Unpack

from ._aio_child import Child
from ._aio_map import Map
from ._keywords import MapBytes, MapText, RunAny, RunBytes, RunText, SpawnBytes, SpawnText
from ._piece import Piece
from ._result import Result
from ._types import Args, Elsewhere, NoPipe, Pipe, Sink, Stdin

__all__ = ["map", "run", "spawn"]

@overload
async def run(
    args: Args,
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[RunBytes],
) -> Result[bytes, bytes, None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[RunBytes],
) -> Result[bytes, None, None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[RunBytes],
) -> Result[None, bytes, None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[RunBytes],
) -> Result[None, None, None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[RunBytes],
) -> Result[bytes, bytes, list[Piece[bytes]]]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[RunBytes],
) -> Result[bytes, None, None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[RunBytes],
) -> Result[bytes | None, bytes | None, list[Piece[bytes]] | None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[RunText],
) -> Result[str, str, None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[RunText],
) -> Result[str, None, None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[RunText],
) -> Result[None, str, None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[RunText],
) -> Result[None, None, None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[RunText],
) -> Result[str, str, list[Piece[str]]]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[RunText],
) -> Result[str, None, None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[RunText],
) -> Result[str | None, str | None, list[Piece[str]] | None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[RunText],
) -> Result[str, str, None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[RunText],
) -> Result[str, None, None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[RunText],
) -> Result[None, str, None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[RunText],
) -> Result[None, None, None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[RunText],
) -> Result[str, str, list[Piece[str]]]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[RunText],
) -> Result[str, None, None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[RunText],
) -> Result[str | None, str | None, list[Piece[str]] | None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[RunText],
) -> Result[str, str, None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[RunText],
) -> Result[str, None, None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[RunText],
) -> Result[None, str, None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[RunText],
) -> Result[None, None, None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[RunText],
) -> Result[str, str, list[Piece[str]]]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[RunText],
) -> Result[str, None, None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[RunText],
) -> Result[str | None, str | None, list[Piece[str]] | None]: ...
@overload
async def run(
    args: Args,
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: bool = ...,
    encoding: str | None = ...,
    errors: str | None = ...,
    **options: Unpack[RunAny],
) -> Result: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnBytes],
) -> Child[bytes, bytes, None, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnBytes],
) -> Child[bytes, bytes, bytes, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnBytes],
) -> Child[bytes, None, None, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnBytes],
) -> Child[bytes, None, bytes, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnBytes],
) -> Child[None, bytes, None, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnBytes],
) -> Child[None, bytes, bytes, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnBytes],
) -> Child[None, None, None, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnBytes],
) -> Child[None, None, bytes, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnBytes],
) -> Child[None, None, None, bytes]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnBytes],
) -> Child[None, None, bytes, bytes]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnBytes],
) -> Child[bytes, None, None, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnBytes],
) -> Child[bytes, None, bytes, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnBytes],
) -> Child[bytes | None, bytes | None, None, bytes | None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnBytes],
) -> Child[bytes | None, bytes | None, bytes, bytes | None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str, str, None, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str, str, str, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str, None, None, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str, None, str, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[None, str, None, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[None, str, str, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[None, None, None, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[None, None, str, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[None, None, None, str]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[None, None, str, str]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str, None, None, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str, None, str, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str | None, str | None, None, str | None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str | None, str | None, str, str | None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str, str, None, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str, str, str, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str, None, None, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str, None, str, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[None, str, None, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[None, str, str, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[None, None, None, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[None, None, str, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[None, None, None, str]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[None, None, str, str]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str, None, None, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str, None, str, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str | None, str | None, None, str | None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str | None, str | None, str, str | None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str, str, None, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str, str, str, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str, None, None, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str, None, str, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[None, str, None, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[None, str, str, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[None, None, None, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[None, None, str, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[None, None, None, str]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[None, None, str, str]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str, None, None, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str, None, str, None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str | None, str | None, None, str | None]: ...
@overload
def spawn(
    args: Args,
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
    **options: Unpack[SpawnText],
) -> Child[str | None, str | None, str, str | None]: ...
@overload
def spawn(
    args: Args,
    *,
    stdin: Stdin = None,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: bool = ...,
    encoding: str | None = ...,
    errors: str | None = ...,
    on_stdout_line: Callable[[str | bytes], object] | None = None,
    on_stderr_line: Callable[[str | bytes], object] | None = None,
    **options: Unpack[SpawnBytes],
) -> Child: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[MapBytes],
) -> Map[bytes, bytes, None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[MapBytes],
) -> Map[bytes, None, None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[MapBytes],
) -> Map[None, bytes, None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[MapBytes],
) -> Map[None, None, None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[MapBytes],
) -> Map[bytes, bytes, list[Piece[bytes]]]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[MapBytes],
) -> Map[bytes, None, None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: None = None,
    **options: Unpack[MapBytes],
) -> Map[bytes | None, bytes | None, list[Piece[bytes]] | None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[MapText],
) -> Map[str, str, None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[MapText],
) -> Map[str, None, None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[MapText],
) -> Map[None, str, None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[MapText],
) -> Map[None, None, None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[MapText],
) -> Map[str, str, list[Piece[str]]]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[MapText],
) -> Map[str, None, None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[True],
    encoding: str | None = None,
    errors: str | None = None,
    **options: Unpack[MapText],
) -> Map[str | None, str | None, list[Piece[str]] | None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[MapText],
) -> Map[str, str, None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[MapText],
) -> Map[str, None, None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[MapText],
) -> Map[None, str, None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[MapText],
) -> Map[None, None, None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[MapText],
) -> Map[str, str, list[Piece[str]]]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[MapText],
) -> Map[str, None, None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[False] = False,
    encoding: str,
    errors: str | None = None,
    **options: Unpack[MapText],
) -> Map[str | None, str | None, list[Piece[str]] | None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[MapText],
) -> Map[str, str, None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Pipe = -1,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[MapText],
) -> Map[str, None, None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Elsewhere,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[MapText],
) -> Map[None, str, None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Elsewhere,
    stderr: Elsewhere,
    pty: Literal[False] = False,
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[MapText],
) -> Map[None, None, None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Pipe = -1,
    stderr: Pipe = -1,
    pty: Literal[False] = False,
    merged: Literal[True],
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[MapText],
) -> Map[str, str, list[Piece[str]]]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Pipe = -1,
    stderr: Sink = -1,
    pty: Literal[True] | tuple[int, int],
    merged: Literal[False] = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[MapText],
) -> Map[str, None, None]: ...
@overload
def map(
    commands: Iterable[Args],
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: Literal[False] = False,
    encoding: None = None,
    errors: str,
    **options: Unpack[MapText],
) -> Map[str | None, str | None, list[Piece[str]] | None]: ...
@overload
def map(
    commands: Iterable[Args | Mapping[str, Any]],
    *,
    stdout: Sink = -1,
    stderr: Sink = -1,
    pty: bool | tuple[int, int] = False,
    merged: bool = False,
    text: bool = ...,
    encoding: str | None = ...,
    errors: str | None = ...,
    **options: Unpack[MapBytes],
) -> Map: ...
