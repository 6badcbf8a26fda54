"""evaluate and update for an adapter: what gepa's state has to know of a candidate beside its scores, and callbacks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from gepa.strategies.eval_policy import EvaluationPolicy

from flowevolve.compat.gepa.data import AnyId, Examples
from flowevolve.compat.gepa.mirror import Mirror
from flowevolve.compat.gepa.records import Validated, Validating
from flowevolve.compat.gepa.rollouts import AdapterRollout
from flowevolve.compat.gepa.threads import AdapterThreads
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.graph import Emit
from flowevolve.core.item import Item
from flowevolve.core.pool import Candidate
from flowevolve.core.task import Rollout
from flowevolve.stages.evaluate import Evaluate
from flowevolve.stages.payloads import Evaluated, Proposed
from flowevolve.stages.update import Update


@dataclass(frozen=True, kw_only=True)
class AdapterEvaluate(Evaluate):
    """Says in ``gepa.validated`` at how many metric calls the evaluation began, and the objectives' scores."""

    mirror: Mirror

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        candidate = item.expect(Proposed).candidate
        began = context.decide(Validating, lambda: Validating(candidate=candidate.id, calls=self.mirror.calls))

        def validated() -> Validated:
            return Validated(candidate=candidate.id, calls=began.calls, objectives=self.mirror.objectives(candidate.id))

        async with aclosing(super().__call__(item, context)) as emissions:
            async for emission in emissions:
                if isinstance(emission.payload, Evaluated):
                    self.mirror.note(context.decide(Validated, validated))
                yield emission

    async def _run(
        self, candidate: Candidate, order: Sequence[str], prefix: int, context: StageContext
    ) -> AsyncGenerator[Rollout]:
        async with aclosing(super()._run(candidate, order, prefix, context)) as rollouts:
            async for rollout in rollouts:
                if isinstance(rollout, AdapterRollout):
                    self.mirror.saw(candidate.id, rollout.example_id, rollout.batch, rollout.place)
                yield rollout


@dataclass(frozen=True, kw_only=True)
class AdapterUpdate(Update):
    """Tells callbacks of a candidate that has entered, and writes down the adapter's own state."""

    mirror: Mirror
    policy: EvaluationPolicy[AnyId, object]
    val: Examples
    adapter: AdapterThreads

    async def __call__(self, item: Item[object], context: UpdateContext) -> None:
        candidate = item.expect(Evaluated).candidate
        before = self.mirror.front()
        await super().__call__(item, context)
        self._tell(candidate, before, context)
        state = await self.adapter.state()
        if state is not None:
            self.mirror.state.adapter_state = dict(state)
            context.log("gepa.adapter_state", state=state)

    def _tell(self, candidate: Candidate, before: frozenset[int], context: StageContext) -> None:
        mirror, iteration = self.mirror, self.mirror.iteration_of(context.item_id)
        is_seed, front = candidate.operator == "seed", mirror.front()
        parents = [mirror.number(name) for name in candidate.parents]
        number = mirror.number(candidate.id)
        if not is_seed:
            mirror.tell(
                "on_pareto_front_updated",
                iteration=iteration,
                new_front=sorted(front),
                displaced_candidates=sorted(before - front),
            )
        mirror.tell(
            "on_valset_evaluated",
            iteration=iteration,
            candidate_idx=number,
            candidate=dict(candidate.artifact),
            scores_by_val_id={self.val.data_id(name): score for name, score in candidate.scores.items()},
            average_score=self.policy.get_valset_score(number, mirror.state),
            num_examples_evaluated=len(candidate.scores),
            total_valset_size=len(self.val.loader),
            parent_ids=parents,
            is_best_program=self.policy.get_best_program(mirror.state) == number,
            outputs_by_val_id=None,
        )
        if is_seed:
            return
        mirror.accepted(context.item_id)
        if candidate.operator == "merge":
            mirror.tell("on_merge_accepted", iteration=iteration, new_candidate_idx=number, parent_ids=parents)
        mirror.tell(
            "on_candidate_accepted",
            iteration=iteration,
            new_candidate_idx=number,
            new_score=mirror.passed_with(candidate.id),
            parent_ids=parents,
        )
