"""Meta-Harness in both modes with the same seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from flowevolve._util import clock
from flowevolve.config.run import Config, parse_config
from flowevolve.core.events import Event
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run

READS = (
    "symptom2disease/symptom2disease_train.jsonl",
    "symptom2disease/symptom2disease_val.jsonl",
    "ag_news/ag_news_1200.jsonl.gz",
)
"""The files with rows, in the folder `Setting.data`."""
MODES = ("sync", "stream")
PROFILE, WORLD, IN_FLIGHT, CANDIDATES = "qwen3-8b-h100", "harness", 256, 3
TUNED = ("propose", "benchmark")
"""The stages whose workers ``--workers`` sets."""


@dataclass(frozen=True, slots=True)
class Side:
    """The result of one run. ``scores`` are the mean scores of all valid harnesses, in the order they were scored."""

    proposals_per_minute: float
    scores: tuple[float, ...]
    invalid: int

    @property
    def best(self) -> float:
        return max(self.scores)


@dataclass(frozen=True, slots=True)
class Setting:
    """Settings of both modes. ``width`` is the stream's flows in flight, ``workers`` are those of its stages propose
    and benchmark.
    """

    minutes: float
    width: int
    workers: int
    data: Path


def config(mode: str, seed: int, setting: Setting) -> Config:
    table = {**sections(mode, setting), "seed": seed, "clock": "virtual", "budget": {"minutes": setting.minutes}}
    return parse_config(table, "bench")


def sections(mode: str, setting: Setting) -> dict[str, object]:
    """All sections of the configuration except seed, clock and budget."""
    data = setting.data
    algorithm: dict[str, object] = {
        "name": "meta_harness",
        "mode": mode,
        "candidates": CANDIDATES,
        "run_seconds": 5,
        "test": False,
        **({"width": 1} if mode == "sync" else {"max_in_flight": setting.width}),
    }
    train, val, news = (str(data / file) for file in READS)
    sets = {
        "symptom2disease": {"train": train, "val": val},
        "ag_news": {
            "path": news,
            "sizes": {"train": 120, "val": 60, "test": 60},
            "text_fields": ["title", "description"],
            "label_field": "label",
        },
    }
    return {
        "algorithm": algorithm,
        "task": {"name": "harness", "sets": sets},
        "sandbox": {"preload": ()},
        "stages": {name: {"workers": setting.workers, "max_workers": max(32, setting.workers)} for name in TUNED},
        "llm": {"backend": "sim", "concurrency": IN_FLIGHT},
        "sim": {"profile": PROFILE, "world": WORLD},
    }


def evolve(settings: Config) -> Side:
    scores: list[float] = []
    invalid = 0

    def watch(event: Event) -> None:
        nonlocal invalid
        changes = event.data.get("changes")
        if event.kind != "pool.commit" or not isinstance(changes, list):
            return
        for change in changes:
            if isinstance(change, dict) and "add" in change:
                if change["status"] == "rejected":
                    invalid += 1
                elif isinstance(found := change["scores"], dict):
                    scores.append(fmean(float(value) for value in found.values() if isinstance(value, int | float)))

    async def main() -> Result:
        return await run(settings, watchers=Watchers(events=(watch,)))

    report = clock.run(main, clock="virtual").report
    return Side(report.spent.proposals / (report.wall_seconds / 60), tuple(scores), invalid)


def compare(seeds: Sequence[int], setting: Setting) -> list[dict[str, Side]]:
    pairs = []
    for seed in seeds:
        pair = {mode: evolve(config(mode, seed, setting)) for mode in MODES}
        pairs.append(pair)
        sync, stream = (pair[mode] for mode in MODES)
        print(
            f"seed {seed}: proposals/min {sync.proposals_per_minute:.2f} -> {stream.proposals_per_minute:.2f} "
            f"({ratio(pair):.2f}x), valid {len(sync.scores)} -> {len(stream.scores)}, invalid {sync.invalid} -> "
            f"{stream.invalid}, best {sync.best:.3f} -> {stream.best:.3f}",
            flush=True,
        )
    return pairs


def ratio(pair: dict[str, Side]) -> float:
    return pair["stream"].proposals_per_minute / pair["sync"].proposals_per_minute
