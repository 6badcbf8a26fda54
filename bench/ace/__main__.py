"""The command ``python -m bench.ace [--quick] [--json FILE]``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import bench.ace
from bench._lib.command import argument_parser
from bench._lib.curves import PROFILE, WORLD
from bench._lib.environment import environment
from bench._lib.stats import Spread, spread
from bench.ace.runs import GRID, MINUTES, VALIDATE_EVERY, compare, samples_per_minute, score_at


def main() -> None:
    parser = argument_parser(bench.ace)
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
        "sync_first_rise_minutes": spread([pair.sync.first_rise() / 60 for pair in pairs]),
        "stream_first_rise_minutes": spread([pair.stream.first_rise() / 60 for pair in pairs]),
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
    report(figures, curves, sum(pair.reached for pair in pairs), seeds, arguments)


def report(
    figures: dict[str, Spread],
    curves: dict[str, dict[int, Spread]],
    reached: int,
    seeds: list[int],
    arguments: argparse.Namespace,
) -> None:
    print(f"\nsimulated: profile {PROFILE}, world {WORLD}, {MINUTES} virtual minutes, {len(seeds)} seeds")
    for name, value in figures.items():
        print(f"{name:28} {value.median:8.3f}   ({value.low:.3f} to {value.high:.3f})")
    print(f"the stream had lockstep's final score with {reached} seeds")
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
            "reached": reached,
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
