"""The entry stage: what gepa does at the start of an iteration, with gepa's or the user's own strategies.

Merges are gepa's own: its proposer finds them from gepa's state, and the stream evaluates them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from random import Random

from gepa.logging.logger import LoggerProtocol
from gepa.proposer.base import CandidateProposal
from gepa.proposer.merge import MergeProposer
from gepa.proposer.reflective_mutation.base import CandidateSelector
from gepa.strategies.batch_sampler import BatchSampler
from gepa.strategies.proposal_sampling import SamplingStrategy
from gepa.utils import StopperProtocol

from flowevolve.compat.gepa.data import AnyId, Examples, IdsOnly
from flowevolve.compat.gepa.failures import Failures
from flowevolve.compat.gepa.mirror import Mirror
from flowevolve.compat.gepa.records import Iteration, Merge, Rewrite
from flowevolve.compat.gepa.threads import AdapterThreads
from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext
from flowevolve.core.event_body import OwnEvent
from flowevolve.core.events import Event
from flowevolve.core.graph import Discard, Emit, Exhausted
from flowevolve.core.item import Item
from flowevolve.core.item_ids import flow_of
from flowevolve.core.pool import SEED, Add, Update
from flowevolve.stages.payloads import Proposed, Selected


class UndrawableError(Exception):
    """gepa could not draw one of the possible merges. The message says why."""


class Merger:
    """Finds merges. When one is due is a function of the log; which one is found also depends on earlier searches."""

    def __init__(
        self, mirror: Mirror, val: Examples, logger: LoggerProtocol, random: Random, *, most: int, overlap: int
    ) -> None:
        self._mirror = mirror
        self._proposer: MergeProposer[AnyId] = MergeProposer(
            logger=logger,
            valset=IdsOnly(val.loader),
            evaluator=_not_yet,  # type: ignore[arg-type]  # it has no type of its own for outputs
            use_merge=True,
            max_merge_invocations=most,
            val_overlap_floor=overlap,
            rng=random,
        )

    def apply(self, update: Update) -> None:
        """A merge that enters uses up one that was due. Any other candidate, except the seed, may make one due."""
        for change in update.changes:
            if not isinstance(change, Add) or change.status != "confirmed":
                continue
            if change.candidate.operator == "merge":
                self._proposer.merges_due -= 1
                self._proposer.total_merges_tested += 1
            elif change.candidate.operator != SEED:
                self._proposer.last_iter_found_new_program = True
                self._proposer.schedule_if_needed()

    def find(self) -> CandidateProposal[AnyId] | None:
        """The merge to try in this iteration, if one is due and one is possible. Its scores are placeholders.

        Raises:
            UndrawableError: if gepa can't choose among common ancestors. The merge stays due.
        """
        proposer, state = self._proposer, self._mirror.state
        due = proposer.merges_due > 0 and proposer.last_iter_found_new_program
        calls = state.total_num_evals
        try:
            return proposer.propose(state) if due else None
        except ValueError as error:  # it draws an ancestor by score, and can't if the scores add up to 0
            raise UndrawableError(str(error)) from error
        finally:
            state.total_num_evals = calls  # it counts an evaluation that is still to come
            proposer.last_iter_found_new_program = False


def _not_yet(
    inputs: Sequence[object], candidate: dict[str, str]
) -> tuple[Sequence[object], list[float], Sequence[dict[str, float]] | None]:
    return inputs, [0.0] * len(inputs), None


@dataclass(frozen=True, slots=True)
class Strategies:
    """The strategies that decide how an iteration begins."""

    candidates: CandidateSelector
    batches: BatchSampler[AnyId, object]
    sampling: SamplingStrategy[AnyId, object]
    stoppers: Sequence[StopperProtocol]


class AdapterSelect:
    """Asks the stoppers and the strategies once in each iteration, in gepa's order and with gepa's state.

    A resumed run asks them again for every earlier iteration, so that their random generators and counters reach the
    same state.
    """

    def __init__(
        self, strategies: Strategies, merger: Merger | None, train: Examples, val: Examples, mirror: Mirror,
        failures: Failures, adapter: AdapterThreads,
    ) -> None:  # fmt: skip
        self._strategies = strategies
        self._merger = merger
        self._train = train
        self._val = val
        self._mirror = mirror
        self._failures = failures
        self._adapter = adapter
        self._stopped = False
        self._ids = IdsOnly(train.loader)

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        chosen = context.decide(Iteration, lambda: self._choose(context))
        self._mirror.begin(item.flow, chosen.iteration)
        if chosen.failed is not None:
            raise Discard(chosen.failed)
        if chosen.undrawable is not None:
            context.log("gepa.merge_skipped", reason=chosen.undrawable)
        if chosen.merge is not None:
            inputs = await self._mirror.inputs(chosen.merge.batch, self._val, self._adapter)
            yield self._merge(chosen.merge, inputs, chosen.iteration, chosen.version, context)
        for task in chosen.tasks:
            parent = context.pool[task.parent]
            selected = Selected(parent, (), task.batch)
            inputs = await self._mirror.inputs(task.batch, self._train, self._adapter)
            self._announce(selected, inputs, chosen.iteration)
            yield Emit(selected, to="generate", version=chosen.version, derives=(parent.id,))

    def replay_event(self, event: Event) -> None:
        """Ask the stoppers and strategies again, as in an iteration before the run was interrupted."""
        match event.body:
            case OwnEvent(kind=Iteration.kind, data=data, item=item):
                before = Iteration.from_json(data)
                self._ask_stoppers()
                self._iterate(before.version)
                self._mirror.begin(flow_of(item), before.iteration)
            case _:
                pass

    def _choose(self, context: StageContext) -> Iteration:
        if self._stopped or self._ask_stoppers():
            self._stopped = True
            raise Exhausted
        self._mirror.tell("on_state_saved", iteration=self._mirror.iteration, run_dir=None)
        return self._iterate(context.pool.version, told=True)

    def _iterate(self, version: int, *, told: bool = False) -> Iteration:
        """What the next iteration works on: a merge, or else rewrites."""
        state = self._mirror.state
        state.i += 1
        iteration = self._mirror.iteration
        state.full_program_trace.append({"i": state.i})
        if told:
            self._mirror.tell(
                "on_iteration_start", iteration=iteration, state=state, trainset_loader=self._train.loader
            )
        undrawable: dict[str, str] = {}
        try:
            merge = None if self._merger is None else self._merger.find()
        except UndrawableError as error:
            merge, undrawable = None, {"undrawable": str(error)}
        if merge is None:
            try:
                tasks = self._sample(told=told)
                return Iteration(merge=None, tasks=tasks, **undrawable, iteration=iteration, version=version)
            except Discard as failed:  # recorded too, as the strategies have changed state
                return Iteration(merge=None, tasks=(), failed=failed.reason, iteration=iteration, version=version)
        described = Merge(
            parents=tuple(self._mirror.candidate_id(number) for number in merge.parent_program_ids),
            texts=merge.candidate,
            batch=tuple(self._val.names(merge.subsample_indices or [])),
        )
        return Iteration(merge=described, tasks=(), iteration=iteration, version=version)

    def _ask_stoppers(self) -> bool:
        """Whether a stopper says stop. As in gepa's composite, those after the first that does are not asked."""
        return any(stopper(self._mirror.state) for stopper in self._strategies.stoppers)

    def _sample(self, *, told: bool) -> tuple[Rewrite, ...]:
        strategies = self._strategies
        with self._failures.of("candidate_selection_strategy, batch_sampler or sampling_strategy", told=told):
            tasks = strategies.sampling.sample_tasks(
                self._mirror.state, strategies.candidates, strategies.batches, self._ids
            )
        batches = [tuple(self._train.names(task.minibatch_ids)) for task in tasks]
        return tuple(
            Rewrite(parent=self._mirror.candidate_id(task.parent_idx), batch=batch)
            for task, batch in zip(tasks, batches, strict=True)
        )

    def _merge(self, merge: Merge, inputs: list[object], iteration: int, version: int, context: StageContext) -> Emit:
        parents = [context.pool[name] for name in merge.parents]
        batch = merge.batch
        artifact = parents[0].artifact.replace(**merge.texts)
        context.begin(Cost(proposals=1))
        candidate = context.propose(artifact, parents=parents, operator="merge")
        better = max(parents, key=lambda parent: sum(parent.scores[name] for name in batch))
        self._mirror.tell(
            "on_evaluation_start",
            iteration=iteration,
            candidate_idx=None,
            batch_size=len(batch),
            capture_traces=False,
            parent_ids=[self._mirror.number(parent.id) for parent in parents],
            inputs=inputs,
            is_seed_candidate=False,
        )
        proposed = Proposed(candidate, batch, tuple(better.scores[name] for name in batch), split="val")
        return Emit(proposed, to="screen", version=version, derives=candidate.parents)

    def _announce(self, selected: Selected, inputs: list[object], iteration: int) -> None:
        mirror, parent = self._mirror, selected.parent
        number, state = mirror.number(parent.id), mirror.state
        mirror.tell(
            "on_candidate_selected",
            iteration=iteration,
            candidate_idx=number,
            candidate=dict(parent.artifact),
            score=state.program_full_scores_val_set[number],
        )
        ids = [self._train.data_id(name) for name in selected.batch]
        mirror.tell("on_minibatch_sampled", iteration=iteration, minibatch_ids=ids, trainset_size=len(self._ids))
        mirror.tell(
            "on_evaluation_start",
            iteration=iteration,
            candidate_idx=number,
            batch_size=len(ids),
            capture_traces=True,
            parent_ids=[each for each in state.parent_program_for_candidate[number] if each is not None],
            inputs=inputs,
            is_seed_candidate=number == 0,
        )
