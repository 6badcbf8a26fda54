"""Calls under way in worker threads. A thread can't be ended from outside, so users are told what they wait for."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TypeVar, TypeVarTuple

from flowevolve._util.errors import EndedInThreadError

T = TypeVar("T")
Args = TypeVarTuple("Args")

_CALLERS = (str(Path(__file__).parents[1]), str(Path(asyncio.__file__).parent))
"""The folders of this package and of asyncio, whose code calls other people's functions."""
_since: dict[int, float] = {}
"""When each thread began its present work, in seconds of real time, by thread id."""


def noted(function: Callable[[*Args], T], *args: *Args) -> T:
    """Call a function in this thread. `under_way` reports the call while it lasts.

    Raises:
        EndedInThreadError: if the function tried to end the process.
    """
    thread = threading.get_ident()
    _since[thread] = time.monotonic()
    try:
        return function(*args)
    except (KeyboardInterrupt, SystemExit) as error:
        raise EndedInThreadError(error) from error
    finally:
        del _since[thread]


def under_way() -> list[str]:
    """Which functions are being called in threads, at which line they are, and for how long: the longest first.

    Calls at the same line are reported together, with the age of the oldest.
    """
    frames, now = sys._current_frames(), time.monotonic()
    calls = sorted(_since.copy().items(), key=lambda call: call[1])
    places: dict[str, list[float]] = {}
    for thread, since in calls:
        if thread in frames:
            places.setdefault(called(frames[thread]), []).append(now - since)
    return [
        f"{place}, called {ages[0]:.0f} s ago{f', {len(ages)} times' if len(ages) > 1 else ''}"
        for place, ages in places.items()
    ]


def called(frame: FrameType) -> str:
    """The innermost function that this package or asyncio called, and the line where it is now."""
    while frame.f_back is not None and not _is_caller(frame) and not _is_caller(frame.f_back):
        frame = frame.f_back
    return f"{frame.f_code.co_qualname}() at line {frame.f_lineno} of {frame.f_code.co_filename}"


def _is_caller(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_CALLERS)
