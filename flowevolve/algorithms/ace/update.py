"""ACE's committing stage: takes in samples, edits and scores, and says when to curate, to refine and to validate.

Each of these is settled by what the log says, in the commit that makes it due, so that lessons are given to exactly one
curator whatever is in flight.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from flowevolve.algorithms.ace.config import ACEConfig
from flowevolve.algorithms.ace.payloads import Curation, Edit, Learned, Lesson, Refinement, Trial, Tried
from flowevolve.algorithms.ace.progress import CURATING, EDIT, TESTED, VALIDATING, Progress, sample_note
from flowevolve.algorithms.ace.reading import Reader
from flowevolve.archives.playbook import Counts, Operation, edit_note
from flowevolve.context import StageContext, UpdateContext
from flowevolve.item import Item
from flowevolve.llm.types import JSON
from flowevolve.pool import Add, Change, Note
from flowevolve.stage import Discard, Emit


@dataclass(frozen=True)
class Update:
    """``val_ids`` are the examples that playbooks are validated on."""

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
        plan = context.decide("ace.learned", lambda: self._plan(learned))
        given = cast("list[dict[str, JSON]]", plan["curate"])
        changes: list[Change] = [edit_note((), learned.counts), sample_note(learned)]
        changes += [Note(CURATING, {})] if given else []
        changes += [Note(VALIDATING, {})] if plan["validate"] else []
        version = context.commit(changes).version
        validate = bool(plan["validate"])
        if given:
            return [Emit(Curation(tuple(map(Lesson.of, given)), validate), to="curate", version=version)]
        return [self.trial(version, context)] if validate else []

    def _plan(self, learned: Learned) -> Mapping[str, JSON]:
        progress, config = self.progress, self.config
        pending = [*progress.pending, *([learned.lesson] if learned.lesson.texts else [])]
        due = progress.since_curation + 1 >= config.curator_frequency
        validate = config.adaptation == "offline" and progress.since_validation + 1 >= config.validate_every
        lessons: list[JSON] = [lesson.to_json() for lesson in pending] if due else []
        return {"example": learned.lesson.example_id, "curate": lessons, "validate": validate}

    def _edit(self, edit: Edit, context: UpdateContext) -> list[Emit]:
        plan = context.decide("ace.edited", lambda: self._settle(edit))
        operations = [Operation.of(each) for each in cast("list[dict[str, JSON]]", plan["operations"])]
        counts = {name: (added[0], added[1]) for name, added in cast("dict[str, list[int]]", plan["counts"]).items()}
        if not operations and not counts and not edit.validate and not edit.last:
            raise Discard("nothing to change")
        changes = [edit_note(operations, counts), Note(EDIT, {}), *([Note(CURATING, {})] if edit.last else [])]
        version = context.commit(changes).version
        if plan["refine"]:
            return [Emit(Refinement(edit.validate), to="refine", version=version)]
        return [self.trial(version, context)] if edit.validate else []

    def _settle(self, edit: Edit) -> Mapping[str, JSON]:
        """What of an edit holds against the playbook as it is now."""
        fitting, counts = _without_repetition(edit, self.reader)
        every = self.config.refine_every
        curated = bool(edit.sources)  # what merges bullets is no reason to look for more of them
        refine = every > 0 and curated and not edit.last and (self.progress.edits + 1) % every == 0
        return {
            "operations": [operation.to_json() for operation in fitting],
            "counts": {name: list(added) for name, added in counts.items()},
            "late": len(edit.operations) - len(fitting),
            "refine": refine,
        }

    def _score(self, tried: Tried, context: UpdateContext) -> list[Emit]:
        changes: list[Change] = [Add(tried.candidate)]
        changes += [Note(TESTED, {"window": tried.window})] if tried.window is not None else []
        context.commit(changes)
        return []

    def trial(self, version: int, context: StageContext) -> Emit:
        """The playbook as of this version, to be validated."""
        artifact = self.reader.artifact(self.reader.bullets(version, context))
        candidate = context.propose(artifact, parents=[], operator="curate", born=version)
        return Emit(Trial(candidate, self.val_ids), to="validate", version=version)


def _without_repetition(edit: Edit, reader: Reader) -> tuple[Sequence[Operation], Counts]:
    """The operations that fit, but for additions that a bullet says word for word: those are credited instead."""
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
