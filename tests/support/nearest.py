"""A run of an algorithm over real programs in the sandbox, with the simulated coder, on the virtual clock."""

from __future__ import annotations

from collections.abc import Mapping

from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.programs.task import ProgramTask
from flowevolve.runner.plan import ProvidedObjects, make_plan
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run_plan
from flowevolve.sandbox import SandboxSettings
from tests.support.problems import Nearest


def evolve_nearest(algorithm: Mapping[str, object]) -> Result:
    """60 evaluations with the ``[algorithm]`` table."""
    config = parse_config(
        {
            "clock": "virtual",
            "seed": 2,
            "algorithm": algorithm,
            "sim": {"world": "code"},
            "budget": {"evaluations": 60},
        },
        "test",
    )
    plan = make_plan(config, ProvidedObjects(task=ProgramTask(Nearest(), SandboxSettings(preload=()))))

    async def go() -> Result:
        return await run_plan(plan, None, Watchers(), None, None)

    return clock.run(go, clock="virtual")
