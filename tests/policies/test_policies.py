"""Policies are pure: facts in, decisions out."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, strategies as st

from flowevolve.core.item import Item
from flowevolve.core.item_ids import ItemId
from flowevolve.core.policies import Staleness
from flowevolve.core.pool import Pool
from flowevolve.policies.acceptance import ImprovementOrEqual, StrictImprovement
from flowevolve.policies.batching import EpochBatches
from flowevolve.policies.selection import AllComponents, RoundRobin
from flowevolve.policies.staleness import Full, Guarded, Reflective


def facts(gap: int, *, revoked: bool = False, repairable: bool = True, repairs: int = 0) -> Staleness:
    item: Item[object] = Item(ItemId("1"), 1, None, 0, (), 0.0, repairs)
    return Staleness("screen", gap, revoked, repairable, item, Pool())


@given(st.integers(0, 50), st.booleans())
def test_full_lets_everything_through(gap: int, revoked: bool) -> None:
    assert Full().decide(facts(gap, revoked=revoked)) == "continue"


@given(st.integers(0, 50), st.integers(0, 10))
def test_guarded_discards_past_its_limit(gap: int, limit: int) -> None:
    assert Guarded(limit).decide(facts(gap)) == ("discard" if gap > limit else "continue")
    assert Guarded(limit).decide(facts(gap, revoked=True)) == "discard"


@pytest.mark.parametrize(
    ("seen", "decision"),
    [
        (facts(1), "repair"),
        (facts(0), "continue"),
        (facts(0, revoked=True), "repair"),
        (facts(9, repairable=False), "continue"),
        (facts(9, repairs=1), "continue"),
    ],
)
def test_reflective_repairs_what_can_be_repaired_once(seen: Staleness, decision: str) -> None:
    assert Reflective().decide(seen) == decision


def test_acceptance_differs_on_ties_only() -> None:
    assert not StrictImprovement().accepts([1, 0], [0, 1])
    assert ImprovementOrEqual().accepts([1, 0], [0, 1])
    assert StrictImprovement().accepts([1, 1], [0, 1])
    assert not ImprovementOrEqual().accepts([0, 0], [0, 1])


@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 4))
def test_batches_use_all_ids_alike_and_never_repeat_within_an_epoch(ids: int, size: int, epochs: int) -> None:
    names = [f"e{n}" for n in range(ids)]
    batches = EpochBatches(names, size, Random)
    per_epoch = -(-ids // size)
    drawn = [batches.batch(n) for n in range(per_epoch * epochs)]
    assert all(len(batch) == size for batch in drawn)
    used = Counter(name for batch in drawn for name in batch)
    assert set(used) == set(names)
    assert max(used.values()) - min(used.values()) <= max(1, -(-size // ids))
    again = EpochBatches(names, size, Random)
    assert again.batch(per_epoch * epochs - 1) == drawn[-1]


def test_component_selection() -> None:
    names = ["a", "b", "c"]
    cursor = 0
    seen: list[str] = []
    for _ in range(4):
        picked, cursor = RoundRobin().select(names, cursor)
        seen += picked
    assert seen == ["a", "b", "c", "a"]
    assert AllComponents().select(names, 2) == (("a", "b", "c"), 2)
