"""The memory-time integral of a program, as CSE measures it: the mean over several runs without the extremes.

Source: "Controlled Self-Evolution for Algorithmic Code Optimization", its appendices on metrics and on rewards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from typing_extensions import Unpack

from flowevolve._util.errors import InputError
from flowevolve.sandbox.outcome import Outcome
from flowevolve.sandbox.pool import RunOptions, Sandbox

SAMPLE_SECONDS = 0.002
RUNS = 5


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measurement of one program. If a run fails, so does the measurement, and no further run follows."""

    integral: float | None
    """The mean over the runs in megabyte-seconds, without the extremes; None if a run failed."""
    outcomes: tuple[Outcome, ...]

    @property
    def integrals(self) -> tuple[float, ...]:
        """The integral of each run in megabyte-seconds, in the order of the runs."""
        return tuple(integral(outcome.samples) for outcome in self.outcomes)


async def measure(sandbox: Sandbox, source: str, *, runs: int = RUNS, **options: Unpack[RunOptions]) -> Measurement:
    """Run a program ``runs`` times (at least 3) on a core that no other measurement uses at the same time.

    Raises:
        InputError: if ``runs`` is below 3.
    """
    if runs < 3:
        raise InputError(f"sandbox: runs is {runs}, but has to be at least 3, as the two extremes are left out")
    outcomes = await sandbox.run_pinned(source, sample_seconds=SAMPLE_SECONDS, runs=runs, **options)
    if outcomes[-1].status != "ok":
        return Measurement(None, tuple(outcomes))
    return Measurement(middle(integral(outcome.samples) for outcome in outcomes), tuple(outcomes))


def middle(figures: Iterable[float]) -> float:
    """The mean of three or more figures without the smallest and the largest."""
    return fmean(sorted(figures)[1:-1])


def integral(samples: Sequence[tuple[float, float]]) -> float:
    """The integral over (seconds, megabytes) samples by the trapezoidal rule, in megabyte-seconds."""
    return sum((later - earlier) * (after + before) / 2 for (earlier, before), (later, after) in pairwise(samples))
