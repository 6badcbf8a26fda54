"""A staleness policy, as docs of 0.1 say how to write one."""

from __future__ import annotations

from flowevolve.core.policies import Decision, Staleness


class Lenient:
    def __init__(self, most: int = 5) -> None:
        self.most = most

    def decide(self, facts: Staleness) -> Decision:
        return "discard" if facts.gap > self.most else "continue"
