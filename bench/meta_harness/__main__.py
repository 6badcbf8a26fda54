"""The command ``python -m bench.meta_harness [--quick] [--minutes 30] [--width 16] [--workers 8] [--json FILE]``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import bench.meta_harness
from bench._lib.command import argument_parser
from bench._lib.environment import environment
from bench._lib.paths import DATA, lacking
from bench._lib.stats import spread
from bench.meta_harness.runs import CANDIDATES, IN_FLIGHT, MODES, PROFILE, READS, WORLD, Setting, Side, compare, ratio

GOAL = 4.7
"""The ratio that FlashEvolve reports: 1.4 over 0.3 proposals a minute."""


def figures_of(pairs: Sequence[dict[str, Side]]) -> dict[str, dict[str, float]]:
    """Spreads over seeds, except that those of scores are over all harnesses of all seeds."""
    found = {"proposals_ratio": spread([ratio(pair) for pair in pairs])}
    for mode in MODES:
        sides = [pair[mode] for pair in pairs]
        found[f"{mode}_proposals_per_minute"] = spread([side.proposals_per_minute for side in sides])
        found[f"{mode}_valid"] = spread([len(side.scores) for side in sides])
        found[f"{mode}_invalid"] = spread([side.invalid for side in sides])
        found[f"{mode}_best_score"] = spread([side.best for side in sides])
        found[f"{mode}_scores"] = spread([score for side in sides for score in side.scores])
    return {name: value.as_json() for name, value in found.items()}


def main() -> None:
    parser = argument_parser(bench.meta_harness)
    parser.add_argument("--minutes", type=float, default=30.0, help="virtual, of each run")
    parser.add_argument("--quick", action="store_true", help="one seed")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--width", type=int, default=16, help="flows in flight of the stream")
    parser.add_argument("--workers", type=int, default=8, help="of its stages propose and benchmark")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder with symptom2disease and ag_news")
    arguments = parser.parse_args()
    if missing := lacking(READS, arguments.data):
        parser.error(missing)
    seeds = range(1 if arguments.quick else 3)
    pairs = compare(seeds, Setting(arguments.minutes, arguments.width, arguments.workers, arguments.data))
    figures = figures_of(pairs)
    median = figures["proposals_ratio"]["median"]
    print(f"median {median:.2f}x, published {GOAL}x")
    if arguments.json:
        content = {
            "goal": GOAL,
            "proposals_ratio": median,
            "spread": figures,
            "runs": [{mode: asdict(side) for mode, side in pair.items()} for pair in pairs],
            "simulated": True,
            "settings": {
                "profile": PROFILE,
                "world": WORLD,
                "in_flight": IN_FLIGHT,
                "candidates": CANDIDATES,
                "minutes": arguments.minutes,
                "width": arguments.width,
                "workers": arguments.workers,
                "seeds": list(seeds),
            },
            **environment(),
        }
        arguments.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
