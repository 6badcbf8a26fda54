"""The command ``python -m bench.gepa_modes [--quick] [--json FILE]``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import bench.gepa_modes
from bench._lib.command import argument_parser
from bench._lib.curves import PROFILE, WORLD
from bench._lib.environment import environment
from bench._lib.stats import Spread, spread
from bench.gepa_modes.runs import GUARD, MINUTES, OVERLAP, OVERLAPS, REPAIR_MINUTES, REPAIR_WIDTH, compare, repairs


def main() -> None:
    parser = argument_parser(bench.gepa_modes)
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
