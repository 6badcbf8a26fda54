"""What Ray is told by environment variables. It reads them as it is imported, so they are set before."""

from __future__ import annotations

import os

_OURS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": "^Raylet is terminated",  # twenty lines of a dead node's log; we say that it is lost
}


def set_ray_environment() -> None:
    """Set those variables, but for the ones that are set already."""
    for name, value in _OURS.items():
        os.environ.setdefault(name, value)
