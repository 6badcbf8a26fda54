"""What limits how fast a run goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from flowevolve.core.policies import FlowLimit

Limit = Literal["rate limit", "server full", "width", "evaluation cores", "flows", "lockstep"]
ABOUT: dict[Limit, str] = {
    "rate limit": "requests wait for the limits a minute; a wider run is no faster",
    "server full": "the server runs as many requests at once as it can; more of them wait",
    "width": "as many requests are in flight as llm.concurrency allows; a wider run is faster",
    "evaluation cores": "the cores that run programs are busy; more of them (sandbox.concurrency) make it faster",
    "flows": "the algorithm has nothing more to ask for at a time; a wider run is no faster",
    "lockstep": "every step waits for its slowest request; mode stream doesn't",
}
BUSY = 0.85
"""The share of use above which something counts as used up."""
HELD_BACK = 0.3
"""If requests wait for a rate limit for more than this share of the time, that limit counts."""


@dataclass(frozen=True, slots=True)
class Load:
    """How busy a simulated run kept the resources that it used."""

    width: int
    slots: int | None
    """Requests that the servers run at once; None: no bound."""
    in_flight: float
    held_back: float
    """The share of the time in which a request waited for a rate limit."""
    evaluating: float
    """The share of the slots for programs that was used."""
    flows: FlowLimit | None
    """None in lockstep."""

    def limit(self) -> Limit:
        if self.held_back > HELD_BACK:
            return "rate limit"
        if self.evaluating > BUSY:
            return "evaluation cores"
        if self.slots is not None and self.in_flight > BUSY * self.slots:
            return "server full"
        if self.in_flight > BUSY * self.width:
            return "width"
        return "lockstep" if self.flows is None else "flows"
