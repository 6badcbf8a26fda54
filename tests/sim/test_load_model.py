"""What a record tells of a server's load: how many calls were in flight, and how much they slowed each other down."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, strategies as st

from flowevolve.sim.load_model import Span, integrate, learn_slowing, peak

SPANS = st.lists(
    st.tuples(st.floats(0, 100), st.floats(0.001, 10)).map(lambda pair: Span(pair[0], pair[0] + pair[1], 10)),
    max_size=20,
)


def test_peak_counts_what_overlaps_and_not_what_follows() -> None:
    assert peak([]) == 0
    assert peak([Span(0, 1, 1), Span(1, 2, 1), Span(3, 3, None)]) == 1
    assert peak([Span(0, 3, 1), Span(1, 2, 1), Span(1.5, 4, None)]) == 3


@given(SPANS)
def test_integrals_of_one_are_the_spans_lengths(spans: list[Span]) -> None:
    lengths = [span.finished - span.started for span in spans]
    assert integrate(spans, lambda _: 1.0) == pytest.approx(lengths)


def test_integrals_follow_the_number_in_flight() -> None:
    assert integrate([Span(0, 4, 1), Span(1, 2, 1)], float) == [5, 2]


def served(slowing: float, *, noise: float = 0.0, width: int = 40) -> list[Span]:
    """Calls of a server whose load changes every ten seconds, too slowly for any call to meet two."""
    rng = random.Random(7)
    spans = []
    for start in range(0, 1000, 10):
        load = rng.randint(1, width)
        for _ in range(load):
            tokens = rng.randint(100, 200)
            seconds = 0.1 + tokens * 0.01 * (1 + slowing * load) * (1 + rng.gauss(0, noise))
            spans.append(Span(start, start + seconds, tokens))
    return spans


def alone(spans: list[Span]) -> list[Span]:
    return [
        Span(20 * number, 20 * number + span.finished - span.started, span.tokens) for number, span in enumerate(spans)
    ]


@pytest.mark.parametrize("slowing", [0.01, 0.05])
def test_slowing_is_learnt_where_the_load_varies(slowing: float) -> None:
    assert learn_slowing(served(slowing)) == pytest.approx(slowing, rel=0.35)


def test_no_slowing_is_claimed_that_the_record_does_not_show() -> None:
    assert learn_slowing([]) == 0
    assert learn_slowing(served(0.05)[:40]) == 0, "too few calls"
    assert learn_slowing(served(0.0, noise=0.02)) == 0, "no effect"
    assert learn_slowing(alone(served(0.05))) == 0, "always one in flight"
    assert learn_slowing([Span(span.started, span.finished, None) for span in served(0.05)]) == 0, "no tokens"
    assert learn_slowing(served(0.0005, noise=1.0)) == 0, "all noise"
