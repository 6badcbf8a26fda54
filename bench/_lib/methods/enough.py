"""How many proposals a window of a method should have, so that a rate can be told from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LEAST = 50
"""Proposals that every run should have in its window."""
TURNS = 3
"""How often each flow, or place of a batch, should make one in it: what was begun before the window is gone then."""


def needed(row: Mapping[str, Any]) -> float:
    """How many there should be, for a row of a result (`bench._lib.methods.ratios.row`)."""
    return max(LEAST, TURNS * max(row["values"]["flows"])) if "flows" in row.get("values", {}) else LEAST
