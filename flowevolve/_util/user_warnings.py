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
    _warn(message, UserWarning)


def warn_of_old_name(message: str) -> None:
    """Warn at the same line that something has a new name, and that the old one will be gone."""
    _warn(message, DeprecationWarning)


def _warn(message: str, category: type[Warning]) -> None:
    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=3 if frame is None else level)
