"""GEPA over a user's adapter: our own algorithm, with the stages that an adapter and gepa's strategies need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from gepa.proposer.reflective_mutation.base import ReflectionComponentSelector
from gepa.strategies.acceptance import AcceptanceCriterion
from gepa.strategies.eval_policy import EvaluationPolicy

from flowevolve._util.errors import EngineError, InputError
from flowevolve.algorithms.gepa import GEPA, GEPAConfig
from flowevolve.compat.gepa.data import AnyId, Examples
from flowevolve.compat.gepa.failures import Failures, Forgiving
from flowevolve.compat.gepa.mirror import Mirror
from flowevolve.compat.gepa.records import AdapterState, ChosenComponents, Screened, Validated
from flowevolve.compat.gepa.reflection import Writer
from flowevolve.compat.gepa.rollouts import AdapterRollouts
from flowevolve.compat.gepa.select import AdapterSelect, Merger, Strategies
from flowevolve.compat.gepa.stages import AdapterCommit, AdapterEvaluate, AdapterPropose, AdapterScreen
from flowevolve.compat.gepa.threads import AdapterThreads
from flowevolve.core.algorithm import Tuning
from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import Cost
from flowevolve.core.event_body import OwnEvent
from flowevolve.core.event_kinds import CandidateRejected, FlowClosed, ItemDone
from flowevolve.core.events import Event
from flowevolve.core.graph import Graph, Stage, committing
from flowevolve.core.policies import NoRacing, Waiting
from flowevolve.core.pool import Candidate
from flowevolve.core.task import ChatModel, Dataset, Example, Rollout
from flowevolve.policies.acceptance import StrictImprovement
from flowevolve.policies.departure import Balance
from flowevolve.policies.flows import AutoFlows
from flowevolve.policies.racing import Confidence
from flowevolve.stages.generate import Generate
from flowevolve.stages.group_commit import GroupCommit, Head, Way
from flowevolve.stages.rebase import Rebase
from flowevolve.stages.repair import Repair


@dataclass(frozen=True)
class GroupsOrEach:
    """Edits to be merged leave when ``groups`` says so. Single edits leave as soon as the one before is validated."""

    head: Head
    groups: Balance

    def leaves(self, waiting: Waiting) -> bool:
        return not waiting.downstream if self.head.way() == "each" else self.groups.leaves(waiting)


class AdapterTask:
    """The data of an adapter as a task that has only ids. Its examples are run in batches, by `AdapterRollouts`."""

    description: ClassVar[str] = "a gepa adapter"

    def __init__(
        self, name: str, seed: Artifact, data: Dataset, rows: Mapping[str, str], settings: Mapping[str, str]
    ) -> None:
        self.name = name
        self.data = data
        self._seed = seed
        self._rows = rows
        self._settings = settings

    def seed(self) -> Artifact:
        return self._seed

    def digests(self) -> Mapping[str, str]:
        """Digests of the rows, by the arguments that they came in."""
        return self._rows

    def adjustable(self) -> Mapping[str, str]:
        """Digests of the user's code, and of the arguments that may change when the run is resumed."""
        return self._settings

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        raise EngineError("an adapter runs batches, not single examples")


WAYS: Mapping[Way, float] = {"lines": 1.0, "model": 1.0, "each": 1.0}
"""Merging line by line comes first: it costs nothing, and it is unknown how well a user's own model merges edits."""
LEAST_MERGING = 0.3
"""If groups succeed less often than this, single edits are validated, as in gepa."""
FLOWS = AutoFlows(rounds=2.0, scale=1.2, narrows=True)
"""A fifth more flows than elsewhere, because a flow stays open while its edit waits for others, and fewer if edits
overtake each other. A chain of two rounds is enough for the last calls: groups need fewer validations than single
edits.
"""
LOSING = 0.2
"""The accepted risk of error when a group that is losing after the first half of its validation is stopped. It is not
stopped earlier, because calls of an adapter can't be cancelled once begun.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the user's arguments were turned into."""

    adapter: AdapterThreads
    train: Examples
    val: Examples
    mirror: Mirror
    strategies: Strategies
    merger: Merger | None
    components: ReflectionComponentSelector
    criterion: AcceptanceCriterion
    policy: EvaluationPolicy[AnyId, object]
    writer: Writer
    chunk: int | None
    failures: Failures
    skip_perfect: bool
    reserved: int
    """The metric calls that are set aside for a new iteration, if ``max_metric_calls`` is given."""
    as_gepa: bool
    """Whether each edit is validated as it is. Else edits are merged, and the groups validated one at a time."""
    asks: bool
    """Whether there is a reflection model that can be asked to merge edits."""


