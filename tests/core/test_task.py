"""What tasks are made of."""

from __future__ import annotations

import numpy as np
import pytest

import flowevolve as fe


@pytest.mark.parametrize("passed", [True, np.True_, 1, np.int64(1), 1.0])
def test_whether_an_output_passed_may_be_of_another_library(passed: bool) -> None:
    assert fe.Score(0.5, "Half.", passed=passed).passed is True
    assert fe.Score(0.5, "Half.", passed=type(passed)(0)).passed is False


@pytest.mark.parametrize("passed", ["no", "", None, 0.5, [], np.array([True, False])])
def test_what_is_neither_true_nor_false_is_refused(passed: bool) -> None:
    """A word is true in Python, and "no" meant that an output left nothing to improve."""
    with pytest.raises(TypeError, match=r"^Score: passed is .*; give True or False$"):
        fe.Score(0.5, "Half.", passed=passed)
