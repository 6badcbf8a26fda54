"""The processor cores that this process may use."""

from __future__ import annotations

import os


def usable_cores() -> set[int]:
    """The cores that this process may run on; all cores on systems where that can't be restricted."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))
