"""Records that are made while a run is at work say where they come from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

import flowevolve as fe
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.task import ChatModel, Task
from flowevolve.runner.assemble import make_task
from flowevolve.runner.result import Result
from flowevolve.runner.run import run
from flowevolve.telemetry.logs import configure_logs


@pytest.fixture(autouse=True)
def logs_of_others_are_left_as_they_were() -> Iterator[None]:
    yield
    structlog.reset_defaults()


class Complaining:
    """A user's task, which logs as any program does that uses structlog."""

    def __init__(self, task: Task) -> None:
        self.name, self.data, self.seed = task.name, task.data, task.seed
        self._task = task

    async def rollout(self, artifact: fe.Artifact, example: fe.Example, llm: ChatModel) -> fe.Rollout:
        rollout = await self._task.rollout(artifact, example, llm)
        await clock.in_thread(structlog.get_logger().warning, "odd.example")
        return rollout


@pytest.mark.parametrize("mode", ["stream", "sync"])
@pytest.mark.parametrize("kept", [True, False])
def test_a_warning_of_a_task_names_run_stage_and_item(
    mode: str, kept: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = parse_config({"clock": "virtual", "algorithm": {"mode": mode}, "budget": {"proposals": 3}}, "test")
    out = tmp_path / "run" if kept else None
    configure_logs(as_json=True)

    async def go() -> Result:
        result = await run(config, task=Complaining(make_task(config)), out=out)
        structlog.get_logger().warning("afterwards")
        return result

    result = clock.run(go, clock="virtual")
    *records, last = map(json.loads, capsys.readouterr().err.splitlines())
    odd = [record for record in records if record["event"] == "odd.example"]
    assert len(odd) >= result.report.spent.rollouts
    assert {record["run"] for record in odd} == {str(out) if kept else "gepa"}
    assert {record["stage"] for record in odd} <= {*result.report.stages, "finish"}
    assert len({record["item"] for record in odd}) > 2
    assert not last.keys() & {"run", "stage", "item"}
