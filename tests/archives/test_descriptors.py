"""Behaviour spaces: scales against numbers worked out by hand, centroids where the data are and everywhere."""

from __future__ import annotations

import json
import math
import sys
from random import Random

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import InputError
from flowevolve.archives.descriptors import Scale, Space, check_ribs, fit_space, k_means, load_ribs

RNG = Random(7)
CORNER = [{"a": RNG.gauss(5, 1), "b": RNG.gauss(50, 10)} for _ in range(80)]


def test_scales_against_numbers_worked_out_by_hand() -> None:
    scale = Scale.of([1.0, 2.0, 3.0])
    assert scale == Scale(2.0, 1.0)
    assert scale(2.0) == 0.5
    assert scale(3.0) == pytest.approx(0.7310585786)
    assert scale(0.0) == pytest.approx(0.1192029220)
    assert Scale.of([2.0, 4.0, 4.0, 6.0]).std == pytest.approx(math.sqrt(8 / 3))


def test_scales_have_floors_and_limits() -> None:
    assert Scale.of([0.5, 0.5]).std == 0.1
    assert Scale.of([4.0]) == Scale(4.0, 1.0)
    assert Scale(0.0, 1.0)(1e9) == Scale(0.0, 1.0)(10.0) == pytest.approx(1 / (1 + math.exp(-10)))
    assert Scale(3.0, 2.0)(None) == 0.5
    with pytest.raises(ValueError, match="data point"):
        Scale.of([])


def test_a_space_survives_the_log() -> None:
    space = fit_space(CORNER, ["a", "b"], cells=6, placement="data", seed=1)
    assert Space.from_json(json.loads(json.dumps(space.to_json()))) == space


def test_few_points_are_their_own_centroids() -> None:
    space = fit_space([{"a": 1.0}, {"a": 2.0}, {"a": 1.0}], ["a"], cells=50, placement="data", seed=0)
    points = [space.point({"a": value})[0] for value in (1.0, 2.0)]
    assert [place for (place,) in space.centroids] == pytest.approx(points, abs=1e-4)


def test_many_points_share_as_many_centroids_as_there_may_be() -> None:
    assert len(fit_space(CORNER, ["a", "b"], cells=50, placement="data", seed=0).centroids) == 50
    assert len(fit_space(CORNER[:20], ["a", "b"], cells=50, placement="data", seed=0).centroids) == 20


def test_centroids_are_where_the_data_are_or_everywhere() -> None:
    line = [{"a": float(n), "b": float(n)} for n in range(40)]
    near = fit_space(line, ["a", "b"], cells=10, placement="data", seed=0).centroids
    everywhere = fit_space(line, ["a", "b"], cells=10, placement="uniform", seed=0).centroids
    assert all(abs(a - b) < 1e-3 for a, b in near)
    assert len(everywhere) == 10
    assert max(abs(a - b) for a, b in everywhere) > 0.4


def test_one_candidate_says_nothing_of_the_space() -> None:
    assert len(fit_space([{"a": 1.0}], ["a"], cells=7, placement="data", seed=0).centroids) == 7


def test_equal_seeds_give_equal_spaces() -> None:
    for placement in ("data", "uniform"):
        spaces = [fit_space(CORNER, ["a", "b"], cells=9, placement=placement, seed=3) for _ in range(2)]
        assert spaces[0] == spaces[1]


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30), st.integers(1, 10))
def test_clusters_are_no_more_than_points(points: list[tuple[float, float]], count: int) -> None:
    centres = k_means(points, count, 0)
    assert len(centres) == min(count, len({(round(a, 4), round(b, 4)) for a, b in points}))


def test_without_ribs_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    check_ribs("algorithm levi")
    monkeypatch.setitem(sys.modules, "ribs.archives", None)
    with pytest.raises(InputError, match="ribs can't be loaded"):
        load_ribs()
    monkeypatch.setattr("flowevolve.archives.descriptors.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"algorithm levi needs the library ribs: .*flowevolve\[ribs\]"):
        check_ribs("algorithm levi")
