"""What a method's best candidate was worth when so much was spent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Spent = tuple[float, int, int, float]
"""From when on a method would have returned a candidate, in seconds, answered calls and tokens; what that is worth."""
Unit = Literal["seconds", "calls", "tokens"]
_PLACES: dict[Unit, int] = {"seconds": 0, "calls": 1, "tokens": 2}


def worth_at(run: Sequence[Sequence[float]], spent: Unit, most: float) -> float:
    """The worth of the last candidate that was there when so much was spent; at first, of the seed. ``run`` has a
    `Spent` for each candidate, in order.
    """
    return next((each[-1] for each in reversed(run) if each[_PLACES[spent]] <= most), run[0][-1])
