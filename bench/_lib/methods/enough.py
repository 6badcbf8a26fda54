"""How many proposals a method should make in the measured window, so that its rate is reliable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LEAST = 50
"""The fewest proposals that every run should make in its window."""
TURNS = 3
"""How many proposals each flow, or slot of a batch, should make in the window, so that few of them began before it."""


def needed(row: Mapping[str, Any]) -> float:
    """How many proposals the windows of this row of a result (`bench._lib.methods.ratios.row`) should have."""
    return max(LEAST, TURNS * max(row["values"]["flows"])) if "flows" in row.get("values", {}) else LEAST
