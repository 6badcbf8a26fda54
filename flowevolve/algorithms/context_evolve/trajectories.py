"""Trajectories: how programs were made from each other, and how the score changed on the way (ContextEvolve, §4.2).

A step leads from a parent to its child. Its change is the child's score less the parent's, so more than 0 is better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

from flowevolve.core.assessment import works
from flowevolve.core.pool import Candidate
from flowevolve.policies.drawing import by_rank, draw
from flowevolve.prompts.abstracts import Trajectory, TrajectoryKind


def trajectories_to(
    program: Candidate, parent_of: Callable[[Candidate], Candidate | None], steps: int
) -> Iterator[tuple[Trajectory, float]]:
    """The trajectories of 1 to ``steps`` steps that end with ``program``, each with the change of the score over it."""
    names, changes, first = [program.id], list[float | None](), program
    while len(changes) < steps and (parent := parent_of(first)) is not None:
        changes.insert(0, first.mean_score - parent.mean_score if works(first) else None)
        names.insert(0, parent.id)
        first = parent
        yield Trajectory(kind_of(changes), tuple(names), tuple(changes)), program.mean_score - first.mean_score


def kind_of(changes: Sequence[float | None]) -> TrajectoryKind:
    """Improvement, if every step brought the score up; decline, if each brought it down or failed; else mixed."""
    if all(change is not None and change > 0 for change in changes):
        return "improvement"
    return "decline" if all(change is None or change < 0 for change in changes) else "mixed"


def draw_trajectories(
    found: Sequence[tuple[Trajectory, float]], count: int, weights: Mapping[TrajectoryKind, float], random: Random
) -> list[Trajectory]:
    """Up to ``count``, drawn one after another: first a kind by its weight, then one of that kind by rank, where the
    first is the one over which the score changed most. Ranks are the weights, and not changes, because scores have no
    common scale. No two end with the same program, as the second one would say little more.
    """
    left = sorted(found, key=lambda each: -abs(each[1]))
    drawn: list[Trajectory] = []
    while len(drawn) < count:
        kinds = [kind for kind in weights if weights[kind] > 0 and any(each.kind == kind for each, _ in left)]
        chosen = draw(kinds, [weights[kind] for kind in kinds], 1, random)
        if not chosen:
            break
        ranked = [each for each, _ in left if each.kind == chosen[0]]
        (trajectory,) = draw(ranked, by_rank(len(ranked)), 1, random)
        drawn.append(trajectory)
        left = [each for each in left if each[0].programs[-1] != trajectory.programs[-1]]
    return drawn
