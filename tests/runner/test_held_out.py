"""The test at a run's end: what becomes of examples that fail in it."""

from __future__ import annotations

import io
import json
from math import nan
from pathlib import Path

import pytest
from rich.console import Console
from structlog.testing import capture_logs

import flowevolve as fe
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout, Score
from flowevolve.journal.run_directory import RESULT
from flowevolve.telemetry.summary import summarize

CONFIG = fe.Config.model_validate({"budget": {"proposals": 4}, "clock": "virtual", "held_out": True})


class Fails:
    """On two examples of the test split."""

    name = "fails"
    data = Dataset(*([Example(f"{split}{n}", {}) for n in range(6)] for split in ("train", "val", "test")))

    def seed(self) -> fe.Artifact:
        return fe.Artifact({"prompt": "x"})

    async def rollout(self, artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
        if example.id == "test3":
            raise ValueError("no such word")
        output = await llm([fe.Message("system", artifact["prompt"])])
        value = nan if example.id == "test4" else 0.5
        calls = (Call("prompt", {"request": "hello"}, output),)
        return Rollout(example.id, output, Score(value, "Be brief.", passed=False), calls)


def run(out: Path) -> fe.Result:
    return fe.clock.run(lambda: fe.run(CONFIG, task=Fails(), out=out), clock="virtual")


def test_rollouts_that_fail_are_counted_and_logged_in_one_line(tmp_path: Path) -> None:
    with capture_logs() as logs:
        result = run(tmp_path / "run")
    assert result.held_out is not None
    assert result.best is not None
    seed = result.candidates[0].id
    candidates = list(dict.fromkeys([seed, result.best.id]))
    assert [each for each in logs if each["event"] == "held_out.failed"] == [
        {
            "event": "held_out.failed",
            "log_level": "warning",
            "failed": 2 * len(candidates),
            "rollouts": 6 * len(candidates),
            "candidate": seed,
            "example": "test3",
            "reason": "ValueError: no such word",
        }
    ]
    assert result.held_out.failed == 2 * len(candidates)
    assert result.held_out.seed_score == pytest.approx(4 * 0.5 / 6)
    said = f"on 6 test examples; {2 * len(candidates)} rollouts failed and have the worst score"
    assert said in result._repr_html_()
    shown = io.StringIO()
    Console(file=shown, width=300).print(summarize(result.to_json()))
    assert said in shown.getvalue()
    assert fe.Result.load(tmp_path / "run").held_out == result.held_out


def test_a_result_that_does_not_say_how_many_failed_is_read_as_before(tmp_path: Path) -> None:
    run(tmp_path / "run")
    file = tmp_path / "run" / RESULT
    table = json.loads(file.read_text())
    del table["held_out"]["failed"]
    file.write_text(json.dumps(table))
    loaded = fe.Result.load(tmp_path / "run")
    assert loaded.held_out is not None
    assert loaded.held_out.failed == 0
