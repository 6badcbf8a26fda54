"""How often Python looks for garbage in cycles while a run goes on."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG_OBJECTS = 50_000
"""New objects between two looks; Python's own 700 are made by a few calls."""


@contextmanager
def seldom() -> Iterator[None]:
    """Have the collector look seldom, as hundreds of calls in flight are thousands of objects that are no garbage.

    A process that collects more seldom still, or not at all, is left as it is.
    """
    before = gc.get_threshold()
    if 0 < before[0] < YOUNG_OBJECTS:
        gc.set_threshold(YOUNG_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
