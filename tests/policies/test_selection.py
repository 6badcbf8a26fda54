"""Selection policies: from which candidate the next proposal starts, and of which of its components."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from flowevolve.archives.pareto import ParetoArchive
from flowevolve.core.artifact import Artifact
from flowevolve.core.pool import Add, Candidate, Update
from flowevolve.policies.selection import (
    AllComponents,
    CurrentBest,
    EpsilonGreedy,
    Pareto,
    RoundRobin,
    Selection,
    TopKPareto,
)

SCORES = {
    "narrow": (1.0, 0.0, 0.0, 0.0),
    "good": (0.0, 1.0, 1.0, 0.0),
    "fair": (0.0, 0.0, 0.0, 0.9),
    "worst": (0.0,) * 4,
}
"""The best of all on 1, 2, 1 and no examples."""


def drawn(policy: Selection, times: int = 400) -> Counter[str]:
    archive = ParetoArchive()
    for version, (name, scores) in enumerate(SCORES.items(), 1):
        candidate = Candidate(name, Artifact({"prompt": name}))
        scored = candidate.scored({f"e{place}": score for place, score in enumerate(scores)})
        archive.apply(Update(version, (Add(scored),), "item", 0.0))
    random = Random(0)
    return Counter(policy.select(archive, random).id for _ in range(times))


def test_pareto_draws_by_the_number_of_examples_that_each_does_best_on() -> None:
    seen = drawn(Pareto())
    assert set(seen) == {"narrow", "good", "fair"}
    assert 160 < seen["good"] < 240


def test_current_best_is_the_one_with_the_highest_mean() -> None:
    assert drawn(CurrentBest()) == {"good": 400}
    with pytest.raises(LookupError, match="the archive is empty"):
        CurrentBest().select(ParetoArchive(), Random(0))


@pytest.mark.parametrize(("epsilon", "least", "most"), [(0.0, 400, 400), (0.4, 240, 320), (1.0, 70, 130)])
def test_epsilon_greedy_draws_from_all_as_often_as_it_says(epsilon: float, least: int, most: int) -> None:
    seen = drawn(EpsilonGreedy(epsilon))
    assert least <= seen["good"] <= most
    assert set(seen) == ({"good"} if epsilon == 0 else set(SCORES))


def test_the_top_are_those_with_the_highest_mean() -> None:
    assert drawn(TopKPareto(1)) == {"good": 400}
    seen = drawn(TopKPareto(2))
    assert set(seen) == {"good", "narrow"}
    assert 230 < seen["good"] < 300, "drawn by numbers of examples: 2 to 1"
    assert set(drawn(TopKPareto(5))) == {"good", "narrow", "fair"}


def test_component_selection() -> None:
    names = ["a", "b", "c"]
    cursor = 0
    seen: list[str] = []
    for _ in range(4):
        picked, cursor = RoundRobin().select(names, cursor)
        seen += picked
    assert seen == ["a", "b", "c", "a"]
    assert AllComponents().select(names, 2) == (("a", "b", "c"), 2)
