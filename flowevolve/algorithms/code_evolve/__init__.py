from flowevolve.algorithms.code_evolve.algorithm import CodeEvolve
from flowevolve.algorithms.code_evolve.config import CodeEvolveConfig

__all__ = ["CodeEvolve", "CodeEvolveConfig"]
