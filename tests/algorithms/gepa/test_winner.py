"""GEPA's winner is chosen on fresh examples at the end, and the result says what it scored there."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

import flowevolve as fe
from flowevolve.runner.result import Result
from flowevolve.telemetry.summary import summarize

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
