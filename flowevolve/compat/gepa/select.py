"""The entry stage: what gepa does at the start of an iteration, with gepa's or the user's own strategies."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from gepa.proposer.reflective_mutation.base import CandidateSelector
from gepa.strategies.batch_sampler import BatchSampler
from gepa.strategies.proposal_sampling import SamplingStrategy
from gepa.utils import StopperProtocol

from flowevolve.algorithms.gepa.config import GEPAConfig
from flowevolve.algorithms.gepa.select import MergeSchedule, Select
from flowevolve.archives.pareto import ParetoArchive
from flowevolve.compat.gepa.data import AnyId, Examples, IdsOnly
from flowevolve.compat.gepa.mirror import Mirror
from flowevolve.context import StageContext
from flowevolve.events import Event
from flowevolve.item import Item, flow_of
from flowevolve.llm.types import JSON
from flowevolve.policies.selection import AllComponents, Pareto
from flowevolve.stage import Emit, Exhausted
from flowevolve.stages.payloads import Selected


@dataclass(frozen=True, slots=True)
class Strategies:
    """What decides how an iteration begins."""

    candidates: CandidateSelector
    batches: BatchSampler[AnyId, object]
    sampling: SamplingStrategy[AnyId, object]
    stoppers: Sequence[StopperProtocol]


class AdapterSelect(Select):
    """Asks the stoppers and the strategies once an iteration, in gepa's order, on gepa's state.

    A run that goes on asks them again for every iteration there was, so that generators and counters are where they
    were. Merges are the algorithm's own.
    """

    def __init__(
        self,
        archive: ParetoArchive,
        schedule: MergeSchedule,
        config: GEPAConfig,
        strategies: Strategies,
        train: Examples,
        mirror: Mirror,
    ) -> None:
        super().__init__(archive, schedule, config, Pareto(), AllComponents(), ())
        self._strategies = strategies
        self._train = train
        self._mirror = mirror
        self._stopped = False
        self._ids = IdsOnly(train.loader)

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        chosen = context.decide("gepa.selected", lambda: self._choose(context))
        iteration = cast(int, chosen["iteration"])
        self._mirror.begin(item.flow, iteration)
        if chosen["ancestor"]:
            yield self._merged(chosen, context)
            return
        version = cast(int, chosen["version"])
        for task in cast("list[dict[str, JSON]]", chosen["tasks"]):
            parent = context.pool[str(task["parent"])]
            selected = Selected(parent, (), tuple(cast("list[str]", task["batch"])))
            self._announce(selected, iteration)
            yield Emit(selected, to="generate", version=version, derives=(parent.id,))

    def recall(self, event: Event) -> None:
        if event.kind == "gepa.selected":
            self._ask_stoppers()
            self._begin()
            if not event.data["ancestor"]:
                self._sample()
            self._note(event.data)
            self._mirror.begin(flow_of(str(event.data["item"])), cast(int, event.data["iteration"]))

    def _choose(self, context: StageContext) -> Mapping[str, JSON]:
        if self._stopped or self._ask_stoppers():
            self._stopped = True
            raise Exhausted
        state = self._mirror.state
        self._mirror.tell("on_state_saved", iteration=self._mirror.iteration, run_dir=None)
        self._begin()
        self._mirror.tell(
            "on_iteration_start", iteration=self._mirror.iteration, state=state, trainset_loader=self._train.loader
        )
        return {**super()._choose(context), "iteration": self._mirror.iteration}

    def _ask_stoppers(self) -> bool:
        """As gepa's composite: those behind the first that says stop are not asked."""
        return any(stopper(self._mirror.state) for stopper in self._strategies.stoppers)

    def _begin(self) -> None:
        state = self._mirror.state
        state.i += 1
        state.full_program_trace.append({"i": state.i})

    def _choose_rewrite(self, context: StageContext) -> dict[str, JSON]:
        tasks = self._sample()
        return {
            "parents": [str(task["parent"]) for task in tasks],
            "ancestor": None,
            "looked_for_merge": self._schedule.due,
            "tasks": [dict(task) for task in tasks],
            "version": context.pool.version,
        }

    def _sample(self) -> list[dict[str, JSON]]:
        strategies = self._strategies
        tasks = strategies.sampling.sample_tasks(
            self._mirror.state, strategies.candidates, strategies.batches, self._ids
        )
        batches = [list[JSON](self._train.names(task.minibatch_ids)) for task in tasks]
        return [
            {"parent": self._mirror.candidate_id(task.parent_idx), "batch": batch}
            for task, batch in zip(tasks, batches, strict=True)
        ]

    def _note(self, chosen: Mapping[str, JSON]) -> None:
        if chosen["ancestor"]:
            super()._note(chosen)
        elif chosen["looked_for_merge"]:
            self._schedule.due = False

    def _announce(self, selected: Selected, iteration: int) -> None:
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
            inputs=self._train.fetch(selected.batch) if mirror.listens("on_evaluation_start") else [],
            is_seed_candidate=number == 0,
        )
