"""An archive of one."""

from __future__ import annotations

from flowevolve.pool import Candidate, Update


class Best:
    """The best candidate so far, of equals the newest, and the seed."""

    def __init__(self) -> None:
        self.candidate: Candidate | None = None
        self.seed: Candidate | None = None

    def apply(self, update: Update) -> None:
        for candidate in update.added():
            if candidate.operator == "seed":
                self.seed = candidate
            if not self.beats(candidate):
                self.candidate = candidate

    def beats(self, other: Candidate) -> bool:
        """Whether there is a better one."""
        return self.candidate is not None and self.candidate.mean_score > other.mean_score
