"""Which vectors count as saying the same."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from flowevolve.policies.similarity import Likeness, cosine, near_groups

VECTORS = st.lists(st.tuples(*[st.floats(-10, 10, allow_subnormal=False)] * 3), max_size=12)


def test_cosine_by_hand() -> None:
    assert cosine((1, 0), (1, 1)) == pytest.approx(0.5**0.5)
    assert cosine((0, 0), (1, 1)) == 0


@given(VECTORS, st.floats(0.1, 1))
def test_groups_are_disjoint_and_near_their_first(vectors: list[tuple[float, ...]], threshold: float) -> None:
    groups = near_groups(vectors, threshold)
    places = [place for group in groups for place in group]
    assert len(places) == len(set(places))
    for first, *others in groups:
        assert others
        assert all(cosine(vectors[first], vectors[other]) >= threshold for other in others)


@given(VECTORS, st.floats(0.1, 1), st.lists(st.integers(0, 11), max_size=4))
def test_groups_are_those_that_comparing_one_by_one_gives(
    vectors: list[tuple[float, ...]], threshold: float, twice: list[int]
) -> None:
    """Also where vectors occur several times."""
    vectors = [*vectors, *(vectors[place] for place in twice if place < len(vectors))]
    free = list(range(len(vectors)))
    groups = []
    while free:
        first, *others = free
        near = [other for other in others if cosine(vectors[first], vectors[other]) >= threshold]
        groups += [[first, *near]] if near else []
        free = [other for other in others if other not in near]
    assert near_groups(vectors, threshold) == groups


def test_a_text_is_compared_with_the_nearest() -> None:
    likeness = Likeness(duplicate=0.9, unlike=0.6)
    assert likeness.relation((1, 0), [(0, 1), (1, 0.1)]) == ("duplicate", 1)
    assert likeness.relation((1, 0), [(0, 1), (1, 1)]) == ("between", 1)
    assert likeness.relation((1, 0), [(0, 1)]) == ("unlike", 0)
    assert likeness.relation((1, 0), []) == ("unlike", None)


def test_vectors_of_different_embedders_are_compared_with_their_own_kind() -> None:
    assert near_groups([(0, 1), (1, 0, 0), (1, 0), (1, 0, 0), (1, 0), (), ()], 0.9) == [[1, 3], [2, 4]]
    assert near_groups([], 0.9) == []


def test_the_threshold_itself_is_near() -> None:
    assert near_groups([(1.0, 0.0), (0.0, 1.0), (2.0, 0.0)], 1.0) == [[0, 2]]
