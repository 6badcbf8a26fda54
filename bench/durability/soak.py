"""Whether a long run stays small: memory, file handles, tasks and the journal's size, sampled over time.

The run is in this process: GEPA as in `kills`, on the virtual clock with the simulated server inside, or on the
real one with the server in a process of its own.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
import numpy as np

from bench.durability.audit import faults_at_the_end
from bench.durability.runs import KEY, SETTINGS, server_process, write_config
from flowevolve._util import clock
from flowevolve.config.run import Config, load_config, parse_config
from flowevolve.core.calls import CallRecord
from flowevolve.core.events import Event
from flowevolve.engine.engine import Engine
from flowevolve.journal.opening import JOURNAL
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run

SAMPLES = 96
VIRTUAL_FLOWS = 2
"""Flows in flight on the virtual clock: even with so few, a day makes thousands of proposals."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a run holds at one time. ``rss`` and ``journal`` in bytes; the journal counts with its write-ahead log."""

    seconds: float
    rss: int
    handles: int
    tasks: int
    """Tasks that are not working on an item; the number of those that are changes with what is under way."""
    journal: int
    calls: int
    items: int
    proposals: int
    pool: int
    """Confirmed candidates."""


@dataclass(frozen=True, slots=True)
class Soak:
    """The samples of a run, and what its second half shows. Growth is the slope of a linear fit."""

    clock: str
    hours: float
    samples: Sequence[Sample]
    faults: Sequence[str]

    @property
    def second_half(self) -> Sequence[Sample]:
        return self.samples[len(self.samples) // 2 :]

    def figures(self) -> dict[str, object]:
        half, end = self.second_half, self.samples[-1]
        return {
            "clock": self.clock,
            "hours": self.hours,
            "calls": end.calls,
            "items": end.items,
            "proposals": end.proposals,
            "confirmed": end.pool,
            "rss_mb": {"start": _mb(self.samples[0]), "middle": _mb(half[0]), "end": _mb(end)},
            "rss_bytes_per_proposal": round(self._slope("proposals")),
            "rss_bytes_per_call": round(self._slope("calls")),
            "handles": [min(each.handles for each in half), max(each.handles for each in half)],
            "tasks": [min(each.tasks for each in half), max(each.tasks for each in half)],
            "journal_bytes_per_call": round(end.journal / max(1, end.calls)),
            "faults": list(self.faults),
        }

    def _slope(self, of: str) -> float:
        x = np.array([float(getattr(each, of)) for each in self.second_half])
        y = np.array([float(each.rss) for each in self.second_half])
        return float(np.polyfit(x, y, 1)[0]) if len(set(x.tolist())) > 1 else 0.0


class Sampler:
    """Counts events and calls, and samples the process at an interval."""

    def __init__(self, directory: Path, every_seconds: float) -> None:
        self.samples: list[Sample] = []
        self._journal = directory / JOURNAL
        self._every = every_seconds
        self._kinds: Counter[str] = Counter()
        self._calls = 0

    @property
    def watchers(self) -> Watchers:
        return Watchers(events=(self._event,), calls=(self._call,))

    def _event(self, event: Event) -> None:
        self._kinds[event.kind] += 1

    def _call(self, record: CallRecord) -> None:
        self._calls += 1

    async def follow(self, engine: Engine) -> None:
        while True:
            self.samples.append(self._sample(engine))
            await anyio.sleep(self._every)

    def _sample(self, engine: Engine) -> Sample:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        files = [self._journal.with_name(self._journal.name + end) for end in ("", "-wal")]
        return Sample(
            anyio.current_time() - engine.origin,
            pages * resource.getpagesize(),
            sum(1 for _ in Path("/proc/self/fd").iterdir()),
            sum(not task.get_name().startswith("flowevolve._util.tasks") for task in asyncio.all_tasks()),
            sum(file.stat().st_size for file in files if file.exists()),
            self._calls,
            self._kinds["item.done"],
            self._kinds["candidate.proposed"],
            sum(1 for _ in engine.pool.snapshot().candidates()),
        )


def soak_virtual(folder: Path, hours: float) -> Soak:
    """Run for this many hours on the virtual clock."""
    algorithm = {"name": "gepa", "mode": "stream", "max_in_flight": VIRTUAL_FLOWS, "merge": True}
    config = parse_config(
        {**SETTINGS, "clock": "virtual", "algorithm": algorithm, "budget": {"hours": hours}}, "bench.durability.soak"
    )
    return _soak(folder / "virtual", config, hours)


def soak_real(folder: Path, minutes: float) -> Soak:
    """Run for this many minutes on the real clock, over HTTP."""
    os.environ[KEY] = "soak"
    with server_process(Path(os.devnull)) as url:
        write_config(folder / "soak.toml", url, {**SETTINGS, "budget": {"minutes": minutes}})
        return _soak(folder / "real", load_config(folder / "soak.toml"), minutes / 60)


def _soak(directory: Path, config: Config, hours: float) -> Soak:
    sampler = Sampler(directory, hours * 3600 / SAMPLES)

    async def main() -> Result:
        return await run(config, out=directory, watchers=sampler.watchers, side_task=sampler.follow)

    clock.run(main, clock=config.clock)
    return Soak(config.clock, hours, tuple(sampler.samples), faults_at_the_end(directory, held=True))


def _mb(sample: Sample) -> float:
    return round(sample.rss / 1e6, 1)
