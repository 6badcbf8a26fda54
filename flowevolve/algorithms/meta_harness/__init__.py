"""Meta-Harness: evolution of the code around a model."""

from flowevolve.algorithms.meta_harness.algorithm import MetaHarness as MetaHarness
from flowevolve.algorithms.meta_harness.config import MetaHarnessConfig as MetaHarnessConfig
