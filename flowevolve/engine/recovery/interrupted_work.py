"""What a stage had done for an item when a run was interrupted, so that nothing is done twice.

A stage's work is run again from its start. Replies come back from the journal, and whatever the stage had proposed,
handed on, committed and logged is recognised. The stage may take another course this time, because the pool may have
changed: what is not recognised is simply done.
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
    """A result that is computed only once, as an event's attachment."""

    value: object


@dataclass(slots=True)
class InterruptedWork:
    """The effects of one stage's unfinished work on one item, oldest first. Each is removed when it is recognised."""

    proposals: list[Candidate] = field(default_factory=list)
    sent: deque[ItemSent] = field(default_factory=deque)
    commits: deque[Update] = field(default_factory=deque)
    events: dict[tuple[str, str | None], deque[Event]] = field(default_factory=dict)
    comments: int = 0
    """How many comments there were when the work began."""
    children: int = 0
    """How many items the work had handed on. This is also the number of the next one."""

    def proposed(self, artifact: Artifact, parents: Sequence[Candidate], operator: str) -> Candidate | None:
        """The candidate that the work had proposed with this artifact, parents and operator, if there is one."""
        names = tuple(parent.id for parent in parents)
        for candidate in self.proposals:
            if (candidate.artifact, candidate.parents, candidate.operator) == (artifact, names, operator):
                self.proposals.remove(candidate)
                return candidate
        return None

    def handed_on(self, stage: str, payload: object) -> bool:
        """Whether such an item was handed on already, judging by the stage and the type of the payload."""
        if self.sent and (self.sent[0].stage, self.sent[0].payload) == (stage, type(payload).__name__):
            self.sent.popleft()
            return True
        return False

    def committed(self) -> Update | None:
        """The update of the work's next commit, if there was one already. It counts even if the commit would differ
        now.
        """
        return self.commits.popleft() if self.commits else None

    def logged(self, kind: str, key: str | None) -> Event | None:
        """The work's next event of this kind and with this key, if it was written already."""
        events = self.events.get((kind, key))
        return events.popleft() if events else None

    def reattach(self, attachment_of: Callable[[str], object]) -> None:
        """Give the work's events the attachments that were kept; ``attachment_of`` raises KeyError if none was."""
        for events in self.events.values():
            for place, event in enumerate(events):
                with suppress(KeyError):
                    events[place] = replace(event, attachment=attachment_of(event.attached_to))
