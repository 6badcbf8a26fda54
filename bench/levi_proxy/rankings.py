"""How well the methods rank prompts, and the report on it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TypeAlias

import numpy as np
from scipy.stats import spearmanr

from bench._lib.environment import environment
from bench.levi_proxy.methods import METHODS, PROBLEMS, PROMPTS, SKILLS, Numbers, Predictor, score_matrix

CALIBRATION = (5, 10, 15)
SIZES = (10, 20, 35)
SPLITS, QUICK_SPLITS = 60, 10


def ranking_quality(method: Predictor, calibration: int, size: int, splits: int) -> float:
    """The mean rank correlation over this many matrices and splits, which are the same for every method."""
    found = []
    for split in range(splits):
        rng = np.random.default_rng([calibration, split])
        scores = score_matrix(rng)[rng.permutation(PROMPTS)]
        predicted = method(scores[:calibration], scores[calibration:], size, rng)
        found.append(_spearman(predicted, scores[calibration:].mean(axis=1)))
    return fmean(found)


def _spearman(one: Numbers, other: Numbers) -> float:
    """Spearman's rank correlation; 0 if all values of either are equal."""
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
    """Whether the methods are in the paper's order."""
    return row["css_mean"] > row["k_medoids"] > row["random_ridge"]


def report(quick: bool) -> dict[str, object]:
    """The content of the result file."""
    splits = QUICK_SPLITS if quick else SPLITS
    rows = table(splits)
    settings = {"prompts": PROMPTS, "problems": PROBLEMS, "skills": SKILLS, "splits": splits, "quick": quick}
    return {"cells": rows, "ordered": sum(map(ordered, rows)), "settings": settings, **environment()}
