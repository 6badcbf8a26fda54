"""The travelling salesman: tours, spanning trees and rows of real data."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest

from flowevolve.problems.tsp import TspConstruction, spanning_tree
from tests.problems.conftest import Court
from tests.support.problem_checks import refusal, score

SQUARE = '{"coords": [[0, 0], [1, 1], [1, 0], [0, 1]], "lkh_tour_len": 4}\n'


@pytest.fixture
def square(tmp_path: Path) -> TspConstruction:
    path = tmp_path / "square.jsonl"
    path.write_text(SQUARE, encoding="utf-8")
    return TspConstruction(data=path)


def test_a_tour_is_measured_from_the_towns(square: TspConstruction) -> None:
    assert score(square, [0, 2, 1, 3]).value == 1.0
    assert score(square, [2, 1, 3, 0]).value == 1.0
    assert score(square, [0, 1, 2, 3]).metrics["length"] == pytest.approx(2 + 2 * math.sqrt(2))
    assert square.reference == 1.0


@pytest.mark.parametrize(
    ("tour", "says"),
    [
        ([0, 1, 2], "the tour must have 4 entries, not 3"),
        ([0, 1, 2, 2], "the tour has 2 twice"),
        ([0, 1, 2, 4], "the tour[3] must be from 0 to 3, not 4"),
        ([0, 1, 2, 3.0], "the tour[3] must be a whole number"),
        (4.0, "the tour must be a list"),
    ],
)
def test_wrong_tours_are_refused(square: TspConstruction, tour: object, says: str) -> None:
    assert refusal(square, tour).startswith(says)


def test_no_tour_is_below_the_bound() -> None:
    problem = TspConstruction(towns=7, instances=3)
    for case in problem.cases:
        values = [score(problem, [0, *rest], case).value for rest in itertools.permutations(range(1, 7))]
        assert 0.5 < max(values) < 1


def test_a_spanning_tree_is_the_shortest() -> None:
    """The tree is the shortest of all trees of five towns, which are enumerated by their Prüfer codes."""
    towns = ((0.1, 0.2), (0.9, 0.3), (0.4, 0.8), (0.5, 0.1), (0.7, 0.9))
    shortest = min(
        sum(math.dist(towns[a], towns[b]) for a, b in _tree(code)) for code in itertools.product(range(5), repeat=3)
    )
    assert spanning_tree(towns) == pytest.approx(shortest)


def _tree(code: tuple[int, ...]) -> list[tuple[int, int]]:
    degree = [1 + code.count(town) for town in range(len(code) + 2)]
    edges = []
    for town in code:
        leaf = degree.index(1)
        edges.append((leaf, town))
        degree[leaf] -= 1
        degree[town] -= 1
    last = [town for town, left in enumerate(degree) if left == 1]
    return [*edges, (last[0], last[1])]


@pytest.mark.parametrize(
    ("source", "failure"),
    [
        ("def next_town(here, start, left, distances):\n    return 0\n", "next_town chose 0, which is none of the 3"),
        ("def next_town(here, start, left, distances):\n    return None\n", "next_town chose None"),
        ("def next_town(here, start, left):\n    return left[0]\n", "TypeError"),
    ],
)
def test_a_program_that_names_no_town_left_fails(
    square: TspConstruction, court: Court, source: str, failure: str
) -> None:
    verdict = court.judge(square, source)
    assert verdict.value == 0.0
    assert verdict.failure is not None
    assert failure in verdict.failure


def test_a_program_can_change_nothing_but_its_own_view(square: TspConstruction, court: Court) -> None:
    source = """
def next_town(here, start, left, distances):
    for row in distances:
        row[:] = [0.0] * len(row)
    left.clear()
    return 1 if here == 0 else 2 if here == 1 else 3
"""
    assert court.judge(square, source).metrics["length"] == pytest.approx(2 + 2 * math.sqrt(2))


def test_the_nearest_town_is_a_quarter_off_on_real_instances(data_dir: Path, court: Court) -> None:
    """No tour is shorter than LKH's, and that of the nearest towns is about 25 % longer, as is well known."""
    problem = TspConstruction(data=data_dir / "eoh" / "tsp50_train64.jsonl")
    assert len(problem.cases) == 64
    values = [court.judge(problem, case=case).value for case in problem.cases[:12]]
    assert all(value < 1 for value in values)
    assert sum(values) / len(values) == pytest.approx(1 / 1.25, abs=0.05)
