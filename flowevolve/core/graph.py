"""Stages and graphs: what an algorithm is made of.

A stage is an async generator from one item to any number of emissions, yielded as they become ready. It never blocks
the event loop, keeps no state between items, and changes the pool only if it is the graph's one committing stage.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Protocol

from typing_extensions import TypeVar

from flowevolve._util.errors import EngineError
from flowevolve._util.values import value
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.item import Item
from flowevolve.core.policies import BatchSize, Departure
from flowevolve.core.pool import Update

ContextT_contra = TypeVar("ContextT_contra", bound=StageContext, contravariant=True, default=StageContext)


@value
class Emit:
    """A payload for the next stage.

    ``to`` names that stage; by default it is the first successor. ``version`` is the pool version that the payload was
    made from, and ``derives`` the candidates that it came from. Both are those of the stage's item unless given.
    """

    payload: object
    to: str | None = None
    version: int | None = None
    derives: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Raises: EngineError if one of the last three has a wrong type, with which the journal could not be read."""
        if not (self.to is None or isinstance(self.to, str)):
            raise EngineError(f"Emit: to is {self.to!r:.80}; give the name of a stage")
        if not (self.version is None or isinstance(self.version, int)):
            raise EngineError(f"Emit: version is {self.version!r:.80}; give a number, such as context.pool.version")
        if not (self.derives is None or _are_texts(self.derives)):
            raise EngineError(
                f"Emit: derives is {self.derives!r:.80}; give a tuple of ids of candidates, such as (parent.id,)"
            )


def _are_texts(given: object) -> bool:
    return isinstance(given, tuple) and all(isinstance(each, str) for each in given)


NO_EMISSIONS: tuple[Emit, ...] = ()
"""A stage without emissions loops over this with ``yield``, because an async generator needs a ``yield``."""


class Discard(Exception):  # noqa: N818 - an outcome, not an error
    """Raised in a stage to end this item, with the reason. Put details that vary behind a colon in the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = str(reason)  # with any other type, the journal could not be read


class Exhausted(Exception):  # noqa: N818 - an outcome, not an error
    """Raised in the entry stage: the algorithm has no more work to start."""


class NotYet(Exception):  # noqa: N818 - an outcome, not an error
    """Raised in the entry stage: there is nothing to start now, but a commit or the end of a flow may change that."""


class StageFunction(Protocol[ContextT_contra]):
    """What a stage runs. The payload of a gathering stage's item is `flowevolve.core.item.Gathered`."""

    def __call__(self, item: Item[object], context: ContextT_contra, /) -> AsyncGenerator[Emit]: ...


@dataclass(frozen=True, slots=True)
class _StageSettings(Generic[ContextT_contra]):
    """The settings that both kinds of stages have, whichever context the stage's function needs."""

    name: str
    run: StageFunction[ContextT_contra]
    to: tuple[str, ...] = ()
    """Successors; the first is the default."""
    workers: int = 1
    capacity: int = 64
    """How many items may wait in its queue before producers are held back."""
    gather: int = 1
    """How many items the stage gets together, as one. It gets fewer only when no more can come."""
    gather_by: BatchSize | None = None
    """The policy that decides before each gathering how many items it takes, at most ``gather``."""
    departs: Departure | None = None
    """The policy for when waiting items leave together although they are fewer than ``gather``."""
    gather_key: Callable[[Item[object]], Hashable] | None = None
    """Only items with the same key are gathered, such as those of one parent or one pool version."""
    repair_to: str | None = None
    """The stage where an item that was stale here goes on after its repair; None if there is nothing to repair."""
    bounds: tuple[int, int] | None = None
    """The fewest and the most workers that an allocation policy may give the stage; None: always ``workers``."""
    grows: bool = False
    """Whether it may get more workers than its bounds allow, if the machines that run its rollouts have room."""
    exclusive: bool = False
    """Whether it works on one item at a time in every executor, as for measurements that would disturb each other."""

    @property
    def gathers(self) -> bool:
        """Whether it gets `flowevolve.core.item.Gathered` payloads."""
        return self.gather > 1

    def __post_init__(self) -> None:
        to: object = self.to
        if isinstance(to, str):
            raise EngineError(f"stage {self.name!r}: to is {to!r}; give a tuple of names, such as ({to!r},)")
        for name, number in (("workers", self.workers), ("capacity", self.capacity), ("gather", self.gather)):
            if number < 1:
                raise EngineError(f"stage {self.name!r}: {name} is {number}, but has to be at least 1")
        if not self.gathers and (self.gather_by is not None or self.gather_key is not None or self.departs is not None):
            raise EngineError(f"stage {self.name!r} gathers 1 item at a time: give the most it may gather")
        if self.exclusive and (self.workers != 1 or self.bounds is not None):
            raise EngineError(f"stage {self.name!r} is exclusive: it has one worker and no bounds")
        if self.bounds is not None and not 1 <= self.bounds[0] <= self.workers <= self.bounds[1]:
            raise EngineError(f"stage {self.name!r}: {self.workers} workers, but the bounds are {self.bounds}")


