"""A staleness policy whose decisions are checked."""

from __future__ import annotations

from bench.simtest.books import Books
from flowevolve.core.item import carried
from flowevolve.core.policies import Decision, Staleness, StalenessPolicy
from flowevolve.policies.staleness import Full, Guarded, Reflective


class Judge:
    """Passes on the decisions of a policy, and checks what it was told and what it decided."""

    def __init__(self, policy: StalenessPolicy, books: Books) -> None:
        self._policy = policy
        self._books = books

    def decide(self, facts: Staleness) -> Decision:
        decision, books = self._policy.decide(facts), self._books
        if books.closed:
            return decision
        names = [*facts.item.derives, *(candidate.id for candidate in carried(facts.item))]
        revoked = books.pool.descends_from_revoked(names)
        if facts.revoked != revoked:
            books.fault("gaps", f"item {facts.item.id} is told to derive from what was revoked: {facts.revoked}")
        if (expected := self._rule(facts)) != decision:
            books.fault("gaps", f"item {facts.item.id} with a gap of {facts.gap} is judged {decision}, not {expected}")
        books.judged[facts.item.id] = facts.gap, decision
        return decision

    def _rule(self, facts: Staleness) -> Decision:
        match self._policy:
            case Guarded(max_gap=most):
                return "discard" if facts.gap > most or facts.revoked else "continue"
            case Reflective(min_gap=least, max_repairs=most):
                stale = (facts.gap >= least or facts.revoked) and facts.repairable
                return "repair" if stale and facts.item.repairs < most else "continue"
            case Full():
                return "continue"
            case policy:
                raise NotImplementedError(f"no rule is known of {policy}")
