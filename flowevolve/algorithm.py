"""What an algorithm is: archives over the pool, a graph of stages, and what happens before and after the stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, cast

from pydantic import BaseModel

from flowevolve.artifact import Artifact
from flowevolve.budget import Cost
from flowevolve.context import PoolReader, StageContext, UpdateContext
from flowevolve.core.policies import BatchSize, NoRacing, Racing, Speculation
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.errors import InputError
from flowevolve.events import Event
from flowevolve.item import Item
from flowevolve.llm.types import JSON
from flowevolve.pool import DEFAULT_POOL, Candidate, Update
from flowevolve.section import Section
from flowevolve.stage import NO_EMISSIONS, Emit, Graph, Stage, StageFunction
from flowevolve.tasks.base import Task


@dataclass(frozen=True, slots=True)
class Workers:
    """A stage's workers at the start, and the bounds an allocation policy keeps to."""

    start: int
    least: int = 1
    most: int = 32


@dataclass(frozen=True, slots=True)
class StageWorkers:
    """The workers of an algorithm's stages, by name."""

    by_stage: Mapping[str, Workers]

    def stage(self, name: str, run: StageFunction, *to: str, capacity: int = 64, repair_to: str | None = None) -> Stage:
        """A stage with its workers; ``to`` are its successors, the default one first."""
        workers = self.by_stage[name]
        bounds = (workers.least, workers.most)
        return Stage(name, run, to, workers.start, capacity, bounds=bounds, repair_to=repair_to)


@dataclass(frozen=True, slots=True)
class WorkersWanted:
    """What a user said of a stage's workers; None where nothing."""

    start: int | None = None
    least: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Tuning:
    """How a run is to go about an algorithm, as far as the user said; of stages by their names."""

    workers: Mapping[str, WorkersWanted] = field(default_factory=dict)
    speculation: Speculation = field(default_factory=Speculation)
    racing: Racing = field(default_factory=NoRacing)
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    """For programs that the algorithm itself runs; those of task ``program`` are the task's."""

    def workers_of(self, defaults: Mapping[str, Workers]) -> StageWorkers:
        """The workers of every stage that can be given some, bounds widened to hold a start the user chose.

        Raises:
            InputError: if the user named another stage, or a start outside bounds of their own.
        """
        unknown = sorted(set(self.workers) - set(defaults))
        if unknown:
            raise InputError(f"stages {unknown} can't be given workers; there are {sorted(defaults)}")
        return StageWorkers(
            {
                name: _merged(name, self.workers.get(name, WorkersWanted()), default)
                for name, default in defaults.items()
            }
        )

    def check_no_speculation(self, algorithm: str) -> None:
        """Raises:
        InputError: if the user asked for speculation or racing, of which this algorithm has none.
        """
        if self.speculation.alpha:
            raise InputError(f"speculation.alpha: algorithm {algorithm} has no stage that can speculate")
        for setting, asked in (("hold", self.speculation.hold), ("reorder", self.speculation.reorder)):
            if asked:
                raise InputError(f"speculation.{setting}: algorithm {algorithm} has no stage that can speculate")
        if not isinstance(self.racing, NoRacing):
            raise InputError(
                f'racing.policy: algorithm {algorithm} has no evaluation that can be stopped; set it to "off"'
            )


def _merged(stage: str, wanted: WorkersWanted, default: Workers) -> Workers:
    start = wanted.start
    if start is None:
        start = max(wanted.least or 1, min(wanted.most or default.start, default.start))
    least = min(default.least, start) if wanted.least is None else wanted.least
    most = max(default.most, start) if wanted.most is None else wanted.most
    if not 1 <= least <= start <= most:
        raise InputError(f"stages.{stage}: {start} workers, but at least {least} and at most {most}: widen the bounds")
    return Workers(start, least, most)


def check_components(candidate: Candidate, seed: Artifact) -> Candidate:
    """A candidate from outside that has the task's components.

    Raises:
        InputError: if it has others.
    """
    if set(candidate.artifact) != set(seed):
        raise InputError(f"inject: the artifact has components {sorted(candidate.artifact)}, not {sorted(seed)}")
    return candidate


class Archive(Protocol):
    """The algorithm's view of the pool. A pure function of the log: nothing but `apply` changes it."""

    def apply(self, update: Update) -> None:
        """Take in the next update. Called once for every commit, in order."""
        ...


