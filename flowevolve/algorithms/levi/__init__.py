"""LEVI: a calibrated archive, roles for large and small models, proxy benchmarks."""

from flowevolve.algorithms.levi.algorithm import LEVI as LEVI
from flowevolve.algorithms.levi.config import LEVIConfig as LEVIConfig
