"""Evaluations a second of a run, and what the cores could do at best."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import fmean

from bench.evaluations.problem import SEED, Burning
from flowevolve._util import clock
from flowevolve._util.cores import usable_cores
from flowevolve.config.run import Config, parse_config
from flowevolve.programs.task import ProgramTask
from flowevolve.runner.result import Result
from flowevolve.runner.run import run

PROFILE, WORLD = "gpt-4o-mini-api", "code"
GOAL = 0.9
WARM_UP = 4.0
"""Seconds at the start that do not count, because replies don't yet come as fast as they are asked for."""
LIMIT_SECONDS = 4.0
"""The seconds that one measurement of the cores' limit takes."""
IN_FLIGHT = 192
"""Flows in flight. A reply takes two seconds, so this many flows bring more replies than the cores can evaluate."""


def configure(seconds: float) -> Config:
    many = {"workers": IN_FLIGHT, "max_workers": IN_FLIGHT}
    return parse_config(
        {
            "clock": "real",
            "algorithm": {"name": "one_plus_lambda", "max_in_flight": IN_FLIGHT},
            "llm": {"backend": "sim", "concurrency": IN_FLIGHT},
            "sim": {"profile": PROFILE, "world": WORLD},
            "stages": {"write": many},
            "budget": {"minutes": seconds / 60},
            "drain_seconds": 0,
        },
        "evaluations",
    )


def streamed(seconds: float, milliseconds: float) -> dict[str, float]:
    """Evaluations per second of programs that burnt all of their time, whatever they returned."""
    burning = Burning(milliseconds)

    async def main() -> Result:
        return await run(configure(seconds), task=ProgramTask(burning))

    cpu, began = time.process_time(), time.monotonic()
    result = clock.run(main)
    whole = [burnt for end, burnt in burning.ends if WARM_UP <= end - began <= seconds]
    return {
        "evaluations_per_second": sum(whole) / (seconds - WARM_UP),
        "cut_short_per_second": (len(whole) - sum(whole)) / (seconds - WARM_UP),
        "requests_in_flight": result.mean_in_flight,
        "own_cpu_share": (time.process_time() - cpu) / result.report.wall_seconds / len(usable_cores()),
    }


def cores_limit(milliseconds: float) -> float:
    """The calls per second of plain processes, one per core, that each call the function back to back."""
    loop = (
        f"began = time.monotonic(); calls = 0\nwhile time.monotonic() < began + {LIMIT_SECONDS}:\n"
        f"    solve({milliseconds}); calls += 1\nprint(calls / (time.monotonic() - began))"
    )

    def one(core: int) -> float:
        done = subprocess.run([sys.executable, "-c", SEED + loop], capture_output=True, text=True, check=True)
        return float(done.stdout)

    with ThreadPoolExecutor() as threads:
        return sum(threads.map(one, usable_cores()))


def start_each(milliseconds: float) -> float:
    """The calls per second with a new plain process for each call, as many at a time as there are cores."""
    until = time.monotonic() + LIMIT_SECONDS

    def one(core: int) -> int:
        calls = 0
        while time.monotonic() < until:
            subprocess.run([sys.executable, "-I", "-c", f"{SEED}solve({milliseconds})"], check=True)
            calls += 1
        return calls

    began = time.monotonic()
    with ThreadPoolExecutor() as threads:
        calls = sum(threads.map(one, usable_cores()))
    return calls / (time.monotonic() - began)


def compare(seconds: float, milliseconds: float) -> dict[str, float]:
    """Measure programs of one length: a run between two measurements of the cores' limit, then a new process for each
    call.
    """
    before = cores_limit(milliseconds)
    figures = streamed(seconds, milliseconds)
    limit = fmean((before, cores_limit(milliseconds)))
    return {
        "milliseconds": milliseconds,
        "of_the_cores_limit": figures["evaluations_per_second"] / limit,
        "cores_limit_per_second": limit,
        **figures,
        "start_each_per_second": start_each(milliseconds),
    }
