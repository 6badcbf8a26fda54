"""Validation reordering: solved examples leave the front and come back when they are failed again."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from flowevolve.algorithms.gepa.validation_order import ValidationOrder
from flowevolve.core.artifact import Artifact
from flowevolve.core.pool import Add, Candidate, Move, Update

IDS = ("a", "b", "c", "d")


def entered(version: int, passed: set[str]) -> Update:
    candidate = Candidate(f"c{version}", Artifact({"p": str(version)}))
    return Update(version, (Add(candidate.scored({name: float(name in passed) for name in IDS})),), "item", 0.0)


def test_three_passes_in_a_row_send_an_example_back_and_a_failure_fetches_it() -> None:
    order = ValidationOrder(IDS, window=3)
    order.apply(entered(1, {"a", "c"}))
    order.apply(entered(2, {"a", "c"}))
    assert order() == IDS
    order.apply(entered(3, {"a"}))
    assert order() == ("b", "c", "d", "a")
    order.apply(entered(4, set()))
    assert order() == IDS


def test_partial_scores_are_no_round_but_verdicts_are() -> None:
    order = ValidationOrder(IDS, window=1)
    candidate = Candidate("c", Artifact({"p": "x"}))
    order.apply(Update(1, (Add(candidate.scored({"a": 1.0}), "speculative"),), "item", 0.0))
    assert order() == IDS
    order.apply(Update(2, (Move("c", "revoked", dict.fromkeys(IDS, 0.0) | {"b": 1.0}),), "item", 0.0))
    assert order() == ("a", "c", "d", "b")


@pytest.mark.parametrize(("score", "passed"), [(0.69, False), (0.7, True), (0.71, True), (0.0, False)])
def test_an_example_is_passed_from_the_score_on_that_is_enough(score: float, passed: bool) -> None:
    order = ValidationOrder(IDS, window=1, passing=0.7)
    candidate = Candidate("c", Artifact({"p": "x"}))
    order.apply(Update(1, (Add(candidate.scored({"a": score})),), "item", 0.0))
    assert order() == (("b", "c", "d", "a") if passed else IDS)


@given(st.lists(st.sets(st.sampled_from(IDS)), max_size=12), st.integers(1, 4))
def test_the_order_is_as_a_plain_reading_has_it(rounds: list[set[str]], window: int) -> None:
    order = ValidationOrder(IDS, window)
    for version, passed in enumerate(rounds, 1):
        order.apply(entered(version, passed))
    solved = [name for name in IDS if len(rounds) >= window and all(name in passed for passed in rounds[-window:])]
    assert order() == (*(name for name in IDS if name not in solved), *solved)
