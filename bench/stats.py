"""Small statistics over repeats, and who and what a figure was measured with."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np


@dataclass(frozen=True, slots=True)
class Spread:
    """Of one figure over seeds."""

    median: float
    low: float
    high: float
    n: int


def spread(values: Sequence[float]) -> Spread:
    """Median and range."""
    return Spread(float(np.median(values)), min(values), max(values), len(values))


def environment() -> dict[str, object]:
    """Machine, versions and commit, for a result file."""
    root = Path(__file__).parents[1]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, text=True, check=False
    )
    return {
        "machine": {"system": platform.system(), "processor": platform.machine(), "python": platform.python_version()},
        "versions": {name: version(name) for name in ("flowevolve", "anyio", "pydantic", "numpy")},
        "commit": commit.stdout.strip() or None,
    }


def as_json(value: Spread) -> dict[str, float]:
    return asdict(value)
