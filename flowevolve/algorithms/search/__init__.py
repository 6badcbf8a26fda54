"""Plain searches over programs, which others are measured against."""

from flowevolve.algorithms.search.algorithm import BestOfN as BestOfN
from flowevolve.algorithms.search.algorithm import OnePlusLambda as OnePlusLambda
from flowevolve.algorithms.search.algorithm import SearchConfig as SearchConfig
