"""ACE's committing stage: takes in samples, edits and scores, and says when to curate, to refine and to validate.

Each of these is decided from the log, in the commit that makes it due. So every lesson goes to exactly one curator,
whatever is in flight.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from flowevolve.algorithms.ace.config import ACEConfig
from flowevolve.algorithms.ace.payloads import Curation, Edit, Learned, Lesson, Refinement, Trial, Tried
from flowevolve.algorithms.ace.playbook import Counts, Operation, edit_note
from flowevolve.algorithms.ace.playbook_reading import Reader
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import Item
from flowevolve.core.pool import Add, Candidate, Note, Update, Vetoed
from flowevolve.core.record import Record


class LearntSample(Record, kind="ace.sample"):
    """What was learnt from a sample."""

    lesson: Lesson
    right_at_first: bool
    right: bool


class Curating(Record, kind="ace.curating"):
    """All lessons that waited were given to a curator."""


class Validating(Record, kind="ace.validating"):
    """A validation is due with this commit."""


class Edited(Record, kind="ace.edit"):
    """An edit of the playbook was worked in."""


class Tested(Record, kind="ace.tested"):
    """The test of a window is over."""

    window: int


class DueAfterSample(Record, kind="ace.learned"):
    """What is due after a sample: the lessons to curate, if it is time to, and whether to validate."""

    example: str
    curate: tuple[Lesson, ...]
    validation: bool = Field(validation_alias="validate", serialization_alias="validate")


class SettledEdit(Record, kind="ace.edited"):
    """The part of an edit that fits the playbook, how many of its operations do not, and whether to refine now."""

    operations: tuple[Operation, ...]
    counts: Counts
    late: int
    refine: bool


class Progress:
    """Where a run stands: lessons that wait for the curator, and what was learnt and tested. A function of the log.

    ``best`` is the best validated playbook, the first of equally good ones; online it is the last one tested.
    """

    def __init__(self, adaptation: Literal["offline", "online"]) -> None:
        self.edits = 0
        self.since_curation = 0
        """Samples since lessons were last given to the curator."""
        self.since_validation = 0
        self.pending: list[Lesson] = []
        """Lessons that no curator has had yet, oldest first."""
        self.tested: set[int] = set()
        """Windows that were tested."""
        self.latest: Candidate | None = None
        """The playbook that was last scored."""
        self._adaptation = adaptation
        self._validated: list[Candidate] = []
        self._vetoed: set[str] = set()

    @property
    def best(self) -> Candidate | None:
        standing = [each for each in self._validated if each.id not in self._vetoed]
        if self._adaptation == "online":
            return standing[-1] if standing else None
        return max(standing, key=lambda each: each.mean_score, default=None)

    def apply(self, update: Update) -> None:
        for change in update.changes:
            match change:
                case Add(candidate=candidate, status="confirmed"):
                    self.latest = candidate
                    self._validated.append(candidate)
                case Vetoed(candidate_id=name, stands=stands):
                    (self._vetoed.add if stands else self._vetoed.discard)(name)
                case Note():
                    self._note(change)
                case _:
                    pass

    def _note(self, note: Note) -> None:
        match note.kind:
            case LearntSample.kind:
                self.since_curation += 1
                self.since_validation += 1
                lesson = LearntSample.from_json(note.data).lesson
                if lesson.texts:
                    self.pending.append(lesson)
            case Curating.kind:
                self.since_curation = 0
                self.pending = []
            case Validating.kind:
                self.since_validation = 0
            case Edited.kind:
                self.edits += 1
            case Tested.kind:
                self.tested.add(Tested.from_json(note.data).window)
            case _:
                pass


@dataclass(frozen=True)
class Commit:
    """ACE's committing stage: commits samples that were learnt from, edits of the playbook, and validation scores.

    ``val_ids`` are the examples that playbooks are validated on.
    """

    config: ACEConfig
    progress: Progress
    reader: Reader
    val_ids: tuple[str, ...]

    async def __call__(self, item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        match item.payload:
            case Learned() as learned:
                emissions = self._learn(learned, context)
            case Edit() as edit:
                emissions = self._edit(edit, context)
            case _:
                emissions = self._score(item.expect(Tried), context)
        for emission in emissions:
            yield emission

    def _learn(self, learned: Learned, context: UpdateContext) -> list[Emit]:
        due = context.decide(DueAfterSample, lambda: self._due(learned))
        sample = LearntSample(lesson=learned.lesson, right_at_first=learned.right_at_first, right=learned.right)
        changes = [edit_note((), learned.counts), sample.note()]
        changes += [Curating().note()] if due.curate else []
        changes += [Validating().note()] if due.validation else []
        version = context.commit(changes).version
        if due.curate:
            return [Emit(Curation(due.curate, due.validation), to="curate", version=version)]
        return [self.trial(version, context)] if due.validation else []

    def _due(self, learned: Learned) -> DueAfterSample:
        progress, config = self.progress, self.config
        pending = [*progress.pending, *([learned.lesson] if learned.lesson.texts else [])]
        due = progress.since_curation + 1 >= config.curator_frequency
        validate = config.adaptation == "offline" and progress.since_validation + 1 >= config.validate_every
        lessons = tuple(pending) if due else ()
        return DueAfterSample(example=learned.lesson.example_id, curate=lessons, validation=validate)

    def _edit(self, edit: Edit, context: UpdateContext) -> list[Emit]:
        settled = context.decide(SettledEdit, lambda: self._settle(edit))
        if not settled.operations and not settled.counts and not edit.validate and not edit.last:
            raise Discard("nothing to change")
        changes = [edit_note(settled.operations, settled.counts), Edited().note()]
        version = context.commit([*changes, *([Curating().note()] if edit.last else [])]).version
        if settled.refine:
            return [Emit(Refinement(edit.validate), to="refine", version=version)]
        return [self.trial(version, context)] if edit.validate else []

    def _settle(self, edit: Edit) -> SettledEdit:
        """The part of an edit that fits the playbook as it is now."""
        fitting, counts = _without_repetition(edit, self.reader)
        every = self.config.refine_every
        curated = bool(edit.sources)  # an edit without sources is itself a refinement
        refine = every > 0 and curated and not edit.last and (self.progress.edits + 1) % every == 0
        late = len(edit.operations) - len(fitting)
        return SettledEdit(operations=tuple(fitting), counts=counts, late=late, refine=refine)

    def _score(self, tried: Tried, context: UpdateContext) -> list[Emit]:
        tested = [] if tried.window is None else [Tested(window=tried.window).note()]
        context.commit([Add(tried.candidate), *tested])
        return []

    def trial(self, version: int, context: StageContext) -> Emit:
        """The playbook as of this version, to be validated."""
        artifact = self.reader.artifact(self.reader.bullets(version, context), context)
        candidate = context.propose(artifact, parents=[], operator="curate", born=version)
        return Emit(Trial(candidate, self.val_ids), to="validate", version=version)


def _without_repetition(edit: Edit, reader: Reader) -> tuple[Sequence[Operation], Counts]:
    """The operations that fit, and the counts. If an addition repeats a bullet word for word, the bullet is credited
    instead.
    """
    book = reader.playbook
    touched = {name for operation in edit.operations for name in operation.seen}
    said = {bullet.text.casefold(): bullet.id for bullet in book.bullets if bullet.id not in touched}
    counts = dict(edit.counts)
    fitting: list[Operation] = []
    for operation in edit.operations:
        text = operation.text.casefold()
        if operation.verb == "ADD" and text in said:
            name = said[text]
            if name:
                helpful, harmful = counts.get(name, (0, 0))
                counts[name] = helpful + 1, harmful
        elif book.fits(operation):
            fitting.append(operation)
            if operation.verb == "ADD":
                said[text] = ""
    return fitting, counts
