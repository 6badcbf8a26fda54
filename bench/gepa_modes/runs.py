"""GEPA in both modes with the same seeds, and the repairs of its stream."""

from __future__ import annotations

from collections.abc import Sequence

from bench._lib.curves import PROFILE, WORLD, Pair, evolve
from bench._lib.house_style import make_rows
from flowevolve.config.run import Config, parse_config
from flowevolve.tasks.house_style import house_style_task

OVERLAPS = (0.0, 0.25, 0.5, 0.8)
"""How concentrated the rules are that rows need. The higher, the more often edits made side by side say the same."""
OVERLAP = 0.25
"""The overlap that ``repaired_share`` is reported for; the others are in ``repaired_share_by_overlap``."""
MINUTES, REPAIR_MINUTES = 60.0, 30.0
"""Virtual minutes of each run, and of each run in which repairs are counted."""
GUARD = 3
"""``guarded`` discards items with a larger gap than this."""
REPAIR_WIDTH = 16
"""Flows in flight of the runs in which repairs are counted, enough for many items to have a larger gap than `GUARD`."""


def config(mode: str, seed: int, minutes: float, width: int, staleness: dict[str, object]) -> Config:
    return parse_config(
        {
            "preset": "plain",
            "seed": seed,
            "clock": "virtual",
            "algorithm": {"name": "gepa", "mode": mode, "max_in_flight": width},
            "sim": {"profile": PROFILE, "world": WORLD},
            "staleness": staleness,
            "budget": {"minutes": minutes},
        },
        "bench",
    )


def compare(seeds: Sequence[int], minutes: float, width: int, policy: str) -> list[Pair]:
    pairs = []
    for seed in seeds:
        task = house_style_task()
        sync = evolve(config("sync", seed, minutes, width, {"policy": "full"}), task)
        stream = evolve(config("stream", seed, minutes, width, {"policy": policy}), task)
        pairs.append(Pair(seed, sync, stream))
        print(
            f"seed {seed}: proposals/min {sync.proposals_per_minute():.2f} -> {stream.proposals_per_minute():.2f} "
            f"({pairs[-1].proposals_ratio:.2f}x), final {sync.best[-1][1]:.3f} -> {stream.best[-1][1]:.3f}, "
            f"time to sync's final score {pairs[-1].time_ratio:.2f}",
            flush=True,
        )
    return pairs


def repairs(seeds: Sequence[int], minutes: float, width: int, overlap: float) -> list[tuple[int, int]]:
    """For each seed, how many items were repaired and how many judged, of those that ``guarded`` would discard.

    The policy is told to look only at those items; items with a smaller gap pass, as they do under ``guarded``.
    ``overlap`` says how much edits overlap.
    """
    task = house_style_task(make_rows(rules=18, per_example=4, overlap=overlap, rows=300, seed=11))
    policy = {"policy": "reflective", "min_gap": GUARD + 1}
    counts = []
    for seed in seeds:
        verdicts = evolve(config("stream", seed, minutes, width, policy), task).verdicts
        counts.append((verdicts.count("orthogonal"), len(verdicts)))
        print(f"overlap {overlap}, seed {seed}: {counts[-1][0]} of {counts[-1][1]} repaired", flush=True)
    return counts
