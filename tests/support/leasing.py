"""Evaluators on a cluster in memory, whose nodes come and go as a test says."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox import Sandbox
from flowevolve.sandbox.nodes.leases import LeasedEvaluators
from flowevolve.sandbox.outcome import Outcome
from tests.support.memory_cluster import Fault, MemoryCluster
from tests.support.rehearsal import Rehearsal

SETTINGS = SandboxSettings(concurrency=2)


class Scene:
    """A cluster of rehearsals, and a sandbox on it."""

    def __init__(self, size: int = 2, faults: Sequence[Fault] = (), refuses: Sequence[str] = ()) -> None:
        self.nodes: list[Rehearsal] = []
        self.cluster = MemoryCluster(self._node, size, faults, refuses)
        self.told: list[str] = []
        self.evaluators = LeasedEvaluators(self.cluster, where="the Ray cluster", tell=self.told.append)
        self._sandbox = Sandbox(SETTINGS, self.evaluators)

    def _node(self) -> Rehearsal:
        self.nodes.append(Rehearsal())
        return self.nodes[-1]

    @property
    def ran(self) -> list[float]:
        return [seconds for node in self.nodes for seconds in node.ran]

    async def run(self, seconds: float, source: str = "") -> Outcome:
        return await self._sandbox.run(source, arguments=[seconds])

    async def measure(self, seconds: float) -> None:
        await self._sandbox.run_pinned("", arguments=[seconds])

    async def run_all(self, jobs: Sequence[float]) -> list[object]:
        results: dict[int, object] = {}

        async def one(place: int, seconds: float) -> None:
            results[place] = (await self.run(seconds)).result

        async with anyio.create_task_group() as tasks:
            for place, seconds in enumerate(jobs):
                tasks.start_soon(one, place, seconds)
        return [results[place] for place in range(len(jobs))]
