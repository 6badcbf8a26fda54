"""The base of algorithms: archives over the pool, a graph of stages, and what happens before and after the stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Protocol, runtime_checkable

from pydantic import BaseModel
from typing_extensions import TypeVar

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve._util.registry import did_you_mean
from flowevolve._util.settings import Settings
from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import Cost
from flowevolve.core.context import PoolReader, StageContext, UpdateContext
from flowevolve.core.events import Event
from flowevolve.core.fresh_score import FreshScore
from flowevolve.core.graph import NO_EMISSIONS, Emit, Graph, Stage, StageFunction
from flowevolve.core.item import Item
from flowevolve.core.policies import FlowBound, NoRacing, Racing, Speculation
from flowevolve.core.pool import DEFAULT_POOL, Candidate, Update
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.core.task import OnMachines, Task

ConfigT_co = TypeVar("ConfigT_co", bound=BaseModel, default=BaseModel, covariant=True)

SEE_LOG = "the log of the run, which flowevolve watch DIR shows, says why"
"""What a message ends in if something could not be evaluated and the reason is not at hand."""


@dataclass(frozen=True, slots=True)
class Workers:
    """How many workers a stage has at the start, and the bounds that an allocation policy keeps to."""

    start: int
    least: int = 1
    most: int = 32
    grows: bool = True
    """Whether there may be more than ``most``, if the machines that rollouts run on have room for more. False where a
    user has set the number or the maximum.
    """


@dataclass(frozen=True, slots=True)
class StageWorkers:
    """The workers of an algorithm's stages, by name."""

    by_stage: Mapping[str, Workers]

    def stage(self, name: str, run: StageFunction, *to: str, capacity: int = 64, repair_to: str | None = None) -> Stage:
        """A stage with its workers; ``to`` are its successors, the default one first."""
        workers = self.by_stage[name]
        bounds = (workers.least, workers.most)
        return Stage(name, run, to, workers.start, capacity, bounds=bounds, repair_to=repair_to, grows=workers.grows)


@dataclass(frozen=True, slots=True)
class WorkersWanted:
    """A user's settings for the workers of a stage; None for those that the user left out."""

    start: int | None = None
    least: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Tuning:
    """How a user wants an algorithm to be run. ``workers`` has the settings of stages, by stage name."""

    workers: Mapping[str, WorkersWanted] = field(default_factory=dict)
    speculation: Speculation = field(default_factory=Speculation)
    racing: Racing = field(default_factory=NoRacing)
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    """For programs that the algorithm itself runs. Task ``program`` runs its programs with the task's settings."""
    target_score: float | None = None
    """The run's target score, for algorithms that rank candidates by estimates (`Algorithm.measured_score`)."""

    def workers_of(self, defaults: Mapping[str, Workers]) -> StageWorkers:
        """The workers of every stage of ``defaults``. Default bounds are widened if the user's start is outside them.

        Raises:
            InputError: if the user named another stage, or a start outside the user's own bounds.
        """
        unknown = sorted(set(self.workers) - set(defaults))
        if unknown:
            hint = did_you_mean(unknown[0], sorted(defaults))
            raise InputError(f"stages.{unknown[0]}: there is no such stage that can be given workers; {hint}")
        return StageWorkers(
            {
                name: _merged(name, self.workers.get(name, WorkersWanted()), default)
                for name, default in defaults.items()
            }
        )


def _merged(stage: str, wanted: WorkersWanted, default: Workers) -> Workers:
    start = wanted.start
    if start is None:
        start = max(wanted.least or 1, min(wanted.most or default.start, default.start))
    least = min(default.least, start) if wanted.least is None else wanted.least
    most = max(default.most, start) if wanted.most is None else wanted.most
    if wanted.least is not None and least > most:
        raise InputError(f"stages.{stage}.min_workers is {least}, but has to be at most max_workers, {most}")
    if not 1 <= least <= start <= most:
        raise InputError(
            f"stages.{stage}.workers is {start}, but has to be between min_workers, {least}, and max_workers, {most}"
        )
    return Workers(start, least, most, grows=wanted.start is None and wanted.most is None)


def _check_no_speculation(algorithm: str, wanted: Speculation) -> None:
    for setting, asked in (("alpha", bool(wanted.alpha)), ("hold", wanted.hold), ("reorder", wanted.reorder)):
        if asked:
            raise InputError(
                f"speculation.{setting}: algorithm {algorithm} has no stage that can speculate; leave it out"
            )


