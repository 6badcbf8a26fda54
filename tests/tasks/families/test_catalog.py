"""The families: all can be told apart and run, and none of their members passes the family's ceiling."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, strategies as st

from flowevolve.tasks.families.catalog import (
    CASES,
    CEILINGS,
    PARTS,
    SEED,
    WAYS,
    Member,
    Piece,
    middle,
    read_member,
    ways_of,
)

FAMILIES = [Member(middle(copies), middle(place)) for copies, place in product(*map(ways_of, PARTS))]
in_range = st.floats(0, 1).map(lambda value: round(value, 6))


@st.composite
def members(draw: st.DrawFn) -> Member:
    copies, place = (draw(st.sampled_from(ways_of(part))) for part in PARTS)
    return Member(*(Piece(way, tuple(draw(in_range) for _ in way.best)) for way in (copies, place)))


def mean(member: Member) -> float:
    return sum(map(member.score, CASES)) / len(CASES)


@given(members())
def test_a_program_is_read_as_what_it_was_written_as(member: Member) -> None:
    assert read_member(str(member)) == member


def test_every_pair_of_ways_has_a_ceiling() -> None:
    assert {member.family for member in FAMILIES} == set(CEILINGS)
    assert len({str(member) for member in FAMILIES}) == len(CEILINGS)


@given(members())
def test_no_program_passes_the_ceiling_of_its_family(member: Member) -> None:
    assert mean(member) <= CEILINGS[member.family]


@pytest.mark.parametrize("member", FAMILIES, ids=lambda member: "-".join(member.family))
def test_the_best_numbers_reach_the_ceiling(member: Member) -> None:
    best = Member(*(Piece(piece.way, tuple(piece.way.best.values())) for piece in member.pieces))
    assert mean(best) == pytest.approx(CEILINGS[member.family])


@pytest.mark.parametrize("member", FAMILIES, ids=lambda member: "-".join(member.family))
def test_the_programs_of_all_families_run(member: Member) -> None:
    names: dict[str, object] = {}
    exec(str(member), names)
    solve = names["solve"]
    assert callable(solve)
    found = solve([5.0, 1.0, 1.0, 9.0, 2.0, 4.0], 12, 4)
    assert [len(gpu) for gpu in found] == [3, 3, 3, 3]
    assert {expert for gpu in found for expert in gpu} == set(range(6))


@given(members())
def test_what_the_numbers_of_both_parts_cost_is_all_that_is_missing(member: Member) -> None:
    for case in CASES:
        lost = sum(member.lost(part, case) for part in PARTS)
        assert member.score(case) + lost == pytest.approx(CEILINGS[member.family])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def copies(",
        str(SEED).replace("def solve", "def other"),
        str(SEED).replace("counts[heaviest] += 1", "counts[heaviest] += 2"),
        str(SEED).replace("    trust = 0.5\n", ""),
        str(SEED).replace("trust = 0.5", "trust = loads[0]"),
        str(SEED).replace("spare", "other"),
    ],
)
def test_other_programs_are_of_no_family(text: str) -> None:
    assert read_member(text) is None


def test_each_number_belongs_to_one_way() -> None:
    names = [name for way in WAYS.values() for name in way.best]
    assert len(set(names)) == len(names) == 12
    assert all(0 <= value <= 1 for way in WAYS.values() for value in way.best.values())
