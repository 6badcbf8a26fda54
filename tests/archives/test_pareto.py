"""The Pareto archive against a plain reading of GEPA's definition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flowevolve.archives.pareto import ParetoArchive
from flowevolve.artifact import Artifact
from flowevolve.pool import Add, Candidate, Update

vectors = st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=4, max_size=4), min_size=1, max_size=8)


def archive_of(scores: list[list[float]]) -> ParetoArchive:
    archive = ParetoArchive()
    for number, vector in enumerate(scores):
        candidate = Candidate(f"c{number}", Artifact({"p": str(number)}))
        scored = candidate.scored({f"e{place}": score for place, score in enumerate(vector)})
        archive.apply(Update(number + 1, (Add(scored),), "item", 0.0))
    return archive


@given(vectors)
def test_fronts_hold_who_does_best(scores: list[list[float]]) -> None:
    archive = archive_of(scores)
    for place in range(4):
        best = max(vector[place] for vector in scores)
        assert archive.front(f"e{place}") == tuple(f"c{n}" for n, vector in enumerate(scores) if vector[place] == best)


@given(vectors)
def test_every_front_keeps_a_survivor_and_no_survivor_can_go(scores: list[list[float]]) -> None:
    archive = archive_of(scores)
    weights = archive.weights()
    fronts = [set(archive.front(f"e{place}")) for place in range(4)]
    assert all(front & set(weights) for front in fronts)
    for name, weight in weights.items():
        assert weight == sum(name in front for front in fronts)
        assert any(front & set(weights) == {name} for front in fronts)


@given(vectors)
def test_best_has_the_highest_mean_and_is_the_oldest_of_equals(scores: list[list[float]]) -> None:
    best = archive_of(scores).best()
    assert best is not None
    means = [sum(vector) / 4 for vector in scores]
    assert best.id == f"c{means.index(max(means))}"


def test_only_confirmed_candidates_enter() -> None:
    archive = ParetoArchive()
    candidate = Candidate("c0", Artifact({"p": "x"})).scored({"e": 1.0})
    archive.apply(Update(1, (Add(candidate, "rejected"),), "item", 0.0))
    archive.apply(Update(2, (Add(candidate, "speculative"),), "item", 0.0))
    assert archive.best() is None
    assert len(archive) == 0
