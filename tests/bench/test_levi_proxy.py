"""The proxy bench: matrices, and the order of methods."""

from __future__ import annotations

import numpy as np

from bench.levi_proxy.methods import PROBLEMS, PROMPTS, score_matrix
from bench.levi_proxy.rankings import ordered, table
from bench.levi_proxy.section import section


def test_matrices_are_of_zeros_and_ones_and_tell_prompts_apart() -> None:
    scores = score_matrix(np.random.default_rng(0))
    assert scores.shape == (PROMPTS, PROBLEMS)
    assert set(np.unique(scores)) == {0.0, 1.0}
    assert np.ptp(scores.mean(axis=1)) > 0.05


def test_methods_stand_as_in_the_paper() -> None:
    (row,) = table(12, calibrations=(5,), sizes=(20,))
    assert ordered(row)


def test_the_section_has_a_row_for_each_cell_and_says_whether_the_order_is_the_papers() -> None:
    cell = {"calibration": 5, "size": 20, "css_mean": 0.61, "k_medoids": 0.31, "random_ridge": 0.04}
    settings = {"prompts": 24, "problems": 150, "skills": 6, "splits": 60, "quick": False}
    made = section({"cells": [cell, {**cell, "k_medoids": 0.7}], "ordered": 1, "settings": settings})
    assert "| 5 | 20 | 0.61 | 0.31 | 0.04 |" in made
    assert "met in 1 of 2 rows" in made.replace("\n", " ")
