"""Throughput of a whole run with and without its journal, at about 500 calls a second over HTTP, in turns.

The server answers every call after a tenth of a second, and 50 may be in flight. What the journal takes of the event
loop and how long it keeps replies from their stages shows as calls that are not made.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.durability.runs import KEY, lab, write_config
from flowevolve import clock
from flowevolve.config import load_config
from flowevolve.llm.calls import CallRecord
from flowevolve.result import Result
from flowevolve.run import Watchers, run

IN_FLIGHT, LATENCY_SECONDS = 50, 0.1
WARM_UP_SECONDS, SECONDS = 3.0, 10.0
SETTINGS: Mapping[str, object] = {
    "algorithm": {"name": "gepa", "max_in_flight": 100, "skip_perfect": False},
    "stages": {name: {"workers": 40} for name in ("generate", "propose", "screen", "evaluate")},
    "budget": {"seconds": WARM_UP_SECONDS + SECONDS},
    "drain_seconds": 0,
}


@dataclass(frozen=True, slots=True)
class Pace:
    """One run's calls a second, and the CPU time of one call in microseconds: on the event loop, and in all threads."""

    calls: float
    loop: float
    process: float


def measure(folder: Path, repeats: int) -> tuple[list[Pace], list[Pace]]:
    """Pairs of runs, without and with a journal."""
    os.environ[KEY] = "overhead"
    config = folder / "overhead.toml"
    paces: dict[bool, list[Pace]] = {False: [], True: []}
    with lab(Path(os.devnull), "--latency", str(LATENCY_SECONDS)) as url:
        write_config(config, url, SETTINGS, concurrency=IN_FLIGHT)
        for repeat in range(repeats):
            for kept in (False, True) if repeat % 2 else (True, False):
                paces[kept].append(_pace(config, folder / "overhead" if kept else None))
                print(f"{'with' if kept else 'without'} a journal: {paces[kept][-1]}", flush=True)
    return paces[False], paces[True]


def _pace(config: Path, out: Path | None) -> Pace:
    """Once the run has warmed up."""
    looks: list[tuple[float, float, float]] = []

    def look(record: CallRecord) -> None:
        looks.append((record.finished, time.thread_time(), time.process_time()))

    async def go() -> Result:
        return await run(load_config(config), out=out, watchers=Watchers(calls=(look,)))

    clock.run(go)
    if out is not None:
        shutil.rmtree(out)
    counted = [each for each in looks if each[0] >= looks[0][0] + WARM_UP_SECONDS]
    seconds, loop, process = (after - before for before, after in zip(counted[0], counted[-1], strict=True))
    calls = len(counted) - 1
    return Pace(calls / seconds, loop / calls * 1e6, process / calls * 1e6)
