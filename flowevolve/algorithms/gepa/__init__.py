"""GEPA: reflective prompt evolution."""

from flowevolve.algorithms.gepa.algorithm import GEPA as GEPA
from flowevolve.algorithms.gepa.config import GEPAConfig as GEPAConfig
