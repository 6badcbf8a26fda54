"""Orderings: whose request goes to the server next (`flowevolve.llm.scheduling.request_queue.Order`)."""

from __future__ import annotations

from dataclasses import dataclass

from flowevolve._util.errors import InputError
from flowevolve.llm.scheduling.request_queue import GroupFacts, Key, QueuedRequest


@dataclass(frozen=True, slots=True)
class LaterFirst:
    """Later stages first; the other settings order what is still equal.

    They apply in this order. ``nearly_finished`` prefers the group with the fewest requests left, so that evaluations
    end one after another instead of all at once. ``affinity`` prefers a group of the candidate served last, whose
    prompt the server has cached. ``long_first`` prefers the longest expected answer, so that no long one is left for
    the end.

    Raises:
        InputError: if ``fair_every`` is below 1.
    """

    nearly_finished: bool = True
    long_first: bool = True
    affinity: bool = True
    fair_every: int = 8
    """One in this many slots goes to the request that has waited longest."""

    def __post_init__(self) -> None:
        if self.fair_every < 1:
            raise InputError(f"scheduler.order.fair_every is {self.fair_every}, but has to be at least 1")

    def group_key(self, facts: GroupFacts) -> Key:
        return (
            facts.rank,
            facts.remaining if self.nearly_finished else 0,
            not facts.affine if self.affinity else 0,
            -facts.expected_tokens if self.long_first else 0.0,
            facts.first_arrival,
        )

    def request_key(self, ask: QueuedRequest, arrival: int) -> Key:
        return (ask.rank, -ask.expected_tokens if self.long_first else 0.0, arrival)


@dataclass(frozen=True, slots=True)
class Fifo:
    """First come, first served, whatever a request is for."""

    @property
    def fair_every(self) -> int:
        return 1

    def group_key(self, facts: GroupFacts) -> Key:
        return (facts.arrival,)

    def request_key(self, ask: QueuedRequest, arrival: int) -> Key:
        return (arrival,)
