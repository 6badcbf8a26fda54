"""What can happen in a run: one frozen dataclass for each kind of event. An algorithm's own kinds are an `OwnEvent`.

docs/reference/events.md says when each kind is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from flowevolve.core.acts import Act
from flowevolve.core.artifact import Artifact, ArtifactKind
from flowevolve.core.budget import NOTHING, Cost
from flowevolve.core.event_body import EventBody, Number, Table, Text
from flowevolve.core.item_ids import ItemId
from flowevolve.core.logged_changes import LoggedChange, read_change
from flowevolve.core.pool import Candidate, Change
from flowevolve.core.score_trust import TrustKind

Outcome = Literal["consumed", "discarded"]
"""How the work on an item ended."""

# The run


@dataclass(frozen=True)
class RunStarted(EventBody, kind="run.start"):
    """What the run evolves. The fields of the task are left out if the engine is used without one."""

    algorithm: str = ""
    stages: tuple[str, ...] = ()
    task: str | None = None
    examples: int | None = None
    digest: str | None = None
    given: tuple[str, ...] | None = None
    digests: Mapping[Text, Text] | None = None
    score_trust: TrustKind | None = None
    shared_because: Text | None = None
    measured_on: Text | None = None
    """The class of machines that programs are measured on, where a problem measures them."""


@dataclass(frozen=True)
class RunResumed(EventBody, kind="run.resumed"):
    version: int
    best: str | None
    best_score: Number | None
    proposals: int
    accepted: int
    flows: int
    items: int
    replies: int
    unchanged: int = 0
    spent: Cost = NOTHING
    """What the run had spent of everything that a budget can limit; nothing in a journal of an earlier version."""


@dataclass(frozen=True)
class RunStopping(EventBody, kind="run.stopping"):
    reason: Text


@dataclass(frozen=True)
class RunFailed(EventBody, kind="run.failed"):
    error: Text


@dataclass(frozen=True)
class RunFruitless(EventBody, kind="run.fruitless"):
    """None of the first flows produced anything. ``reasons`` says how many of them ended for each reason."""

    reasons: Mapping[Text, int]


@dataclass(frozen=True)
class DrainEnded(EventBody, kind="run.drain_ended"):
    open_flows: int


@dataclass(frozen=True)
class RunPaused(EventBody, kind="run.paused"):
    items: bool


@dataclass(frozen=True)
class RunUnpaused(EventBody, kind="run.unpaused"):
    """The pause is over."""


@dataclass(frozen=True)
class RunSteered(EventBody, kind="run.steered"):
    """Somebody who watches the run acted on it. ``refused`` says why the act was refused; None if it was done."""

    by: Text
    act: Act
    refused: Text | None


@dataclass(frozen=True)
class RunStopped(EventBody, kind="run.stop"):
    reason: Text
    held: int


@dataclass(frozen=True)
class AlgorithmState(EventBody, kind="algorithm.state"):
    state: Table


@dataclass(frozen=True)
class PhaseEnded(EventBody, kind="phase.ended"):
    phase: str
    cost: Cost


@dataclass(frozen=True)
class StepEnded(EventBody, kind="step.ended"):
    flows: int
    seconds: Number


@dataclass(frozen=True)
class WidthChanged(EventBody, kind="width.changed"):
    width: int
    before: int


@dataclass(frozen=True)
class BudgetRefused(EventBody, kind="budget.refused"):
    """Work was not begun because the budget has no room for it; a limit of ``needed`` would be enough."""

    dimension: str
    needed: Number


@dataclass(frozen=True)
class FlowLimitChanged(EventBody, kind="flows.limited"):
    """How many flows may be open from now on, and why."""

    flows: int
    reason: Text


@dataclass(frozen=True)
class AllocationChanged(EventBody, kind="allocation.changed"):
    stage: str
    by: int
    workers: int
    reason: Text


@dataclass(frozen=True)
class TriggerFired(EventBody, kind="trigger.fired"):
    trigger: str
    version: int


# Flows and items


@dataclass(frozen=True)
class FlowOpened(EventBody, kind="flow.open"):
    flow: int
    stage: str
    version: int
    trigger: str | None
    ordinal: int
    phase: bool


@dataclass(frozen=True)
class FlowClosed(EventBody, kind="flow.close"):
    flow: int


@dataclass(frozen=True)
class ItemSent(EventBody, kind="item.sent"):
    item: ItemId
    source: str
    stage: str
    payload: str
    version: int
    derives: tuple[str, ...]
    repairs: int


@dataclass(frozen=True)
class ItemTaken(EventBody, kind="item.taken"):
    item: ItemId
    stage: str
    gap: int
    judged: Literal["continue", "discard", "repair"] | None


@dataclass(frozen=True)
class ItemsGathered(EventBody, kind="items.gathered"):
    stage: str
    items: tuple[ItemId, ...]


@dataclass(frozen=True)
class ItemDone(EventBody, kind="item.done"):
    item: ItemId
    stage: str
    outcome: Outcome
    reason: Text
    seconds: Number
    cost: Cost


@dataclass(frozen=True)
class ItemHeld(EventBody, kind="item.held"):
    item: ItemId
    stage: str


# Candidates and the pool


@dataclass(frozen=True)
class CandidateProposed(EventBody, kind="candidate.proposed"):
    item: ItemId
    candidate: str
    operator: str
    parents: tuple[str, ...]
    born: int
    artifact: str
    kind_of_artifact: ArtifactKind
    components: Mapping[Text, Text]
    attributes: Table
    adopted: bool = False
    """Whether it comes from another run."""

    @classmethod
    def of(cls, candidate: Candidate, item: ItemId, *, adopted: bool = False) -> CandidateProposed:
        """The event of a candidate that is proposed in the work on an item."""
        artifact = candidate.artifact
        return cls(
            item,
            candidate.id,
            candidate.operator,
            candidate.parents,
            candidate.born,
            artifact.id,
            artifact.kind,
            artifact.components,
            candidate.attributes,
            adopted,
        )

    def proposal(self) -> Candidate:
        """The candidate as it was proposed."""
        artifact = Artifact(self.components, self.kind_of_artifact)
        return Candidate(self.candidate, artifact, self.parents, self.operator, self.born, attributes=self.attributes)


@dataclass(frozen=True)
class CandidateRejected(EventBody, kind="candidate.rejected"):
    candidate: str
    item: ItemId
    reason: Text


@dataclass(frozen=True)
class CandidateEnding(EventBody, kind="candidate.ending"):
    candidate: str
    reason: Text


@dataclass(frozen=True)
class PoolCommitted(EventBody, kind="pool.commit"):
    version: int
    item: ItemId
    stage: str | None
    changes: tuple[LoggedChange, ...]
    best: str | None
    best_score: Number | None
    proposals: int | None = None
    """How many proposals had been charged by then, if the best score rose; None in older journals."""

    def read_changes(self, lookup: Callable[[str], Candidate]) -> list[Change]:
        """The changes as the pool has them; ``lookup`` gives a proposed candidate by its id."""
        return [read_change(logged, lookup) for logged in self.changes]


# What the built-in stages report to the engine and to those who watch a run


@dataclass(frozen=True)
class StageEvent(EventBody):
    """An event of a stage at work on an item."""

    stage: str
    item: ItemId
    key: ClassVar[str | None] = None
    """As in `OwnEvent`."""


@dataclass(frozen=True)
class RolloutsSaved(StageEvent, kind="rollouts.saved"):
    rollouts: int


@dataclass(frozen=True)
class CandidateValidated(StageEvent, kind="candidate.validated"):
    candidate: str
    accepted: bool


@dataclass(frozen=True)
class EvaluationStopped(StageEvent, kind="evaluation.stopped"):
    candidate: str
    reason: Text
    finished: int
    saved: int


@dataclass(frozen=True)
class RepairJudged(StageEvent, kind="repair.judged"):
    candidate: str
    parent: str
    head: str
    gap: int
    verdict: str
    reason: Text
    patch: Mapping[Text, Text]


@dataclass(frozen=True)
class RepairUnparsable(StageEvent, kind="repair.unparsable"):
    candidate: str
    gap: int
    error: Text


@dataclass(frozen=True)
class ReplyUnparsable(StageEvent, kind="reply.unparsable"):
    """``again`` says whether the model is asked once more. Journals of earlier versions lack some of the fields."""

    error: Text
    reason: str = ""
    role: str = ""
    agent: str = ""
    candidate: str | None = None
    component: Text | None = None
    example: Text = ""
    again: bool = False


@dataclass(frozen=True)
class ReplyPartlyRead(StageEvent, kind="reply.partly_read"):
    """Parts of a reply were left out, each for one of the ``reasons``."""

    role: str
    agent: str
    candidate: str | None
    reasons: tuple[str, ...]
    errors: tuple[Text, ...]
    example: Text


@dataclass(frozen=True)
class ProgramNotNew(StageEvent, kind="program.not_new"):
    """A program was turned down before it was run. ``again`` says whether another one is asked for."""

    by: Literal["text", "embedding", "judge"]
    agent: str
    like: str
    similarity: Number
    reason: Text
    again: bool = False
