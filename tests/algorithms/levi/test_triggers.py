"""When LEVI shifts: at exactly these evaluations."""

from __future__ import annotations

from collections.abc import Sequence

from flowevolve.algorithms.levi.commit import Evaluations
from flowevolve.core.artifact import Artifact
from flowevolve.core.pool import Add, Candidate, Change, Note, Update

EVALUATED: tuple[Change, ...] = (Add(Candidate("1", Artifact({"x": ""}))),)
NOTED: tuple[Change, ...] = (Note("levi.advice", {}),)


def fired(trigger: Evaluations, commits: Sequence[tuple[Change, ...]], better: Sequence[int] = ()) -> list[int]:
    """After which evaluations it fires."""
    found = []
    evaluations = 0
    for version, changes in enumerate(commits, 1):
        evaluations += len(changes) if changes is not NOTED else 0
        if trigger.fires(Update(version, changes, "0", 0.0), evaluations in better):
            found.append(evaluations)
    return found


def test_every_tenth_evaluation_whatever_else_is_committed() -> None:
    commits = [EVALUATED, NOTED] * 35
    assert fired(Evaluations("shift", "shift", 10), commits) == [10, 20, 30]


def test_stagnation_counts_from_the_last_better_score() -> None:
    assert fired(Evaluations("shift", "shift", 0, 4), [EVALUATED] * 14, better=[3]) == [7, 11]


def test_both_at_once_fire_once() -> None:
    assert fired(Evaluations("shift", "shift", 5, 5), [EVALUATED] * 11) == [5, 10]
    assert fired(Evaluations("shift", "shift", 5, 3), [EVALUATED] * 10) == [3, 5, 6, 9, 10]


def test_several_evaluations_in_one_commit_fire_once() -> None:
    assert fired(Evaluations("shift", "shift", 3), [EVALUATED * 7, EVALUATED, EVALUATED]) == [7, 9]


def test_never() -> None:
    assert fired(Evaluations("shift", "shift", 0, 0), [EVALUATED] * 50) == []
