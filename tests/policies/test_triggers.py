"""Triggers: which pool updates start an extra flow."""

from __future__ import annotations

from collections.abc import Sequence

from flowevolve.core.graph import Trigger
from flowevolve.core.pool import Update
from flowevolve.policies.triggers import EveryCommits, EverySeconds, Stagnation


def fired(trigger: Trigger, improved: Sequence[bool]) -> list[int]:
    """The versions at which it fires."""
    updates = [Update(version, (), "item", 0.0) for version in range(1, len(improved) + 1)]
    return [update.version for update, better in zip(updates, improved, strict=True) if trigger.fires(update, better)]


def test_every_so_many_commits() -> None:
    assert fired(EveryCommits("often", "write", 3), [False] * 10) == [3, 6, 9]


def test_stagnation_counts_from_the_last_gain_and_begins_anew_when_it_has_fired() -> None:
    improved = [False, True, False, False, False, False, False, False, True, False, False]
    assert fired(Stagnation("stuck", "write", 3), improved) == [5, 8]


def test_a_timer_does_not_look_at_commits() -> None:
    assert fired(EverySeconds("timed", "write", 10.0), [False, True]) == []
