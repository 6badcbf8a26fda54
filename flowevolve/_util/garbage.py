"""How often Python collects garbage while a run goes on."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

YOUNG_OBJECTS = 250_000
"""New objects between two collections. Python's default of 700 is reached within a few LLM calls, and 50,000 with every
larger validation, because each of its calls in flight takes some 150 objects.
"""


class _Seldom:
    """The collector's setting, which the runs in all threads of a process share."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._before = gc.get_threshold()

    def begin(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._before = gc.get_threshold()
                if 0 < self._before[0] < YOUNG_OBJECTS:
                    gc.set_threshold(YOUNG_OBJECTS, *self._before[1:])

    def end(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                gc.set_threshold(*self._before)


_seldom = _Seldom()


@contextmanager
def seldom() -> Iterator[None]:
    """Collect garbage less often, because hundreds of calls in flight are thousands of objects that are in use.

    A process that collects even less often, or never, keeps its setting. If several runs overlap, the last one to end
    restores the setting from before the first.
    """
    _seldom.begin()
    try:
        yield
    finally:
        _seldom.end()
