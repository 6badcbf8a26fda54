"""What a recording comes to."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from bench._lib.methods.figures import figures, in_flight
from tests.support.recordings import SECONDS, run, span


def test_in_flight_is_weighted_by_time() -> None:
    assert in_flight([span(0, 10), span(5, 20)], 0, 25) == [(1, 5), (2, 5), (1, 10), (0, 5)]
    found = figures(run(span(0, 60), span(0, 30)))
    assert found.mean_in_flight == pytest.approx(0.9)
    assert found.median_in_flight == 1
    assert found.idle_share == pytest.approx(0.7)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)).map(sorted), max_size=20))
def test_in_flight_adds_up_to_the_time_that_spans_take(times: list[list[float]]) -> None:
    levels = in_flight([span(begun, ended) for begun, ended in times], 0, SECONDS)
    assert math.fsum(seconds for _, seconds in levels) == pytest.approx(SECONDS)
    busy = math.fsum(ended - begun for begun, ended in times)
    assert math.fsum(level * seconds for level, seconds in levels) == pytest.approx(busy, abs=1e-6)


def test_only_what_is_written_within_the_time_counts() -> None:
    found = figures(run(span(0, 20, 100), span(90, 130, 100), span(115, 120, None), start=10))
    assert found.output_tokens_per_s == pytest.approx((50 + 50) / SECONDS)


def test_proposals_are_answered_reflections() -> None:
    found = figures(run(span(0, 9, 5, "reflection"), span(9, 12, None, "reflection"), span(12, 200, 5, "reflection")))
    assert found.proposals_per_min == pytest.approx(60 / SECONDS)


def test_of_merged_reflections_the_proposals_that_were_made_count() -> None:
    merging = run(*(span(n, n + 1, 5, "reflection") for n in range(8)), span(9, 10, 5, "merge"), method="combee_10")
    assert figures(merging).proposals_per_min == 0
    assert figures(replace(merging, proposed=(-1.0, 11.0, SECONDS + 1))).proposals_per_min == pytest.approx(
        60 / SECONDS
    )


def test_what_was_accepted_before_the_time_is_in_the_score_alone() -> None:
    found = figures(run(span(0, 60, 600), start=5, accepted=[(0, 0.4), (50, 0.6), (60, 0.5)]))
    assert found.accepted_per_min == pytest.approx(2 * 60 / SECONDS)
    assert found.tokens_per_accepted == pytest.approx(550 / 2)
    assert found.best_score == 0.6
    assert found.curve == ((0, 0.4), (50, 0.6))


def test_of_a_run_what_was_spent_by_each_better_candidate_is_known() -> None:
    made = replace(run(span(-5, -1, 40), span(0, 10, 60), span(5, 30, 20)), best=((0.0, "seed"), (12.0, "better")))
    moments = figures(made).moments
    assert [(each.seconds, each.calls, each.text) for each in moments] == [(0.0, 1, "seed"), (12.0, 2, "better")]
    assert [each.tokens for each in moments] == [40 + 25, 40 + 60 + 50]
    assert (figures(made).calls, figures(made).tokens) == (3, 120 + 75)


def test_stopped_validations_are_counted_apart() -> None:
    found = figures(replace(run(span(0, 1)), validated=(0.0, 10.0, 20.0), stopped=(30.0,)))
    assert (found.validations_per_min, found.stopped_per_min) == pytest.approx((2 * 0.6, 0.6))
