"""gepa's steps where they differ from the built-in stages: the adapter's data, the user's strategies, callbacks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from gepa.proposer.base import CandidateProposal, SubsampleEvaluation
from gepa.proposer.reflective_mutation.base import ReflectionComponentSelector
from gepa.strategies.acceptance import AcceptanceCriterion
from gepa.strategies.eval_policy import EvaluationPolicy

from flowevolve._util.errors import FlowevolveError, TaskFailedError
from flowevolve.compat.gepa.data import AnyId, Examples
from flowevolve.compat.gepa.mirror import Mirror
from flowevolve.compat.gepa.records import ChosenComponents, Validated, Validating
from flowevolve.compat.gepa.reflection import FAILURES_BEFORE_GIVING_UP, Writer
from flowevolve.compat.gepa.rollouts import AdapterRollout, joined
from flowevolve.compat.gepa.threads import AdapterThreads, Batch, Reflections
from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.discard_reasons import OVERTAKEN, PERFECT, UNREADABLE
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import Item
from flowevolve.core.model import LLMError
from flowevolve.core.payload_kinds import payload
from flowevolve.core.policies import Race
from flowevolve.core.pool import SEED, Candidate
from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.core.task import Rollout
from flowevolve.stages.commit import Commit
from flowevolve.stages.evaluate import Evaluate
from flowevolve.stages.group_commit import OPERATORS
from flowevolve.stages.payloads import Evaluated, Proposed, Rolled
from flowevolve.stages.rebase import entered_since
from flowevolve.stages.screen import Screen


@payload("gepa_adapter.Reflected")
@dataclass(frozen=True, slots=True)
class Reflected(Proposed):
    """A proposal, with its parent's evaluation on the minibatch."""

    before: Batch | None = None


