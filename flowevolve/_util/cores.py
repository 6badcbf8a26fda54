"""The processor of this machine, and the cores of it that this process may use."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path


def usable_cores() -> set[int]:
    """The cores that this process may run on; all cores on systems where that can't be restricted."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


@cache
def processor_name() -> str:
    """The processor's name, or only its architecture where the system does not give the name as Linux does."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.machine()
