"""What a stage had done for an item when a run was interrupted, so that nothing is done twice.

A stage's work is run again from its start: replies come back from the journal, and what it had proposed, handed on,
committed and logged is recognised. Recognition does not ask that the stage takes the same way again, for the pool may
have moved on: what is not recognised is simply done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from flowevolve.core.artifact import Artifact
from flowevolve.core.event_kinds import ItemSent
from flowevolve.core.events import Event
from flowevolve.core.payload_kinds import payload
from flowevolve.core.pool import Candidate, Update


@payload("Kept")
@dataclass(frozen=True, slots=True)
class StoredResult:
    """The result of something done once, as an event's attachment."""

    value: object


@dataclass(slots=True)
class InterruptedWork:
    """Effects of one stage's unfinished work on one item, oldest first; each is taken out as it is recognised."""

    proposals: list[Candidate] = field(default_factory=list)
    sent: deque[ItemSent] = field(default_factory=deque)
    commits: deque[Update] = field(default_factory=deque)
    events: dict[tuple[str, str | None], deque[Event]] = field(default_factory=dict)
    children: int = 0
    """How many items it had handed on: the next one's number."""

    def proposed(self, artifact: Artifact, parents: Sequence[Candidate], operator: str) -> Candidate | None:
        """The candidate it had made like this, if it had."""
        names = tuple(parent.id for parent in parents)
        for candidate in self.proposals:
            if (candidate.artifact, candidate.parents, candidate.operator) == (artifact, names, operator):
                self.proposals.remove(candidate)
                return candidate
        return None

    def handed_on(self, stage: str, payload: object) -> bool:
        """Whether its next item, as far as can be told, was handed on already."""
        if self.sent and (self.sent[0].stage, self.sent[0].payload) == (stage, type(payload).__name__):
            self.sent.popleft()
            return True
        return False

    def committed(self) -> Update | None:
        """Its next commit, if that was made already: no update is applied twice, whatever it would say now."""
        return self.commits.popleft() if self.commits else None

    def logged(self, kind: str, key: str | None) -> Event | None:
        """Its next event of this kind and with this key, if it had written that."""
        events = self.events.get((kind, key))
        return events.popleft() if events else None

    def reattach(self, attachment_of: Callable[[str], object]) -> None:
        """Give its events the attachments that were kept; ``attachment_of`` raises KeyError where none was."""
        for events in self.events.values():
            for place, event in enumerate(events):
                with suppress(KeyError):
                    events[place] = replace(event, attachment=attachment_of(event.attached_to))
