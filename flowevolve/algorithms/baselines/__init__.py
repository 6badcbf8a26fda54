"""Plain searches over programs, which others are measured against."""

from flowevolve.algorithms.baselines.algorithm import BestOfN as BestOfN
from flowevolve.algorithms.baselines.algorithm import OnePlusLambda as OnePlusLambda
from flowevolve.algorithms.baselines.algorithm import SearchConfig as SearchConfig
