"""ContextEvolve: agents that keep the history of a search short for whoever writes its next program."""

from flowevolve.algorithms.context_evolve.algorithm import ContextEvolve as ContextEvolve
from flowevolve.algorithms.context_evolve.config import ContextEvolveConfig as ContextEvolveConfig
