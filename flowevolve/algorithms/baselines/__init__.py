"""Plain searches over programs, as baselines for the other algorithms."""

from flowevolve.algorithms.baselines.algorithm import (
    BestOfN as BestOfN,
    OnePlusLambda as OnePlusLambda,
    SearchConfig as SearchConfig,
)
