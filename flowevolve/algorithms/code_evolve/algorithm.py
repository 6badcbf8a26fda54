"""CodeEvolve (Assumpção et al., arXiv 2510.14150) as a graph.

    select ─▶ generate ─▶ evaluate ─▶ update   (migration is a part of update)
       └─▶ meta ─▲                             (exploring)

Islands stream side by side: an epoch is an event of one island, and none waits for another. In lockstep a step is an
epoch of all islands, as published.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from flowevolve._util.clock import in_thread
from flowevolve._util.errors import InputError
from flowevolve.algorithms.code_evolve.commit import Commit
from flowevolve.algorithms.code_evolve.config import CodeEvolveConfig
from flowevolve.algorithms.code_evolve.islands import PROGRAMS, PROMPTS, Island, Islands, Place
from flowevolve.algorithms.code_evolve.payloads import Chosen, Made, Prompted
from flowevolve.algorithms.code_evolve.select import Select
from flowevolve.algorithms.code_evolve.write import (
    CODE,
    FIRST_INSTRUCTIONS,
    INSTRUCTIONS,
    META,
    Evaluate,
    Generate,
    Meta,
)
from flowevolve.archives.elites import FITNESS, Best, Cells, Elites, Mapped
from flowevolve.core.algorithm import SEE_LOG, Algorithm, Tuning, Workers, check_components
from flowevolve.core.artifact import Artifact
from flowevolve.core.assessment import Assessment
from flowevolve.core.budget import Cost
from flowevolve.core.context import PoolReader, UpdateContext
from flowevolve.core.events import Event
from flowevolve.core.graph import Emit, Graph, Stage
from flowevolve.core.item import Item
from flowevolve.core.policies import Batch
from flowevolve.core.pool import SEED, Candidate
from flowevolve.core.task import Task
from flowevolve.programs.features import FEATURES
from flowevolve.programs.task import check_programs, seed_fails
from flowevolve.stages import Assess, Rollouts, committing

DEFAULT_WORKERS: Mapping[str, Workers] = {"meta": Workers(16), "generate": Workers(16), "evaluate": Workers(16)}
"""Workers in streaming mode; select and update have one each."""


class CodeEvolve(Algorithm[CodeEvolveConfig]):
    """Raises:
    InputError: if the task is not one of programs, the tuning does not suit CodeEvolve, or a library is missing.
    """

    name = "code_evolve"
    description = (
        "Programs with many different solutions, on islands, with instructions that evolve as well.\n"
        "For several hundred evaluations and more, with one model or an ensemble."
    )
    config_type = CodeEvolveConfig
    roles: ClassVar[Sequence[str]] = (CODE, META)
    staleness = "full"
    pools = (PROGRAMS, PROMPTS)

    def __init__(self, task: Task, config: CodeEvolveConfig | None = None, tuning: Tuning | None = None) -> None:
        task = check_programs(task, self.name)
        super().__init__(task, config or CodeEvolveConfig(), tuning or Tuning())
        self._task = task
        self._workers = self.tuning.workers_of(DEFAULT_WORKERS)
        self._writing = self.config.writing(task.problem)
        archive = self.config.archive
        self._cells = None if archive.name == "naive" else Cells(archive.name, len(archive.features), archive.cells)
        self.islands = _islands(self.config, self._cells)
        self.archives = (self.islands,)
        self._select = Select(self.islands, self.config)

    def best(self) -> Candidate | None:
        return self.islands.best()

    def frontier(self) -> Sequence[Candidate]:
        """The best program of each island."""
        return [island.best for island in self.islands if island.best is not None]

    def inject(self, candidate: Candidate) -> Emit:
        check_components(candidate, self._task.seed())
        own = sorted(set(Place.model_fields) & set(candidate.attributes))
        if own:
            raise InputError(f"inject: the attribute {own[0]!r} is the algorithm's to set; leave it out")
        return Emit(Made(candidate), to="evaluate")

    def check_veto(self, candidate: Candidate) -> None:
        for island in self.islands:
            if island.needs(candidate):
                raise InputError(
                    f"veto: {candidate.id} is the last that island {island.index} can go on from; inject another first"
                )

    def estimate(self, trigger: str | None = None) -> Cost:
        cases = len(self._task.data.val)
        return Cost(proposals=1, evaluations=1, rollouts=cases)

    def gap(self, item: Item[object], pool: PoolReader) -> int:
        """How many updates of its island an item has missed; 0 for one from outside, which has no island yet."""
        match item.payload:
            case Chosen(island=index) | Prompted(chosen=Chosen(island=index)):
                return self.islands[index].missed(item.version)
            case Made(program=program) if Place.of(program).island is not None:
                return self.islands.of(program).missed(item.version)
            case _:
                return 0

    def graph(self) -> Graph:
        task, config = self._task, self.config
        statement = task.problem.statement
        instructions = Artifact({INSTRUCTIONS: config.instructions.strip() or FIRST_INSTRUCTIONS})
        assess = Assess(Rollouts(task), task)
        # A selection goes stale while it waits, so the queues after select are short: tickets wait before it instead.
        return Graph(
            (
                Stage("select", self._select, ("meta", "generate")),
                self._workers.stage("meta", Meta(statement), "generate", capacity=1),
                self._workers.stage("generate", Generate(statement, config, self._writing), "evaluate", capacity=1),
                self._workers.stage("evaluate", Evaluate(assess, task.worst), "update"),
                committing("update", Commit(self.islands, config.migration, instructions)),
            ),
            entry="select",
            step_width=_Epoch(config.islands * config.epoch),
        )

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        """Send the seed to be assessed, once for all islands."""
        if self._cells is not None:
            await in_thread(self._cells.make)
        yield Emit(Made(context.propose(self._task.seed(), parents=[], operator=SEED)), to="evaluate")

    async def fit(self, context: UpdateContext) -> None:
        """Only checks that there is a program to begin with."""
        if context.stopping:
            return
        seed = self.islands[0].seed
        if seed is None:
            raise InputError(f"task {self._task.name!r}: the seed could not be evaluated; {SEE_LOG}")
        if self.best() is None:
            raise seed_fails(self._task, Assessment.of(seed).failure)
        if self._cells is not None:
            self._check_features(Assessment.of(seed).metrics)

    def _check_features(self, metrics: Mapping[str, float]) -> None:
        """Raises:
        InputError: if a feature is neither one of the text nor a metric that the seed has.
        """
        unknown = [name for name in self.config.archive.features if name not in {FITNESS, *FEATURES, *metrics}]
        if unknown:
            of_text, of_problem = (", ".join(sorted(names)) or "none" for names in (FEATURES, metrics))
            raise InputError(
                f"algorithm.archive.features: {unknown[0]!r} is no feature; there are {FITNESS!r}, those of a "
                f"program's text ({of_text}) and this problem's metrics ({of_problem})"
            )

    def apply_event(self, event: Event) -> None:
        self._select.apply_event(event)


@dataclass(frozen=True, slots=True)
class _Epoch:
    """A step of lockstep is an epoch of all islands."""

    flows: int

    def next(self, past: Sequence[Batch]) -> int:
        return self.flows


def _islands(config: CodeEvolveConfig, cells: Cells | None) -> Islands:
    archive, schedule = config.archive, config.exploration

    def elites() -> Elites:
        return Best(archive.size) if cells is None else Mapped(cells, archive.features, archive.ranges)

    return Islands(
        config.islands,
        lambda index: Island(index, elites(), schedule, epoch=config.epoch, prompts=config.prompts),
    )
