"""Who is merged with whom: nothing is lost, and no merge gets too much."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given, strategies as st

from flowevolve.stages.scan import neighbour_groups, shuffled_groups

COUNTS, MOST = st.integers(1, 200), st.integers(2, 20)


@given(COUNTS, st.integers(1, 5), MOST, st.integers(0, 9))
def test_everything_is_in_as_many_groups_as_asked_and_twice_in_none(
    count: int, copies: int, most: int, seed: int
) -> None:
    groups = shuffled_groups(count, copies, most, Random(seed))
    expected = copies if count > most else 1
    assert Counter(position for group in groups for position in group) == dict.fromkeys(range(count), expected)
    sizes = [len(group) for group in groups]
    assert all(len(set(group)) == len(group) for group in groups)
    assert max(sizes) <= most
    assert max(sizes) - min(sizes) <= 1


def test_who_is_together_is_drawn() -> None:
    groups = {tuple(shuffled_groups(40, 2, 8, Random(seed))) for seed in range(20)}
    assert len(groups) == 20
    assert shuffled_groups(40, 2, 8, Random(3)) == shuffled_groups(40, 2, 8, Random(3))


@given(COUNTS, MOST)
def test_neighbours_stay_in_order(count: int, most: int) -> None:
    groups = neighbour_groups(count, most)
    assert [position for group in groups for position in group] == list(range(count))
    sizes = [len(group) for group in groups]
    assert max(sizes) <= most
    assert max(sizes) - min(sizes) <= 1
