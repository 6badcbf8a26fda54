"""Which published programs can be run on which of our problems, and how their scores are compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.published import wrappers
from flowevolve.problems.catalog import PROBLEMS
from flowevolve.programs import Problem, Verdict


@dataclass(frozen=True, slots=True)
class Published:
    """A published program with its score."""

    id: str
    problem: str
    program: str
    score: float
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Family:
    """Published programs for one problem."""

    problem: str
    """Its name in the file of published programs."""
    ours: str
    """The name of our problem."""
    wrapper: str
    """Source that is added below a program, and calls it."""
    theirs: Callable[[Published], float]
    """The published figure that is compared."""
    value: Callable[[Sequence[Verdict]], float]
    """Our figure on the same scale."""
    tolerance: float
    """The relative difference up to which two figures agree."""
    data: str | None = None
    """The file or folder of instances, below the folder of the data; None if the problem needs none."""
    prelude: str = ""
    """Source that is added above a program."""
    higher_is_better: bool = True

    def make(self, data: Path, limits: object) -> Problem:
        """Our problem, on the instances that the published scores are for.

        Raises:
            InputError: if the data or the limits can't be read.
        """
        settings = {"limits": limits} | ({} if self.data is None else {"data": data / self.data})
        return PROBLEMS.make(self.ours, settings, "task")

    def source(self, program: str) -> str:
        """The source of a published program as one of ours."""
        return f"{self.prelude}\n{program}\n\n{self.wrapper}"


def metric(name: str) -> Callable[[Published], float]:
    """The published metric of this name, or the score if that is missing."""
    return lambda published: published.metrics.get(name, published.score)


def first(verdicts: Sequence[Verdict]) -> float:
    return verdicts[0].value


def total(name: str) -> Callable[[Sequence[Verdict]], float]:
    """The sum of a metric over all cases."""
    return lambda verdicts: math.fsum(verdict.metrics[name] for verdict in verdicts)


def cloudcast_cost(published: Published) -> float:
    """The total cost in dollars, from LEVI's score: 0 for $1,199 and more, 100 for $626.24 and less."""
    return 1199.0 - published.score / 100 * (1199.0 - 626.24)


def inverse_mean_pressure(verdicts: Sequence[Verdict]) -> float:
    return len(verdicts) / total("pressure")(verdicts)


def prism_figure(published: Published) -> float:
    """1 over the mean pressure, of which LEVI's score is a linear function.

    Two published pairs of figures determine the function: its best program has 87.4096 and 26.26 - 1 in its table 1,
    where 1 is added if nothing fails, and its seed has 60.8 and 20.89.
    """
    return 20.89 + (published.score - 60.8) * (25.26 - 20.89) / (87.4096 - 60.8)


FAMILIES: Sequence[Family] = (
    Family(
        "codeevolve/circle_packing_square/26",
        "circle_packing_26",
        wrappers.circles("circle_packing26"),
        metric("radii_sum"),
        first,
        1e-3,
    ),
    Family(
        "codeevolve/circle_packing_square/32",
        "circle_packing_32",
        wrappers.circles("circle_packing32"),
        metric("radii_sum"),
        first,
        1e-3,
    ),
    Family("levi/circle_packing", "circle_packing_26", wrappers.CENTRES_AND_RADII, metric("score"), first, 1e-3),
    Family(
        "openevolve/circle_packing", "circle_packing_26", wrappers.CENTRES_AND_RADII, metric("sum_radii"), first, 1e-3
    ),
    Family(
        "codeevolve/minimizing_max_min_dist/2",
        "min_max_distance_2d",
        wrappers.points("min_max_dist_dim2_16"),
        metric("min_max_ratio"),
        first,
        1e-3,
    ),
    Family(
        "codeevolve/minimizing_max_min_dist/3",
        "min_max_distance_3d",
        wrappers.points("min_max_dist_dim3_14"),
        metric("min_max_ratio"),
        first,
        1e-3,
    ),
    Family("codeevolve/second_autocorr_ineq", "autocorrelation_2", wrappers.HEIGHTS, metric("c2"), first, 1e-3),
    Family(
        "levi/txn_scheduling",
        "transaction_scheduling",
        wrappers.SCHEDULE,
        metric("makespan"),
        total("makespan"),
        0.02,
        "adrs/txn_workloads.jsonl",
        wrappers.WORKLOAD,
        higher_is_better=False,
    ),
    Family(
        "levi/prism",
        "model_placement",
        wrappers.PLACE,
        prism_figure,
        inverse_mean_pressure,
        0.01,
        "adrs/prism_seed42_50.jsonl",
    ),
    Family(
        "levi/cloudcast",
        "cloudcast",
        wrappers.BROADCAST,
        cloudcast_cost,
        total("cost"),
        0.015,
        "adrs",
        wrappers.TOPOLOGY,
        higher_is_better=False,
    ),
)
"""Published programs for problems whose instances can be had. Those for spot scheduling, EPLB and LLM-SQL can't be run:
their traces, loads and tables are not published with a licence.
"""