def _check_no_racing(algorithm: str, wanted: Racing) -> None:
    if not isinstance(wanted, NoRacing):
        raise InputError(f'racing.policy: algorithm {algorithm} has no evaluation that can be stopped; set it to "off"')


def check_components(candidate: Candidate, seed: Artifact) -> Candidate:
    """Return a candidate from outside, after checking that it has the components of the task's seed.

    Raises:
        InputError: if it has others.
    """
    if set(candidate.artifact) != set(seed):
        raise InputError(wrong_components(candidate.artifact, seed))
    return candidate


def wrong_components(given: Iterable[str], needed: Iterable[str]) -> str:
    """The error message for a candidate from outside that has the components ``given`` instead of those ``needed``."""
    of_given, of_needed = (", ".join(map(repr, sorted(names))) for names in (given, needed))
    return f"inject: the artifact has components {of_given or 'none'}, but needs {of_needed}"


class Archive(Protocol):
    """An algorithm's view of the pool. It is a function of the log: nothing but `apply` changes it."""

    def apply(self, update: Update) -> None:
        """Take in the next update. Called once for every commit, in order."""


@runtime_checkable
class NamesRoles(Protocol):
    """An algorithm's configuration that names further LLM roles, besides those in the algorithm's ``roles``."""

    @property
    def named_roles(self) -> Sequence[str]: ...


@runtime_checkable
class Stateful(Protocol):
    """An algorithm whose state the event log does not contain, such as what a user's own object remembers."""

    def state(self) -> Mapping[str, JSON]:
        """The state as plain data. Called after every commit and when the run stops; written if it has changed.

        It comes back as JSON has it: tuples as lists, and all keys as texts.
        """

    def restore(self, state: Mapping[str, JSON]) -> None:
        """Restore what `state` last returned before the run was interrupted. Called after the replay of its events."""


