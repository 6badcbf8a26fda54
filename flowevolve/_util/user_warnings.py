"""Warnings that name the line of the user's code that called this library, where something can be changed."""

from __future__ import annotations

import inspect
import warnings

_BETWEEN = frozenset({"flowevolve", "typer", "click", "asyncio", "anyio", "contextlib", "threading", "concurrent"})
"""Top-level packages whose frames may lie between a warning and the user's call, which may be that of a whole run."""


def warn_user(message: str) -> None:
    """Warn at the innermost line outside the library, its command line and the event loop. If there is none, as in a
    thread of a run, warn at the line that called this.
    """
    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=2 if frame is None else level)
