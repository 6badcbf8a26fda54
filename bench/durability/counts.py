"""The results of many kills, in numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Counts:
    """The results of the kills. ``faults`` says in words what is wrong; the first three numbers should be 0."""

    lost_responses: int = 0
    lost_candidates: int = 0
    repeated_updates: int = 0
    kills: int = 0
    kills_of: dict[str, int] = field(default_factory=dict)
    """Kills by algorithm."""
    kills_in: dict[str, int] = field(default_factory=dict)
    """Kills by what the run was doing."""
    compactions: int = 0
    """Compactions of journals in the middle of a run that were allowed to finish."""
    before_the_journal: int = 0
    """Kills that came before the first event was in the journal."""
    runs: int = 0
    calls: int = 0
    confirmed: int = 0
    resumed: int = 0
    items_resumed: int = 0
    replies_resumed: int = 0
    """Replies that had arrived for work that was under way at a kill."""
    repeated_payments: int = 0
    """Answers that the server had finished but that had not arrived when the process was killed, so that they were
    asked for again.
    """
    most_repeated_payments: int = 0
    """The largest number of repeated payments at a single kill."""
    in_flight: int = 0
    """Calls in flight at the kills, summed."""
    faults: list[str] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        most = max(self.most_repeated_payments, other.most_repeated_payments)
        for name, value in vars(other).items():
            match value:
                case dict():
                    setattr(self, name, dict(Counter(getattr(self, name)) + Counter(value)))
                case _:
                    setattr(self, name, getattr(self, name) + value)
        self.most_repeated_payments = most


def count(counts: dict[str, int], what: str) -> None:
    """Add one to the count of ``what``."""
    counts[what] = counts.get(what, 0) + 1
