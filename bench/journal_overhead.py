"""Throughput of a whole run with and without its journal, at about 500 calls a second over HTTP, in turns.

The server answers every call after a tenth of a second, and 50 may be in flight. What the journal takes of the event
loop and how long it keeps replies from their stages shows as calls that are not made.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from bench.kills import KEY, lab, write_config
from bench.stats import Spread, spread
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


def measure(folder: Path, repeats: int) -> tuple[Spread, Spread]:
    """The share of the throughput that the journal costs, over pairs of runs, and calls a second without it."""
    os.environ[KEY] = "overhead"
    config = folder / "overhead.toml"
    shares, rates = [], []
    with lab(Path(os.devnull), "--latency", str(LATENCY_SECONDS)) as url:
        write_config(config, url, SETTINGS, concurrency=IN_FLIGHT)
        for repeat in range(repeats):
            order = (False, True) if repeat % 2 else (True, False)
            rate = {kept: _rate(config, folder / "overhead" if kept else None) for kept in order}
            shares.append(1 - rate[True] / rate[False])
            rates.append(rate[False])
            print(f"calls a second: {rate[False]:.0f} without a journal, {rate[True]:.0f} with it", flush=True)
    return spread(shares), spread(rates)


def _rate(config: Path, out: Path | None) -> float:
    """Calls a second once the run has warmed up."""
    finished: list[float] = []

    def count(record: CallRecord) -> None:
        finished.append(record.finished)

    async def go() -> Result:
        return await run(load_config(config), out=out, watchers=Watchers(calls=(count,)))

    clock.run(go)
    if out is not None:
        shutil.rmtree(out)
    first = finished[0] + WARM_UP_SECONDS
    counted = [time for time in finished if time >= first]
    return len(counted) / (counted[-1] - first)
