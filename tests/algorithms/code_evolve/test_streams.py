"""CodeEvolve as a stream and in lockstep: islands that don't wait for each other, and going on after a stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import replace
from itertools import groupby
from typing import Any, cast

import anyio
import pytest

import flowevolve as fe
from flowevolve.algorithms.code_evolve import CodeEvolve
from flowevolve.algorithms.code_evolve.islands import Islands
from flowevolve.algorithms.code_evolve.payloads import Chosen, Prompted
from flowevolve.core.context import StageContext
from flowevolve.core.graph import Emit, Graph, Stage, StageFunction
from flowevolve.core.item import Item
from flowevolve.core.pool import Pool
from tests.support.code_evolving import algorithm, moved, programs, ran, selected, settings
from tests.support.depth import cuts
from tests.support.interruption import events_of
from tests.support.nearest import evolve_nearest
from tests.support.number_programs import NumberTask


class Slow(CodeEvolve):
    """One island whose programs take an hour to write."""

    slow: int | None = 0

    def graph(self) -> Graph:
        graph = super().graph()
        stages = [
            replace(each, run=self._slowed(each.run)) if isinstance(each, Stage) and each.name == "generate" else each
            for each in graph.stages
        ]
        return Graph(tuple(stages), graph.entry)

    def _slowed(self, run: StageFunction) -> StageFunction:
        async def slowed(item: Item[object], context: StageContext, /) -> AsyncGenerator[Emit]:
            payload = item.payload
            chosen = payload.chosen if isinstance(payload, Prompted) else item.expect(Chosen)
            if chosen.island == self.slow:
                await anyio.sleep(3600)
            async for emission in run(item, context):
                yield emission

        return slowed


def born(islands: Islands) -> list[int]:
    return [island.evaluations for island in islands]


def test_no_island_waits_for_another() -> None:
    config = settings(migration={"topology": "empty"})
    even, slow = Slow(NumberTask(), config), Slow(NumberTask(), config)
    even.slow = None
    for each in (even, slow):
        ran(each, budget=fe.Budget(minutes=10))
    assert born(slow.islands)[0] == 0
    for alone, beside in zip(born(even.islands)[1:], born(slow.islands)[1:], strict=True):
        assert beside > 100
        assert beside == pytest.approx(alone, rel=0.1)


def test_in_lockstep_a_step_is_an_epoch_of_all_islands() -> None:
    evolved, _, facts = ran(algorithm(epoch=2), mode="sync", max_in_flight=1)
    rounds = [[cast(int, data["island"]) for data in selected(facts)][start : start + 6] for start in range(0, 60, 6)]
    assert all(sorted(each) == [0, 0, 1, 1, 2, 2] for each in rounds)
    stages = [str(event.data["stage"]) for event in events_of(facts, "item.taken")][2:]
    steps = [name for name, _ in groupby(stages)]
    assert [name for name in steps if name != "meta"][:8] == ["select", "generate", "evaluate", "update"] * 2
    best = evolved.best()
    assert best is not None
    assert best.mean_score > 1.3


def test_in_both_forms_one_flow_at_a_time_takes_the_same_decisions() -> None:
    stream = ran(algorithm(islands=1), max_in_flight=1, budget=fe.Budget(evaluations=25))
    steps = ran(algorithm(islands=1), mode="sync", max_in_flight=1, budget=fe.Budget(evaluations=25))
    assert contents(stream[1].pool) == contents(steps[1].pool)


@pytest.mark.parametrize("name", ["cvt", "grid"])
def test_parents_are_elites_of_their_island(name: str) -> None:
    evolved, _, facts = ran(algorithm(archive={"name": name, "cells": 9}))
    for island in evolved.islands:
        assert 1 < len(island.ranked) <= 9
        assert all(each.attributes["failure"] is None for each in island.ranked)
    best = evolved.best()
    assert best is not None
    assert best.mean_score > 1.3
    assert {data["operator"] for data in selected(facts)} == {"start", "exploit", "explore"}


# Going on


def contents(pool: Pool) -> list[object]:
    """All that is in the pools, and how it got there."""
    return [
        (name, each.id, each.artifact.id, each.parents, dict(each.scores), dict(each.attributes), pool.status(each.id))
        for name, each in pool.candidates()
    ]


def state(islands: Islands) -> list[object]:
    return [
        (
            [each.id for each in island.ranked],
            [(each.id, each.mean_score) for each in island.prompts],
            island.exploring,
            island.evaluations,
            sorted(island.failures),
        )
        for island in islands
    ]


def test_interrupted_anywhere_a_run_one_flow_wide_ends_as_it_would_have() -> None:
    options: dict[str, Any] = {"max_in_flight": 1, "budget": fe.Budget(evaluations=18)}
    evolved, report, facts = ran(algorithm(migration={"every": 2}), **options)
    assert moved(facts)
    for cut in cuts(facts, 7):
        again, other, _ = ran(algorithm(migration={"every": 2}), facts[:cut], **options)
        assert contents(other.pool) == contents(report.pool), cut
        assert state(again.islands) == state(evolved.islands), cut


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_interrupted_with_many_flows_nothing_is_done_twice_and_turns_stay_even(share: float) -> None:
    _, _, facts = ran()
    _, report, combined = ran(before=facts[: int(share * len(facts))])
    assert report.spent.evaluations >= 90
    islands = [cast(int, data["island"]) for data in selected(combined)]
    assert max(Counter(islands).values()) - min(Counter(islands).values()) <= 6
    flows = Counter(str(event.data["item"]).partition(".")[0] for event in events_of(combined, "code_evolve.selected"))
    assert set(flows.values()) == {1}
    sent = Counter(
        (each.attributes["origin"], each.attributes["island"])
        for each in programs(report.pool)
        if "origin" in each.attributes
    )
    assert set(sent.values()) == {1}


# Real programs


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_with_the_simulated_coder_real_programs_get_better(mode: str) -> None:
    result = evolve_nearest(
        {"name": "code_evolve", "mode": mode, "islands": 3, "start_programs": 2, "max_in_flight": 6}
    )
    assert result.report.error is None
    assert result.best is not None
    assert result.seed_score is not None
    assert result.best.score > result.seed_score * 0.6
