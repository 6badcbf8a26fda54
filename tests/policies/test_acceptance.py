"""Acceptance: of a child on its minibatch, over repeats, and of a validated candidate into the pool."""

from __future__ import annotations

import pytest

from flowevolve._util.errors import InputError
from flowevolve.core.policies import Standing
from flowevolve.policies.acceptance import Everything, Front, Improvement, ImprovementOrEqual, Paired, StrictImprovement


@pytest.mark.parametrize(
    ("settings", "what"), [({"z": 0.0}, "z is 0"), ({"z": -1.0}, "z is -1"), ({"repeats": 0}, "repeats is 0")]
)
def test_settings_out_of_range_are_refused(settings: dict[str, float], what: str) -> None:
    with pytest.raises(InputError, match=rf"algorithm\.acceptance_{what}"):
        Paired(**settings)  # type: ignore[arg-type]  # what a config could hold
    assert Paired(z=0.1, repeats=1).repeats == 1


def test_a_comparison_is_open_while_its_difference_may_be_chance() -> None:
    policy = Paired(z=1.0, repeats=3)
    one = [[1.0, 0.0]]  # of two examples, with a noise of 0.25: the standard error of the difference is 1 at first
    assert policy.is_open(one, [[0.0, 0.0]], 0.25)
    assert not policy.is_open([[1.0, 0.1]], [[0.0, 0.0]], 0.25)
    assert policy.is_open([[0.0, 0.0]], one, 0.25), "it may be as far behind"
    assert not policy.is_open(one * 2, [[0.0, 0.0]] * 2, 0.25), "after another run the standard error is 0.7"
    assert policy.is_open(one * 2, [[0.5, 0.0]] * 2, 0.25)
    assert [policy.is_open(one * runs, one * runs, 0.25) for runs in (3, 4)] == [True, False]


def test_as_long_as_nobody_knows_how_much_scores_vary_there_is_one_repeat() -> None:
    assert [Paired().is_open([[1.0]] * runs, [[0.0]] * runs, None) for runs in (1, 2)] == [True, False]
    assert not Paired().is_open([[1.0]], [[1.0]], 0.0), "where they don't vary there is none"


def test_it_is_accepted_if_the_sum_rises() -> None:
    assert [Paired().accepts([1.0, score], [0.5, 0.5]) for score in (0.0, 0.1)] == [False, True]


def test_what_a_validated_candidate_needs() -> None:
    standing = Standing(incumbent={"a": 0.5, "b": 0.5}, front={"a": 0.5, "b": 0.9})

    def admitted(**scores: float) -> list[bool]:
        return [policy.admits(scores, standing) for policy in (Everything(), Front(), Improvement())]

    assert admitted(a=0.4, b=0.7) == [True, True, True]
    assert admitted(a=0.5, b=0.5) == [True, False, False]
    assert admitted(a=0.6, b=0.0) == [True, True, False]
    assert admitted(b=0.6) == [True, True, True], "compared on the same examples"


def test_acceptance_differs_on_ties_only() -> None:
    assert not StrictImprovement().accepts([1, 0], [0, 1])
    assert ImprovementOrEqual().accepts([1, 0], [0, 1])
    assert StrictImprovement().accepts([1, 1], [0, 1])
    assert not ImprovementOrEqual().accepts([0, 0], [0, 1])
