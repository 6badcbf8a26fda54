"""Environment variables for Ray. It reads them when it is imported, so they have to be set before that."""

from __future__ import annotations

import os

_OURS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Twenty lines of a dead node's log, and two on why a node may be dead, are skipped: we report the loss ourselves.
    "RAY_DEDUP_LOGS_SKIP_REGEX": "^(Raylet is terminated|The node with node id: .* has been marked dead)",
}


def set_ray_environment() -> None:
    """Set these variables, except those that are set already."""
    for name, value in _OURS.items():
        os.environ.setdefault(name, value)
