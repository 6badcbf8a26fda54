"""The contracts between the engine and the policies: what a policy is told, and what it answers.

Policies are pure: facts go in, decisions come out, and time is one of the facts. The built-in policies are in
`flowevolve.policies`; packages add others through entry points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol

from flowevolve._util.errors import InputError
from flowevolve._util.values import value
from flowevolve.core.budget import Cost
from flowevolve.core.context import PoolReader
from flowevolve.core.item import Item


@dataclass(frozen=True, slots=True)
class Batch:
    """How many items or flows were worked on together, and how many seconds that took."""

    size: int
    seconds: float


class BatchSize(Protocol):
    """Decides the size of each gathering or step. It depends on nothing but ``past``, so that runs can be resumed."""

    def next(self, past: Sequence[Batch]) -> int:
        """How much to work on together next, at least 1. ``past`` holds the last `PAST` batches, oldest first."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The facts about the items that wait at a gathering stage."""

    items: int
    """How many wait."""
    upstream: int
    """How many items are under way at earlier stages, and could still join them."""
    downstream: int
    """How many items have left this stage's queue but have not ended yet, here or at later stages."""
    spent: Cost
    """What earlier stages have spent since the last items left together."""
    price: Cost
    """What the next stage has spent on one of its items, on average; zero until an item has ended there."""
    validated: int
    """How many items have ended at the next stage since the run began."""


class Departure(Protocol):
    """Decides when the items that wait at a gathering stage leave together. It is asked whenever an item ends."""

    def leaves(self, waiting: Waiting) -> bool: ...


Aim = Literal["score", "balanced", "time"]
"""What the number of flows is chosen for, if the run chooses it."""


@dataclass(frozen=True, slots=True)
class FlowFacts:
    """What a bound on open flows can decide by. Costs are means, and zero as long as nothing is known."""

    edit: Cost
    """What a flow spends before its edit is validated, if edits are validated one at a time or in groups."""
    validation: Cost
    """What that validation costs."""
    affordable: float | None
    """How many more flows the budget pays for; None if it limits nothing that a flow is known to spend."""
    call_limit: int
    """How many calls may be in flight at present."""
    gathered: int
    """The largest number of items that a stage waits for before it begins; 1 if no stage waits."""
    validated: int
    """How many validations have ended since the run began, including that of the seed."""
    room: float | None = None
    """For how many flows at a time the task's machines can run the rollouts at present; None if it uses no machines."""
    overtaken: float = 0.0
    """The share of recent edits that were dropped because another edit, made at the same time, was there first."""
    accepted: float = 1.0
    """The share of recent validations that accepted their candidate; 1 until the first of them has ended."""


@dataclass(frozen=True, slots=True)
class FlowLimit:
    """How many flows may be open, and why."""

    flows: int
    reason: str


class FlowBound(Protocol):
    """Decides how many flows are open at a time. It is asked before each flow is opened.

    It depends on nothing but the facts and ``current``, so that runs can be resumed.
    """

    def limit(self, facts: FlowFacts, current: FlowLimit | None) -> FlowLimit:
        """The new limit, or ``current`` to leave it unchanged. ``current`` is None at the first call."""


PAST = 256
"""The most batches that a `BatchSize` is given."""


@dataclass(frozen=True, slots=True)
class Speculation:
    """When stages release a candidate before all its requests are finished.

    ``alpha`` maps a stage's name to the fraction of its requests, in (0, 1], after which it releases what it has. A
    stage that is not named waits for all of them. With ``hold``, an evaluation starts the remaining requests only when
    the first ones have ended and did not stop it: this costs fewer tokens, and verdicts come later. With ``reorder``,
    validation examples that were passed ``window`` times in a row move out of the prefix that is speculated on.

    Raises:
        InputError: if an alpha is not in (0, 1] or the window is below 1.
    """

    alpha: Mapping[str, float] = field(default_factory=dict)
    hold: bool = False
    reorder: bool = False
    window: int = 3

    def __post_init__(self) -> None:
        for stage, alpha in self.alpha.items():
            if not 0 < alpha <= 1:
                raise InputError(f"speculation.alpha.{stage} is {alpha}, but has to be above 0 and at most 1")
        if self.window < 1:
            raise InputError(f"speculation.window is {self.window}, but has to be at least 1")

    def quorum(self, stage: str, requests: int) -> int:
        """The number of finished requests after which a stage releases what it has: all, if it does not speculate."""
        return min(requests, math.ceil(round(self.alpha.get(stage, 1.0) * requests, 9)))

    def active(self, stage: str) -> bool:
        return self.alpha.get(stage, 1.0) < 1


