from flowevolve.algorithms.cse.algorithm import CSE
from flowevolve.algorithms.cse.config import CSEConfig

__all__ = ["CSE", "CSEConfig"]
