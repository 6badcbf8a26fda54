"""What a method's best candidate was worth once a given amount was spent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Spent = tuple[float, int, int, float]
"""The seconds, answered calls and tokens after which a method would have returned a candidate, and its worth."""
Unit = Literal["seconds", "calls", "tokens"]
_PLACES: dict[Unit, int] = {"seconds": 0, "calls": 1, "tokens": 2}


def worth_at(run: Sequence[Sequence[float]], spent: Unit, most: float) -> float:
    """The worth of the latest candidate that the method had once it had spent ``most`` of the unit ``spent``; before
    the first, the seed's. ``run`` has a `Spent` for each candidate, in order.
    """
    return next((each[-1] for each in reversed(run) if each[_PLACES[spent]] <= most), run[0][-1])
