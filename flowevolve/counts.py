"""Counts of what went through a run: facts for reports, nothing decides by them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class StageCounts:
    """What went through one stage. ``busy_seconds`` sums over its workers."""

    items_in: int = 0
    items_out: int = 0
    consumed: int = 0
    discarded: int = 0
    busy_seconds: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class StalenessCounts:
    """``seen`` counts items taken with a version gap or derived from a revoked candidate."""

    seen: int = 0
    discarded: int = 0
    repaired: int = 0
    max_gap: int = 0
