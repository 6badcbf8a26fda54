"""Deterministic simulation: seeds keep all rules, and whatever breaks one is found, told and made smaller."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
import structlog

from bench.simtest import __main__ as command
from bench.simtest.case import Act, Case, Life
from bench.simtest.checking import check
from bench.simtest.drawing import draw
from bench.simtest.rules import RULES
from flowevolve._util.json_types import JSON
from tests.bench.simtest.sabotages import SABOTAGES, a_stage_breaks
from tests.support.depth import LONG

SEEDS = 200 if LONG else 16
EACH = 8
"""Seeds in a test."""
TWICE = 4
"""Of so many seeds one is run twice, to see that it goes the same way."""


@pytest.mark.parametrize("first", range(0, SEEDS, EACH))
def test_seeds_keep_all_rules(first: int) -> None:
    broken = {}
    for seed in range(first, first + EACH):
        faults = check(draw(seed), twice=seed % TWICE == 0)
        if faults:
            broken[f"python -m bench.simtest --seed {seed}"] = faults[:3]
    assert broken == {}


@pytest.mark.parametrize("sabotage", SABOTAGES, ids=lambda sabotage: sabotage.__name__)
def test_what_breaks_a_rule_is_found(
    sabotage: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    rule, seed = SABOTAGES[sabotage]
    sabotage(monkeypatch)
    found = [fault.rule for fault in check(draw(seed), twice=rule == "repeatable")]
    assert rule in found, f"seed {seed} stands for another case now: look for one that finds this"


def test_each_rule_was_broken_once() -> None:
    assert {rule for rule, _ in SABOTAGES.values()} == set(RULES)


def test_a_seed_always_stands_for_the_same_case_and_a_case_can_be_written_down() -> None:
    assert draw(3) == draw(3) != draw(4)
    assert Case.from_json(draw(3).to_json()) == draw(3)


def test_a_case_that_fails_is_told_with_its_smallest_form(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    a_stage_breaks(monkeypatch)
    case = replace(
        draw(0),
        settings=PLAIN,
        faults={"slow": 0.1},
        lives=(Life((Act(90, "pause"), Act(95, "inject"))), Life(changes={"budget.proposals": 9})),
        disk_seconds=0.02,
    )
    monkeypatch.setattr(sys, "argv", ["bench.simtest", "--case", case.to_json()])
    with pytest.raises(SystemExit) as ended:
        command.main()
    structlog.reset_defaults()  # it silences records for its process
    said = capsys.readouterr().out
    assert ended.value.code == 1
    assert said.startswith("seed 0 breaks 'crash': EngineError: algorithm 'best_of_n': KeyError")
    smallest = Case.from_json(said[said.index("{") : said.rindex("}") + 1])
    assert (smallest.faults, smallest.lives, smallest.disk_seconds) == ({}, (Life(),), 0.0)
    assert json.loads(smallest.to_json())["settings"].keys() < PLAIN.keys()


PLAIN: Mapping[str, JSON] = {
    "clock": "virtual",
    "preset": "plain",
    "sim.profile": "instant",
    "sim.world": "code",
    "algorithm.name": "best_of_n",
    "algorithm.mode": "stream",
    "algorithm.max_in_flight": 3,
    "budget.proposals": 6,
    "drain_seconds": 3,
}
