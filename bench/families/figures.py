"""Figures of the runs: best scores, how many runs left the seed's family, and what each part adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from bench._lib.algorithm_runs import Run
from bench._lib.intervals import interval, paired
from bench._lib.stats import Content
from bench.families.variants import WHOLE, WITHOUT, name_of
from flowevolve.tasks.families.catalog import CEILINGS, SEED

HOME = CEILINGS[SEED.family]
"""The score that no program of the seed's family exceeds."""
MIDDLE = max(ceiling for (copies, _), ceiling in CEILINGS.items() if copies == SEED.copies.way.name)
"""The score that no program with the seed's way of `copies` exceeds."""
BASELINE = "one_plus_lambda"


def summarise(runs: Sequence[Run]) -> Content:
    groups: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.seed):
        groups.setdefault(run.algorithm, []).append(run)
    return {
        "rows": [_row(name, each) for name, each in groups.items()],
        "over_baseline": [{"one": name, **_beside(groups, name, BASELINE)} for name in WHOLE if name in groups],
        "parts": [
            {"algorithm": algorithm, "without": part, **_beside(groups, algorithm, name_of(algorithm, part))}
            for algorithm, parts in WITHOUT.items()
            for part in parts
            if algorithm in groups
        ],
    }


def _row(name: str, runs: Sequence[Run]) -> Content:
    return {
        "variant": name,
        "score": interval([[run.best for run in runs]]).as_json(),
        "past_home": sum(run.best > HOME for run in runs),
        "past_middle": sum(run.best > MIDDLE for run in runs),
        "runs": len(runs),
        "evaluations": fmean(run.evaluations for run in runs),
        "tokens": fmean(run.tokens for run in runs),
    }


def _beside(groups: Mapping[str, Sequence[Run]], one: str, other: str) -> Content:
    return paired([run.best for run in groups[one]], [run.best for run in groups[other]])