class AdapterGEPA(GEPA):
    """Raises:
    InputError: as `GEPA`.
    """

    def __init__(self, task: AdapterTask, parts: Parts, tuning: Tuning) -> None:
        super().__init__(task, GEPAConfig(), tuning)
        self._parts = parts
        if not parts.as_gepa:
            self.staleness = "full"  # edits are rebased before they are validated, so none is too old
        self._iterations = AdapterSelect(
            parts.strategies, parts.merger, parts.train, parts.val, parts.mirror, parts.failures, parts.adapter
        )
        self.flow_bound = None if parts.as_gepa else FLOWS
        ways = {way: rate for way, rate in WAYS.items() if parts.asks or way != "model"}
        self._merged_onto = Head(self._archive.best, ways, optimistic=False, least=LEAST_MERGING)
        self.archives = (
            self._archive, parts.mirror, self._merged_onto, *([] if parts.merger is None else [parts.merger])
        )  # fmt: skip

    def check_veto(self, candidate: Candidate) -> None:
        raise InputError("veto: this run keeps the state of the package gepa, from which no candidate can be taken out")

    def estimate(self, trigger: str | None = None) -> Cost:
        return Cost(proposals=1, rollouts=self._parts.reserved)

    def estimate_finish(self, share_of: Callable[[Cost], float]) -> Cost:
        """If edits are validated as in gepa, nothing is kept: the run goes on to the first call that has no room."""
        return Cost() if self._parts.as_gepa else super().estimate_finish(share_of)

    def graph(self) -> Graph:
        parts = self._parts
        mirror, val_ids = parts.mirror, tuple(example.id for example in self.task.data.val)
        rollouts = AdapterRollouts(
            self.task,
            parts.adapter,
            {"train": parts.train, "val": parts.val},
            mirror,
            chunk=parts.chunk,
            raising=parts.failures.raising,
        )
        components = parts.failures.of("module_selector")(parts.components)
        propose = AdapterPropose(
            parts.adapter,
            components,
            parts.writer,
            parts.train,
            mirror,
            skip_perfect=parts.skip_perfect,
            drops_overtaken=not parts.as_gepa,
        )
        criterion = Forgiving(parts.criterion, parts.failures)
        screen = AdapterScreen(rollouts, StrictImprovement(), criterion, parts.train, mirror)
        evaluate = AdapterEvaluate(
            rollouts,
            val_ids,
            self._order_of_validation,
            self._archive.standing,
            racing=NoRacing() if parts.as_gepa else Confidence(LOSING, least=-(-len(val_ids) // 2)),
            mirror=mirror,
            parts=1 if parts.as_gepa else 2,
        )
        grouping, validating = self._validating(evaluate, rollouts)
        after_screen = (*(stage.name for stage in grouping), "evaluate")
        commit = AdapterCommit(
            self._archive.standing, mirror=mirror, policy=parts.policy, val=parts.val, adapter=parts.adapter
        )
        return Graph(
            (
                Stage("select", self._iterations, ("generate", "screen")),
                self._workers.stage("generate", Generate(rollouts, skip_perfect=False), "propose", capacity=1),
                self._workers.stage("propose", propose, "screen"),
                self._workers.stage("repair", Repair(self._archive.best), "screen"),
                self._workers.stage("screen", screen, *after_screen, repair_to="screen"),
                *grouping,
                validating,
                committing("update", commit),
            ),
            entry="select",
            repair="repair",
            validation=None if parts.as_gepa else after_screen[0],
        )

    def _validating(self, evaluate: AdapterEvaluate, rollouts: AdapterRollouts) -> tuple[tuple[Stage, ...], Stage]:
        """The stages between an edit that passed its minibatch and its validation scores."""
        head = self._merged_onto
        if self._parts.as_gepa:
            return (), self._workers.stage("evaluate", evaluate, "update", repair_to="screen")
        rebase = Rebase(self._archive.best, head.was_best, evaluate, rollouts, price=len(self.task.data.val))
        validating = Stage("evaluate", rebase, ("update",), workers=1)
        commit = GroupCommit(head, asks=self._parts.asks, least=2)
        departs = GroupsOrEach(head, Balance(self.config.balance, after=1))
        return (Stage("group", commit, ("evaluate",), gather=32, departs=departs),), validating

    def _order_of_validation(self) -> Sequence[str]:
        """The examples that gepa's policy chooses; before there is a state, those it chooses for the seed, or all."""
        policy, mirror, val = self._parts.policy, self._parts.mirror, self._parts.val
        if mirror.begun:
            with self._parts.failures.of("val_evaluation_policy"):
                return val.names(policy.get_eval_batch(val.loader, mirror.state))
        for_seed = getattr(policy, "get_seed_eval_batch", None)
        return val.names(val.loader.all_ids() if for_seed is None else for_seed(val.loader))

    def apply_event(self, event: Event) -> None:
        """Update only the head: gepa's state and the user's strategies change themselves as they are used."""
        self._merged_onto.apply_event(event)

    def replay_event(self, event: Event) -> None:
        self.apply_event(event)
        self._iterations.replay_event(event)
        mirror = self._parts.mirror
        match event.body:
            case OwnEvent(kind=Validated.kind, data=data):
                mirror.note(Validated.from_json(data))
            case OwnEvent(kind=Screened.kind, data=data):
                screened = Screened.from_json(data)
                if screened.accepted:
                    mirror.passed(screened.candidate, screened.scores)
            case CandidateRejected(candidate):
                mirror.forget(candidate)
            case OwnEvent(kind=ChosenComponents.kind, data=data):
                chosen = ChosenComponents.from_json(data)
                cursors = mirror.state.named_predictor_id_to_update_next_for_program_candidate
                cursors[mirror.number(chosen.candidate)] = chosen.cursor
            case OwnEvent(kind=AdapterState.kind, data=data):
                state = AdapterState.from_json(data).state
                mirror.state.adapter_state = dict(state)
                self._parts.adapter.restore(state)
            case ItemDone(cost=cost):
                mirror.recall(cost.rollouts)
            case FlowClosed(flow):
                mirror.end(flow)
            case _:
                pass
