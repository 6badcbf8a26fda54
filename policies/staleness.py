"""Staleness policies: what becomes of an item made from an older pool version (FlashEvolve §3.2).

A new policy is given a name in `flowevolve.runner.registries`, or by a package of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from flowevolve._util.errors import InputError
from flowevolve.core.policies import Decision, Staleness


@dataclass(frozen=True, slots=True)
class Full:
    """Let everything through (Full Async)."""

    def decide(self, facts: Staleness) -> Decision:
        return "continue"


@dataclass(frozen=True, slots=True)
class Guarded:
    """Discard an item when its gap exceeds ``max_gap``, or what it derives from was revoked (Guarded Async).

    Raises:
        InputError: if ``max_gap`` is below 0.
    """

    max_gap: int = 3

    def __post_init__(self) -> None:
        _at_least(0, "max_gap", self.max_gap)

    def decide(self, facts: Staleness) -> Decision:
        return "discard" if facts.gap > self.max_gap or facts.revoked else "continue"


@dataclass(frozen=True, slots=True)
class Reflective:
    """Have a stale item judged and repaired (Reflective Async).

    Items that can't be repaired at their stage, because nothing has been proposed yet, continue: what is made from them
    is checked later. An item is repaired at most ``max_repairs`` times and then continues, so that a fast-changing pool
    can't keep it from being evaluated for ever.

    Raises:
        InputError: if ``min_gap`` is below 1, or ``max_repairs`` below 0.
    """

    min_gap: int = 1
    max_repairs: int = 1

    def __post_init__(self) -> None:
        _at_least(1, "min_gap", self.min_gap)
        _at_least(0, "max_repairs", self.max_repairs)

    def decide(self, facts: Staleness) -> Decision:
        stale = facts.gap >= self.min_gap or facts.revoked
        if not stale or not facts.repairable or facts.item.repairs >= self.max_repairs:
            return "continue"
        return "repair"


def _at_least(least: int, name: str, value: int) -> None:
    if value < least:
        raise InputError(f"staleness.{name} is {value}, but has to be at least {least}")
