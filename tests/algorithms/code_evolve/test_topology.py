"""Who sends migrants to whom."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from flowevolve.algorithms.code_evolve.commit import neighbours
from flowevolve.algorithms.code_evolve.config import Topology


@pytest.mark.parametrize(
    ("topology", "expected"),
    [
        ("ring", [(1, 4), (0, 2), (1, 3), (2, 4), (0, 3)]),
        ("complete", [(1, 2, 3, 4), (0, 2, 3, 4), (0, 1, 3, 4), (0, 1, 2, 4), (0, 1, 2, 3)]),
        ("empty", [()] * 5),
    ],
)
def test_five_islands(topology: Topology, expected: list[tuple[int, ...]]) -> None:
    assert [neighbours(topology, island, 5) for island in range(5)] == expected


@pytest.mark.parametrize("topology", ["ring", "complete"])
def test_one_island_has_no_neighbours_and_two_have_each_other(topology: Topology) -> None:
    assert neighbours(topology, 0, 1) == ()
    assert [neighbours(topology, island, 2) for island in range(2)] == [(1,), (0,)]


@given(st.sampled_from(["ring", "complete", "empty"]), st.integers(1, 12))
def test_roads_lead_both_ways(topology: Topology, count: int) -> None:
    for island in range(count):
        for other in neighbours(topology, island, count):
            assert other != island
            assert island in neighbours(topology, other, count)
