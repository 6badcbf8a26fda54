"""The test at a run's end, in a run that is gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest

import flowevolve as fe
from bench._lib.house_style import make_rows
from flowevolve._util import clock
from flowevolve._util.errors import BackendRefusedError
from flowevolve.journal.reading import RecordedRun
from flowevolve.runner.result import Result
from flowevolve.tasks.house_style import house_style_task
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
