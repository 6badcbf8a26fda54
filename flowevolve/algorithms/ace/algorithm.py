"""ACE, agentic context engineering (arXiv 2510.04618), as a graph.

    select ─▶ generate ─▶ reflect ─▶ update ─▶ curate ─▶ update    (every `curator_frequency` samples)
                                     update ─▶ validate ─▶ update  (every `validate_every` samples)
                                     update ─▶ refine ─▶ update    (every `refine_every` curations)
    select ─▶ validate                                             (online: a window's test)
              reconcile ─▶ update                                  (edits that went stale)

ACE evolves a playbook, which is a function of the log. Each validated version of it is a candidate.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass

from flowevolve._util.errors import InputError
from flowevolve.algorithms.ace.commit import Commit, Progress
from flowevolve.algorithms.ace.config import ACEConfig
from flowevolve.algorithms.ace.curate import Curate, Refine
from flowevolve.algorithms.ace.learn import Generate, Reflect
from flowevolve.algorithms.ace.payloads import Curation, Edit, Lesson, Trial, Tried
from flowevolve.algorithms.ace.playbook import Bullet, Playbook, load_note, parse_bullets
from flowevolve.algorithms.ace.playbook_reading import CitingTask, Reader
from flowevolve.algorithms.ace.repair import Reconcile
from flowevolve.algorithms.ace.select import Select
from flowevolve.core.algorithm import SEE_LOG, Algorithm, Tuning, Workers
from flowevolve.core.budget import Cost
from flowevolve.core.context import PoolReader, StageContext, UpdateContext
from flowevolve.core.events import Event
from flowevolve.core.graph import CommittingStage, Emit, Graph, Stage
from flowevolve.core.item import Item
from flowevolve.core.pool import SEED, Candidate
from flowevolve.core.record import Record
from flowevolve.core.task import Task
from flowevolve.policies.similarity import Likeness
from flowevolve.programs.task import check_no_programs
from flowevolve.stages import Rollouts

DEFAULT_WORKERS: Mapping[str, Workers] = {
    "generate": Workers(16),
    "reflect": Workers(16),
    "curate": Workers(8),
    "reconcile": Workers(8),
    "refine": Workers(1),
    "validate": Workers(2),
}
"""Workers in streaming mode; select and update have one each."""


class Finishing(Record, kind="ace.finishing"):
    """The lessons that are curated when the run ends."""

    lessons: tuple[Lesson, ...]


class ACE(Algorithm[ACEConfig]):
    """Raises:
    InputError: if the task is one of programs, has no training examples or, offline, no validation examples, if the
        initial playbook can't be read, the embedder's package is not installed, or the tuning does not suit ACE.
    """

    name = "ace"
    description = (
        "A playbook of short notes beside the prompt, for a task with many different kinds of cases.\n"
        "For a hundred samples and more, with a model that follows and cites what it is given."
    )
    config_type = ACEConfig
    roles = ("task", "reflection", "embedding")
    staleness = "reflective"

    def __init__(self, task: Task, config: ACEConfig | None = None, tuning: Tuning | None = None) -> None:
        super().__init__(task, config or ACEConfig(), tuning or Tuning())
        check_no_programs(task, self.name)
        offline = self.config.adaptation == "offline"
        if not task.data.train or (offline and not task.data.val):
            raise InputError(f"task {task.name!r}: ACE needs training examples, and offline validation examples")
        self._workers = self.tuning.workers_of(DEFAULT_WORKERS)
        self._embedder = self.config.embedding.make()
        self._initial = _initial(self.config)
        self.playbook = Playbook()
        self._progress = Progress(self.config.adaptation)
        self.archives = (self.playbook, self._progress)
        self._reader = Reader(self.playbook, task.seed(), self.config.token_budget)
        train_ids = tuple(example.id for example in task.data.train)
        val_ids = tuple(example.id for example in task.data.val)
        self._select = Select(self.config, self._progress, self._reader, train_ids)
        self._refine = Refine(self._reader, self.config.duplicate, self._embedder)
        self._commit = Commit(self.config, self._progress, self._reader, val_ids)

    def best(self) -> Candidate | None:
        return self._progress.best

    def check_veto(self, candidate: Candidate) -> None:
        """Any candidate can be taken out."""

    def estimate(self, trigger: str | None = None) -> Cost:
        return Cost(proposals=1, rollouts=1)

    def gap(self, item: Item[object], pool: PoolReader) -> int:
        """For an edit: how many bullets have changed that it reads or writes or, if it adds bullets, might repeat. It
        is 0 for all other items, because counters commute and a sample learns from whatever playbook it saw.
        """
        edit = item.payload
        if not isinstance(edit, Edit):
            return 0
        concerned = {**edit.reads, **{name: seen for each in edit.operations for name, seen in each.seen.items()}}
        book = self.playbook
        missed = {name for name, seen in concerned.items() if name not in book or book[name].digest != seen}
        if any(each.verb == "ADD" for each in edit.operations):
            missed.update(bullet.id for bullet in book.changed_since(item.version))
        return len(missed)

    def graph(self) -> Graph:
        config, reader, plain = self.config, self._reader, Rollouts(self.task)
        citing = Rollouts(CitingTask(self.task))
        likeness = Likeness(config.duplicate, config.unlike)
        # A sample reads the playbook when its work begins, so generate's queue is short: tickets wait before select.
        return Graph(
            (
                Stage("select", self._select, ("generate", "validate")),
                self._workers.stage("generate", Generate(citing, reader), "reflect", capacity=1),
                self._workers.stage("reflect", Reflect(citing, reader, config.max_rounds), "update"),
                self._workers.stage("curate", Curate(reader, config.sections, config.fan_in, config.copies), "update"),
                self._workers.stage("reconcile", Reconcile(plain, reader, likeness, self._embedder), "update"),
                self._workers.stage("refine", self._refine, "update"),
                self._workers.stage("validate", Validate(plain), "update"),
                CommittingStage("update", self._commit, ("curate", "refine", "validate"), repair_to="update"),
            ),
            entry="select",
            repair="reconcile",
        )

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        """Load the playbook to start from and, offline, have it validated."""
        await self._embedder.load()
        if self._initial:
            context.commit([load_note(self._initial)])
        if self.config.adaptation == "offline":
            seed = context.propose(self._reader.artifact(self._initial, context), parents=[], operator=SEED)
            yield Emit(Trial(seed, self._commit.val_ids), to="validate")

    async def fit(self, context: UpdateContext) -> None:
        if self.config.adaptation == "offline" and self.best() is None and not context.stopping:
            raise InputError(f"task {self.task.name!r}: the seed could not be evaluated; {SEE_LOG}")

    async def finish(self, context: StageContext) -> AsyncGenerator[Emit]:
        """Curate the lessons that no curator has had yet; offline, validate the playbook a last time."""
        lessons = context.decide(Finishing, lambda: Finishing(lessons=tuple(self._progress.pending))).lessons
        if lessons:
            yield Emit(Curation(lessons, validate=self.config.adaptation == "offline", last=True), to="curate")
        elif self.config.adaptation == "offline":
            latest = self._progress.latest
            artifact = self._reader.artifact(self.playbook.bullets, context)
            if latest is not None and latest.artifact != artifact:
                yield self._commit.trial(context.pool.version, context)

    def apply_event(self, event: Event) -> None:
        self._select.apply_event(event)
        self._refine.apply_event(event)


@dataclass(frozen=True)
class Validate:
    """Scores a version of the playbook. It asks for answers without citations, as they will be used."""

    rollouts: Rollouts

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        trial = item.expect(Trial)
        context.begin(Cost(evaluations=1))
        rollouts = await self.rollouts.run(trial.candidate, trial.example_ids, trial.split, context)
        scores = {rollout.example_id: rollout.score.value for rollout in rollouts}
        yield Emit(Tried(trial.candidate.scored(scores), trial.window))


def _initial(config: ACEConfig) -> list[Bullet]:
    """The bullets of the file named in the configuration.

    Raises:
        InputError: if the file does not exist, holds no bullet, or holds one that can't be read.
    """
    if config.playbook is None:
        return []
    try:
        bullets = parse_bullets(config.playbook.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"algorithm.playbook: {config.playbook} can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"algorithm.playbook: {config.playbook} is not text in UTF-8") from None
    except InputError as error:
        raise InputError(f"algorithm.playbook: {config.playbook}: {error}") from None
    if not bullets:
        raise InputError(f"algorithm.playbook: {config.playbook} holds no bullets; write each as '- [str-00001] text'")
    return bullets
