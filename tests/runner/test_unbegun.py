"""Runs that failed or were killed before they began, or before their seed was measured."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

import flowevolve as fe
from bench._lib.house_style import make_rows
from flowevolve._util import clock
from flowevolve._util.errors import BackendRefusedError, BackendUnreachableError, InputError
from flowevolve.runner.result import Result
from flowevolve.tasks.house_style import house_style_task
from tests.support.journals import edited
from tests.support.resuming import config, resume, run


class RefusedFrom:
    """A task that is refused all answers after so many, until ``left`` is None."""

    def __init__(self, left: int) -> None:
        self._task = house_style_task(make_rows(rules=6, per_example=2, overlap=0.3, rows=30, seed=1))
        self.name, self.data = self._task.name, self._task.data
        self.left: int | None = left

    def seed(self) -> fe.Artifact:
        return self._task.seed()

    async def rollout(self, artifact: fe.Artifact, example: fe.Example, llm: fe.ChatModel) -> fe.Rollout:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise BackendRefusedError("the key is spent")
        return await self._task.rollout(artifact, example, llm)


def test_a_run_that_failed_before_it_began_leaves_the_directory_to_the_next(tmp_path: Path) -> None:
    run(tmp_path / "a")
    with pytest.raises(InputError, match="no such run directory"):
        run(tmp_path / "b", start={"run": str(tmp_path / "nothing")}, seed=7)
    first = run(tmp_path / "b", start={"run": str(tmp_path / "a")}, seed=7)
    assert first.report.stop_reason == "proposals"
    with pytest.raises(InputError, match="holds a run already"):
        run(tmp_path / "b", seed=7)


def test_a_run_that_failed_before_it_began_is_begun_by_resume_with_any_settings(tmp_path: Path) -> None:
    before = run(tmp_path / "a")
    with pytest.raises(InputError, match="no such run directory"):
        run(tmp_path / "b", start={"run": str(tmp_path / "nothing")}, seed=7)
    result, events = resume(tmp_path / "b", f"start.run={tmp_path / 'a'}", "seed=8")
    assert events[0].kind == "run.start"
    assert result.seed_score == before.seed_score
    assert tomllib.loads((tmp_path / "b" / "config.toml").read_text())["seed"] == 8
    log = [json.loads(line)["seq"] for line in (tmp_path / "b" / "events.jsonl").read_text().splitlines()]
    assert log == list(range(len(log)))
    again, _ = resume(tmp_path / "b", "budget.proposals=12")
    assert again.report.spent.proposals > result.report.spent.proposals


def test_a_run_killed_before_its_first_event_is_begun_by_resume(tmp_path: Path) -> None:
    before = run(tmp_path)
    with edited(tmp_path) as database:
        database.execute("DELETE FROM events")
        database.execute("DELETE FROM calls")
    with pytest.raises(InputError):  # its result says that there was more
        resume(tmp_path)
    (tmp_path / "result.json").unlink()
    after, _ = resume(tmp_path)
    assert after.to_json() == before.to_json()


def test_a_run_whose_budget_was_too_small_to_begin_with_goes_on_when_it_is_raised(tmp_path: Path) -> None:
    too_small = r"budget.rollouts is too small to evaluate what the run begins with"
    with pytest.raises(InputError, match=too_small):
        run(tmp_path / "run", budget={"rollouts": 2})
    with pytest.raises(InputError, match=too_small):
        resume(tmp_path / "run")
    raised, _ = resume(tmp_path / "run", "budget.rollouts=200")
    fresh = run(tmp_path / "fresh", budget={"rollouts": 200})
    assert raised.best is not None
    assert fresh.best is not None
    assert raised.seed_score == fresh.seed_score
    assert raised.report.spent.rollouts <= 200
    assert raised.best.score == fresh.best.score


def test_a_run_whose_evaluations_were_refused_goes_on_when_the_cause_is_gone(tmp_path: Path) -> None:
    task = RefusedFrom(4)

    async def go() -> Result:
        return await fe.run(config(), task=task, out=tmp_path)

    with pytest.raises(BackendRefusedError, match="the key is spent"):
        clock.run(go, clock="virtual")
    with pytest.raises(BackendRefusedError, match="the key is spent"):
        resume(tmp_path, task=task)
    task.left = None
    result, _ = resume(tmp_path, task=task)
    assert result.report.stop_reason == "proposals"
    assert result.seed_score is not None


def test_a_script_whose_server_was_not_up_yet_is_started_again(tmp_path: Path) -> None:
    def script(llm: fe.LLM | None, kind: clock.Clock) -> Result:
        return fe.optimize(llm=llm, budget=fe.Budget(proposals=3), clock=kind, out=tmp_path, resume=True)

    down = fe.LLM("simulated", base_url="http://127.0.0.1:9/v1", patience_seconds=0.01)
    for _ in range(2):
        with pytest.raises(BackendUnreachableError):
            script(down, "real")
    assert script(None, "virtual").report.stop_reason == "proposals"
