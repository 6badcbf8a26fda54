"""What nobody knows before a run, how far it may be off, and the interval that follows.

Each doubt is simulated by itself, at both ends of its range. How far the outcomes lie above the expected one, and how
far below, is added up as independent errors are, in logarithms, with half of what lies on the other side, and widened
by `WIDENED`. These two numbers and the ranges were chosen on the tuning runs of ``python -m bench.plan`` and on nothing
else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDENED = 1.25
OTHER_SIDE = 0.5
LEAST = 0.03
"""Every interval goes at least so far to both sides, as a share: no two runs are alike."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What a simulation assumes. ``lengths`` and ``times`` multiply what is expected of answers and of the server."""

    gains: str = "normal"
    """How easily prompts become better: a preset of the simulated model. Most of what is accepted is validated whole,
    so this says what a proposal costs.
    """
    lengths: float = 1.0
    times: float = 1.0


EXPECTED = Assumptions()
LENGTHS_UNKNOWN, LENGTHS_MEASURED, TIMES_DIFFER = 1.4, 1.1, 1.1


def doubted(*, measured: bool) -> Sequence[Assumptions]:
    """What else may be. The range of lengths is smaller where they were ``measured``."""
    lengths = LENGTHS_MEASURED if measured else LENGTHS_UNKNOWN
    return (
        Assumptions(gains="easy"),
        Assumptions(gains="adversarial"),
        Assumptions(lengths=lengths),
        Assumptions(lengths=1 / lengths),
        Assumptions(times=TIMES_DIFFER),
        Assumptions(times=1 / TIMES_DIFFER),
    )


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is expected of an amount, and the interval that it should lie in four times out of five."""

    expected: float
    low: float
    high: float

    @property
    def factor(self) -> float:
        """How many times its lower end the interval's upper end is."""
        return self.high / self.low if self.low > 0 else math.inf

    def scaled(self, factor: float) -> Estimate:
        return Estimate(factor * self.expected, factor * self.low, factor * self.high)

    def to_json(self) -> dict[str, float]:
        return {"expected": self.expected, "low": self.low, "high": self.high}


def estimate(expected: float, others: Sequence[float]) -> Estimate:
    """An amount, which would be one of ``others`` under each of the doubted assumptions."""
    if expected <= 0:
        return Estimate(expected, expected, max([expected, *others]))
    off = [math.log(other / expected) for other in others if other > 0]
    below, above = (math.hypot(*(min(0.0, sign * each) for each in off)) for sign in (1, -1))
    down = max(LEAST, WIDENED * math.hypot(below, OTHER_SIDE * above))
    up = max(LEAST, WIDENED * math.hypot(above, OTHER_SIDE * below))
    return Estimate(expected, expected * math.exp(-down), expected * math.exp(up))
