"""What nobody knows before a run, how far it may be off, and the interval that follows.

A run is simulated as it is expected to be, and once for each end of the range of each doubt, all with seeds of their
own. What these runs took is a sample of what a run may take. In logarithms, the interval goes `DEVIATIONS` standard
deviations of this sample to both sides, and by `SIMULATION_OFF` more, as independent errors add up, for what a
simulation gets wrong whatever it assumes. Both numbers and the ranges of the doubts were chosen on the tuning runs of
``python -m bench.plan`` and on nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

DEVIATIONS = 2.4
SIMULATION_OFF = 0.2
DIGITS = 6
"""So many digits of an amount are written."""
LEAST = 0.03
"""Every interval goes at least so far to both sides, as a share: budgets are met about as closely as that."""


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
    """What is expected of an amount, and the interval that it should lie in at least four times out of five."""

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
        amounts = {"expected": self.expected, "low": self.low, "high": self.high}
        return {name: float(f"{amount:.{DIGITS}g}") for name, amount in amounts.items()}


def estimate(taken: Sequence[float], *, settled: bool = False) -> Estimate:
    """What a run takes of something, from what at least two simulated runs took. With ``settled`` the budget says it,
    so that nothing can be off but how closely that is kept.
    """
    if min(taken) <= 0:
        return Estimate(fmean(taken), min(taken), max(taken))
    logs = [math.log(each) for each in taken]
    middle, spread = fmean(logs), DEVIATIONS * stdev(logs)
    reach = max(LEAST, spread) if settled or spread < LEAST else math.hypot(spread, SIMULATION_OFF)
    return Estimate(math.exp(middle), math.exp(middle - reach), math.exp(middle + reach))
