"""LEVI's finalists after a proxy benchmark: full scores beside those the archive ranks by, and room in the budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from flowevolve.algorithms.levi.map_elites import MapElites
from flowevolve.core.artifact import Artifact
from flowevolve.core.pool import Add, Annotate, Update
from flowevolve.core.task import ChatModel, Example, Rollout
from flowevolve.runner.result import Result
from flowevolve.tasks.instructions import InstructionFollowing
from tests.algorithms.levi.test_levi import LITTLE, TASK, archive_of, evaluated, evolve
from tests.support.interruption import Fact, events_of
from tests.support.whole_runs import notes

PROXY: Mapping[str, object] = {**LITTLE, "proxy": 5}
EVERY = [example.id for example in TASK.data.val]


def full_scores(updates: Sequence[Update]) -> dict[str, Mapping[str, float]]:
    """Of finalists, by their ids."""
    changes = [each for update in updates for each in update.changes if isinstance(each, Annotate)]
    return {
        each.candidate_id: cast("Mapping[str, float]", each.attributes["levi.full"])
        for each in changes
        if "levi.full" in each.attributes
    }


def assessed_in_full(facts: Sequence[Fact]) -> list[str]:
    """Ids of the candidates that the finish had evaluated, one for each time."""
    chosen = [str(event.data["item"]) for event in events_of(facts, "levi.finalists")]
    return [
        str(event.data["candidate"])
        for event in events_of(facts, "candidate.assessed")
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
    result, combined = evolve(PROXY, before=facts, budget={"evaluations": 60})
    assert result.report.error is None
    archive = MapElites()
    for update in updates_of(result)[:finished]:
        archive.apply(update)
    scores = {event.data["version"]: event.data["best_score"] for event in events_of(combined, "pool.commit")}
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


@pytest.mark.parametrize(("seed", "target", "reason"), [(2, 0.6, "target_score"), (0, 0.7, "evaluations")])
def test_a_target_is_reached_by_scores_on_all_examples(seed: int, target: float, reason: str) -> None:
    """By the proxy benchmark some candidate reaches it in both runs."""
    result, facts = evolve(PROXY, budget={"evaluations": 30, "target_score": target}, seed=seed)
    (proxy,) = [
        place for place, commit in enumerate(events_of(facts, "pool.commit")) if "levi.proxy" in str(commit.data)
    ]
    by_proxy = [commit.data["best_score"] for commit in events_of(facts, "pool.commit")[proxy:]]
    assert max(cast("list[float]", by_proxy)) >= target
    assert result.report.stop_reason == reason
    assert result.best is not None
    assert (result.best.score >= target) == (reason == "target_score")


@pytest.mark.parametrize("limits", [{"rollouts": 900}, {"rollouts": 400}, {"evaluations": 40}])
def test_room_is_kept_for_finalists(limits: Mapping[str, int]) -> None:
    result, facts = evolve({**PROXY, "max_in_flight": 1}, budget=limits)
    assert not result.report.overshoot
    assert 1 <= len(full_scores(updates_of(result))) <= 5
    assert events_of(facts, "levi.selected")


def test_finalists_of_before_need_no_room_once_more() -> None:
    settings = {**PROXY, "max_in_flight": 1}
    _, facts = evolve(settings, budget={"rollouts": 900})
    result, combined = evolve(settings, before=facts, budget={"rollouts": 900 + 2 * len(EVERY)})
    assert len(events_of(combined, "levi.selected")) > len(events_of(facts, "levi.selected"))
    assert not result.report.overshoot


def test_room_is_kept_for_the_tokens_of_finalists() -> None:
    result, _ = evolve({**PROXY, "max_in_flight": 1}, budget={"tokens": 150_000})
    assert full_scores(updates_of(result))
    assert result.report.overshoot.get("tokens", 0) < 10_000


def test_where_there_is_no_room_for_finalists_there_are_fewer_or_none() -> None:
    every = len(EVERY)
    for share, most in ((0.5, 2), (1.0, 0)):
        settings = {**PROXY, "seeds": 3, "init_share": share, "max_in_flight": 1}
        result, _ = evolve(settings, budget={"rollouts": 9 * every})
        assert len(full_scores(updates_of(result))) <= most
        assert not result.report.overshoot
        assert result.best is not None


class OnlyItsSeed(InstructionFollowing):
    """Whatever is made of its seed fails."""

    async def rollout(self, artifact: Artifact, example: Example, model: ChatModel) -> Rollout:
        if artifact != self.seed():
            raise ValueError("no")
        return await super().rollout(artifact, example, model)


@pytest.mark.parametrize("proxy", [0, 5])
def test_tries_at_seeds_keep_to_the_share_of_the_opening(proxy: int) -> None:
    result, facts = evolve({"proxy": proxy}, task=OnlyItsSeed(TASK.data), budget={"evaluations": 10})
    assert result.report.error is None
    assert opening(facts) == 5
    assert not result.report.overshoot
    assert [note for note in notes(result, "levi.unwritten") if note["last"]]


def opening(facts: Sequence[Fact]) -> int:
    """How many candidates had been evaluated when the space was fitted."""
    commits = [str(event.data["changes"]) for event in events_of(facts, "pool.commit")]
    fitted = next(place for place, changes in enumerate(commits) if "map_elites.fitted" in changes)
    return sum("'add'" in changes for changes in commits[:fitted])


def test_seeds_are_left_out_once_the_opening_has_had_its_tokens() -> None:
    result, _ = evolve({"seeds": 4, "variants": 0, "advice_every": 0}, budget={"tokens": 80_000, "evaluations": 100})
    kinds = [each.operator for each in evaluated(result)]
    assert 0 < kinds.count("diverse") < 4
    assert "mutate" in kinds
