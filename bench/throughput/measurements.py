"""All methods on all workloads, on the servers that were asked for."""

from __future__ import annotations

import random
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from bench._lib.methods.figures import Figures, figures
from bench._lib.methods.process import CEILING, Job
from bench._lib.methods.runs import Run, execute, serving
from bench._lib.methods.workloads import WORKLOADS
from bench._lib.real_server import NAME, served_model, smollm2

CPU_TOKENS = 48
"""The most tokens that a real model on a CPU may answer with."""
BUSY = 0.8
"""The share of a core above which a process holds up what is measured."""


@dataclass(frozen=True, slots=True)
class Place:
    """A server to measure on. ``suffix`` ends the names of its ratios; ``url`` is None where it is simulated."""

    name: str
    suffix: str
    url: str | None = None
    model: str = "simulated"
    max_tokens: int | None = None

    @property
    def small(self) -> bool:
        """Whether its model is given less text."""
        return self.max_tokens is not None


SIMULATED = (Place("qwen3-8b-h100", "vllm"), Place("gpt-4o-mini-api", "api"))


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run. ``seconds`` are real ones of each run, from the end of the seed's validation on."""

    methods: Sequence[str]
    workloads: Sequence[str]
    repeats: int
    seconds: float
    concurrency: int
    seed: int


Measurements = dict[tuple[str, str], list[tuple[Run, Figures]]]
"""For each workload and method, the run of each repeat and what it came to."""


def measure(place: Place, plan: Plan) -> Measurements:
    """All methods on all workloads, as often as planned, in random order."""
    found: Measurements = defaultdict(list)
    order = random.Random(f"{plan.seed}/{place.name}")
    for repeat in range(plan.repeats):
        for workload in order.sample(list(plan.workloads), len(plan.workloads)):
            for run in _round(place, plan, workload, plan.seed + repeat, order):
                came_to = figures(run)
                found[workload, run.method].append((run, came_to))
                print(_line(place, run, came_to), flush=True)
    return found


def _round(place: Place, plan: Plan, workload: str, seed: int, order: random.Random) -> Iterator[Run]:
    """Run every method once, and the load that shows the server's ceiling."""
    speed = WORKLOADS[workload].speeds[place.name] if place.url is None else 1.0
    arguments = ("sim", place.name, workload, f"{speed}") if place.url is None else (place.url,)
    methods = [*plan.methods, CEILING]
    with serving(*arguments) as server:
        job = Job(
            url=server.url,
            model=place.model,
            workload=workload,
            concurrency=plan.concurrency,
            seed=seed,
            speed=speed,
            max_tokens=place.max_tokens,
            small=place.small,
        )
        for method in order.sample(methods, len(methods)):
            yield execute(method, job, server, plan.seconds)


def _line(place: Place, run: Run, found: Figures) -> str:
    busy = max(found.client_cpu_share, found.server_cpu_share) > BUSY
    return (
        f"{place.name:16} {run.workload:9} {run.method:13} {found.proposals_per_min:7.2f} proposals/min "
        f"{found.validations_per_min:6.2f} validations {found.accepted_per_min:6.2f} accepted "
        f"{found.output_tokens_per_s:6.0f} tokens/s  in flight {found.mean_in_flight:5.1f} (<= 1: "
        f"{found.idle_share:4.0%})  best {found.best_score:.2f}  CPU: client {found.client_cpu_share:4.0%}, "
        f"server {found.server_cpu_share:4.0%}{'  BUSY: its figures are too low' if busy else ''}"
    )


def on_places(server: str, plan: Plan) -> dict[Place, Measurements]:
    """Measure on what ``--server`` names."""
    if server == "sim":
        return {place: measure(place, plan) for place in SIMULATED}
    if server == "vllm-cpu":
        with tempfile.TemporaryDirectory() as folder:
            return anyio.run(_on_vllm, Path(folder) / "vllm.log", lambda place: measure(place, plan))
    model = served_model(server)
    place = Place(model, "url", server, model)
    return {place: measure(place, plan)}


async def _on_vllm(log: Path, measured: Callable[[Place], Measurements]) -> dict[Place, Measurements]:
    async with smollm2(log) as url:
        place = Place("vllm-cpu", "vllm_cpu", url, NAME, CPU_TOKENS)
        return {place: await anyio.to_thread.run_sync(measured, place)}
