"""LEVI's finalists after a proxy benchmark: full scores beside those the archive ranks by, and room in the budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from flowevolve.archives.map_elites import MapElites
from flowevolve.pool import Add, Annotate, Update
from flowevolve.result import Result
from tests.algorithms.test_levi import LITTLE, TASK, archive_of, events, evolve, notes
from tests.interruption import Fact

PROXY: Mapping[str, object] = {**LITTLE, "proxy": 5}
EVERY = [example.id for example in TASK.data.val]


def full_scores(updates: Sequence[Update]) -> dict[str, Mapping[str, float]]:
    """Of finalists, by their ids."""
    changes = [each for update in updates for each in update.changes if isinstance(each, Annotate)]
    return {
        each.candidate_id: cast("Mapping[str, float]", each.attributes["full"])
        for each in changes
        if "full" in each.attributes
    }


def assessed_in_full(facts: Sequence[Fact]) -> list[str]:
    """Ids of the candidates that the finish had evaluated, one for each time."""
    chosen = [str(event.data["item"]) for event in events(facts, "levi.finalists")]
    return [
        str(event.data["candidate"])
        for event in events(facts, "candidate.assessed")
        if str(event.data["item"]).startswith(tuple(f"{item}." for item in chosen))
    ]


def updates_of(result: Result, after: int = 0) -> Sequence[Update]:
    return result.report.pool.updates_between(after)


def test_full_scores_stand_beside_those_that_the_archive_ranks_by() -> None:
    result, _ = evolve(PROXY, budget={"evaluations": 40})
    (proxy,) = notes(result, "levi.proxy")
    full = full_scores(updates_of(result))
    assert full
    assert all(list(scores) == EVERY for scores in full.values())
    assert {tuple(each.scores) for each in archive_of(result).candidates} == {
        tuple(cast("list[str]", proxy["examples"]))
    }
    assert result.best is not None
    means = {name: sum(scores.values()) / len(scores) for name, scores in full.items()}
    assert result.best.score == max(means.values()) == means[result.best.id]


def test_given_more_budget_the_search_goes_on_by_the_proxy() -> None:
    first, facts = evolve(PROXY, budget={"evaluations": 40})
    finished = first.report.pool.version
    before = full_scores(updates_of(first))
    result, combined = evolve(PROXY, before=facts, budget={"evaluations": 90})
    assert result.report.error is None
    archive = MapElites()
    for update in updates_of(result)[:finished]:
        archive.apply(update)
    scores = {event.data["version"]: event.data["best_score"] for event in events(combined, "pool.commit")}
    new, ended = 0, False
    for update in updates_of(result, finished):
        archive.apply(update)
        new += any(isinstance(change, Add) and change.status == "confirmed" for change in update.changes)
        ended = ended or bool(full_scores([update]))
        best = archive.best()
        if new and not ended:
            assert best is not None
            assert scores[update.version] == best.mean_score
    assert new
    assert ended
    after = full_scores(updates_of(result, finished))
    assert result.best is not None
    assert result.best.id in after
    assert set(after) & set(before)
    again = assessed_in_full(combined)
    assert len(again) == len(set(again)) == len(set(before) | set(after))
