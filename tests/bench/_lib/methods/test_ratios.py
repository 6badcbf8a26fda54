"""Methods beside each other, with intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench._lib.methods.figures import figures
from bench._lib.methods.ratios import ratio, ratios, row
from tests.support.recordings import run, span

ONE = figures(run(span(0, 1)))


def test_a_ratio_is_to_the_best_of_the_others_on_each_workload() -> None:
    found = ratio({"a": [[6.0, 6.0], [1.0, 1.0], [2.0, 2.0]], "b": [[8.0, 8.0], [2.0, 2.0], [1.0, 1.0]]})
    assert found is not None
    assert found.by_workload == {"a": 3.0, "b": 4.0}
    assert found.mean == pytest.approx(math.sqrt(12))
    assert 0 < found.low < 3.0 < 4.0 < found.high, "two workloads tell little of others"
    assert ratio({"a": [[0.0], [1.0]], "b": [[8.0], [2.0]]}) is not None


def test_without_anything_to_compare_with_there_is_no_ratio() -> None:
    assert ratio({}) is None
    assert ratio({"a": [[6.0], [0.0]]}) is None
    assert set(ratios("vllm", {("aime", "stream"): row("s", "aime", "stream", [ONE])}).values()) == {None}


def test_intervals_hold_the_gain_over_all_workloads_19_times_in_20() -> None:
    generator = np.random.default_rng(0)

    def rates(gain: float) -> list[list[float]]:
        of_workload = gain * generator.lognormal(sigma=0.5)
        return [(each * generator.lognormal(sigma=0.1, size=3)).tolist() for each in (of_workload, 1.0)]

    found = [ratio({f"{number}": rates(2.0) for number in range(4)}) for _ in range(500)]
    assert 0.92 <= np.mean([each is not None and each.low <= 2.0 <= each.high for each in found]) <= 0.98


def test_repeats_after_those_of_another_row_make_the_row_of_all_of_them() -> None:
    found = [figures(run(*(span(n, n + 1) for n in range(many)))) for many in (1, 4, 2)]
    before = row("s", "aime", "stream", found[:1])
    assert row("s", "aime", "stream", found[1:], before) == row("s", "aime", "stream", found)
    assert row("s", "aime", "stream", [], before) == before
