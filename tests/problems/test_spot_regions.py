"""Spot scheduling in several regions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve.problems.drivers.spot import harness_run, harness_travel
from flowevolve.problems.spot import STEPS
from flowevolve.problems.spot_regions import SpotMultiRegion
from tests.problems.conftest import Court
from tests.problems.test_spot import JOB
from tests.support.problem_checks import refusal

HERE, THERE = [True] * 3 + [False] * 9, [False] * 3 + [True] * 9


def test_a_job_that_moves_starts_a_machine_anew() -> None:
    def follow(state: dict[str, object]) -> list[object]:
        available = state["available"]
        assert isinstance(available, list)
        return ["spot", available.index(True)]

    cost, chosen = harness_travel([HERE, THERE], JOB, follow)
    assert [region for _, region in chosen] == [0] * 3 + [1] * 4  # 300 + 2 * 600 done, then 300 + 3 * 600, and 300 left
    assert cost == pytest.approx(7 / 6 + 0)


def test_one_region_is_the_other_problem() -> None:
    trace = [True, True, False, True, True, True, False, True, True, True, True, True]
    alone = harness_run(trace, JOB, lambda state: "spot" if state["available"] else "wait")
    regions = harness_travel([trace], JOB, lambda state: ["spot" if state["available"] == [True] else "wait", 0])
    assert alone == (regions[0], [kind for kind, _ in regions[1]])


def test_a_spot_machine_in_another_region_is_none_here() -> None:
    cost, chosen = harness_travel([HERE, THERE], JOB, lambda state: ["spot", 1])
    assert len(chosen) == 3 + 7
    assert cost == pytest.approx(7 / 6)


def test_who_would_be_late_gets_the_dear_machine_where_it_is() -> None:
    cost, chosen = harness_travel([HERE, THERE], JOB, lambda state: ["wait", 1])
    assert cost == pytest.approx(3 * 7 / 6)
    assert len(chosen) == 5 + 7


def test_more_regions_save_more(court: Court) -> None:
    few, many = SpotMultiRegion(regions=1, traces=4), SpotMultiRegion(regions=6, traces=4)
    assert court.judge(many).metrics["saved"] > court.judge(few).metrics["saved"]


LOOKS_AHEAD = """
import sys

def decide(state):
    frame = sys._getframe()
    while frame is not None and "regions" not in frame.f_locals:
        frame = frame.f_back
    if frame is None:
        return "on_demand", 0
    return ("spot" if any(frame.f_locals["regions"][0][len(state["seen"][0]):]) else "wait"), 0
"""
"""Chooses otherwise wherever it can't look ahead, so that any sample of its choices shows it."""


def test_a_program_that_looks_ahead_is_found_out(court: Court) -> None:
    verdict = court.judge(SpotMultiRegion(), LOOKS_AHEAD)
    assert verdict.failure is not None
    assert "must depend on the arguments alone" in verdict.failure


def test_a_program_that_answers_otherwise_fails(court: Court) -> None:
    verdict = court.judge(SpotMultiRegion(traces=1), "def decide(state):\n    return 'spot', 9\n")
    assert verdict.failure is not None
    assert "decide must return" in verdict.failure


@pytest.mark.parametrize(
    "choice", ["spot", ["spot"], ["spot", 2], ["spot", -1], ["spot", True], ["free", 0], ["spot", "0"], [0, "spot"]]
)
def test_wrong_choices_are_refused(choice: object) -> None:
    says = "trace 0, step 0: there must be one of wait, spot, on_demand, and the number of a region"
    assert refusal(SpotMultiRegion(regions=2, traces=1), [[choice] * 400]).startswith(says)


def test_rows_are_read_and_wrong_ones_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"available": [[True] * STEPS, [False] * STEPS]}), encoding="utf-8")
    assert len(SpotMultiRegion(path).cases) == 6
    path.write_text(json.dumps({"available": [[True] * STEPS, [False]]}), encoding="utf-8")
    with pytest.raises(InputError, match=r"row 1\.available: give a list for each region"):
        SpotMultiRegion(path)
    with pytest.raises(InputError, match=r"^task\.regions is 0, but has to be at least 1"):
        SpotMultiRegion(regions=0)