@dataclass(frozen=True, slots=True)
class Stage(_StageSettings[StageContext]):
    """A named step and how it is run."""

    commits: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class CommittingStage(_StageSettings[UpdateContext]):
    """The one stage of a graph that changes the pool: its function gets a context that can commit.

    `committing` makes one from a function that hands nothing on.
    """

    commits: ClassVar[bool] = True


AnyStage = Stage | CommittingStage


def committing(name: str, work: Callable[[Item[object], UpdateContext], Awaitable[None]]) -> CommittingStage:
    """Make the committing stage of a graph from an async function that hands nothing on."""

    async def run(item: Item[object], context: UpdateContext, /) -> AsyncGenerator[Emit]:
        await work(item, context)
        for emission in NO_EMISSIONS:
            yield emission

    return CommittingStage(name, run)


class Trigger(Protocol):
    """Decides when an extra flow is started, from nothing but commits."""

    name: str
    stage: str

    def fires(self, update: Update, improved: bool) -> bool:
        """Whether this commit makes it fire. ``improved`` says whether the best score rose."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Stages in the order of the stream. Edges to a later stage block while its queue is full; edges back never do.

    Raises:
        EngineError: if a name is unknown or used twice, or not exactly one stage commits.
    """

    stages: tuple[AnyStage, ...]
    entry: str
    repair: str | None = None
    triggers: tuple[Trigger, ...] = ()
    validation: str | None = None
    """The stage from which edits are validated one at a time or in groups. The number of open flows is chosen so that
    what they spend before this stage is in balance with what is spent from there on.
    """
    step_width: BatchSize | None = None
    """The policy for how many flows a step opens in lockstep mode; None: as many as the user says."""
    positions: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        positions = {stage.name: position for position, stage in enumerate(self.stages)}
        object.__setattr__(self, "positions", positions)
        if len(positions) < len(self.stages):
            raise EngineError("two stages of the graph have the same name")
        named = [self.entry, *(trigger.stage for trigger in self.triggers)]
        named += [
            name for stage in self.stages for name in (*stage.to, *([stage.repair_to] if stage.repair_to else []))
        ]
        named += [name for name in (self.repair, self.validation) if name is not None]
        for name in named:
            if name not in positions:
                raise EngineError(f"the graph names a stage {name!r} that it does not have; it has {list(positions)}")
        committing = [stage for stage in self.stages if stage.commits]
        if len(committing) != 1 or committing[0].workers != 1:
            raise EngineError("exactly one stage of a graph commits, with one worker")

    def stage(self, name: str) -> AnyStage:
        return self.stages[self.positions[name]]

    def is_back_edge(self, source: str, target: str) -> bool:
        return self.positions[target] <= self.positions[source]
