"""Staleness policies: what becomes of an item by how old it is, and what settings are refused."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import InputError
from flowevolve.core.item import Item
from flowevolve.core.item_ids import ItemId
from flowevolve.core.policies import Staleness
from flowevolve.core.pool import Pool
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


def test_who_never_repairs_lets_everything_through() -> None:
    assert Reflective(max_repairs=0).decide(facts(9)) == "continue"


@pytest.mark.parametrize(
    ("policy", "setting", "least"),
    [(Guarded, "max_gap", 0), (Reflective, "min_gap", 1), (Reflective, "max_repairs", 0)],
)
def test_settings_out_of_range_are_refused(policy: type[Guarded | Reflective], setting: str, least: int) -> None:
    policy(**{setting: least})
    with pytest.raises(InputError, match=rf"staleness\.{setting} is {least - 1}, but has to be at least {least}"):
        policy(**{setting: least - 1})