class AdapterPropose:
    """Chooses the components, has the adapter make its reflective dataset, and the writer write new texts from it."""

    def __init__(
        self, adapter: AdapterThreads, components: ReflectionComponentSelector, writer: Writer, train: Examples,
        mirror: Mirror, *, skip_perfect: bool, drops_overtaken: bool,
    ) -> None:  # fmt: skip
        self._adapter = adapter
        self._components = components
        self._writer = writer
        self._train = train
        self._mirror = mirror
        self._skip_perfect = skip_perfect
        self._drops_overtaken = drops_overtaken
        self._worked = False
        self._failures = 0

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        rolled = item.expect(Rolled)
        parent, batch = rolled.selected.parent, joined(rolled.rollouts)
        self._tell_evaluated(batch, parent, item)
        self._skip(rolled, batch, item, context)
        components = self._choose(parent, batch, context)
        texts = await self._write(parent, batch, components, item, context)
        if not texts:
            context.log("gepa.reflection_failed", reason=f"no new texts came for {', '.join(components)}")
            raise Discard("no new texts")
        inputs = await self._mirror.inputs(rolled.selected.batch, self._train, self._adapter)
        context.begin(Cost(proposals=1))
        artifact = parent.artifact.replace(**texts)
        candidate = context.propose(artifact, parents=[parent], operator="reflect", born=item.version)
        if self._drops_overtaken and entered_since(artifact, item.version, context.pool):
            raise Discard(OVERTAKEN)
        self._tell_proposed(texts, rolled, inputs, item)
        baseline = tuple(rollout.score.value for rollout in rolled.rollouts)
        yield Emit(Reflected(candidate, rolled.selected.batch, baseline, before=batch), derives=(parent.id,))

    def _skip(self, rolled: Rolled, batch: Batch, item: Item[object], context: StageContext) -> None:
        if not batch.trajectories:
            reason = "no_trajectories"
        elif self._skip_perfect and all(rollout.score.passed for rollout in rolled.rollouts):
            reason = "all_scores_perfect"
        else:
            return
        number = self._mirror.number(rolled.selected.parent.id)
        self._mirror.tell(
            "on_evaluation_skipped",
            iteration=self._mirror.iteration_of(item.id),
            candidate_idx=number,
            reason=reason,
            scores=batch.scores,
            is_seed_candidate=number == 0,
        )
        if reason == "all_scores_perfect":
            raise Discard(PERFECT)
        self._failed(
            "adapter.evaluate returned no trajectories, though it was called with capture_traces=True", context
        )
        raise Discard("no trajectories")

    def _choose(self, parent: Candidate, batch: Batch, context: StageContext) -> tuple[str, ...]:
        state, number = self._mirror.state, self._mirror.number(parent.id)

        def choose() -> ChosenComponents:
            names = self._components(state, batch.trajectories or [], batch.scores, number, dict(parent.artifact))
            cursor = state.named_predictor_id_to_update_next_for_program_candidate[number]
            return ChosenComponents(candidate=parent.id, components=tuple(names), cursor=cursor)

        return context.decide(ChosenComponents, choose).components

    async def _write(
        self, parent: Candidate, batch: Batch, components: Sequence[str], item: Item[object], context: StageContext
    ) -> Mapping[str, str]:
        """Write new texts. As in gepa, an exception ends only the item, unless reflection has never worked.

        Raises:
            Discard: if reflection failed, or there is nothing to reflect on.
            TaskFailedError: if that was so from the first time on, `FAILURES_BEFORE_GIVING_UP` times.
        """
        try:
            reflections = await self._adapter.reflections(parent.artifact, batch, components)
            self._tell_reflecting(parent, reflections, components, item)
            texts = await self._writer(parent, reflections, components, context)
        except (FlowevolveError, LLMError, Discard):
            raise
        except UnparsableReplyError as error:
            context.log("gepa.reflection_failed", reason=f"a reply could not be read: {error}")
            raise Discard(UNREADABLE) from error
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            self._failed(reason, context, error)
            raise Discard(f"reflection failed: {reason}") from error
        # A component may have no records, for example if an adapter shows only what went wrong, and nothing did.
        if not texts and not any(name in reflections for name in components):
            some = ", ".join(repr(name) for name, records in reflections.items() if records)
            self._failed(
                f"adapter.make_reflective_dataset returned no records for {', '.join(components)}"
                f"{f', only for {some}' if some else ''}",
                context,
            )
            raise Discard("nothing to reflect on")
        self._worked = True
        return texts

    def _failed(self, reason: str, context: StageContext, error: Exception | None = None) -> None:
        """Raises: TaskFailedError: if reflection has failed `FAILURES_BEFORE_GIVING_UP` times and never worked."""
        context.log("gepa.reflection_failed", reason=reason)
        self._failures += 1
        if not self._worked and self._failures >= FAILURES_BEFORE_GIVING_UP:
            what = "there was nothing to reflect on" if error is None else "reflection failed"
            hint = "" if error is None else "; see the adapter's make_reflective_dataset and the proposer"
            raise TaskFailedError(
                f"{what} in each of the first {self._failures} attempts; the last time: {reason}{hint}"
            ) from error

    # Events for callbacks

    def _tell_evaluated(self, batch: Batch, parent: Candidate, item: Item[object]) -> None:
        number = self._mirror.number(parent.id)
        parents = self._mirror.state.parent_program_for_candidate[number]
        self._mirror.tell(
            "on_evaluation_end",
            iteration=self._mirror.iteration_of(item.id),
            candidate_idx=number,
            scores=batch.scores,
            has_trajectories=bool(batch.trajectories),
            parent_ids=[each for each in parents if each is not None],
            outputs=batch.outputs,
            trajectories=batch.trajectories,
            objective_scores=batch.objective_scores,
            is_seed_candidate=number == 0,
        )

    def _tell_reflecting(
        self, parent: Candidate, reflections: Reflections, components: Sequence[str], item: Item[object]
    ) -> None:
        dataset = {name: [dict(record) for record in records] for name, records in reflections.items()}
        iteration = self._mirror.iteration_of(item.id)
        self._mirror.tell(
            "on_reflective_dataset_built",
            iteration=iteration,
            candidate_idx=self._mirror.number(parent.id),
            components=list(components),
            dataset=dataset,
        )
        self._mirror.tell(
            "on_proposal_start",
            iteration=iteration,
            parent_candidate=dict(parent.artifact),
            components=list(components),
            reflective_dataset=dataset,
        )

    def _tell_proposed(
        self, texts: Mapping[str, str], rolled: Rolled, inputs: list[object], item: Item[object]
    ) -> None:
        iteration = self._mirror.iteration_of(item.id)
        self._mirror.tell(
            "on_proposal_end", iteration=iteration, new_instructions=dict(texts), prompts={}, raw_lm_outputs={}
        )
        self._mirror.tell(
            "on_evaluation_start",
            iteration=iteration,
            candidate_idx=None,
            batch_size=len(rolled.selected.batch),
            capture_traces=True,
            parent_ids=[self._mirror.number(rolled.selected.parent.id)],
            inputs=inputs,
            is_seed_candidate=False,
        )


