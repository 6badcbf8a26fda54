"""How plans are compared with runs: what a budget settles counts for nothing, and each case is one that can be run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from bench.plan import __main__ as command
from bench.plan.cases import TUNING, TWELVE, Case
from bench.plan.comparing import AMOUNTS, amounts, summary
from bench.plan.recording import config_of, server_of, task_of
from bench.plan.section import answer
from flowevolve.sim.profiles import find_profile


def row(budget: Mapping[str, float], taken: float) -> dict[str, object]:
    foretold = {name: {"expected": 10.0, "low": 5.0, "high": 20.0} for name in AMOUNTS}
    took = {name: taken for name in AMOUNTS if name != "hours"}
    return {"budget": budget, "foretold": foretold, "taken": {**took, "seconds": taken * 3600}}


def test_what_a_budget_settles_counts_for_nothing() -> None:
    assert [name for name, *_, settled in amounts(row({"minutes": 5}, 10.0)) if settled] == ["hours"]
    found = summary([row({"minutes": 5}, 10.0), row({"tokens": 5}, 30.0)])
    assert (found["amounts"], found["covered"], found["median_factor"]) == (4 + 2, 4, 4.0)


def test_runs_are_counted_before_their_amounts() -> None:
    partly = row({"minutes": 5}, 10.0)
    partly["taken"] = {**dict.fromkeys(AMOUNTS, 10.0), "seconds": 300.0, "proposals": 30.0}
    rows = [row({"minutes": 5}, 10.0), row({"tokens": 5}, 30.0), partly]
    measured = [{**each, "measured": each is not partly} for each in rows]
    said = answer({"cases": measured, **summary(rows)})
    assert said.startswith("in 1 of 3 recorded runs all amounts (7 of 10) lay in their intervals")
    assert "times the lower one (median, and 4.00 times without measured lengths, as in 1 of the runs);" in said
    all_measured = answer({"cases": [{**each, "measured": True} for each in rows], **summary(rows)})
    assert "times the lower one (median); simulated servers" in all_measured


def test_the_short_form_leaves_out_what_takes_real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Case] = []

    def compare(cases: Sequence[Case], work: Path) -> dict[str, object]:
        given.extend(cases)
        return {"cases": [], "covered": 0, "amounts": 0, "median_factor": 1.0}

    monkeypatch.setattr(command, "compare", compare)
    monkeypatch.setattr("sys.argv", ["plan", "--quick"])
    command.main()
    assert given == [case for case in TWELVE if not case.http]
    assert 0 < len(given) < len(TWELVE)


def test_there_are_twelve_and_no_tuning_run_among_them() -> None:
    assert len(TWELVE) == 12
    assert not {case.name for case in TWELVE} & {case.name for case in TUNING}


@pytest.mark.parametrize("case", [*TWELVE, *TUNING], ids=lambda case: case.name)
def test_a_case_is_a_configuration_and_its_server_differs_from_the_profile(case: Case) -> None:
    assert config_of(case).llm.concurrency == case.width
    assert (task_of(case) is None) == (case.workload is None)
    server, profile = server_of(case), find_profile(case.profile)
    assert server == server_of(case)
    assert server != profile
    assert type(server) is type(profile)
