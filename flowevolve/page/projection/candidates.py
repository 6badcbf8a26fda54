"""The candidates: what they are made from, what became of them, and what they scored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from flowevolve._util.json_types import JSON
from flowevolve.core.event_body import OwnEvent
from flowevolve.core.event_kinds import CandidateProposed, CandidateRejected, ItemTaken, PoolCommitted
from flowevolve.core.events import Event
from flowevolve.core.item_ids import flow_of
from flowevolve.core.logged_changes import LoggedAdd, LoggedAnnotate, LoggedChange, LoggedMove, LoggedVeto
from flowevolve.page.projection.sources import Sources
from flowevolve.page.tables.candidates import CandidateRow, ComponentRow, ScoreRow
from flowevolve.page.tables.row import Row

_KINDS = {
    "seed": "seed",
    "prune": "prune",
    "rebase": "repair",
    "repair": "repair",
    "injected": "injected",
    "migrate": "copy",
}
"""The kinds of candidates by operator; with any other operator, the kind depends on the number of parents."""
_GROUPS = ("group", "group_lines", "aggregate")


LONGEST = 2000
"""The most characters of a program's failure and of its feedback."""


class Candidates:
    """The rows of candidates, of their texts and of their scores."""

    def __init__(self) -> None:
        self.rows: dict[str, CandidateRow] = {}
        self.seed: str | None = None
        """The id of the first candidate."""
        self.kind_of_artifact = "prompt"
        self._scores: dict[str, Mapping[str, float]] = {}
        self._batches: dict[int, list[str]] = {}
        """The examples that a flow's edit is written and screened on."""
        self._sources = Sources()
        self._stages: dict[str, str] = {}
        """The stages of the items that are worked on."""

    def scores(self, candidate: str) -> Mapping[str, float]:
        """The scores of its validation, by example."""
        return self._scores.get(candidate, {})

    def event(self, event: Event) -> Iterator[Row]:
        yield from self._sources.event(event)
        match event.body:
            case CandidateProposed() as proposed:
                yield from self._propose(proposed, event.time)
            case CandidateRejected(candidate=candidate, reason=reason) if candidate in self.rows:
                yield self._keep(replace(self.rows[candidate], status="rejected", reason=reason, judged=event.time))
            case PoolCommitted(changes=changes):
                yield from self._commit(changes, event.time)
            case ItemTaken(item=item, stage=stage):
                self._stages[item] = stage
            case OwnEvent(kind=kind, data=data):
                if kind == "candidate.screened":
                    yield from self._screen(data)
                elif isinstance(batch := data.get("batch"), list):
                    self._batches[flow_of(str(data["item"]))] = [str(each) for each in batch]

    def held_out(self, scores: Mapping[str, float]) -> Iterator[CandidateRow]:
        """Add the mean scores on the test examples, which are given by candidate."""
        for candidate, score in scores.items():
            if candidate in self.rows:
                yield self._keep(replace(self.rows[candidate], held_out=score))

    def _keep(self, row: CandidateRow) -> CandidateRow:
        self.rows[row.id] = row
        return row

    def _propose(self, proposed: CandidateProposed, time: float) -> Iterator[Row]:
        if self.seed is None:
            self.seed, self.kind_of_artifact = proposed.candidate, proposed.kind_of_artifact
        edits = proposed.attributes.get("edits")
        row = CandidateRow(
            id=proposed.candidate,
            place=len(self.rows),
            kind=_kind(proposed),
            operator=proposed.operator,
            parents=proposed.parents,
            edits=tuple(map(str, edits)) if isinstance(edits, list) else (),
            item=proposed.item,
            flow=flow_of(proposed.item),
            stage=self._stages.get(proposed.item),
            created=time,
            born=proposed.born,
            status="proposed",
            reason=None,
            judged=None,
            score=None,
            examples=0,
            screen=None,
            screen_baseline=None,
            held_out=None,
            length=sum(map(len, proposed.components.values())),
            pool=None,
            name="",
            idea="",
            metrics={},
            failure=None,
            feedback=None,
            sources=self._sources.take(proposed),
            vetoed=False,
        )
        yield self._keep(_described(row, proposed.attributes))
        for component, text in proposed.components.items():
            yield ComponentRow(row.id, component, text, len(text))

    def _commit(self, changes: Iterable[LoggedChange], time: float) -> Iterator[Row]:
        for change in changes:
            match change:
                case LoggedAdd(add=name, pool=pool, status=status, scores=scores, attributes=attributes):
                    if name in self.rows:
                        row = replace(self.rows[name], status=status, pool=pool, judged=time)
                        yield from self._scored(_described(row, attributes), scores)
                case LoggedMove(move=name, status=moved, scores=new_scores):
                    if name in self.rows:
                        yield from self._scored(replace(self.rows[name], status=moved, judged=time), new_scores)
                case LoggedAnnotate(annotate=name, attributes=attributes, scores=new_scores):
                    if name in self.rows:
                        yield from self._scored(_described(self.rows[name], attributes), new_scores)
                case LoggedVeto(veto=name, stands=stands):
                    if name in self.rows:
                        yield self._keep(replace(self.rows[name], vetoed=stands))

    def _scored(self, row: CandidateRow, scores: Mapping[str, float] | None) -> Iterator[Row]:
        if scores:
            before = self._scores.get(row.id, {})
            self._scores[row.id] = scores
            row = replace(row, score=sum(scores.values()) / len(scores), examples=len(scores))
            for example, value in scores.items():
                if before.get(example) != value:
                    yield ScoreRow(row.id, "validation", example, value, 1)
        yield self._keep(row)

    def _screen(self, data: Mapping[str, JSON]) -> Iterator[Row]:
        name, scores, baseline = data.get("candidate"), _numbers(data.get("scores")), _numbers(data.get("baseline"))
        if not isinstance(name, str) or name not in self.rows or not scores:
            return
        mean = sum(scores) / len(scores)
        before = sum(baseline) / len(baseline) if baseline else None
        yield self._keep(replace(self.rows[name], screen=mean, screen_baseline=before))
        batch = self._batches.get(flow_of(str(data["item"])), [])
        if len(batch) == len(scores):
            for example, value in zip(batch, scores, strict=True):
                yield ScoreRow(name, "screen", example, value, 1)


def _kind(proposed: CandidateProposed) -> str:
    if proposed.adopted:
        return "adopted"
    if proposed.operator in _KINDS:
        return _KINDS[proposed.operator]
    if proposed.operator in _GROUPS:
        return "group"
    return ("new", "edit", "merge")[min(len(proposed.parents), 2)]


def _described(row: CandidateRow, attributes: Mapping[str, JSON]) -> CandidateRow:
    """A row with the values that attributes give."""
    name, idea, metrics = (attributes.get(each) for each in ("edit.name", "edit.idea", "metrics"))
    failure, feedback = (attributes.get(each) for each in ("failure", "feedback"))
    return replace(
        row,
        name=name if isinstance(name, str) else row.name,
        idea=idea if isinstance(idea, str) else row.idea,
        metrics=metrics if isinstance(metrics, dict) else row.metrics,
        failure=failure[:LONGEST] if isinstance(failure, str) else row.failure,
        feedback=feedback[:LONGEST] if isinstance(feedback, str) else row.feedback,
    )


def _numbers(values: JSON) -> list[float]:
    return [each for each in values if isinstance(each, int | float)] if isinstance(values, list) else []
