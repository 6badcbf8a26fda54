"""The controller: tries growing batches, and settles where larger ones hardly save time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from flowevolve.algorithms.combee.batch_sizes import DelayProfile
from flowevolve.core.policies import PAST, Batch


def played(policy: DelayProfile, seconds: Callable[[int], float], batches: int) -> list[int]:
    """The sizes asked for, as the engine tells the policy of them."""
    past: list[Batch] = []
    for _ in range(batches):
        size = policy.next(past[-PAST:])
        past.append(Batch(size, seconds(size)))
    return [batch.size for batch in past]


@pytest.mark.parametrize(
    ("seconds", "settles"),
    [
        (lambda size: 10.0, 40),  # as long for any number
        (lambda size: float(size), 2),  # one after the other
        (lambda size: max(10.0, 2.5 * size), 4),  # four at a time
        (lambda size: 10.0 + size, 16),
    ],
)
def test_it_settles_where_a_larger_batch_saves_little(seconds: Callable[[int], float], settles: int) -> None:
    sizes = played(DelayProfile(40), seconds, 2 * PAST + 50)
    assert sizes[:3] == [2, 2, 2]
    assert set(sizes[30:]) == {settles}


def test_every_size_is_tried_as_often() -> None:
    sizes = played(DelayProfile(40, repeats=2), lambda size: 1.0, 16)
    assert sizes == [2, 2, 4, 4, 8, 8, 16, 16, 32, 32, 40, 40, 40, 40, 40, 40]


def test_a_batch_that_could_not_be_filled_counts_for_the_next_size_there_is() -> None:
    """It may be that batches of some size are never quite full."""
    policy = DelayProfile(8, repeats=1)
    assert policy.next([Batch(2, 5.0)]) == 4
    assert policy.next([Batch(2, 5.0), Batch(2, 50.0)]) == 4
    assert policy.next([Batch(2, 5.0), Batch(2, 50.0), Batch(3, 5.0)]) == 8
    assert policy.next([Batch(2, 5.0), Batch(3, 5.0), Batch(4, 50.0), Batch(7, 5.0)]) == 8


def test_one_size_that_was_unlucky_does_not_end_the_profile() -> None:
    """A call that took long by chance, with four: eight are compared with two, and save three quarters."""
    told = [Batch(2, 5.0), Batch(4, 9.0), Batch(8, 5.0), Batch(16, 5.0)]
    assert DelayProfile(16, repeats=1).next(told[:2]) == 8
    assert DelayProfile(16, repeats=1).next(told) == 16


def test_a_batch_of_one_has_no_merge_and_is_never_compared_with() -> None:
    assert DelayProfile(8, repeats=1).next([Batch(1, 0.0), Batch(1, 0.0)]) == 2


def test_batches_that_took_no_time_are_no_measure_for_larger_ones() -> None:
    assert DelayProfile(8, repeats=1).next([Batch(2, 0.0), Batch(4, 5.0)]) == 8


def test_where_the_most_is_below_the_least_it_is_asked_for() -> None:
    assert DelayProfile(1).next([]) == 1


@given(st.lists(st.tuples(st.integers(1, 50), st.floats(0, 100)), max_size=PAST), st.integers(2, 50))
def test_whatever_it_is_told_it_stays_within_bounds(told: list[tuple[int, float]], most: int) -> None:
    past = [Batch(min(size, most), seconds) for size, seconds in told]
    assert 1 <= DelayProfile(most).next(past) <= most