@dataclass(frozen=True, slots=True)
class Standing:
    """What a validated candidate is measured against: scores by validation id."""

    incumbent: Mapping[str, float]
    """The scores of the best confirmed candidate."""
    front: Mapping[str, float]
    """The highest score that any confirmed candidate has on each example."""


class ValidationAcceptance(Protocol):
    """Decides whether a validated candidate enters the pool, by its scores on all examples or on some.

    A higher score on any example must never turn a yes into a no.
    """

    def admits(self, scores: Mapping[str, float], standing: Standing) -> bool: ...


@value
class Race:
    """The facts of an evaluation under way."""

    order: Sequence[str]
    """The ids of all its examples, in the order in which they are run."""
    prefix: int
    """The length of the speculative prefix of ``order``: all of it, if the stage does not speculate."""
    scores: Mapping[str, float]
    """The scores so far, by example id; never those of all examples."""
    standing: Standing
    acceptance: ValidationAcceptance


class Racing(Protocol):
    """Decides whether an evaluation is stopped before its end.

    ``needs_improvement`` says whether it judges only by the mean of a sample of the scores. Then it works only with the
    acceptance ``improvement``, and the order of the examples must not depend on what they are.
    """

    @property
    def needs_improvement(self) -> bool: ...

    def hopeless(self, race: Race) -> str | None:
        """Why the evaluation should stop now, or None."""


@dataclass(frozen=True, slots=True)
class NoRacing:
    """Every evaluation is finished."""

    needs_improvement: ClassVar[bool] = False

    def hopeless(self, race: Race) -> str | None:
        return None


Decision = Literal["continue", "discard", "repair"]


@dataclass(frozen=True, slots=True)
class Staleness:
    """The facts about an item as it is taken from a stage's queue."""

    stage: str
    gap: int
    """How many changes the item has missed, as the algorithm counts them: by default the commits since its version."""
    revoked: bool
    """Whether it derives from a candidate that was revoked."""
    repairable: bool
    """Whether there is anything to repair at this stage."""
    item: Item[object]
    pool: PoolReader


class StalenessPolicy(Protocol):
    """Decides what happens to an item. It is asked each time an item is taken, before any call is spent on it."""

    def decide(self, facts: Staleness) -> Decision: ...


Place = Literal["first", "later", "repair"]


@dataclass(frozen=True, slots=True)
class StageLoad:
    """What one of the stages whose workers can be changed did since the policy was last asked."""

    name: str
    place: Place
    """``first``: its items come straight from the entry stage, so its workers decide how much new work is begun;
    ``repair``: it only gets what went stale.
    """
    workers: int
    least: int
    most: int
    busy: float
    """Workers at work, on average."""
    waiting: float
    """Items in its queue, on average."""
    produced: int
    """Items it handed on."""
    gap: float
    """Mean version gap of the items it took; 0 if it took none."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What a run did since the policy was last asked. Times are in seconds."""

    now: float
    seconds: float
    stages: Sequence[StageLoad]
    """In the order of the stream."""
    open_calls: float
    """Unanswered LLM calls, on average, whether already sent or still waiting to be sent."""
    call_limit: int
    """How many calls may be in flight at present."""


@dataclass(frozen=True, slots=True)
class Resize:
    """One worker more or less for a stage, and why."""

    stage: str
    by: Literal[1, -1]
    reason: str


class Allocation(Protocol):
    @property
    def interval_seconds(self) -> float:
        """How often it wants to be asked."""

    def decide(self, load: Workload) -> Sequence[Resize]:
        """At most one change per stage. Changes beyond a stage's bounds are ignored."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. A stopping policy gets this whenever a flow ends or the pool changes."""

    seconds: float
    spent: Cost
    pool_version: int
    proposals_without_gain: int
    best_score: float | None
    changes: int
    """The number of commits and of flows that have ended, except flows that found nothing to do."""


class StoppingPolicy(Protocol):
    """Says why the run should stop now, or None."""

    def reason(self, progress: Progress) -> str | None: ...
