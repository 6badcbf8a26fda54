"""Streaming GEPA beside synchronous GEPA on the virtual clock: how good, how soon, for how many tokens.

    python -m bench.quality [--quick] [--combee] [--json FILE] [--figure FILE]

Everything is simulated: profile ``qwen3-8b-h100``, world ``rules`` in settings from easy to adversarial, every seed
with rows of its own. Synchronous GEPA is our lockstep of width 1, the published loop: the gepa package itself can't run
on a virtual clock. ``--tune`` runs the settings that the stream was chosen from, on seeds that are not reported;
``--combee`` the forms of Combee.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from itertools import product
from pathlib import Path

from bench._lib.algorithm_runs import Settings
from bench._lib.environment import environment
from bench.quality.charts import draw_quality
from bench.quality.figures import Content, summarise
from bench.quality.methods import CANDIDATES, COMBEE, METHODS, PLAIN_IN
from bench.quality.pairs import Pair, compare
from bench.quality.runs import PROFILE, ROWS, WORLDS
from bench.quality.section import section

SEEDS = range(20)
TUNING_SEEDS = range(900, 902)
TUNING_WORLDS = ("normal", "noisy", "adversarial", "overlapping")
MINUTES, QUICK_MINUTES = 180.0, 60.0
"""Of virtual time, for lockstep; a stream stops as soon as it has answered everything."""


def run_pairs(
    worlds: Sequence[str],
    seeds: Sequence[int],
    minutes: float,
    methods: Mapping[str, Settings],
    processes: int,
) -> Iterator[Pair]:
    """Every seed in every world, seed by seed; each pair in one process."""
    jobs = [(world, seed) for seed, world in product(seeds, worlds)]
    with ProcessPoolExecutor(processes) as pool:
        futures = [pool.submit(compare, world, seed, minutes, methods_for(world, methods)) for world, seed in jobs]
        for future in futures:
            pair = future.result()
            print(line(pair), flush=True)
            yield pair


def methods_for(world: str, methods: Mapping[str, Settings]) -> Mapping[str, Settings]:
    """The plain stream is run in some worlds only: it takes most of the bench's time."""
    return {name: settings for name, settings in methods.items() if name != "plain" or world in PLAIN_IN}


def line(pair: Pair) -> str:
    parts = [f"{pair.world}, seed {pair.seed}: sync {pair.sync.curve[-1]:.3f}"]
    for name, each in pair.streams.items():
        took = "never" if each.final_seconds is None else f"{each.final_seconds / pair.sync.final_seconds:.2f}"
        gains = [each.at[moment].validation - base.validation for moment, base in pair.sync.at.items()]
        parts.append(f"{name} time {took}, at equal tokens {', '.join(f'{gain:+.3f}' for gain in gains)}")
    return "; ".join(parts)


def report(
    pairs: Sequence[Pair], seeds: Sequence[int], minutes: float, methods: Mapping[str, Settings], quick: bool
) -> Content:
    """What is written into the file."""
    worlds = list(dict.fromkeys(pair.world for pair in pairs))
    return {
        **summarise(pairs, list(methods)),
        "simulated": True,
        "settings": {
            "profile": PROFILE,
            "rows": ROWS,
            "minutes": minutes,
            "seeds": list(seeds),
            "quick": quick,
            "tuning": {"seeds": list(TUNING_SEEDS), "worlds": list(TUNING_WORLDS), "tried": sorted(CANDIDATES)},
            "worlds": {name: asdict(WORLDS[name]) for name in worlds},
            "methods": dict(methods),
        },
        **environment(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three worlds, three seeds, lockstep for an hour")
    parser.add_argument("--tune", action="store_true", help="the settings that were tried, on seeds kept for that")
    parser.add_argument("--combee", action="store_true", help="Combee's forms instead of the plain stream")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--figure", type=Path, help="draw best scores over time into this file (SVG)")
    parser.add_argument("--processes", type=int, default=1, help="runs side by side; results do not depend on it")
    arguments = parser.parse_args()
    quick, tune = bool(arguments.quick), bool(arguments.tune)
    worlds = TUNING_WORLDS if tune else ("normal", "adversarial", "overlapping") if quick else tuple(WORLDS)
    seeds = TUNING_SEEDS if tune else SEEDS[:3] if quick else SEEDS
    minutes = QUICK_MINUTES if quick else MINUTES
    methods = CANDIDATES if tune else COMBEE if arguments.combee else METHODS
    pairs = list(run_pairs(worlds, seeds, minutes, methods, int(arguments.processes)))
    content = report(pairs, seeds, minutes, methods, quick)
    print("\n" + section(content))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")
    if arguments.figure is not None:
        draw_quality(arguments.figure, content)


if __name__ == "__main__":
    main()
