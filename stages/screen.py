"""screen: run a proposal on the minibatch from which it was made, and let it pass only if it beats its parent there."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from flowevolve._util.tasks import run_all
from flowevolve.core.context import StageContext
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import Item
from flowevolve.core.task import Rollout
from flowevolve.policies.acceptance import Acceptance, ImprovementOrEqual
from flowevolve.stages.payloads import Proposed
from flowevolve.stages.rollouts import Rollouts


@dataclass(frozen=True)
class Screen:
    """``acceptance`` judges proposals on training examples. A merged candidate is screened on validation examples, and
    only has to be as good as the better of its parents.
    """

    rollouts: Rollouts
    acceptance: Acceptance

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        proposed = item.expect(Proposed)
        rollouts, baseline = await self._run(proposed, context)
        accepted = bool(await self.decide(proposed, rollouts, baseline, context))  # a plug-in may return numpy's
        context.log(
            "candidate.screened",
            candidate=proposed.candidate.id,
            accepted=accepted,
            scores=list(scores_of(rollouts)),
            baseline=list(baseline),
        )
        if not accepted:
            raise Discard("not better on its minibatch")
        yield Emit(replace(proposed, baseline=baseline, scores=scores_of(rollouts)), to=self.sends_to(proposed))

    async def decide(
        self, proposed: Proposed, rollouts: Sequence[Rollout], baseline: Sequence[float], context: StageContext
    ) -> bool:
        """Whether the proposal passes. A screen that needs more than these scores to decide overrides this."""
        return self.accepts(proposed, rollouts, baseline, context)

    def accepts(
        self, proposed: Proposed, rollouts: Sequence[Rollout], baseline: Sequence[float], context: StageContext
    ) -> bool:
        """Whether the proposal passes, given its rollouts and the scores that it has to beat on the same examples."""
        acceptance = self.acceptance if proposed.split == "train" else ImprovementOrEqual()
        return acceptance.accepts(scores_of(rollouts), baseline)

    def sends_to(self, proposed: Proposed) -> str | None:
        """The stage that gets a proposal that passed; None: the first of those that come after."""
        return None

    async def _run(self, proposed: Proposed, context: StageContext) -> tuple[Sequence[Rollout], tuple[float, ...]]:
        """The candidate's rollouts, and the scores that it has to beat on the same examples."""
        wanted = [proposed.candidate]
        if proposed.baseline is None:
            wanted.append(context.pool[proposed.candidate.parents[0]])
        jobs = [partial(self.rollouts.run, each, proposed.batch, proposed.split, context) for each in wanted]
        rollouts = await run_all(jobs)
        return rollouts[0], scores_of(rollouts[-1]) if proposed.baseline is None else proposed.baseline


def scores_of(rollouts: Sequence[Rollout]) -> tuple[float, ...]:
    return tuple(rollout.score.value for rollout in rollouts)
