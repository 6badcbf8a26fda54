"""The Pareto archive against a plain reading of GEPA's definition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from hypothesis import given, strategies as st

from flowevolve.archives.pareto import ParetoArchive
from flowevolve.core.artifact import Artifact
from flowevolve.core.pool import Add, Annotate, Candidate, Move, Update

vectors = st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=4, max_size=4), min_size=1, max_size=8)


def archive_of(scores: list[list[float]]) -> ParetoArchive:
    archive = ParetoArchive()
    for number, vector in enumerate(scores):
        candidate = Candidate(f"c{number}", Artifact({"p": str(number)}))
        scored = candidate.scored({f"e{place}": score for place, score in enumerate(vector)})
        archive.apply(Update(number + 1, (Add(scored),), "item", 0.0))
    return archive


def plain_weights(candidates: Sequence[Candidate]) -> dict[str, int]:
    """GEPA's definition word for word: one after the other goes, worst mean first, while each of its fronts holds another."""
    examples = {name for candidate in candidates for name in candidate.scores}
    best = {name: max(each.scores[name] for each in candidates if name in each.scores) for name in examples}
    fronts = {name: {each.id for each in candidates if each.scores.get(name) == best[name]} for name in examples}
    counts = {each.id: sum(each.id in front for front in fronts.values()) for each in candidates}
    left = {name: set(front) for name, front in fronts.items()}
    for each in sorted(candidates, key=lambda each: each.mean_score):
        if all(len(front) > 1 for front in left.values() if each.id in front):
            for front in left.values():
                front.discard(each.id)
    staying = set().union(*left.values())
    return {each.id: counts[each.id] for each in candidates if each.id in staying}


partial_scores = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from([0.0, 0.5, 1.0]), min_size=1)


@given(st.lists(st.tuples(partial_scores, st.sampled_from(["confirmed", "speculative"])), min_size=1, max_size=12))
def test_weights_are_those_of_the_plain_definition(drawn: list[tuple[dict[str, float], str]]) -> None:
    archive = ParetoArchive()
    confirmed: list[Candidate] = []
    speculating: list[Candidate] = []
    for number, (scores, status) in enumerate(drawn):
        candidate = Candidate(f"c{number}", Artifact({"p": str(number)})).scored(scores)
        (confirmed if status == "confirmed" else speculating).append(candidate)
        added = Add(candidate, "confirmed" if status == "confirmed" else "speculative")
        archive.apply(Update(number + 1, (added,), "item", 0.0))
        assert list(archive.weights().items()) == list(plain_weights([*confirmed, *speculating]).items())
        assert [each.id for each in archive.confirmed] == list(plain_weights(confirmed) if confirmed else ())
        assert list(archive.candidates) == [*confirmed, *speculating]


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=6, max_size=6), min_size=1, max_size=60))
def test_so_they_are_where_many_tie(scores: list[list[float]]) -> None:
    archive = archive_of(scores)
    assert dict(archive.weights()) == plain_weights(archive.candidates)


def test_weights_are_no_more_than_examples_however_many_tie() -> None:
    archive = archive_of([[float(number >> place & 1) for place in range(4)] for number in range(16)] * 20)
    assert len(archive) == 320
    assert dict(archive.weights()) == {"c319": 4}


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


def speculative(
    archive: ParetoArchive, name: str, scores: dict[str, float], version: int = 90, parents: tuple[str, ...] = ()
) -> None:
    candidate = Candidate(name, Artifact({"p": name}), parents).scored(scores)
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


@given(vectors, st.integers(0, 7), st.lists(st.sampled_from([0.0, 0.3, 1.0]), min_size=4, max_size=4))
def test_a_candidate_that_was_measured_again_is_as_if_it_had_had_these_scores(
    scores: list[list[float]], place: int, means: list[float]
) -> None:
    place %= len(scores)
    archive, plain = archive_of(scores), archive_of([*scores[:place], means, *scores[place + 1 :]])
    found = {f"e{number}": score for number, score in enumerate(means)}
    archive.apply(Update(90, (Annotate(f"c{place}", {"measurements": 2}, found),), "item", 0.0))
    best = archive.best()
    assert best is not None
    assert best.scores == (plain.best() or best).scores
    assert archive.standing() == plain.standing()
    assert dict(archive.weights()) == dict(plain.weights())
    assert archive[f"c{place}"].attributes == {"measurements": 2}


def test_a_speculative_candidate_can_be_selected_for_what_it_has_shown() -> None:
    archive = archive_of([[0.5, 0.5, 0.5, 0.5]])
    speculative(archive, "s", {"e0": 1.0})
    assert dict(archive.weights()) == {"c0": 3, "s": 1}
    assert archive["s"].scores == {"e0": 1.0}
    assert [candidate.id for candidate in archive.confirmed] == ["c0"]


def moved(archive: ParetoArchive, name: str, status: Literal["confirmed", "revoked"]) -> None:
    archive.apply(Update(91, (Move(name, status, dict.fromkeys(("e0", "e1", "e2", "e3"), 1.0)),), "item", 0.0))


def test_what_was_made_from_a_revoked_candidate_is_set_aside_until_it_is_confirmed() -> None:
    archive = archive_of([[0.5, 0.5, 0.5, 0.5]])
    speculative(archive, "s", {"e0": 0.6}, parents=("c0",))
    speculative(archive, "t", {"e0": 0.7}, parents=("s",))
    speculative(archive, "u", {"e0": 0.8}, parents=("t", "c0"))
    assert set(archive.weights()) == {"c0", "u"}
    moved(archive, "s", "revoked")
    speculative(archive, "v", {"e0": 0.9}, parents=("u",))
    assert dict(archive.weights()) == {"c0": 4}
    assert [candidate.id for candidate in archive.candidates] == ["c0"]
    assert archive["u"].scores == {"e0": 0.8}
    moved(archive, "t", "revoked")
    assert dict(archive.weights()) == {"c0": 4}
    moved(archive, "u", "confirmed")
    assert [candidate.id for candidate in archive.candidates] == ["c0", "u", "v"]


def test_of_equal_means_the_one_of_more_examples_is_the_best() -> None:
    archive = ParetoArchive()
    for version, (name, scores) in enumerate(
        {"few": {"a": 1.0}, "many": {"a": 1.0, "b": 1.0}, "less": {"b": 1.0}}.items(), 1
    ):
        archive.apply(Update(version, (Add(Candidate(name, Artifact({"p": name})).scored(scores)),), "item", 0.0))
    best = archive.best()
    assert best is not None
    assert best.id == "many"
