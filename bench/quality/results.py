"""The runs that are made, and the content of the result file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from itertools import product

from bench._lib.algorithm_runs import Settings
from bench.quality.figures import Content, summarise
from bench.quality.kept import KeptPairs
from bench.quality.methods import ONLY_IN
from bench.quality.pairs import Pair, compare
from bench.quality.runs import PRECISION, PROFILE, ROWS, WORLDS

SEEDS = range(100, 120)
"""Seeds that nobody had looked at when the default got its present settings."""
TUNING_SEEDS = range(900, 902)
TUNING_WORLDS = ("normal", "noisy", "adversarial", "overlapping")
"""The worlds that the preset ``careful`` was chosen on."""
MINUTES, QUICK_MINUTES = 180.0, 60.0
"""Virtual minutes of lockstep; a stream stops as soon as it has reached its goals."""


def run_pairs(
    worlds: Sequence[str],
    seeds: Sequence[int],
    minutes: float,
    methods: Mapping[str, Settings],
    processes: int,
    kept: KeptPairs,
) -> Iterator[Pair]:
    """Run every seed in every world, seed by seed, each pair in one process. Pairs that are kept are not run again."""
    found = {
        (world, seed): kept.read(world, seed, minutes, methods_for(world, methods))
        for seed, world in product(seeds, worlds)
    }
    with ProcessPoolExecutor(processes) as pool:
        running = {
            (world, seed): pool.submit(_run, world, seed, minutes, methods_for(world, methods), kept)
            for (world, seed), pair in found.items()
            if pair is None
        }
        for job, pair in found.items():
            done = pair or running[job].result()
            print(line(done), flush=True)
            yield done


def _run(world: str, seed: int, minutes: float, methods: Mapping[str, Settings], kept: KeptPairs) -> Pair:
    pair = compare(world, seed, minutes, methods)
    kept.write(pair, methods)
    return pair


def methods_for(world: str, methods: Mapping[str, Settings]) -> Mapping[str, Settings]:
    """The methods to run in a world."""
    return {name: settings for name, settings in methods.items() if world in ONLY_IN.get(name, (world,))}


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
    """The content of the result file, but for what it was measured with."""
    worlds = list(dict.fromkeys(pair.world for pair in pairs))
    return {
        **summarise(pairs, list(methods)),
        "simulated": True,
        "settings": {
            "profile": PROFILE,
            "rows": ROWS,
            "held_out_precision": PRECISION,
            "minutes": minutes,
            "seeds": list(seeds),
            "quick": quick,
            "worlds": {name: asdict(WORLDS[name]) for name in worlds},
            "methods": dict(methods),
        },
    }
