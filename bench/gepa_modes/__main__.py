"""GEPA as a stream beside GEPA in lockstep, on the virtual clock: proposals, time to score, and what repair saves.

    python -m bench.gepa_modes [--quick] [--json FILE]

Everything is simulated: the server is profile ``qwen3-8b-h100``, the model lives in world ``rules``. For each seed both
modes get the same task, seeds, prompts and minibatches; they differ in nothing but the executor and its width.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from bench._lib.curves import PROFILE, WORLD, Pair, evolve
from bench._lib.environment import environment
from bench._lib.stats import Spread, spread
from flowevolve.config import Config, parse_config
from flowevolve.tasks.house_style import house_style_task, make_rows

OVERLAPS = (0.0, 0.25, 0.5, 0.8)
"""How concentrated the rules that rows need are: the more, the more edits made side by side say the same."""
OVERLAP = 0.25
"""The overlap that ``repaired_share`` is reported for; the others stand in ``repaired_share_by_overlap``."""
MINUTES, REPAIR_MINUTES = 60.0, 30.0
"""Of virtual time, for each run."""
GUARD = 3
"""The gap past which ``guarded`` discards."""
REPAIR_WIDTH = 16
"""Flows in flight there: enough that many items go that stale."""


def config(mode: str, seed: int, minutes: float, width: int, staleness: dict[str, object]) -> Config:
    return parse_config(
        {
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
    """Per seed (repaired, judged) where edits overlap so much, of just the items that ``guarded`` would discard.

    The policy is told to look only at those: items with a smaller gap pass, as they do under ``guarded``.
    """
    task = house_style_task(make_rows(rules=18, per_example=4, overlap=overlap, rows=300, seed=11))
    policy = {"policy": "reflective", "min_gap": GUARD + 1}
    counts = []
    for seed in seeds:
        verdicts = evolve(config("stream", seed, minutes, width, policy), task).verdicts
        counts.append((verdicts.count("orthogonal"), len(verdicts)))
        print(f"overlap {overlap}, seed {seed}: {counts[-1][0]} of {counts[-1][1]} repaired", flush=True)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three seeds, and repair at one overlap only")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--width", type=int, default=8, help="flows in flight of the stream")
    parser.add_argument("--policy", default="reflective", help="staleness policy of the stream")
    arguments = parser.parse_args()
    seeds = range(3) if arguments.quick else range(10)
    pairs = compare(seeds, MINUTES, arguments.width, arguments.policy)
    shares = {
        overlap: spread(
            [good / judged for good, judged in repairs(seeds, REPAIR_MINUTES, REPAIR_WIDTH, overlap) if judged]
        )
        for overlap in ((OVERLAP,) if arguments.quick else OVERLAPS)
    }
    figures = {
        "proposals_ratio": spread([pair.proposals_ratio for pair in pairs]),
        "time_to_sync_score_ratio": spread([pair.time_ratio for pair in pairs]),
        "repaired_share": shares[OVERLAP],
        "sync_proposals_per_minute": spread([pair.sync.proposals_per_minute() for pair in pairs]),
        "stream_proposals_per_minute": spread([pair.stream.proposals_per_minute() for pair in pairs]),
        "sync_mean_in_flight": spread([pair.sync.result.mean_in_flight for pair in pairs]),
        "stream_mean_in_flight": spread([pair.stream.result.mean_in_flight for pair in pairs]),
        "sync_final_score": spread([pair.sync.best[-1][1] for pair in pairs]),
        "stream_final_score": spread([pair.stream.best[-1][1] for pair in pairs]),
    }
    report(figures, shares, list(seeds), arguments)


def report(
    figures: dict[str, Spread],
    shares: dict[float, Spread],
    seeds: list[int],
    arguments: argparse.Namespace,
) -> None:
    print(f"\nsimulated: profile {PROFILE}, world {WORLD}, {MINUTES:.0f} virtual minutes, {len(seeds)} seeds")
    for name, value in figures.items():
        print(f"{name:32} {value.median:8.3f}   ({value.low:.3f} to {value.high:.3f})")
    for overlap, share in shares.items():
        print(f"repaired_share, overlap {overlap:<8} {share.median:8.3f}   ({share.low:.3f} to {share.high:.3f})")
    if arguments.json is not None:
        settings = {"profile": PROFILE, "world": WORLD, "minutes": MINUTES, "width": arguments.width}
        content = {
            **{name: value.median for name, value in figures.items()},
            "spread": {name: value.as_json() for name, value in figures.items()},
            "repaired_share_by_overlap": {str(overlap): share.as_json() for overlap, share in shares.items()},
            "simulated": True,
            "settings": {**settings, "policy": arguments.policy, "seeds": seeds},
            "repair_settings": {"overlap": OVERLAP, "guard": GUARD, "width": REPAIR_WIDTH},
            **environment(),
        }
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
