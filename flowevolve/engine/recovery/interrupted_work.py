"""What a stage had done for an item when a run was interrupted, so that nothing is done twice.

A stage's work is run again from its start. Replies come back from the journal, and what the stage had proposed, handed
on, committed and logged is recognised. The stage may take another course this time, because the pool may have changed:
what is not recognised is simply done.
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
    """The effects of one stage's unfinished work on one item, oldest first. Each is removed when it is recognised."""

    proposals: list[Candidate] = field(default_factory=list)
    sent: deque[ItemSent] = field(default_factory=deque)
    commits: deque[Update] = field(default_factory=deque)
    events: dict[tuple[str, str | None], deque[Event]] = field(default_factory=dict)
    comments: int = 0
    """How many comments there were when it began."""
    children: int = 0
    """How many items it had handed on, which is the number of the next one."""

    def proposed(self, artifact: Artifact, parents: Sequence[Candidate], operator: str) -> Candidate | None:
        """The candidate that it had proposed with these parents and this operator, if there is one."""
        names = tuple(parent.id for parent in parents)
        for candidate in self.proposals:
            if (candidate.artifact, candidate.parents, candidate.operator) == (artifact, names, operator):
                self.proposals.remove(candidate)
                return candidate
        return None

    def handed_on(self, stage: str, payload: object) -> bool:
        """Whether an item with this payload was handed on already, as far as stage and type of payload tell."""
        if self.sent and (self.sent[0].stage, self.sent[0].payload) == (stage, type(payload).__name__):
            self.sent.popleft()
            return True
        return False

    def committed(self) -> Update | None:
        """The update of its next commit, if that was made already. It counts even if the commit would differ now."""
        return self.commits.popleft() if self.commits else None

    def logged(self, kind: str, key: str | None) -> Event | None:
        """Its next event of this kind and with this key, if that was written already."""
        events = self.events.get((kind, key))
        return events.popleft() if events else None

    def reattach(self, attachment_of: Callable[[str], object]) -> None:
        """Give its events the attachments that were kept; ``attachment_of`` raises KeyError where none was."""
        for events in self.events.values():
            for place, event in enumerate(events):
                with suppress(KeyError):
                    events[place] = replace(event, attachment=attachment_of(event.attached_to))
