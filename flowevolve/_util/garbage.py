"""How often Python collects garbage while a run goes on."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG_OBJECTS = 250_000
"""New objects between two collections. Python's default of 700 is reached within a few LLM calls, and 50,000 with every
larger validation, as each of its calls in flight takes some 150 objects.
"""


@contextmanager
def seldom() -> Iterator[None]:
    """Collect garbage less often, because hundreds of calls in flight are thousands of objects that are in use.

    A process that collects even less often, or never, keeps its setting.
    """
    before = gc.get_threshold()
    if 0 < before[0] < YOUNG_OBJECTS:
        gc.set_threshold(YOUNG_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
