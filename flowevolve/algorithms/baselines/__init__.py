"""Plain searches over programs, which others are measured against."""

from flowevolve.algorithms.baselines.algorithm import (
    BestOfN as BestOfN,
    OnePlusLambda as OnePlusLambda,
    SearchConfig as SearchConfig,
)
