"""Classes that take types, as `Result[str]`, without `typing`, which is slow to import."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from typing import Generic as Generic

    from typing_extensions import TypeVar

    from ._types import Fixed

    _Data = str | bytes | None

    #: Data of stdout: `str` or `bytes`, None where it does not come to this process.
    Out = TypeVar("Out", covariant=True, default=_Data)
    #: Data of stderr.
    Err = TypeVar("Err", covariant=True, default=Out)
    #: Data of the outputs of each stage of a pipeline.
    Each = TypeVar("Each", covariant=True, default=Out)
    #: Data of stdin, None unless that is a pipe.
    In = TypeVar("In", covariant=True, default=Out | None)
    #: Data of both outputs in one stream, None unless that was asked for.
    Both = TypeVar("Both", covariant=True, default=_Data)
    #: Whether a command has options that say what comes of it: `Fixed`, or `Open` without.
    How = TypeVar("How", bound="Fixed", covariant=True, default=Any)
    #: Text or bytes.
    Text = TypeVar("Text", covariant=True, default=str | bytes)
else:
    Out = Err = Each = In = Both = How = Text = None

    class Generic:
        """`typing.Generic`, as far as classes of this package need it."""

        __slots__ = ()

        def __class_getitem__(cls, types):
            # `class Result(Generic[Out, Err])` has this class as its base; later,
            # `Result[str]` is what `list[str]` is.
            return cls if cls is Generic else type(list[int])(cls, types)
