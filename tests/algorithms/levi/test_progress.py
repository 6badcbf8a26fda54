"""Where LEVI's opening stands: seeds, tries in vain, and what follows them."""

from __future__ import annotations

from collections.abc import Sequence

from flowevolve.algorithms.levi.commit import OpeningPlan, Progress, UnwrittenSeed
from flowevolve.algorithms.levi.payloads import Brief
from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import Cost
from flowevolve.core.pool import Add, Candidate, Change, Update

PLAN = OpeningPlan(seeds=2, tries=3, variants=20).note()
LOST = UnwrittenSeed(reason="unparsable reply").note()


def seed(name: str, operator: str = "diverse", failure: str | None = None) -> Add:
    found = Candidate(name, Artifact({"x": name}), operator=operator, attributes={"failure": failure})
    return Add(found, "confirmed" if failure is None else "rejected")


def progress_after(changes: Sequence[Change]) -> Progress:
    progress = Progress()
    for version, change in enumerate(changes, 1):
        progress.apply(Update(version, (change,), "0", 0.0))
    return progress


def test_a_seed_that_failed_is_shown_until_one_works() -> None:
    begun: list[Change] = [PLAN, seed("own", "seed"), seed("1", failure="timeout")]
    assert progress_after(begun).shown == ["own", "1"]
    assert progress_after([*begun, seed("2")]).shown == ["own", "2"]
    assert progress_after([*begun, seed("2"), seed("3")]).opening is False


def test_tries_are_counted_whatever_came_of_them() -> None:
    tried: list[Change] = [PLAN, seed("own", "seed"), seed("1", failure="timeout"), LOST]
    assert not progress_after(tried).gave_up
    given_up = progress_after([*tried, seed("2", failure="timeout")])
    assert given_up.gave_up
    assert given_up.opening
    assert given_up.in_vain == 1
    assert given_up.shown == ["own"]
    after = progress_after([*tried, LOST, seed("3")])
    assert not after.gave_up
    assert (after.in_vain, after.seeds, after.opening) == (1, ["3"], False)


def test_the_opening_is_over_once_it_has_had_its_share() -> None:
    begun: list[Change] = [PLAN, seed("own", "seed"), seed("1", failure="timeout"), LOST]
    over = progress_after([*begun, UnwrittenSeed(reason="spent", last=True).note()])
    assert (over.opening, over.gave_up, over.in_vain) == (False, False, 0)


def test_a_whole_evaluation_is_expected_to_cost_what_rollouts_have() -> None:
    cost = Cost(rollouts=4, tokens=10, dollars=0.2, evaluations=1).to_json()
    one = Candidate("1", Artifact({"x": "1"}), operator="mutate", attributes={"failure": None, "levi.cost": cost})
    progress = progress_after([Add(one, "confirmed"), seed("2")])
    assert progress.whole(10) == Cost(rollouts=10, tokens=25, dollars=0.5, evaluations=1)
    assert progress_after([]).whole(10) == Cost(rollouts=10, evaluations=1)


def test_the_tasks_own_seed_is_one_only_if_it_works() -> None:
    assert progress_after([PLAN, seed("own", "seed")]).own == "own"
    broken = progress_after([PLAN, seed("own", "seed", failure="timeout")])
    assert broken.own is None
    assert broken.shown == ["own"]


def test_briefs_for_what_is_unlike_are_the_large_models() -> None:
    assert [Brief(operator, ()).unlike for operator in ("diverse", "variant", "mutate", "shift")] == [
        True,
        False,
        False,
        True,
    ]
