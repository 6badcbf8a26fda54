"""ACE in both modes with the same seed, and what is read from the two runs."""

from __future__ import annotations

from collections.abc import Sequence

from bench._lib.curves import PROFILE, WORLD, Curve, Pair, evolve
from flowevolve.config.run import Config, parse_config
from flowevolve.tasks.house_style import house_style_task

MINUTES = 30
"""Virtual minutes of each run, as in figure 7."""
VALIDATE_EVERY = 20
"""Samples between validations: with the published 100, lockstep would validate once in half an hour."""
GRID = range(5, MINUTES + 1, 5)


def algorithm(mode: str, width: int) -> dict[str, object]:
    """The ``[algorithm]`` table."""
    return {"name": "ace", "mode": mode, "max_in_flight": width, "validate_every": VALIDATE_EVERY}


def config(mode: str, seed: int, width: int) -> Config:
    return parse_config(
        {
            "seed": seed,
            "clock": "virtual",
            "algorithm": algorithm(mode, width),
            "sim": {"profile": PROFILE, "world": WORLD},
            "budget": {"minutes": MINUTES},
        },
        "bench",
    )


def score_at(curve: Curve, minute: float) -> float:
    """The best score up to this minute; 0 if there is none yet."""
    return max((score for seconds, score in curve.best if seconds <= 60 * minute), default=0.0)


def samples_per_minute(curve: Curve) -> float:
    """How many samples a minute the playbook learns from."""
    reflected = curve.result.report.stages["reflect"].counts.consumed
    return reflected / (curve.result.report.wall_seconds / 60)


def compare(seeds: Sequence[int], width: int) -> list[Pair]:
    pairs = []
    for seed in seeds:
        task = house_style_task()
        pairs.append(Pair(seed, *(evolve(config(mode, seed, width), task) for mode in ("sync", "stream"))))
        sync, stream = pairs[-1].sync, pairs[-1].stream
        print(
            f"seed {seed}: samples/min {samples_per_minute(sync):.2f} -> {samples_per_minute(stream):.2f}, "
            f"best score {score_at(sync, MINUTES):.3f} -> {score_at(stream, MINUTES):.3f}, "
            f"time to sync's final score {pairs[-1].time_ratio:.2f}",
            flush=True,
        )
    return pairs
