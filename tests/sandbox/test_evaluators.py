"""Evaluators on this machine, and those of a cluster in this process, keep to what all do."""

from __future__ import annotations

import pytest

from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox.evaluators import Evaluators
from flowevolve.sandbox.local import LocalEvaluators
from flowevolve.sandbox.nodes.leases import LeasedEvaluators
from tests.support.evaluators_conformance import EvaluatorsConformance
from tests.support.memory_cluster import Fault, MemoryCluster

pytestmark = pytest.mark.anyio


class TestLocal(EvaluatorsConformance):
    def evaluators(self, settings: SandboxSettings) -> Evaluators:
        return LocalEvaluators(settings)


class TestCluster(EvaluatorsConformance):
    faults: tuple[Fault, ...] = ()

    def evaluators(self, settings: SandboxSettings) -> Evaluators:
        one = settings.model_copy(update={"concurrency": 1})
        return LeasedEvaluators(MemoryCluster(lambda: LocalEvaluators(one), faults=self.faults))


class TestClusterThatLosesAndRepeats(TestCluster):
    faults = ("repeat", "none", "lose_after", "repeat", "lose_before")