class Algorithm:
    """Base of algorithms: subclass, name it, give it archives and a graph.

    ``config_type`` is the model its settings are checked against before `make` gets them, by default one without any;
    ``roles`` are the LLM roles it calls, beside those that `named_roles` finds in its settings; ``staleness`` names the
    policy that a run without another goes by. ``init`` yields emissions into the graph before the stream starts
    (usually the seed, to be evaluated); when they have drained, ``fit`` may commit what was learnt from them.
    ``finish`` may emit once more when everything has drained or was cut off; the pool may be empty then. An algorithm
    that is an async context manager is entered for the time of its run, as a task is: what it holds open, such as a
    global memory, it has from there.
    """

    name: ClassVar[str]
    config_type: ClassVar[type[BaseModel]] = Section
    roles: ClassVar[Sequence[str]] = ("task", "reflection")
    staleness: ClassVar[str] = "guarded"
    pools: Sequence[str] = (DEFAULT_POOL,)
    archives: Sequence[Archive] = ()

    @classmethod
    def make(cls, task: Task, config: BaseModel, tuning: Tuning) -> Algorithm:
        """Construct it from a run's configuration: its own settings, checked, and how to run it.

        By default these are what its constructor is called with.

        Raises:
            InputError: if the task does not suit it, or ``tuning`` asks for what it does not have.
        """
        return cast("Callable[[Task, BaseModel, Tuning], Algorithm]", cls)(task, config, tuning)

    @classmethod
    def named_roles(cls, config: BaseModel) -> Sequence[str]:
        """The LLM roles whose names its settings choose; those in ``roles`` may be among them."""
        return ()

    def graph(self) -> Graph:
        raise NotImplementedError(f"{type(self).__name__} needs a graph()")

    def best(self) -> Candidate | None:
        """The best confirmed candidate so far."""
        raise NotImplementedError(f"{type(self).__name__} needs a best()")

    def frontier(self) -> Sequence[Candidate]:
        """What the pool has to show: candidates of which none is better in every respect. By default the best one."""
        best = self.best()
        return () if best is None else (best,)

    def welcome(self, candidate: Candidate) -> Emit:
        """Where a candidate from outside goes (`flowevolve.Engine.inject`), naming the stage: to be evaluated, mostly.

        Raises:
            InputError: if the algorithm takes none, or not this one.
        """
        raise InputError(f"algorithm {self.name!r} takes no candidates from outside: it has no welcome()")

    def estimate(self, trigger: str | None = None) -> Cost:
        """What one flow, ordinary or of this trigger, is expected to spend at least; reserved when it is admitted.

        The trigger is ``inject`` for a candidate from outside.
        """
        return Cost(proposals=1)

    def finishing(self, part: Callable[[Cost], float]) -> Cost:
        """What `finish` is expected to spend: while flows are admitted, that much of the budget is kept for it.

        ``part`` says what share a cost is of the limit of which it is the largest share.
        """
        return Cost()

    def step_width(self) -> BatchSize | None:
        """The policy for how many flows a step of the synchronous form opens; None: as many as the user says."""
        return None

    def gap(self, item: Item[object], pool: PoolReader) -> int:
        """How many changes of the pool an item has missed that matter to it: by default, all commits.

        Asked whenever an item is taken, but for tickets; about an item sent to repair, as it was before.
        """
        return pool.version - item.version

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        """Emissions to start from, each naming its stage."""
        for emission in NO_EMISSIONS:
            yield emission

    async def fit(self, context: UpdateContext) -> None:
        """Learn from what init produced. An `LLMError` that it raises ends the run."""

    def recall(self, event: Event) -> None:
        """Rebuild what stages keep beside the log: told of every event of an interrupted run, oldest first, with the
        archives as they were then.
        """

    def flow_ended(self, flow: int) -> None:
        """The flow of this number is over, whatever came of it. `recall` is told of its event, ``flow.close``."""

    def state(self) -> Mapping[str, JSON] | None:
        """Plain data that can't be told from the log, such as what a user's own object remembers; None: there is none.

        Asked after every commit and when the run stops; written where it has changed.
        """
        return None

    def restore(self, state: Mapping[str, JSON]) -> None:
        """Take back what `state` last returned in a run that was interrupted, after all of `recall`."""

    async def finish(self, context: StageContext) -> AsyncGenerator[Emit]:
        """Emissions to end with, each naming its stage."""
        for emission in NO_EMISSIONS:
            yield emission
