"""Whole runs whose reflection role has several models, on the simulated backend and the virtual clock."""

from __future__ import annotations

import io
import random
import sqlite3
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from rich.console import Console

from bench._lib.house_style import make_rows
from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.config.run import parse_config
from flowevolve.core.model import ChatRequest
from flowevolve.runner.check import check
from flowevolve.runner.result import Result
from flowevolve.runner.run import run
from flowevolve.sim.worlds import catalog
from flowevolve.sim.worlds.rules.world import RulesWorld
from flowevolve.tasks.house_style import house_style_task
from flowevolve.telemetry.summary import summarize

TASK = house_style_task(make_rows(rules=12, per_example=3, overlap=0.3, rows=90, seed=1))
PRICES = {"simulated": {"input": 1, "output": 1}, "good": {"input": 2, "output": 4}, "bad": {"input": 1, "output": 1}}
BY_WEIGHT = {"models": [{"model": "good", "weight": 3}, {"model": "bad"}]}
BANDIT = {"models": [{"model": "bad"}, {"model": "good"}], "bandit": "ucb", "retries": 0}


class HalfUseless(RulesWorld):
    """A world in which the model ``bad`` has nothing to say."""

    def reply(self, request: ChatRequest, rng: random.Random) -> str:
        return "I can't help with that." if request.model == "bad" else super().reply(request, rng)


@pytest.fixture(autouse=True)
def half_useless_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "WORLDS", {"rules": HalfUseless})


def go(role: Mapping[str, object], out: Path | None = None, *, priced: bool = True, **more: object) -> Result:
    sections: dict[str, object] = {"budget": {"proposals": 40}, **more}
    llm = {"roles": {"reflection": role}, "prices": PRICES if priced else {}, "concurrency": 32}
    config = parse_config({"preset": "plain", "clock": "virtual", "llm": llm, **sections}, "test")

    async def start() -> Result:
        return await run(config, out=out, task=TASK)

    return clock.run(start, clock="virtual")


def drawn(out: Path) -> dict[tuple[str, str, int], str]:
    """By work (stage, item, index): which model answered the reflection role."""
    journal = sqlite3.connect(out / "journal.sqlite")
    rows = journal.execute("SELECT stage, item, idx, model FROM calls WHERE role = 'reflection'").fetchall()
    journal.close()
    return {(stage, item, index): model for stage, item, index, model in rows}


def test_each_call_draws_one_by_weight_and_by_its_work_alone(tmp_path: Path) -> None:
    go(BY_WEIGHT, tmp_path / "narrow", algorithm={"max_in_flight": 4})
    go(BY_WEIGHT, tmp_path / "wide", algorithm={"max_in_flight": 16})
    narrow, wide = drawn(tmp_path / "narrow"), drawn(tmp_path / "wide")
    both = narrow.keys() & wide.keys()
    assert len(both) > 30
    assert all(narrow[work] == wide[work] for work in both)
    counts = Counter(narrow.values())
    assert 1.5 < counts["good"] / counts["bad"] < 6


def test_the_report_tells_the_models_apart() -> None:
    result = go(BY_WEIGHT)
    models = result.to_json()["llm"]["by_model"]  # type: ignore[index]  # a table of JSON
    assert list(models) == ["simulated", "good", "bad"]
    assert sum(counts["requests"] for counts in models.values()) == result.llm.requests
    assert sum(counts["cost_usd"] for counts in models.values()) == pytest.approx(result.llm.dollars)
    assert result.report.spent.dollars == pytest.approx(result.llm.dollars)
    accepted = {name: counts["accepted"] for name, counts in models.items()}
    assert accepted == {"simulated": 0, "good": result.report.accepted, "bad": 0}
    assert result.report.accepted > 0
    console = Console(file=io.StringIO(), width=200)
    console.print(summarize(result.to_json()))
    shown = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    assert f"{result.llm.dollars:.4f} dollars" in shown
    assert "good" in shown


def test_a_bandit_learns_from_what_becomes_of_proposals_and_repeats_itself() -> None:
    first = go(BANDIT, priced=False, staleness={"policy": "reflective"})
    second = go(BANDIT, priced=False, staleness={"policy": "reflective"})
    requests = {name: counts.totals.requests for name, counts in first.by_model.items()}
    assert requests["good"] > 2 * requests["bad"] > 0
    assert (first.by_model, first.best) == (second.by_model, second.best)


def test_where_prices_are_known_a_bandit_goes_by_the_dollar() -> None:
    """The useless model is the cheaper one: trying it out takes more calls, but not more money."""
    models = go(BANDIT, budget={"proposals": 80}).by_model
    assert models["bad"].totals.requests > models["good"].totals.requests
    assert (models["bad"].totals.dollars or 0) < (models["good"].totals.dollars or 0)


def test_a_budget_in_dollars_names_every_model_without_a_price() -> None:
    role = {"models": [{"model": "good"}, {"model": "unheard.of"}]}
    llm = {"roles": {"reflection": role, "judge": {"model": "gavel"}}, "prices": {"good": PRICES["good"]}}
    config = parse_config({"clock": "virtual", "llm": llm, "budget": {"dollars": 1}}, "test")
    with pytest.raises(
        InputError, match=r"price of 'simulated', 'unheard\.of', 'gavel': .*\[llm\.prices\.\"unheard\.of\"\]"
    ):
        clock.run(check, config, clock="virtual")
    with pytest.raises(InputError, match="needs the price of"):
        clock.run(run, config, clock="virtual")


def test_a_budget_in_dollars_ends_the_run() -> None:
    result = go(BY_WEIGHT, budget={"dollars": 0.3})
    assert result.report.stop_reason == "dollars"
    assert result.report.spent.dollars >= 0.3
