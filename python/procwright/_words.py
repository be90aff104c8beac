"""Seconds and exceptions, as texts have them."""

from __future__ import annotations


def shown_seconds(timeout: float | None) -> str:
    """Seconds to a thousandth; those of a moment that is past are 0."""
    if timeout is None or timeout == float("inf"):
        return "any time"
    return f"{max(timeout, 0.0):.3f}".rstrip("0").rstrip(".") + " s"


def said(error: BaseException) -> str:
    """The error with its class, as the last line of a traceback has it."""
    words = str(error)
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
