"""Combee: many reflections make one proposal."""

from flowevolve.algorithms.combee.algorithm import Combee as Combee
from flowevolve.algorithms.combee.config import CombeeConfig as CombeeConfig
