"""Results out of what the core reports, and the exceptions that they raise."""

from __future__ import annotations

from ._result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._core import RawResult
    from ._types import Args, Seconds


def result_of(
    args: Args, raw: RawResult, decoding: tuple[str, str] | None
) -> Result[Any, Any, Any]:
    """The result of a run or a child that was given `args`."""
    return Result(args, raw, decoding, _called_process_error)


def _called_process_error(result: Result, text: str) -> Exception:
    from ._run_errors import CalledProcessError

    return CalledProcessError(result, text)


def raise_for(
    result: Any,
    io_error: tuple[int, str] | None,
    check: bool,
    on_timeout: str,
    timeout: Seconds | None,
    idle_timeout: Seconds | None,
) -> None:
    """Raises what this result is to raise, if anything."""
    text = result.explanation
    reason = result.reason
    if io_error is not None:
        from ._run_errors import SystemFailure

        errno, words = io_error
        raise SystemFailure(result, f"reading the output failed: {words}\n{text}", errno)
    if reason == "output_limit":
        from ._run_errors import OutputLimitExceeded

        raise OutputLimitExceeded(result, text)
    if reason == "cancelled":
        from ._run_errors import Cancelled

        raise Cancelled(result, text)
    if reason == "timeout" and on_timeout == "raise":
        from ._run_errors import RunTimeout

        raise RunTimeout(result, text, timeout)
    if reason == "idle_timeout" and on_timeout == "raise":
        from ._run_errors import IdleTimeout

        if result.stdout_info is None:
            text += (
                "\n  hint: stderr alone was watched, for stdout is not captured: capture it, "
                "with tee=True to show it"
            )
        raise IdleTimeout(result, text, idle_timeout)
    if check:
        result.check_returncode()


def error_for(
    result: Any,
    io_error: tuple[int, str] | None,
    on_timeout: str,
    timeout: Seconds | None,
    idle_timeout: Seconds | None,
) -> BaseException | None:
    """What `raise_for` raises for a limit, for another one to raise."""
    from ._run_errors import RunError

    try:
        raise_for(result, io_error, False, on_timeout, timeout, idle_timeout)
    except RunError as error:
        return error.with_traceback(None)
    return None