@dataclass(frozen=True)
class AdapterScreen(Screen):
    """A screen that asks gepa's acceptance criterion, which sees more than the scores. A merge by gepa's rules is
    validated on its own, because gepa counts the merges that enter.
    """

    criterion: AcceptanceCriterion
    train: Examples
    mirror: Mirror

    def accepts(
        self, proposed: Proposed, rollouts: Sequence[Rollout], baseline: Sequence[float], context: StageContext
    ) -> bool:
        iteration = self.mirror.iteration_of(context.item_id)
        after, before = joined(rollouts), sum(baseline)
        parents = [self.mirror.number(name) for name in proposed.candidate.parents]
        self._tell_evaluated(after, parents, iteration)
        if proposed.split == "val":
            self.mirror.tell(
                "on_merge_attempted",
                iteration=iteration,
                parent_ids=parents,
                merged_candidate=dict(proposed.candidate.artifact),
            )
            accepted = super().accepts(proposed, rollouts, baseline, context)
        else:
            accepted = self.criterion.should_accept(
                self._proposal(proposed, after, baseline, parents), self.mirror.state
            )
        if accepted:
            self.mirror.passed(proposed.candidate.id, after.scores)
        elif proposed.split == "val":
            reason = f"scores {sum(after.scores)}, a parent {before}"
            self.mirror.tell("on_merge_rejected", iteration=iteration, parent_ids=parents, reason=reason)
        else:
            reason = f"scores {sum(after.scores)} on the minibatch, its parent {before}"
            self.mirror.tell(
                "on_candidate_rejected",
                iteration=iteration,
                old_score=before,
                new_score=sum(after.scores),
                reason=reason,
            )
        return accepted

    def sends_to(self, proposed: Proposed) -> str | None:
        return "evaluate" if proposed.split == "val" else None

    def _proposal(
        self, proposed: Proposed, after: Batch, baseline: Sequence[float], parents: list[int]
    ) -> CandidateProposal[AnyId]:
        before = proposed.before if isinstance(proposed, Reflected) else None
        return CandidateProposal(
            candidate=dict(proposed.candidate.artifact),
            parent_program_ids=parents,
            subsample_indices=[self.train.data_id(name) for name in proposed.batch],
            subsample_scores_before=list(baseline),
            subsample_scores_after=list(after.scores),
            eval_before=SubsampleEvaluation(list(baseline)) if before is None else _subsample(before),
            eval_after=_subsample(after),
            tag="reflective_mutation",
        )

    def _tell_evaluated(self, batch: Batch, parents: list[int], iteration: int) -> None:
        self.mirror.tell(
            "on_evaluation_end",
            iteration=iteration,
            candidate_idx=None,
            scores=batch.scores,
            has_trajectories=bool(batch.trajectories),
            parent_ids=parents,
            outputs=batch.outputs,
            trajectories=batch.trajectories,
            objective_scores=batch.objective_scores,
            is_seed_candidate=False,
        )


@dataclass(frozen=True, kw_only=True)
class AdapterEvaluate(Evaluate):
    """Logs ``gepa.validated`` with the metric calls at which the evaluation began, and the objectives' scores."""

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

    def _stop_if_hopeless(self, candidate: Candidate, race: Race, context: StageContext) -> None:
        """Never stop single edits, as in gepa: an edit that does not beat the best may be the best on some example."""
        if candidate.operator in OPERATORS.values():
            super()._stop_if_hopeless(candidate, race, context)

    async def _run(
        self, candidate: Candidate, order: Sequence[str], prefix: int, context: StageContext
    ) -> AsyncGenerator[Rollout]:
        async with aclosing(super()._run(candidate, order, prefix, context)) as rollouts:
            async for rollout in rollouts:
                if isinstance(rollout, AdapterRollout):
                    self.mirror.saw(candidate.id, rollout.example_id, rollout.batch, rollout.place)
                yield rollout


@dataclass(frozen=True, kw_only=True)
class AdapterCommit(Commit):
    """Reports a candidate that has entered to the callbacks, and logs the adapter's own state."""

    mirror: Mirror
    policy: EvaluationPolicy[AnyId, object]
    val: Examples
    adapter: AdapterThreads

    async def __call__(self, item: Item[object], context: UpdateContext) -> None:
        candidate = item.expect(Evaluated).candidate
        passed = self.mirror.passed_with(candidate.id)
        before = self.mirror.front()
        await super().__call__(item, context)
        self._tell(candidate, before, sum(candidate.scores.values()) if passed is None else passed, context)
        state = self.adapter.state
        if state is not None:
            self.mirror.state.adapter_state = dict(state)
            context.log("gepa.adapter_state", state=state)

    def _tell(self, candidate: Candidate, before: frozenset[int], passed: float, context: StageContext) -> None:
        mirror, iteration = self.mirror, self.mirror.iteration_of(context.item_id)
        is_seed, front = candidate.operator == SEED, mirror.front()
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
            new_score=passed,
            parent_ids=parents,
        )


def _subsample(batch: Batch) -> SubsampleEvaluation:
    return SubsampleEvaluation(
        scores=list(batch.scores),
        outputs=batch.outputs,
        objective_scores=batch.objective_scores,
        trajectories=batch.trajectories,
    )
