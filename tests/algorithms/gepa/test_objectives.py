"""Runs of GEPA with several objectives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bench._lib.house_style import make_rows
from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.config.run import parse_config
from flowevolve.core.artifact import Artifact
from flowevolve.core.assessment import Assessment
from flowevolve.core.task import ChatModel, Dataset, Example, Rollout, Task
from flowevolve.runner.result import Result
from flowevolve.runner.resume import resume
from flowevolve.runner.run import run
from flowevolve.tasks.house_style import house_style_task
from flowevolve.tasks.instructions import InstructionFollowing

PLAIN = house_style_task(make_rows(rules=8, per_example=3, overlap=0.3, rows=24, seed=1))


class WithBrevity(InstructionFollowing):
    """Scores have a metric beside their value: how short the output is."""

    def __init__(self, data: Dataset) -> None:
        super().__init__(data)

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        rollout = await super().rollout(artifact, example, llm)
        brevity = 1 / (1 + len(rollout.output))
        return replace(rollout, score=replace(rollout.score, metrics={"brevity": brevity}))


def evolve(
    archive: Mapping[str, object],
    out: Path | None = None,
    settings: Mapping[str, object] | None = None,
    task: Task | None = None,
) -> Result:
    table = {
        "clock": "virtual",
        "algorithm": {"archive": archive, "max_in_flight": 4},
        "sim": {"preset": "easy"},
        "budget": {"proposals": 10},
        **(settings or {}),
    }
    config = parse_config(table, "test")

    async def go() -> Result:
        return await run(config, task=task or WithBrevity(PLAIN.data), out=out)

    return clock.run(go, clock="virtual")


def test_parents_are_selected_from_the_fronts_of_objectives() -> None:
    result = evolve({"fronts": "hybrid", "objectives": ["brevity", "-length"]})
    pool = result.report.pool
    added = [each for _, each in pool.candidates() if pool.status(each.id) == "confirmed"]
    means = {each.id: Assessment.of(each).metrics["brevity"] for each in added}
    assert len(added) > 2
    front = {each.id for each in result.frontier}
    assert max(means, key=means.__getitem__) in front
    assert min(added, key=lambda each: sum(map(len, each.artifact.values()))).id in front
    assert result.best is not None
    assert result.best.metrics["brevity"] == pytest.approx(means[result.best.id])


def test_a_run_with_objectives_is_resumed(tmp_path: Path) -> None:
    evolve({"fronts": "cartesian", "objectives": ["brevity"]}, tmp_path / "run")

    async def go_on() -> Result:
        changes = ["budget.proposals=16"]
        return await resume(tmp_path / "run", changes=changes, task=WithBrevity(PLAIN.data))

    whole = evolve({"fronts": "cartesian", "objectives": ["brevity"]}, settings={"budget": {"proposals": 16}})
    resumed = clock.run(go_on, clock="virtual")
    assert len(resumed.frontier) > 0
    assert resumed.report.spent.proposals == whole.report.spent.proposals


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"racing": {"policy": "bound"}}, "'hybrid' needs whole evaluations"),
        ({"speculation": {"alpha": {"evaluate": 0.5}}}, "'hybrid' needs whole evaluations"),
    ],
)
def test_fronts_that_would_miss_objectives_are_refused(settings: Mapping[str, object], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        evolve({"fronts": "hybrid", "objectives": ["brevity"]}, settings=settings)


def test_an_objective_that_the_scores_do_not_have_is_told_with_the_seed() -> None:
    with pytest.raises(
        InputError, match=re.escape("no score of the seed has 'speed' in its metrics; they have brevity")
    ):
        evolve({"fronts": "objective", "objectives": ["speed"]})


class WithRareBrevity(WithBrevity):
    """Only some scores have the metric."""

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        rollout = await super().rollout(artifact, example, llm)
        rare = example.id in {each.id for each in self.data.val[:3]}
        return rollout if rare else replace(rollout, score=replace(rollout.score, metrics={}))


def test_an_objective_that_some_scores_of_the_seed_lack_is_told_in_a_warning() -> None:
    rows = len(PLAIN.data.val)
    with pytest.warns(
        UserWarning, match=f"objectives: only 3 of the {rows} scores of the seed have 'brevity' in their metr"
    ):
        evolve({"fronts": "hybrid", "objectives": ["-length", "brevity"]}, task=WithRareBrevity(PLAIN.data))
