"""Methods beside each other, with intervals."""

from __future__ import annotations

import math

import pytest

from bench._lib.methods.figures import figures
from bench._lib.methods.ratios import ratio, ratios
from tests.support.recordings import run, span


def test_a_ratio_is_to_the_best_of_the_others_on_each_workload() -> None:
    found = ratio({"a": [[6.0, 6.0], [1.0, 1.0], [2.0, 2.0]], "b": [[8.0, 8.0], [2.0, 2.0], [1.0, 1.0]]})
    assert found is not None
    assert found.by_workload == {"a": 3.0, "b": 4.0}
    assert found.mean == pytest.approx(math.sqrt(12))
    assert (found.low, found.high) == pytest.approx((3.0, 4.0))
    assert ratio({"a": [[0.0], [1.0]], "b": [[8.0], [2.0]]}) is not None


def test_without_anything_to_compare_with_there_is_no_ratio() -> None:
    assert ratio({}) is None
    assert ratio({"a": [[6.0], [0.0]]}) is None
    assert set(ratios("vllm", {("aime", "stream"): [figures(run(span(0, 1)))]}).values()) == {None}
