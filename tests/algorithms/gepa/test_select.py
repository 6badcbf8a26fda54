"""What GEPA's select stage hands out, with a merge in between."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence

import pytest

from flowevolve._util import clock
from flowevolve.algorithms.gepa.config import GEPAConfig
from flowevolve.algorithms.gepa.select import MergeSchedule, Select
from flowevolve.archives.pareto import ParetoArchive
from flowevolve.core.algorithm import Algorithm
from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import Budget, Cost
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.events import Event
from flowevolve.core.graph import NO_EMISSIONS, CommittingStage, Emit, Graph, Stage
from flowevolve.core.item import Item
from flowevolve.core.pool import Add, Candidate
from flowevolve.engine.engine import Engine
from flowevolve.engine.report import RunReport
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.policies.selection import CurrentBest, RoundRobin
from flowevolve.stages.payloads import Proposed

TRAIN = tuple(f"t{number}" for number in range(9))


SCORES = {"a": (1.0, 0.0, 0.0), "b": (0.0, 1.0, 0.0)}
"""Of two children of one seed, on three examples."""


class Selecting(Algorithm):
    """A pool in which two lineages can be merged, and a select stage whose work goes nowhere."""

    name = "selecting"

    def __init__(self, scores: Mapping[str, Sequence[float]] = SCORES) -> None:
        self.proposed: list[Proposed] = []
        self._scores = scores
        self.archive, self.schedule = ParetoArchive(), MergeSchedule(5)
        self.archives = (self.archive, self.schedule)
        self._select = Select(self.archive, self.schedule, GEPAConfig(merge=True), CurrentBest(), RoundRobin(), TRAIN)

    def best(self) -> Candidate | None:
        return self.archive.best()

    def graph(self) -> Graph:
        return Graph(
            (
                Stage("select", self._select, ("generate", "screen")),
                Stage("generate", self._spend),
                Stage("screen", self._note),
                CommittingStage("update", self._spend),
            ),
            entry="select",
        )

    def apply_event(self, event: Event) -> None:
        self._select.apply_event(event)

    async def _note(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        self.proposed.append(item.expect(Proposed))
        for emission in NO_EMISSIONS:
            yield emission

    async def _spend(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        context.spend(Cost(proposals=1))
        for emission in NO_EMISSIONS:
            yield emission

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        seed = context.propose(Artifact({"a": "0", "b": "0"}), parents=[], operator="seed")
        context.commit([Add(seed.scored(on_examples((0.0, 0.0, 0.0))))])
        for component, scores in self._scores.items():
            child = context.propose(seed.artifact.replace(**{component: "1"}), parents=[seed], operator="reflect")
            context.commit([Add(child.scored(on_examples(scores)))])
        for emission in NO_EMISSIONS:
            yield emission


def on_examples(scores: Sequence[float]) -> dict[str, float]:
    return {f"v{place}": score for place, score in enumerate(scores)}


def events_of(algorithm: Selecting) -> list[Event]:
    events: list[Event] = []

    async def go() -> RunReport:
        client = LLMClient({}, Scheduler(1), RetryPolicy(), 0, lambda record: None)
        budget = Budget(proposals=8)
        return await Engine(algorithm, llm=client, budget=budget, max_in_flight=2, sinks=[events.append]).run()

    clock.run(go, clock="virtual")
    return events


@pytest.mark.parametrize("better", ["a", "b"])
def test_a_merge_is_screened_against_the_better_of_its_parents(better: str) -> None:
    algorithm = Selecting({name: (1.0, 1.0, 0.0) if name == better else (0.0, 0.0, 1.0) for name in ("a", "b")})
    events_of(algorithm)
    (merged,) = algorithm.proposed
    assert merged.baseline is not None
    assert dict(zip(merged.batch, merged.baseline, strict=True)) == {"v0": 1.0, "v1": 1.0, "v2": 0.0}
    assert merged.split == "val"
    assert dict(merged.candidate.artifact) == {"a": "1", "b": "1"}


def test_a_merge_skips_no_minibatch() -> None:
    events = events_of(Selecting())
    selected = [event.data for event in events if event.kind == "gepa.selected"]
    assert sum(data["ancestor"] is not None for data in selected) == 1
    batches = [data["batch"] for data in selected if data["ancestor"] is None]
    epoch = [name for batch in batches[:3] for name in batch]  # type: ignore[union-attr]
    assert sorted(map(str, epoch)) == sorted(TRAIN)
