"""commit: the only stage that changes the pool, and that confirms or revokes candidates that were released early."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from flowevolve._util.json_types import JSON
from flowevolve.core.context import UpdateContext
from flowevolve.core.graph import Discard
from flowevolve.core.item import Item, Released
from flowevolve.core.policies import Standing, ValidationAcceptance
from flowevolve.core.pool import Add, Annotate, Candidate, Move
from flowevolve.policies.acceptance import Everything
from flowevolve.stages.payloads import Evaluated, Remeasured
from flowevolve.stages.remeasure import averaged


@dataclass(frozen=True)
class Commit:
    """Adds released candidates as speculative, and confirms or rejects evaluated ones by the policy.

    `flowevolve.stages.committing` makes a stage of it. ``standing`` returns None while nothing is confirmed: the first
    candidate is always accepted.
    """

    standing: Callable[[], Standing | None]
    acceptance: ValidationAcceptance = field(default_factory=Everything)

    async def __call__(self, item: Item[object], context: UpdateContext) -> None:
        if isinstance(item.payload, Released):
            _release(item.payload.partial, context)
        elif isinstance(item.payload, Remeasured):
            context.commit([averaged(context.pool[item.payload.candidate.id], item.payload.scores)])
        else:
            self._confirm_or_reject(item.expect(Evaluated).candidate, context)

    def _confirm_or_reject(self, candidate: Candidate, context: UpdateContext) -> None:
        accepted = bool(context.decide("candidate.validated", lambda: self._judge(candidate))["accepted"])
        if context.pool.status(candidate.id) == "speculative":
            known = context.pool[candidate.id].attributes
            noted = [] if candidate.attributes == known else [Annotate(candidate.id, candidate.attributes)]
            context.commit([*noted, Move(candidate.id, "confirmed" if accepted else "revoked", candidate.scores)])
        elif accepted:
            context.commit([Add(candidate)])
        else:
            raise Discard("not better on the validation set")

    def _judge(self, candidate: Candidate) -> Mapping[str, JSON]:
        standing = self.standing()
        accepted = standing is None or self.acceptance.admits(candidate.scores, standing)
        return {"candidate": candidate.id, "accepted": accepted}


def _release(partial: Candidate, context: UpdateContext) -> None:
    """Add a candidate as speculative, unless its evaluation was stopped while the release was on its way."""
    if context.pool.status(partial.id) != "proposed":
        raise Discard("no longer open")
    context.commit([Add(partial, "speculative")])
