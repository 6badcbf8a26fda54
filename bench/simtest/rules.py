"""The rules that every run keeps, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Rule = Literal[
    "order",
    "flows",
    "items",
    "flow limit",
    "workers",
    "pause",
    "acts",
    "versions",
    "statuses",
    "gaps",
    "call limit",
    "budget",
    "paid twice",
    "pool",
    "counters",
    "stop reason",
    "progress",
    "crash",
    "left over",
    "repeatable",
]
RULES: tuple[Rule, ...] = get_args(Rule)


@dataclass(frozen=True)
class Fault:
    """A rule that was broken, and what broke it."""

    rule: Rule
    what: str

    def like(self, other: Fault) -> bool:
        """Whether both are of one kind. Crashes are told apart by their exceptions."""
        same = self.what.partition(":")[0] == other.what.partition(":")[0]
        return self.rule == other.rule and (same or self.rule != "crash")
