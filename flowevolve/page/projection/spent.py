"""What finished calls add up to."""

from __future__ import annotations

from dataclasses import dataclass

from flowevolve.page.tables.work import CallRow


@dataclass(slots=True)
class Spent:
    """Sums over the requests of a run that have ended; not those that the response cache answered, nor those that score
    the test split afterwards.
    """

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    last: float = 0.0
    """When the last one ended, in seconds."""

    def take(self, call: CallRow) -> None:
        self.calls += 1
        self.tokens += (call.prompt_tokens or 0) + (call.completion_tokens or 0)
        self.cost += call.cost or 0.0
        self.last = max(self.last, call.ended)
