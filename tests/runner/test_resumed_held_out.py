"""The test at a run's end, in a run that is gone on with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import flowevolve as fe
from bench._lib.house_style import make_rows
from flowevolve._util import clock
from flowevolve._util.errors import BackendRefusedError
from flowevolve.journal.reading import RecordedRun
from flowevolve.runner.result import Result
from flowevolve.runner.result_parts import HeldOut
from flowevolve.tasks.house_style import house_style_task
from flowevolve.tasks.judging import Metric
from tests.support.resuming import config, resume, run


def test_the_calls_of_a_held_out_test_are_not_the_runs_whether_it_goes_on_after_it_or_not(tmp_path: Path) -> None:
    before = run(tmp_path, held_out=True)
    after, _ = resume(tmp_path, "budget.proposals=12")
    with RecordedRun(tmp_path) as recorded:
        calls = [call for call in recorded.calls() if call.stage != "held_out"]
    assert before.llm.requests < after.llm.requests == len(calls)


class Refused:
    """A task that is refused an answer once, on the first example that evolution never sees."""

    def __init__(self) -> None:
        self._task = house_style_task(make_rows(rules=6, per_example=2, overlap=0.3, rows=30, seed=1))
        self.name, self.data = self._task.name, self._task.data
        self._refuses = True

    def seed(self) -> fe.Artifact:
        return self._task.seed()

    async def rollout(self, artifact: fe.Artifact, example: fe.Example, llm: fe.ChatModel) -> fe.Rollout:
        if self._refuses and example in self.data.test:
            self._refuses = False
            raise BackendRefusedError("the key is spent")
        return await self._task.rollout(artifact, example, llm)


def test_a_run_whose_held_out_test_failed_writes_no_result_and_goes_on_with_the_test_alone(tmp_path: Path) -> None:
    task = Refused()

    async def go() -> Result:
        return await fe.run(config(held_out=True), task=task, out=tmp_path)

    with pytest.raises(BackendRefusedError, match="the key is spent"):
        clock.run(go, clock="virtual")
    assert not (tmp_path / "result.json").exists()
    result, _ = resume(tmp_path, task=task)
    assert result.held_out is not None
    assert (tmp_path / "result.json").exists()
    with RecordedRun(tmp_path) as recorded:
        stages = [call.stage for call in recorded.calls()]
    assert "held_out" not in stages[: result.llm.requests]
    assert set(stages[result.llm.requests :]) == {"held_out"}


SCORED: list[str] = []
"""The questions of the rows that a metric has scored."""
TRAIN = [{"question": f"q{n}", "answer": f"a{n}"} for n in range(8)]
TEST = [{"question": f"t{n}", "answer": f"a{n}"} for n in range(4)]


def half(row: dict[str, str], output: str) -> float:
    SCORED.append(row["question"])
    return 0.5


def quarter(row: dict[str, str], output: str) -> float:
    SCORED.append(row["question"])
    return 0.25


def evolve(out: Path, metric: Metric[dict[str, str]], test: Sequence[dict[str, str]]) -> tuple[HeldOut | None, int]:
    """What the test came to, and how many of its rows the metric has scored."""
    SCORED.clear()
    result = fe.optimize(
        prompt="Answer.",
        train=TRAIN,
        test=test,
        metric=metric,
        input="{question}",
        llm="simulated",
        clock="virtual",
        budget=fe.Budget(rollouts=30),
        out=out,
        resume=True,
        progress=False,
    )
    return result.held_out, sum(question.startswith("t") for question in SCORED)


def test_a_test_that_was_made_is_not_made_again_unless_its_rows_or_the_metric_have_changed(tmp_path: Path) -> None:
    first, scored = evolve(tmp_path, half, TEST)
    assert first is not None
    assert scored >= len(TEST)
    assert evolve(tmp_path, half, TEST) == (first, 0)
    with_others, scored = evolve(tmp_path, half, TEST[:3])
    assert with_others is not None
    assert (with_others.examples, scored >= 3) == (3, True)
    changed, scored = evolve(tmp_path, quarter, TEST[:3])
    assert changed is not None
    assert (changed.best_score, scored >= 3) == (0.25, True)
