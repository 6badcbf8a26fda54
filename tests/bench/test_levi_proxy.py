"""The proxy bench: matrices, and the order of methods."""

from __future__ import annotations

import numpy as np

from bench.levi_proxy import PROBLEMS, PROMPTS, ordered, score_matrix, table


def test_matrices_are_of_zeros_and_ones_and_tell_prompts_apart() -> None:
    scores = score_matrix(np.random.default_rng(0))
    assert scores.shape == (PROMPTS, PROBLEMS)
    assert set(np.unique(scores)) == {0.0, 1.0}
    assert np.ptp(scores.mean(axis=1)) > 0.05


def test_methods_stand_as_in_the_paper() -> None:
    (row,) = table(12, calibrations=(5,), sizes=(20,))
    assert ordered(row)
