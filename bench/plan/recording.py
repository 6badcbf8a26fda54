"""Records the runs of a case: the short one that lengths are measured on, and the run itself."""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory

import anyio
from anyio.streams.text import TextReceiveStream

from bench._lib.methods.workloads import WORKLOADS, Pipeline
from bench.plan.cases import QWEN, Case
from flowevolve._util import clock
from flowevolve.config.run import WORLDS_OF_TASKS, Config, parse_config
from flowevolve.core.task import Task
from flowevolve.runner.result import Result
from flowevolve.runner.run import run
from flowevolve.sim.profiles import Profile, find_profile

PRICES = {"simulated": {"input": 0.15, "cached_input": 0.075, "output": 0.6}}
TIMES_DIFFER, LENGTHS_DIFFER = 0.07, 0.25
"""The standard deviations of the logarithms of the factors by which a server's times, and the lengths of its answers,
differ from its profile.
"""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a run took."""

    seconds: float
    input_tokens: int
    output_tokens: int
    dollars: float
    proposals: int


def task_of(case: Case) -> Task | None:
    """The task that a case is given as an object; None if its configuration names one."""
    return None if case.workload is None else Pipeline(WORKLOADS[case.workload])


def config_of(
    case: Case, *, seed: int = 0, budget: Mapping[str, float] | None = None, url: str | None = None
) -> Config:
    """The configuration of a case, by default with the case's budget; against the server at ``url``, or simulated."""
    server = {"backend": "sim"} if url is None else {"backend": "openai", "base_url": url}
    return parse_config(
        {
            **case.sections,
            "seed": seed,
            "clock": "virtual" if url is None else "real",
            "budget": case.budget if budget is None else budget,
            "llm": {**server, "model": "simulated", **case.llm, "concurrency": case.width, "prices": PRICES},
        },
        case.name,
    )


def server_of(case: Case) -> Profile:
    """The profile of a case's server: the case's with its workload's lengths, but times and lengths differ a little."""
    rng, made = random.Random(case.name), find_profile(case.profile)
    times = [field.name for field in fields(made) if "seconds" in field.name]
    factors = {name: math.exp(rng.gauss(0, TIMES_DIFFER)) for name in times}
    output = made.output
    if case.workload is not None:
        outputs = WORKLOADS[case.workload].outputs
        lengths = outputs.get(case.profile, outputs[QWEN])
        output = replace(output, median=lengths.median, sigma=lengths.sigma)
    output = replace(output, median=output.median * math.exp(rng.gauss(0, LENGTHS_DIFFER)))
    drifted = {name: getattr(made, name) * factor for name, factor in factors.items()}
    return replace(made, output=output, **drifted)


def record(case: Case, *, seed: int, budget: Mapping[str, float] | None = None, out: Path | None = None) -> Taken:
    """Perform a run of a case, which leaves its record in ``out`` if that is given."""
    with TemporaryDirectory() as folder:
        profile = Path(folder, "profile.json")
        profile.write_text(json.dumps(asdict(server_of(case))))
        make = partial(_run_over_http if case.http else _run_here, case, profile, seed, budget, out)
        result = clock.run(make, clock="real" if case.http else "virtual")
    used = result.llm.usage
    assert result.llm.dollars is not None, "all cases have prices"
    return Taken(result.wall_seconds, used.prompt_tokens, used.completion_tokens, result.llm.dollars, result.proposals)


async def _run_here(
    case: Case, profile: Path, seed: int, budget: Mapping[str, float] | None, out: Path | None
) -> Result:
    config = config_of(case, seed=seed, budget=budget)
    sim = config.sim.model_copy(update={"profile": str(profile), "preset": case.world})
    return await run(config.model_copy(update={"sim": sim}), task=task_of(case), out=out)


async def _run_over_http(
    case: Case, profile: Path, seed: int, budget: Mapping[str, float] | None, out: Path | None
) -> Result:
    async with _served(case, profile) as url:
        return await run(config_of(case, seed=seed, budget=budget, url=url), task=task_of(case), out=out)


@asynccontextmanager
async def _served(case: Case, profile: Path) -> AsyncGenerator[str]:
    """The case's server in a process of its own, until the block ends; yields its base URL."""
    world = WORLDS_OF_TASKS.get(config_of(case).task.name, "rules")
    command = [sys.executable, "-m", "flowevolve", "sim", "--port", "0", "--world", world]
    command += ["--profile", str(profile), "--preset", case.world]
    async with await anyio.open_process(command, stdout=PIPE, stderr=None) as server:
        assert server.stdout is not None
        try:
            said = ""
            async for text in TextReceiveStream(server.stdout):
                said += text
                if said.endswith("\n"):
                    break
            yield said.split()[-1]
        finally:
            server.terminate()
