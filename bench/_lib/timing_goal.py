"""How far off predictions of a server's timing may be."""

from __future__ import annotations

from collections.abc import Mapping

GOAL: Mapping[str, float] = {"median": 0.15, "worst": 0.3}
"""The largest relative errors allowed: of the median case and of the worst."""


def is_met(middle: float, worst: float, goal: Mapping[str, float] = GOAL) -> bool:
    return middle <= goal["median"] and worst <= goal["worst"]
