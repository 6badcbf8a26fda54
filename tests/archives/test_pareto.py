"""The Pareto archive against a plain reading of GEPA's definition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flowevolve.archives.pareto import ParetoArchive
from flowevolve.artifact import Artifact
from flowevolve.pool import Add, Candidate, Move, Update

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


def speculative(archive: ParetoArchive, name: str, scores: dict[str, float], version: int = 90) -> None:
    candidate = Candidate(name, Artifact({"p": name})).scored(scores)
    archive.apply(Update(version, (Add(candidate, "speculative"),), "item", 0.0))


@given(
    vectors, st.dictionaries(st.sampled_from(["e0", "e1", "e2", "e3"]), st.sampled_from([0.0, 0.5, 1.0]), min_size=1)
)
def test_a_revoked_candidate_was_never_there(scores: list[list[float]], partial: dict[str, float]) -> None:
    archive, plain = archive_of(scores), archive_of(scores)
    speculative(archive, "s", partial)
    assert archive.best() == plain.best()
    assert archive.standing() == plain.standing()
    archive.apply(Update(91, (Move("s", "revoked"),), "item", 0.0))
    assert dict(archive.weights()) == dict(plain.weights())
    assert archive.candidates == plain.candidates


@given(vectors, st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=4, max_size=4))
def test_a_confirmed_candidate_is_as_if_it_had_come_at_once(scores: list[list[float]], late: list[float]) -> None:
    archive, plain = archive_of(scores), archive_of([*scores, late])
    name = f"c{len(scores)}"
    speculative(archive, name, {"e0": late[0]})
    full = {f"e{place}": score for place, score in enumerate(late)}
    archive.apply(Update(91, (Move(name, "confirmed", full),), "item", 0.0))
    assert dict(archive.weights()) == dict(plain.weights())
    assert archive.best() is not None
    assert archive.best() == archive[plain.best().id]  # type: ignore[union-attr]  # never empty here


def test_a_speculative_candidate_can_be_selected_for_what_it_has_shown() -> None:
    archive = archive_of([[0.5, 0.5, 0.5, 0.5]])
    speculative(archive, "s", {"e0": 1.0})
    assert dict(archive.weights()) == {"c0": 3, "s": 1}
    assert archive["s"].scores == {"e0": 1.0}
    assert [candidate.id for candidate in archive.confirmed] == ["c0"]
