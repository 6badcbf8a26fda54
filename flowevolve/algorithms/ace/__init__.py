from flowevolve.algorithms.ace.algorithm import ACE
from flowevolve.algorithms.ace.config import ACEConfig

__all__ = ["ACE", "ACEConfig"]
