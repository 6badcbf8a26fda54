"""What a candidate's texts may be made from, besides its named parents, and which examples its writer saw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from flowevolve._util.json_types import JSON
from flowevolve.core.event_body import OwnEvent
from flowevolve.core.event_kinds import CandidateProposed, RepairJudged
from flowevolve.core.events import Event
from flowevolve.core.item_ids import flow_of
from flowevolve.page.tables.candidates import BatchRow
from flowevolve.page.tables.row import Row

_SHOWN = ("parent", "parents", "shown", "inspirations", "ancestors")
"""Fields of selections that name candidates whose texts a writer is shown."""


class Sources:
    """Follows selections and repairs, and finds what each proposal may be made from."""

    def __init__(self) -> None:
        self._shown: dict[int, list[str]] = {}
        """By flow, the candidates that were selected for it last."""
        self._stale: dict[int, str] = {}
        """By flow, the stale candidate that was judged last."""
        self._known: dict[str, str] = {}
        """The artifact of each candidate."""
        self._first: dict[str, str] = {}
        """The first candidate with an artifact."""
        self._latest: dict[tuple[str, ...], str] = {}
        """The latest playbook, or the first candidate of another kind, by the names of the components."""

    def event(self, event: Event) -> Iterator[Row]:
        """Take in an event; yields the examples that it selected."""
        match event.body:
            case RepairJudged(item=item, candidate=candidate):
                self._stale[flow_of(item)] = candidate
            case OwnEvent(item=item, data=data):
                shown = [name for field in _SHOWN for name in _texts(data.get(field))]
                if shown:
                    self._shown[flow_of(item)] = shown
                examples = _examples(data)
                if examples:
                    yield BatchRow(item, examples)

    def take(self, proposed: CandidateProposed) -> tuple[str, ...]:
        """The earlier candidates that a proposal may be made from; the first of them counts first."""
        flow, attributes = flow_of(proposed.item), proposed.attributes
        named = [*proposed.parents, *_texts(attributes.get("edits")), *_texts(attributes.get("origin"))]
        if proposed.operator == "repair" and flow in self._stale:
            named.append(self._stale[flow])
        if not proposed.adopted and not named[len(proposed.parents) :]:
            named += self._shown.get(flow, [])
        components = tuple(sorted(proposed.components))
        found = [name for name in dict.fromkeys(named) if name in self._known]
        if not found:
            latest, same = self._latest.get(components), self._first.get(proposed.artifact)
            before = latest if proposed.kind_of_artifact == "playbook" else same or latest
            found = [] if before is None else [before]
        self._known[proposed.candidate] = proposed.artifact
        self._first.setdefault(proposed.artifact, proposed.candidate)
        if proposed.kind_of_artifact == "playbook":
            self._latest[components] = proposed.candidate
        self._latest.setdefault(components, proposed.candidate)
        return tuple(found)


def _examples(data: Mapping[str, JSON]) -> tuple[str, ...]:
    """The examples that an event of a selection names: a minibatch, one example, or those of lessons."""
    lessons = data.get("curate")
    if isinstance(lessons, list):
        named = [lesson.get("example") for lesson in lessons if isinstance(lesson, dict)]
        return tuple(dict.fromkeys(name for name in named if isinstance(name, str)))
    return tuple(_texts(data.get("batch")) or _texts(data.get("example")))


def _texts(value: JSON) -> list[str]:
    """A text, or the texts of a list."""
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str)]
