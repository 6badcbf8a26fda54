"""Runs that start from another run's pool."""

from __future__ import annotations

from pathlib import Path

import pytest

import flowevolve as fe
from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.runner.result import Result
from tests.support.resuming import config, rules, run


def test_a_run_starts_from_anothers_pool_at_a_version(tmp_path: Path) -> None:
    before = run(tmp_path / "a")
    version = before.report.pool.version // 2
    after = run(tmp_path / "b", start={"run": str(tmp_path / "a"), "version": version}, seed=7)
    first = before.report.pool.snapshot(version)
    adopted = {candidate.id for candidate in first.candidates("confirmed")}
    assert adopted
    assert adopted <= {candidate.id for candidate in after.report.pool.snapshot().candidates()}
    assert after.seed_score == before.seed_score
    assert after.report.stop_reason == "proposals"
    assert not list(after.report.pool.snapshot().candidates("speculative"))


def test_a_run_starts_from_a_pool_of_its_own_task_alone(tmp_path: Path) -> None:
    fe.optimize(rules(6), budget=fe.Budget(proposals=2), clock="virtual", out=tmp_path / "a")
    with pytest.raises(InputError, match=r"start\.run: the scores in .*a are of task .*, not of task .*same task"):
        run(tmp_path / "b", start={"run": str(tmp_path / "a")})

    async def go() -> Result:
        return await fe.run(config(start={"run": str(tmp_path / "a")}), task=rules(6))

    assert clock.run(go, clock="virtual").report.stop_reason == "proposals"


def test_a_start_that_is_not_there_is_refused(tmp_path: Path) -> None:
    run(tmp_path / "a")
    with pytest.raises(InputError, match=r"start\.version is 999, but the pool of .* has only"):
        run(tmp_path / "b", start={"run": str(tmp_path / "a"), "version": 999})
    with pytest.raises(InputError, match="no such run directory"):
        run(tmp_path / "c", start={"run": str(tmp_path / "nothing")})
