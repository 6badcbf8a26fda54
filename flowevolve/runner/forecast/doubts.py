"""What is uncertain before a run, how far it may be off, and the interval that follows.

A run is simulated under the expected assumptions, and once for each end of the range of each uncertain one, every time
with another seed. What these runs used is a sample of what a run may use. In logarithms, the interval extends
`DEVIATIONS` standard deviations of this sample to both sides. `SIMULATION_OFF`, for what a simulation gets wrong under
any assumptions, is added as independent errors are, in quadrature. Both numbers and the ranges were chosen on the
tuning runs of ``python -m bench.plan`` and on nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

DEVIATIONS = 2.4
SIMULATION_OFF = 0.2
DIGITS = 6
"""The number of digits with which an amount is written."""
LEAST = 0.03
"""Every interval extends at least this far to both sides, as a share: budgets are met about as closely as that."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What a simulation assumes. ``lengths`` and ``times`` multiply what is expected of answers and of the server."""

    gains: str = "normal"
    """How easily prompts improve: a preset of the simulated model. Most of the accepted proposals are validated in
    full, so this determines what a proposal costs.
    """
    lengths: float = 1.0
    times: float = 1.0


EXPECTED = Assumptions()
LENGTHS_UNKNOWN, LENGTHS_MEASURED, TIMES_DIFFER = 1.4, 1.1, 1.1


def doubted(*, measured: bool) -> Sequence[Assumptions]:
    """The alternatives to the expected assumptions. The range of lengths is smaller if they were ``measured``."""
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
    """The expected value of an amount, and the interval that it should lie in at least four times out of five."""

    expected: float
    low: float
    high: float

    @property
    def factor(self) -> float:
        """The interval's upper end divided by its lower end."""
        return self.high / self.low if self.low > 0 else math.inf

    def scaled(self, factor: float) -> Estimate:
        return Estimate(factor * self.expected, factor * self.low, factor * self.high)

    def to_json(self) -> dict[str, float]:
        amounts = {"expected": self.expected, "low": self.low, "high": self.high}
        return {name: float(f"{amount:.{DIGITS}g}") for name, amount in amounts.items()}


def estimate(taken: Sequence[float], *, fixed: bool = False) -> Estimate:
    """The estimate of an amount, from what at least two simulated runs used. With ``fixed`` the budget fixes the
    amount, so that it can only be off by how closely the budget is met.
    """
    if min(taken) <= 0:
        return Estimate(fmean(taken), min(taken), max(taken))
    logs = [math.log(each) for each in taken]
    middle, spread = fmean(logs), DEVIATIONS * stdev(logs)
    reach = max(LEAST, spread) if fixed or spread < LEAST else math.hypot(spread, SIMULATION_OFF)
    return Estimate(math.exp(middle), math.exp(middle - reach), math.exp(middle + reach))
