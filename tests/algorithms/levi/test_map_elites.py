"""MAP-Elites: every elite is in its own cell and the best of it, whatever comes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from flowevolve.algorithms.levi.map_elites import MapElites, representatives
from flowevolve.archives.descriptors import Scale, Space, fit_space
from flowevolve.core.artifact import Artifact
from flowevolve.core.pool import Add, Annotate, Candidate, Change, Update
from tests.support.cells import cells_of

Row = tuple[float, float, float]
ROWS = st.lists(
    st.tuples(st.floats(-50, 50), st.floats(0, 900), st.integers(-5, 5).map(float)), min_size=2, max_size=60
)
LINE = Space(scales={"a": Scale(0.0, 1.0)}, centroids=((0.1,), (0.5,), (0.9,)))


def candidate(name: int | str, a: float, score: float, b: float = 0.0) -> Candidate:
    found = Candidate(str(name), Artifact({"x": str(name)}), attributes={"descriptor": {"a": a, "b": b}})
    return found.scored({"one": score})


def archive_of(*commits: Sequence[Change]) -> MapElites:
    archive = MapElites()
    for version, changes in enumerate(commits, 1):
        archive.apply(Update(version, tuple(changes), "0", 0.0))
    return archive


def ids(candidates: Sequence[Candidate]) -> list[str]:
    return [each.id for each in candidates]


@given(ROWS, st.integers(1, 59))
def test_every_elite_is_the_best_of_its_own_cell(rows: list[Row], cut: int) -> None:
    candidates = [candidate(number, a, score, b) for number, (a, b, score) in enumerate(rows)]
    first, later = candidates[: min(cut, len(rows) - 1)], candidates[min(cut, len(rows) - 1) :]
    descriptors = [{"a": a, "b": b} for a, b, _ in rows[: len(first)]]
    space = fit_space(descriptors, ["a", "b"], cells=8, placement="data", seed=0)
    archive = archive_of([Add(each) for each in first], [space.note()], *([Add(each)] for each in later))
    elites = dict(zip(cells_of(archive.elites, space), archive.elites, strict=True))
    assert len(elites) == len(archive.elites)
    for each, cell in zip(candidates, cells_of(candidates, space), strict=True):
        mine = elites[cell]
        assert mine.mean_score >= each.mean_score
        assert mine.mean_score > each.mean_score or candidates.index(mine) <= candidates.index(each)
        assert not archive.admits(each)


def test_before_there_is_a_space_everybody_is_an_elite() -> None:
    archive = archive_of([Add(candidate(1, 0, 1)), Add(candidate(2, 0, 3)), Add(candidate(3, 9, 9), "rejected")])
    assert ids(archive.elites) == ["1", "2"]
    assert archive.admits(candidate(4, 0, -1))
    best = archive.best()
    assert best is not None
    assert best.id == "2"


def test_a_cell_is_won_by_a_better_score_alone() -> None:
    archive = archive_of([Add(candidate(1, 0, 1.0)), LINE.note()])
    assert not archive.admits(candidate(2, 0.1, 1.0))
    assert archive.admits(candidate(2, 0.1, 1.1))
    assert archive.admits(candidate(2, 5.0, -9.0))
    archive.apply(Update(2, (Add(candidate(2, 0.1, 1.1)),), "0", 0.0))
    assert ids(archive.elites) == ["2"]
    assert "1" not in archive
    assert archive["1"].mean_score == 1.0


def test_other_scores_make_other_elites() -> None:
    archive = archive_of([Add(candidate(1, 0, 1.0)), Add(candidate(2, 0, 2.0)), LINE.note()])
    assert ids(archive.elites) == ["2"]
    archive.apply(Update(2, (Annotate("1", {}, {"one": 3.0}), Annotate("2", {"descriptor": {"a": 9.0}})), "0", 0.0))
    assert ids(archive.elites) == ["1", "2"]


def test_a_feature_nobody_measured_is_in_the_middle() -> None:
    unmeasured = Candidate("2", Artifact({"x": ""})).scored({"one": 1.0})
    for place, admitted in ((-9.0, True), (0.0, False), (9.0, True)):
        archive = archive_of([LINE.note(), Add(candidate(1, place, 5.0))])
        assert archive.admits(unmeasured) == admitted


def test_representatives_are_good_and_far_from_each_other() -> None:
    spread = [("a", 1.0, (0.0,)), ("b", 5.0, (0.05,)), ("c", 2.0, (0.5,)), ("d", 9.0, (0.9,)), ("e", 8.0, (0.95,))]
    assert representatives(spread, 3, seed=0) == ["d", "b", "c"]
    assert representatives(spread[:2], 3, seed=0) == ["b", "a"]
    assert representatives([("a", 1.0, ()), ("b", 3.0, ()), ("c", 2.0, ())], 2, seed=0) == ["b", "c"]


def test_representatives_of_equal_points_are_few() -> None:
    spread = [(name, float(place), (0.5,)) for place, name in enumerate("abcde")]
    assert representatives(spread, 3, seed=0) == ["e"]


def test_another_pool_is_none_of_its_business() -> None:
    archive = MapElites("programs")
    archive.apply(Update(1, (Add(candidate(1, 0, 1)),), "0", 0.0))
    assert archive.best() is None
    with pytest.raises(KeyError):
        archive["1"]
