"""GEPA's winner is chosen on fresh examples at the end, and the result says what it scored there."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

import flowevolve as fe
from flowevolve.algorithms.gepa import GEPA, GEPAConfig
from flowevolve.core.artifact import Artifact
from flowevolve.core.task import ChatModel, Dataset, Example, Rollout, Score
from flowevolve.llm.client.model import Model
from flowevolve.runner.result import Result
from flowevolve.telemetry.summary import summarize
from tests.support.interruption import Echo, evolve

ROLLOUTS = 700


@pytest.fixture(scope="module")
def result() -> Result:
    settings = {"finalists": 2}
    return fe.optimize(budget=fe.Budget(rollouts=ROLLOUTS), clock="virtual", settings=settings, progress=False)


def test_validation_and_fresh_examples_are_told_apart(result: Result) -> None:
    best = result.best
    assert best is not None
    assert best.fresh is not None
    assert best.interval is not None
    assert best.fresh.candidate == best.id
    assert best.fresh.source == "train"
    assert best.fresh.interval != best.interval
    assert result.report.spent.rollouts <= ROLLOUTS


def test_it_is_said_wherever_the_result_is(result: Result, tmp_path: Path) -> None:
    assert result.best is not None
    said = str(result.best.fresh)
    assert "fresh examples" in said
    assert said in repr(result)
    assert said in result._repr_html_()
    shown = io.StringIO()
    Console(file=shown, width=200).print(summarize(result.to_json()))
    assert said in shown.getvalue()
    loaded = Result.load(result.save(tmp_path / "saved.json"))
    assert loaded.best == result.best


def test_without_finalists_the_winner_is_the_best_by_validation() -> None:
    budget = fe.Budget(rollouts=250)
    plain = fe.optimize(budget=budget, clock="virtual", preset="plain", progress=False)
    assert plain.best is not None
    assert plain.best.fresh is None
    assert plain.best.score == max(each.mean_score for each in plain.report.pool.snapshot().candidates())


class FailsOnTraining(fe.Task):
    """A task that works for validation alone."""

    name = "fails on training"
    data = Dataset(
        train=[Example(f"t{row}", {"row": f"t{row}"}) for row in range(12)],
        val=[Example(f"v{row}", {"row": f"v{row}"}) for row in range(12)],
    )

    def seed(self) -> Artifact:
        return Artifact({"prompt": "You help."})

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        if example.id.startswith("t"):
            raise KeyError("answer")
        return Rollout(example.id, "", Score(0.5, "", passed=False))


def test_a_task_that_fails_on_fresh_examples_does_not_end_a_run_that_it_worked_for() -> None:
    gepa = GEPA(FailsOnTraining(), GEPAConfig(finalists=2))
    roles = {"task": Model(Echo(), "echo"), "reflection": Model(Echo(), "echo")}
    report, _ = evolve(gepa, roles=lambda: roles, budget=fe.Budget(rollouts=450), drain_seconds=60, most_in_vain=10_000)
    assert report.error is None
    assert report.stop_reason == "rollouts"
    assert report.spent.evaluations == 2, "final selection has tried"
    assert gepa.fresh_score() is None


def test_a_task_that_fails_on_every_training_example_is_told_as_that() -> None:
    roles = {"task": Model(Echo(), "echo"), "reflection": Model(Echo(), "echo")}
    report, _ = evolve(GEPA(FailsOnTraining(), GEPAConfig()), roles=lambda: roles, budget=fe.Budget(rollouts=450))
    assert "30 × every rollout failed: the task failed with KeyError: 'answer'" in str(report.error)


@pytest.mark.parametrize(("finalists", "kept"), [(0, 0), (2, 50)])
def test_what_final_selection_takes_is_kept_for_it(finalists: int, kept: int) -> None:
    gepa = GEPA(FailsOnTraining(), GEPAConfig(finalists=finalists))
    assert gepa.reserve_for_finish(lambda cost: cost.rollouts / 1000).rollouts == kept
