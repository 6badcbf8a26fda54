"""Our settings are configurations that can be run."""

from __future__ import annotations

import pytest

from bench._lib.methods.presets import ON_REAL_TIME, PRESETS, sections
from bench._lib.methods.process import METHODS
from bench._lib.methods.workloads import WORKLOADS, Pipeline
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.runner.result import Result
from flowevolve.runner.run import run


@pytest.mark.parametrize("name", list(PRESETS))
def test_a_preset_evolves_a_workload(name: str) -> None:
    config = parse_config({**PRESETS[name], "clock": "virtual", "budget": {"proposals": 6}}, name)

    async def go() -> Result:
        return await run(config, task=Pipeline(WORKLOADS["aime"]))

    assert clock.run(go, clock="virtual").report.spent.proposals >= 3
    assert name in METHODS


def test_the_stream_is_what_runs_when_nothing_is_set() -> None:
    budget = {"proposals": 1}
    assert parse_config({**sections("stream"), "budget": budget}, "a") == parse_config({"budget": budget}, "b")


@pytest.mark.parametrize("method", list(ON_REAL_TIME))
def test_what_is_compared_with_the_virtual_clock_has_no_policy_with_seconds_of_its_own(method: str) -> None:
    config = parse_config({**sections(method), "budget": {"proposals": 1}}, method)
    assert (config.allocation.policy, config.scheduler.admission.policy) == ("fixed", "fixed")
    assert method in METHODS
