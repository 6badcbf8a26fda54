"""ACE as a stream beside ACE in lockstep, on the virtual clock: the best validation score over half an hour.

    python -m bench.ace [--quick] [--json FILE]

The shape of FlashEvolve's figure 7 (a, b). Everything is simulated: the server is profile ``qwen3-8b-h100``, the model
lives in world ``rules``. For each seed both modes get the same task, seed, prompts and order of samples.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from bench._lib.curves import PROFILE, WORLD, Curve, Pair, evolve
from bench._lib.environment import environment
from bench._lib.stats import Spread, spread
from flowevolve.config import Config, parse_config
from flowevolve.tasks.house_style import house_style_task

MINUTES = 30
"""Of virtual time, for each run, as in figure 7."""
VALIDATE_EVERY = 20
"""Samples between validations: at the published 100, lockstep gets to one in half an hour."""
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
    """The best score at this minute; 0 before the first."""
    return max((score for seconds, score in curve.best if seconds <= 60 * minute), default=0.0)


def samples_per_minute(curve: Curve) -> float:
    """Samples learnt from."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two seeds")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--width", type=int, default=16, help="samples in flight of the stream")
    arguments = parser.parse_args()
    seeds = list(range(2 if arguments.quick else 5))
    pairs = compare(seeds, arguments.width)
    figures = {
        "sync_samples_per_minute": spread([samples_per_minute(pair.sync) for pair in pairs]),
        "stream_samples_per_minute": spread([samples_per_minute(pair.stream) for pair in pairs]),
        "time_to_sync_score_ratio": spread([pair.time_ratio for pair in pairs]),
        "sync_final_score": spread([score_at(pair.sync, MINUTES) for pair in pairs]),
        "stream_final_score": spread([score_at(pair.stream, MINUTES) for pair in pairs]),
        "stream_above_sync": spread(
            [sum(score_at(pair.stream, at) > score_at(pair.sync, at) for at in GRID) / len(GRID) for pair in pairs]
        ),
    }
    by_mode = {"sync": [pair.sync for pair in pairs], "stream": [pair.stream for pair in pairs]}
    curves = {
        mode: {at: spread([score_at(curve, at) for curve in found]) for at in GRID} for mode, found in by_mode.items()
    }
    report(figures, curves, seeds, arguments)


def report(
    figures: dict[str, Spread],
    curves: dict[str, dict[int, Spread]],
    seeds: list[int],
    arguments: argparse.Namespace,
) -> None:
    print(f"\nsimulated: profile {PROFILE}, world {WORLD}, {MINUTES} virtual minutes, {len(seeds)} seeds")
    for name, value in figures.items():
        print(f"{name:28} {value.median:8.3f}   ({value.low:.3f} to {value.high:.3f})")
    for at in GRID:
        shown = "   ".join(f"{mode} {curve[at].median:.3f}" for mode, curve in curves.items())
        print(f"best score after {at:2} minutes: {shown}")
    if arguments.json is not None:
        content = {
            **{name: value.median for name, value in figures.items()},
            "spread": {name: value.as_json() for name, value in figures.items()},
            "best_score_by_minute": {
                mode: {str(at): value.as_json() for at, value in curve.items()} for mode, curve in curves.items()
            },
            "simulated": True,
            "settings": {
                "profile": PROFILE,
                "world": WORLD,
                "minutes": MINUTES,
                "width": arguments.width,
                "validate_every": VALIDATE_EVERY,
                "seeds": seeds,
            },
            **environment(),
        }
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
