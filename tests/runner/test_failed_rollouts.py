"""Rollouts that fail have the worst score, so whoever sees the result is told how many did, and why the last one did."""

from __future__ import annotations

import asyncio
import io
import json
from dataclasses import asdict
from functools import partial
from pathlib import Path
from shutil import copytree

import pytest
from rich.console import Console

import flowevolve as fe
from flowevolve._util import clock
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout, Score
from flowevolve.journal.reading import RecordedRun
from flowevolve.journal.run_directory import RESULT
from flowevolve.telemetry.failed_rollouts import FailedRollouts
from flowevolve.telemetry.summary import summarize
from tests.support.command import flowevolve

CONFIG = fe.Config.model_validate({"budget": {"proposals": 4}, "clock": "virtual", "held_out": True})


class Fails:
    """On some examples, of which some are in each split."""

    name = "fails"
    data = Dataset(*([Example(f"{split}{n}", {}) for n in range(6)] for split in ("train", "val", "test")))

    def __init__(self, *failing: str) -> None:
        self.failing = failing

    def seed(self) -> fe.Artifact:
        return fe.Artifact({"prompt": "x"})

    async def rollout(self, artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
        output = await llm([fe.Message("system", artifact["prompt"])])
        if example.id in self.failing:
            raise ValueError("no such\nword")
        return Rollout(
            example.id, output, Score(0.5, "Be brief.", passed=False), (Call("prompt", {"request": "hello"}, output),)
        )


def run(out: Path, *failing: str) -> fe.Result:
    return clock.run(lambda: fe.run(CONFIG, task=Fails(*failing), out=out), clock="virtual")


class Cancelled(Fails):
    """Waits on some examples for something that others cancel, as of a session that is closed."""

    async def rollout(self, artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
        if example.id in self.failing:
            answer = asyncio.get_running_loop().create_future()
            answer.cancel()
            await answer
        return await super().rollout(artifact, example, llm)


def written(out: Path) -> int:
    with RecordedRun(out) as recorded:
        return sum(event.kind == "rollout.failed" for event in recorded.events())


def in_the_summary(result: fe.Result) -> str:
    shown = io.StringIO()
    Console(file=shown, width=300).print(summarize(result.to_json()))
    return shown.getvalue()


def test_they_are_counted_and_told_wherever_a_result_is_seen(tmp_path: Path) -> None:
    result = run(tmp_path / "run", "val1", "val2")
    found = result.failed_rollouts
    assert found.count == written(tmp_path / "run") >= 2
    said = (
        f"{found.count} of {result.report.spent.rollouts} rollouts failed and have the worst score; the last: "
        "the task failed with ValueError: no such word"
    )
    assert said in repr(result)
    assert said in result._repr_html_()
    assert said in in_the_summary(result)
    assert fe.Result.load(tmp_path / "run").failed_rollouts == found


def test_where_none_failed_nothing_is_said(tmp_path: Path) -> None:
    result = run(tmp_path / "run")
    assert result.failed_rollouts == FailedRollouts()
    assert "rollouts failed" not in repr(result) + in_the_summary(result)


def test_status_and_report_tell_of_them_also_before_a_run_has_ended(tmp_path: Path) -> None:
    result = run(tmp_path / "done", "val1", "val2")
    copytree(tmp_path / "done", tmp_path / "cut")
    (tmp_path / "cut" / RESULT).unlink()
    said = result.failed_rollouts.said(result.report.spent.rollouts)
    lines = flowevolve("status", "cut", "done", cwd=tmp_path).stdout.splitlines()
    assert lines[2:] == [f"{name}: {said}" for name in ("cut", "done")]
    told = json.loads(flowevolve("status", "cut", "done", "--json", cwd=tmp_path).stdout)
    assert [each["failed_rollouts"] for each in told] == [asdict(result.failed_rollouts)] * 2
    assert f"{result.failed_rollouts.count} of" in flowevolve("report", "cut", cwd=tmp_path).stdout


def test_a_result_that_does_not_say_how_many_failed_is_read_as_before(tmp_path: Path) -> None:
    run(tmp_path / "run")
    file = tmp_path / "run" / RESULT
    table = json.loads(file.read_text())
    del table["failed_rollouts"]
    file.write_text(json.dumps(table))
    assert fe.Result.load(tmp_path / "run").failed_rollouts == FailedRollouts()


def test_those_from_before_an_interrupt_are_counted_once(tmp_path: Path) -> None:
    out, task = tmp_path / "run", Fails("val1", "train2")

    async def cut_off() -> None:
        async with fe.open_run(CONFIG, task=task, out=out) as engine:
            async for event in engine.events():
                if event.kind == "rollout.failed":
                    engine.cancel()

    clock.run(cut_off, clock="virtual")
    before = written(out)
    assert before >= 1
    result = clock.run(partial(fe.resume, out, task=task), clock="virtual")
    assert result.failed_rollouts.count == written(out) > before


def test_one_that_waits_for_something_cancelled_fails_alone() -> None:
    result = clock.run(lambda: fe.run(CONFIG, task=Cancelled("val1")), clock="virtual")
    assert result.stop_reason == "proposals"
    assert result.failed_rollouts.count >= 1
    assert "it raised CancelledError, but nobody has cancelled it" in result.failed_rollouts.last


@pytest.mark.filterwarnings("ignore:metric. ")
def test_rows_on_which_a_metric_fails_are_counted_among_them_and_in_the_test() -> None:
    rows = [{"question": f"Say {n}.", "answer": str(n)} for n in range(12)]

    def metric(row: dict[str, str], output: str) -> float:
        return 0.5 / (int(row["answer"]) % 3)

    result = fe.optimize(
        prompt="Answer briefly.",
        train=rows[:8],
        test=rows[8:],
        metric=metric,
        on_error="count",
        llm="simulated",
        budget=fe.Budget(proposals=4),
        clock="virtual",
        progress=False,
    )
    assert result.failed_rollouts.count > 0
    assert "ZeroDivisionError" in result.failed_rollouts.last
    assert result.held_out is not None
    assert result.best is not None
    assert result.held_out.failed == (1 if result.best.id == result.candidates[0].id else 2)