class Algorithm(Generic[ConfigT_co]):
    """Base of algorithms: subclass, name it, give it archives and a graph.

    ``config_type`` is the model that its settings are checked against, by default one without any settings. An
    algorithm that can be named in a configuration is constructed with the task, its checked settings and the tuning.
    ``roles`` are the LLM roles that it calls, besides those that its settings name (`NamesRoles`). ``staleness`` names
    the staleness policy of runs whose configuration names none; it may depend on the settings. ``description`` says in
    at most two lines whom the algorithm is for: which problem on the first, which budget and model on the second.
    ``flowevolve list algorithms`` and docs/algorithms show these lines.

    ``init`` yields emissions into the graph before the stream starts (usually the seed, to be evaluated); when they
    have ended, ``fit`` may commit what was learnt from them. ``finish`` may emit once more when everything has ended or
    was cut off; the pool may be empty then. An algorithm that is an async context manager is entered for the duration
    of its run, as a task is: there it opens what it needs to hold open, such as a global memory.

    State lives in two places, and both follow the event log. Archives change only in `Archive.apply`, by commits.
    Whatever else stages remember changes only in `apply_event`, which gets every event as it is written. An interrupted
    run is rebuilt by passing the same commits and events to both again.
    """

    name: ClassVar[str]
    description: ClassVar[str] = ""
    config_type: ClassVar[type[BaseModel]] = Settings
    roles: ClassVar[Sequence[str]] = ("task", "reflection")
    speculates: ClassVar[bool] = False
    """Whether it has a stage that can release a part of its results early, as ``tuning.speculation`` says."""
    races: ClassVar[bool] = False
    """Whether it has an evaluation that can be stopped early, as ``tuning.racing`` says."""
    staleness: str = "guarded"
    pools: Sequence[str] = (DEFAULT_POOL,)
    archives: Sequence[Archive] = ()
    _machines: OnMachines | None = None
    """The task, if its rollouts run on machines."""
    flow_bound: FlowBound | None = None
    """The policy for the number of open flows where the configuration says ``auto``; None for the usual one."""

    def __init__(self, task: Task, config: ConfigT_co, tuning: Tuning) -> None:
        """Raises:
        InputError: if the task does not suit the algorithm, or ``tuning`` asks for something that it does not have.
        """
        if not self.speculates:
            _check_no_speculation(self.name, tuning.speculation)
        if not self.races:
            _check_no_racing(self.name, tuning.racing)
        self.task = task
        self._machines = task if isinstance(task, OnMachines) else None
        self.config = config
        self.tuning = tuning

    @property
    def slots(self) -> int | None:
        """How many rollouts run at a time on the machines that they need; None if they need none."""
        return None if self._machines is None else self._machines.slots

    def graph(self) -> Graph:
        raise NotImplementedError(f"{type(self).__name__} needs a method graph()")

    def best(self) -> Candidate | None:
        """The best confirmed candidate so far."""
        raise NotImplementedError(f"{type(self).__name__} needs a method best()")

    def measured_score(self, best_score: float | None) -> float | None:
        """The score that is compared with the run's target: by default ``best_score``, the best candidate's.

        An algorithm that ranks candidates by estimates returns the best score that it has measured, or None.
        """
        return best_score

    def fresh_score(self) -> FreshScore | None:
        """What the best candidate scored on fresh examples, if the end of the run chose it by them; else None."""
        return None

    def frontier(self) -> Sequence[Candidate]:
        """The candidates to show: those that no other one beats in every respect. By default only the best one."""
        best = self.best()
        return () if best is None else (best,)

    def inject(self, candidate: Candidate) -> Emit:
        """The emission that sends a candidate from outside (`flowevolve.Engine.inject`) to a stage, to be evaluated.

        Raises:
            InputError: if the algorithm does not take candidates from outside, or does not take this one.
        """
        raise InputError(f"inject: algorithm {self.name!r} takes no candidates from outside, as it has no inject()")

    def check_veto(self, candidate: Candidate) -> None:
        """Check that a candidate can be taken out of the pool.

        An algorithm whose archives follow `flowevolve.Vetoed` changes, and leave a candidate out while it is vetoed,
        overrides this: to do nothing, or to refuse candidates that it can't do without.

        Raises:
            InputError: if it can't be taken out.
        """
        raise InputError(f"veto: algorithm {self.name!r} takes no candidate out of its pool: it has no check_veto()")

    def estimate(self, trigger: str | None = None) -> Cost:
        """The least that one flow is expected to spend; the budget reserves it for the flow.

        ``trigger`` names the trigger that starts the flow: None for an ordinary flow, ``inject`` for a candidate from
        outside.
        """
        return Cost(proposals=1)

    def estimate_finish(self, share_of: Callable[[Cost], float]) -> Cost:
        """What `finish` is expected to spend. As long as flows are opened, that much of the budget is kept for it.

        ``share_of`` returns the largest fraction that a cost is of any limit: 0.1 is a tenth of one limit.
        """
        return Cost()

    def reserve_for_finish(self, share_of: Callable[[Cost], float]) -> Cost:
        """What only `finish` may spend, in addition to `estimate_finish`.

        From the first flow on, no work begins that would need rollouts, proposals or evaluations from this reserve.
        ``share_of`` is as in `estimate_finish`.
        """
        return Cost()

    def gap(self, item: Item[object], pool: PoolReader) -> int:
        """The number of pool changes that an item has missed and that matter to it: by default, all commits.

        Called whenever an item is taken, unless it is a ticket. For an item that was sent to repair, ``item`` is the
        item as it was before.
        """
        return pool.version - item.version

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        """Emissions to start from, each naming its stage. An `LLMError`, `Discard` or `NotYet` that it raises ends the
        run.
        """
        for emission in NO_EMISSIONS:
            yield emission

    async def fit(self, context: UpdateContext) -> None:
        """Learn from what init produced. An `LLMError` that it raises ends the run."""

    async def finish(self, context: StageContext) -> AsyncGenerator[Emit]:
        """Emissions to end with, each naming its stage."""
        for emission in NO_EMISSIONS:
            yield emission

    def apply_event(self, event: Event) -> None:
        """Change what stages remember besides the archives.

        This is called for every event of the run in order, with the archives as they were then: when the event is
        written, and again when an interrupted run is rebuilt.
        """

    def replay_event(self, event: Event) -> None:
        """Take in an event of an interrupted run that is being rebuilt. By default this calls `apply_event`.

        Only an algorithm that uses objects of the user's, which change their own state during the run, does more here.
        """
        self.apply_event(event)
