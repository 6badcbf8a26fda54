"""The machine, versions, commit and date that a figure was measured with."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from bench._lib.history import git
from flowevolve._util.cores import processor_name

PACKAGES = ("flowevolve", "aiohttp", "anyio", "openai", "pydantic", "numpy", "uvloop")
"""The packages whose versions a result names, if they are installed."""


def environment() -> dict[str, object]:
    """Machine, versions, commit and date for a result file, in the same form for all benches."""
    machine = {
        "system": platform.system(),
        "processor": platform.machine(),
        "model": processor_name(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "python": platform.python_version(),
    }
    return {
        "machine": machine,
        "versions": {name: found for name in PACKAGES if (found := _version(name)) is not None},
        "commit": git("rev-parse", "--short", "HEAD") or None,
        "uncommitted_changes": bool(git("status", "--porcelain", "--", "*.py")),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
