"""The event log: one ordered stream of facts about a run.

Events are numbered from 0 without gaps and carry the loop's time since the run began. Everything that watches a run
(journal, progress, metrics, a caller's ``async for``) reads this stream and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path

from flowevolve._util.errors import InputError
from flowevolve._util.json_text import json_text
from flowevolve._util.json_types import JSON
from flowevolve._util.values import value
from flowevolve.core import server_event_kinds  # noqa: F401 - `read_body` knows only kinds that were imported
from flowevolve.core.event_body import EventBody, read_body
from flowevolve.core.event_kinds import ItemSent
from flowevolve.core.item_ids import ItemId, WorkPart


@value
class Event:
    """One fact. ``time`` is seconds since the run began; ``kind`` is ``subject.verb``; see docs/reference/events.md."""

    seq: int
    time: float
    kind: str
    data: Mapping[str, JSON]
    """The fields of the event in their JSON form."""
    attachment: object | None = None
    """Travels with the event to the journal, which stores it separately; it is not part of the JSON."""
    _body: EventBody | None = field(default=None, repr=False, compare=False)
    _directory: Path | None = field(default=None, repr=False, compare=False)
    """The run directory that the event was read from; None if it was written in this process."""

    @classmethod
    def of(cls, seq: int, time: float, body: EventBody, attachment: object | None = None) -> Event:
        return cls(seq, time, body.kind, body.to_json(), attachment, body)

    @property
    def body(self) -> EventBody:
        """The fields as an object of the kind's class (in `core.event_kinds` or `core.server_event_kinds`).

        Raises:
            InputError: if the event was read from a journal and does not have the fields of its kind.
        """
        if self._body is None:
            try:
                body = read_body(self.kind, self.data)
            except ValueError as error:
                raise InputError(
                    f"{not_followed(self)}: {error}. Read it with the version of flowevolve that wrote it, or keep "
                    f"what came before this event: flowevolve repair {self._directory or 'DIR'}"
                ) from error
            object.__setattr__(self, "_body", body)
            return body
        return self._body

    @property
    def attached_to(self) -> str:
        """The name under which the attachment is kept: the item that is sent, or a part of the work on an item."""
        part = None if isinstance(self.body, ItemSent) else str(self.seq)
        return str(WorkPart(ItemId(str(self.data["item"])), part))

    def to_json(self) -> str:
        """One line of ``events.jsonl``. Times are rounded to the microsecond, the loop's own resolution."""
        return json_text({"seq": self.seq, "t": round(self.time, 6), "kind": self.kind, **self.data})


def not_followed(event: Event) -> str:
    """The beginning of a message which says that the journal can't be followed at this event."""
    named = "" if event._directory is None else f"{event._directory}: "
    return f"{named}the journal can't be followed at event {event.seq}"


Sink = Callable[[Event], None]
Log = Callable[[EventBody], None]
"""Writes an event into the log of a run."""


def log_nothing(body: EventBody) -> None:
    """The `Log` for use without a run."""


class EventLog:
    """Numbers events and hands each to every sink, in order, before ``emit`` returns.

    Sinks must not block and must not raise: a slow consumer buffers on its own side. To continue a log, give the number
    of its next event as ``first`` and its duration so far, in seconds, as ``elapsed``. Its time stands still until
    `start`: events that occur while a run is put together, such as an endpoint that does not answer, get that time.
    """

    def __init__(self, now: Callable[[], float], *, first: int = 0, elapsed: float = 0.0) -> None:
        self._now = now
        self._before = elapsed
        self._origin: float | None = None
        self._next = first
        self._sinks: list[Sink] = []

    def subscribe(self, sink: Sink) -> Callable[[], None]:
        """Pass all later events to ``sink``; calling the returned function ends that."""
        self._sinks.append(sink)
        return lambda: self._sinks.remove(sink)

    def emit(self, body: EventBody, attachment: object | None = None) -> None:
        event = Event.of(self._next, self.elapsed(), body, attachment)
        self._next += 1
        for sink in self._sinks:
            sink(event)

    def start(self) -> float:
        """Begin to count time, unless that has begun already.

        Returns the loop's time, in seconds, at which the run would have begun if it had never been interrupted.
        """
        if self._origin is None:
            self._origin = self._now() - self._before
        return self._origin

    def elapsed(self) -> float:
        """Seconds since the run began."""
        return self._before if self._origin is None else self._now() - self._origin
