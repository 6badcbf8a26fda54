"""Made-up scores of prompts on problems, and three ways to choose problems and predict from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from flowevolve.algorithms.levi.proxy import select_proxy

PROMPTS, PROBLEMS, SKILLS = 24, 150, 6
Numbers: TypeAlias = NDArray[np.float64]
Predictor: TypeAlias = Callable[[Numbers, Numbers, int, np.random.Generator], Numbers]
"""Predicts the mean scores of prompts. It takes the scores of the calibration prompts and of the others (a row for each
prompt), the size of the subset and a generator. Of the others' scores it reads only as many columns as that size.
"""


def score_matrix(rng: np.random.Generator) -> Numbers:
    """Scores of 0 and 1 with a row for each prompt, drawn from a two-parameter item response model over ability and
    skills.
    """
    skills = 0.3 * rng.normal(size=(PROMPTS, 1)) + 0.8 * rng.normal(size=(PROMPTS, SKILLS))
    asked = rng.integers(SKILLS, size=PROBLEMS)
    telling = np.where(rng.random(PROBLEMS) < 0.25, rng.uniform(1.5, 3.0, PROBLEMS), 0.1)
    difficulty = rng.normal(0.3, 1.0, PROBLEMS)
    chance = 1 / (1 + np.exp(-telling * (skills[:, asked] - difficulty) + np.where(telling < 1, 5 * difficulty, 0)))
    scores: Numbers = (rng.random(chance.shape) < chance).astype(np.float64)
    return scores


def css_mean(known: Numbers, others: Numbers, size: int, rng: np.random.Generator) -> Numbers:
    """Predict the mean of the columns that LEVI's greedy selection chooses."""
    means: Numbers = others[:, list(select_proxy(known.tolist(), size))].mean(axis=1)
    return means


def k_medoids(known: Numbers, others: Numbers, size: int, rng: np.random.Generator) -> Numbers:
    """Predict the mean over the medoids of clusters of problems, weighted by the clusters' sizes."""
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
    """Predict by a ridge regression from random problems to the score on all, fitted to the calibration prompts."""
    chosen = rng.choice(known.shape[1], size, replace=False)
    seen, full = known[:, chosen], known.mean(axis=1)
    middle = seen.mean(axis=0)
    centred = seen - middle
    slopes = np.linalg.solve(centred.T @ centred + np.eye(size), centred.T @ (full - full.mean()))
    predicted: Numbers = full.mean() + (others[:, chosen] - middle) @ slopes
    return predicted


METHODS: dict[str, Predictor] = {"css_mean": css_mean, "k_medoids": k_medoids, "random_ridge": random_ridge}
