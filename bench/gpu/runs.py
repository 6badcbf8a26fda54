"""Runs every method on every workload, on one real server that is measured first."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random

import anyio
import anyio.to_thread

from bench._lib.calibrated import calibrated
from bench._lib.methods.figures import Figures, figures
from bench._lib.methods.process import CEILING, Job
from bench._lib.methods.runs import Server, execute, serving
from bench._lib.methods.workloads import WORKLOADS, WholeLength
from bench.gpu.engine import Wanted, engine
from bench.gpu.service import Engine, worded
from bench.gpu.watch import Watch, watch_gpu
from flowevolve.sim.calibration.calibrate import Calibration

COMPARED = ("gepa_sync", "gepa_pxn_4x4", "plain", "stream", "flashevolve", CEILING)
PROFILE = "qwen3-8b-h100"
"""The profile whose output lengths the workloads are forced to."""
MOST_TOKENS = 8192


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of one run of a method, and what the GPU reported meanwhile; None if there is no such GPU."""

    figures: Figures
    gpu: dict[str, float] | None


@dataclass(slots=True)
class Measurements:
    """All measurements so far: of the server alone, and of each repeat of a method on each workload."""

    server: Calibration | None = None
    runs: dict[tuple[str, str], list[Measured]] = field(default_factory=lambda: defaultdict(list))


async def measure(
    arguments: argparse.Namespace, wanted: Wanted, keep: Callable[[Measurements], None] = lambda _: None
) -> Measurements:
    """Measure a server, and run all methods on all workloads on it. ``keep`` is called after each run."""
    found = Measurements()
    async with engine(wanted) as running, watch_gpu() as watch:
        if arguments.calibration and running.dialect == "vllm":
            found.server = await calibrated(running.url, running.model)
        for workload in arguments.workloads:
            async with _offered(running, wanted, workload) as url:
                with serving(url) as server:
                    async for method, measured in _compare(arguments, workload, (server, running.model), watch):
                        found.runs[workload, method].append(measured)
                        await anyio.to_thread.run_sync(keep, found)
    return found


@asynccontextmanager
async def _offered(running: Engine, wanted: Wanted, workload: str) -> AsyncGenerator[str]:
    """The base URL that methods are given: the server itself, or the world's words at its speed."""
    if wanted.model is not None:
        yield running.url
        return
    lengths = WORKLOADS[workload].outputs[PROFILE]
    async with worded(running, WholeLength(lengths.median, lengths.sigma, MOST_TOKENS)) as url:
        yield url


async def _compare(
    arguments: argparse.Namespace, workload: str, place: tuple[Server, str], watch: Watch
) -> AsyncIterator[tuple[str, Measured]]:
    """Run every method ``repeats`` times, in random order each time. ``place`` is a server and its model's name."""
    server, model = place
    for repeat in range(arguments.repeats):
        methods = list(arguments.methods)
        Random(f"{workload}/{repeat}").shuffle(methods)
        for method in methods:
            job = Job(
                url=server.url,
                model=model,
                workload=workload,
                concurrency=arguments.concurrency,
                seed=repeat,
                speed=1.0,
                max_tokens=MOST_TOKENS if arguments.model is not None else None,
                small=False,
            )
            run = await anyio.to_thread.run_sync(execute, method, job, server, 60 * arguments.minutes)
            ended = anyio.current_time()
            measured = Measured(figures(run), watch.between(ended - (run.end - run.start), ended))
            print(_line(workload, method, measured), flush=True)
            yield method, measured


def _line(workload: str, method: str, measured: Measured) -> str:
    busy = "no GPU" if measured.gpu is None else f"GPU {measured.gpu['utilization_percent']:.0f} %"
    came_to = measured.figures
    return (
        f"{workload:10} {method:14} {came_to.proposals_per_min:7.2f} proposals/min "
        f"{came_to.output_tokens_per_s:8.0f} tokens/s {came_to.mean_in_flight:6.1f} in flight  {busy}"
    )
