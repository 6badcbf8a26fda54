"""What Ray is told by environment variables. It reads them as it is imported, so they are set before."""

from __future__ import annotations

import os

_OURS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Twenty lines of a dead node's log, and two on why a node may be dead; we say that it is lost.
    "RAY_DEDUP_LOGS_SKIP_REGEX": "^(Raylet is terminated|The node with node id: .* has been marked dead)",
}


def set_ray_environment() -> None:
    """Set those variables, but for the ones that are set already."""
    for name, value in _OURS.items():
        os.environ.setdefault(name, value)
