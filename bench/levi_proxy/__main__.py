"""How well small benchmarks rank prompts: LEVI's selection beside two others, as in the paper's figure 6.

    python -m bench.levi_proxy [--quick] [--json FILE]

24 prompts answer 150 problems, each right or wrong, in a world with a few skills: prompts have them more or less, a
problem asks for one, and many problems hardly tell prompts apart. Some prompts are scored on all problems; from these a
method chooses a few problems, and predicts from them alone what the other prompts score on all. The figure is
Spearman's rank correlation of that with what they do score, the mean over random splits.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from bench._lib.environment import environment
from bench.levi_proxy.section import section
from flowevolve.algorithms.levi.proxy import select_proxy

PROMPTS, PROBLEMS, SKILLS = 24, 150, 6
CALIBRATION = (5, 10, 15)
SIZES = (10, 20, 35)
SPLITS, QUICK_SPLITS = 60, 10

Numbers: TypeAlias = NDArray[np.float64]
Predictor: TypeAlias = Callable[[Numbers, Numbers, int, np.random.Generator], Numbers]
"""From the scores of calibration prompts and of others (a row each), the size of the subset and a generator makes
predictions for the others, of whose columns it reads only as many."""


def score_matrix(rng: np.random.Generator) -> Numbers:
    """0 and 1, a row for each prompt: an item response model (two parameters) over a general ability and skills."""
    skills = 0.3 * rng.normal(size=(PROMPTS, 1)) + 0.8 * rng.normal(size=(PROMPTS, SKILLS))
    asked = rng.integers(SKILLS, size=PROBLEMS)
    telling = np.where(rng.random(PROBLEMS) < 0.25, rng.uniform(1.5, 3.0, PROBLEMS), 0.1)
    difficulty = rng.normal(0.3, 1.0, PROBLEMS)
    chance = 1 / (1 + np.exp(-telling * (skills[:, asked] - difficulty) + np.where(telling < 1, 5 * difficulty, 0)))
    scores: Numbers = (rng.random(chance.shape) < chance).astype(np.float64)
    return scores


def css_mean(known: Numbers, others: Numbers, size: int, rng: np.random.Generator) -> Numbers:
    """LEVI's greedy selection of columns, and their mean."""
    means: Numbers = others[:, list(select_proxy(known.tolist(), size))].mean(axis=1)
    return means


def k_medoids(known: Numbers, others: Numbers, size: int, rng: np.random.Generator) -> Numbers:
    """The middles of clusters of problems, weighted by the clusters' sizes."""
    columns = known.T
    distances = np.linalg.norm(columns[:, None] - columns[None], axis=2)
    medoids = rng.choice(len(columns), size, replace=False)
    for _ in range(20):
        nearest = distances[:, medoids].argmin(axis=1)
        members = [np.flatnonzero(nearest == place) for place in range(size)]
        middles = [
            group[distances[np.ix_(group, group)].sum(axis=1).argmin()] if len(group) else medoid
            for group, medoid in zip(members, medoids, strict=True)
        ]
        if np.array_equal(middles, medoids):
            break
        medoids = np.array(middles)
    weights = np.bincount(distances[:, medoids].argmin(axis=1), minlength=size)
    weighted: Numbers = others[:, medoids] @ weights / weights.sum()
    return weighted


def random_ridge(known: Numbers, others: Numbers, size: int, rng: np.random.Generator) -> Numbers:
    """Random problems, and a ridge regression from them to the score on all, fitted to the calibration prompts."""
    chosen = rng.choice(known.shape[1], size, replace=False)
    seen, full = known[:, chosen], known.mean(axis=1)
    middle = seen.mean(axis=0)
    centred = seen - middle
    slopes = np.linalg.solve(centred.T @ centred + np.eye(size), centred.T @ (full - full.mean()))
    predicted: Numbers = full.mean() + (others[:, chosen] - middle) @ slopes
    return predicted


METHODS: dict[str, Predictor] = {"css_mean": css_mean, "k_medoids": k_medoids, "random_ridge": random_ridge}


def ranking_quality(method: Predictor, calibration: int, size: int, splits: int) -> float:
    """The mean rank correlation over so many matrices and splits; the same ones for every method."""
    found = []
    for split in range(splits):
        rng = np.random.default_rng([calibration, split])
        scores = score_matrix(rng)[rng.permutation(PROMPTS)]
        predicted = method(scores[:calibration], scores[calibration:], size, rng)
        found.append(_spearman(predicted, scores[calibration:].mean(axis=1)))
    return fmean(found)


def _spearman(one: Numbers, other: Numbers) -> float:
    """0 where everything is ranked alike."""
    return 0.0 if np.ptp(one) < 1e-12 or np.ptp(other) < 1e-12 else float(spearmanr(one, other).statistic)


Row: TypeAlias = dict[str, float]


def table(splits: int, calibrations: Sequence[int] = CALIBRATION, sizes: Sequence[int] = SIZES) -> list[Row]:
    """A row for each number of calibration prompts and size of the subset."""
    return [
        {"calibration": calibration, "size": size}
        | {name: ranking_quality(method, calibration, size, splits) for name, method in METHODS.items()}
        for calibration in calibrations
        for size in sizes
    ]


def ordered(row: Row) -> bool:
    """Whether the methods stand as in the paper."""
    return row["css_mean"] > row["k_medoids"] > row["random_ridge"]


def report(quick: bool) -> dict[str, object]:
    """What is written into the file."""
    splits = QUICK_SPLITS if quick else SPLITS
    rows = table(splits)
    settings = {"prompts": PROMPTS, "problems": PROBLEMS, "skills": SKILLS, "splits": splits, "quick": quick}
    return {"cells": rows, "ordered": sum(map(ordered, rows)), "settings": settings, **environment()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer splits")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    content = report(bool(arguments.quick))
    print(section(content))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
