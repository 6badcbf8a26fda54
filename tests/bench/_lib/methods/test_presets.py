"""Our settings are configurations that can be run, on any server's time."""

from __future__ import annotations

import pytest

from bench._lib.methods.presets import PRESETS, hurried
from bench._lib.methods.process import METHODS
from bench._lib.methods.workloads import WORKLOADS, Pipeline
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.runner.result import Result
from flowevolve.runner.run import run


@pytest.mark.parametrize("name", list(PRESETS))
def test_a_preset_evolves_a_workload(name: str) -> None:
    config = parse_config({**PRESETS[name], "clock": "virtual", "budget": {"proposals": 3}}, name)

    async def go() -> Result:
        return await run(config, task=Pipeline(WORKLOADS["aime"]))

    assert clock.run(go, clock="virtual").report.spent.proposals >= 3
    assert name in METHODS


def test_on_a_faster_server_what_is_set_in_seconds_passes_faster() -> None:
    made = hurried(PRESETS["stream"], 10)
    config = parse_config({**made, "budget": {"proposals": 1}}, "stream")
    assert config.allocation.model_dump()["interval_seconds"] == 0.5
    assert config.scheduler.admission.interval_seconds == 0.2
    assert "interval_seconds" not in PRESETS["stream"]["allocation"]
    assert hurried(PRESETS["sync"], 10) == PRESETS["sync"]
