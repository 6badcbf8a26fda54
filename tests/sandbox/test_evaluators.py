"""Evaluators on this machine, and those of a cluster in this process, keep to what all do."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox.evaluators import Evaluators
from flowevolve.sandbox.local import LocalEvaluators
from flowevolve.sandbox.nodes.leases import LeasedEvaluators
from tests.support.evaluators_conformance import ADD, EvaluatorsConformance
from tests.support.memory_cluster import Fault, MemoryCluster

pytestmark = pytest.mark.anyio


class TestLocal(EvaluatorsConformance):
    def evaluators(self, settings: SandboxSettings) -> Evaluators:
        return LocalEvaluators(settings)

    async def test_where_no_folder_for_work_can_be_it_says_so(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = self.settings.model_copy(update={"isolation": "limits"})
        async with self.sandbox(settings) as (sandbox, _):
            with monkeypatch.context() as patched:
                patched.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
                with pytest.raises(InputError, match=r"gone.*Set TMPDIR to a folder of yours"):
                    await sandbox.run(ADD, call="add", arguments=[1])
            after = await sandbox.run(ADD, call="add", arguments=[1])
        assert after.result == {"sum": 2}


class TestCluster(EvaluatorsConformance):
    faults: tuple[Fault, ...] = ()

    def evaluators(self, settings: SandboxSettings) -> Evaluators:
        one = settings.model_copy(update={"concurrency": 1})
        return LeasedEvaluators(MemoryCluster(lambda: LocalEvaluators(one), faults=self.faults))


class TestClusterThatLosesAndRepeats(TestCluster):
    faults = ("repeat", "none", "lose_after", "repeat", "lose_before")
