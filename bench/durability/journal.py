"""Throughput of a whole run with and without its journal, measured in turns, at about 500 calls a second over HTTP.

The server answers every call after a tenth of a second, and 50 may be in flight. The time that the journal takes from
the event loop, and the time by which it delays replies, show as a lower rate of calls.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.durability.runs import KEY, server_process, write_config
from flowevolve._util import clock
from flowevolve.config.run import load_config
from flowevolve.core.calls import CallRecord
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run

IN_FLIGHT, LATENCY_SECONDS = 50, 0.1
WARM_UP_SECONDS, SECONDS = 3.0, 10.0
SETTINGS: Mapping[str, object] = {
    "preset": "plain",
    "algorithm": {"name": "gepa", "max_in_flight": 100, "skip_perfect": False},
    "stages": {name: {"workers": 40} for name in ("generate", "propose", "screen", "evaluate")},
    "budget": {"seconds": WARM_UP_SECONDS + SECONDS},
    "drain_seconds": 0,
}


@dataclass(frozen=True, slots=True)
class Rates:
    """Calls a second of a run, and CPU microseconds per call: on the event loop, and in all threads."""

    calls: float
    loop: float
    process: float


def measure(folder: Path, repeats: int) -> tuple[list[Rates], list[Rates]]:
    """Measure pairs of runs. Returns the rates of the runs without a journal, and of those with one."""
    os.environ[KEY] = "overhead"
    config = folder / "overhead.toml"
    rates: dict[bool, list[Rates]] = {False: [], True: []}
    with server_process(Path(os.devnull), "--latency", str(LATENCY_SECONDS)) as url:
        write_config(config, url, SETTINGS, concurrency=IN_FLIGHT)
        for repeat in range(repeats):
            for kept in (False, True) if repeat % 2 else (True, False):
                rates[kept].append(_rates_of(config, folder / "overhead" if kept else None))
                print(f"{'with' if kept else 'without'} a journal: {rates[kept][-1]}", flush=True)
    return rates[False], rates[True]


def _rates_of(config: Path, out: Path | None) -> Rates:
    """The rates of one run, counted after it has warmed up."""
    looks: list[tuple[float, float, float]] = []

    def look(record: CallRecord) -> None:
        looks.append((record.finished, time.thread_time(), time.process_time()))

    async def main() -> Result:
        return await run(load_config(config), out=out, watchers=Watchers(calls=(look,)))

    clock.run(main)
    if out is not None:
        shutil.rmtree(out)
    counted = [each for each in looks if each[0] >= looks[0][0] + WARM_UP_SECONDS]
    seconds, loop, process = (after - before for before, after in zip(counted[0], counted[-1], strict=True))
    calls = len(counted) - 1
    return Rates(calls / seconds, loop / calls * 1e6, process / calls * 1e6)
