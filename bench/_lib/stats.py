"""Small statistics over repeats, and who and what a figure was measured with."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import numpy as np

PACKAGES = ("flowevolve", "aiohttp", "anyio", "openai", "pydantic", "numpy")
"""Whose versions a result names, where they are installed."""


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
    """Machine, versions, commit and date, for a result file: one way for all benches."""
    machine = {
        "system": platform.system(),
        "processor": platform.machine(),
        "model": _processor_model(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "python": platform.python_version(),
    }
    return {
        "machine": machine,
        "versions": {name: found for name in PACKAGES if (found := _version(name)) is not None},
        "commit": _git("rev-parse", "--short", "HEAD") or None,
        "uncommitted_changes": bool(_git("status", "--porcelain", "--", "*.py")),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _git(*arguments: str) -> str:
    root = Path(__file__).parents[2]
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False).stdout.strip()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor_model() -> str | None:
    """As Linux names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def as_json(value: Spread) -> dict[str, float]:
    return asdict(value)


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with the bounds of its 95 % bootstrap interval."""

    value: float
    low: float
    high: float
    n: int


def interval(
    groups: Sequence[Sequence[float]], statistic: Literal["mean", "median"] = "mean", resamples: int = 10_000
) -> Interval:
    """Percentile bootstrap over all values, resampled inside each group: groups are fixed, what is in them is drawn.

    The resampling is seeded, so equal values give equal bounds.
    """
    generator = np.random.default_rng(0)
    of = np.mean if statistic == "mean" else np.median
    parts = [np.asarray(group, dtype=float) for group in groups]
    drawn = [part[generator.integers(len(part), size=(resamples, len(part)))] for part in parts]
    low, high = np.percentile(of(np.concatenate(drawn, axis=1), axis=1), [2.5, 97.5])
    values = np.concatenate(parts)
    return Interval(float(of(values)), float(low), float(high), len(values))
