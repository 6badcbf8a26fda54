"""The event log: one ordered stream of facts about a run.

Events are numbered from 0 without gaps and carry the loop's time since the run began. Everything that watches a run
(journal, progress, metrics, a caller's ``async for``) reads this stream and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from flowevolve.llm.types import JSON


@dataclass(frozen=True, slots=True)
class Event:
    """One fact. ``time`` is seconds since the run began; ``kind`` is ``subject.verb``; see docs/reference/events.md."""

    seq: int
    time: float
    kind: str
    data: Mapping[str, JSON]
    attachment: object | None = None
    """Travels with the event to the journal, which keeps it apart; not part of its JSON."""

    @property
    def attached_to(self) -> str:
        """What its attachment is kept under: the item that is sent, or a part of the work on an item."""
        item = str(self.data["item"])
        return item if self.kind == "item.sent" else f"{item}/{self.seq}"

    def to_json(self) -> str:
        """One line of ``events.jsonl``. Times are rounded to the microsecond, the loop's own resolution."""
        head = {"seq": self.seq, "t": round(self.time, 6), "kind": self.kind}
        return json.dumps({**head, **self.data}, ensure_ascii=False, separators=(",", ":"))


Sink = Callable[[Event], None]
Log = Callable[[str, Mapping[str, JSON]], None]
"""Writes an event of this kind, with this data, into the log of a run."""


def log_nothing(kind: str, data: Mapping[str, JSON]) -> None:
    """The `Log` of what is used without a run."""


class EventLog:
    """Numbers events and hands each to every sink, in order, before ``emit`` returns.

    Sinks must not block and must not raise: a slow consumer buffers on its own side. A log is continued with the number
    of its next event in ``first`` and the seconds it had lasted in ``elapsed``. Its time stands still until `start`:
    what happens while a run is put together, such as an endpoint that does not answer, is written with that time.
    """

    def __init__(self, now: Callable[[], float], *, first: int = 0, elapsed: float = 0.0) -> None:
        self._now = now
        self._before = elapsed
        self._origin: float | None = None
        self._next = first
        self._sinks: list[Sink] = []

    def subscribe(self, sink: Sink) -> Callable[[], None]:
        """Hand all later events to ``sink``; the returned function ends that."""
        self._sinks.append(sink)
        return lambda: self._sinks.remove(sink)

    def emit(self, kind: str, data: Mapping[str, JSON], attachment: object | None = None) -> None:
        event = Event(self._next, self.elapsed(), kind, data, attachment)
        self._next += 1
        for sink in self._sinks:
            sink(event)

    def start(self) -> float:
        """Begin to count time, unless that was done; returns the loop's time at which the run began, time in which it
        was not running left out.
        """
        if self._origin is None:
            self._origin = self._now() - self._before
        return self._origin

    def elapsed(self) -> float:
        """Seconds since the run began."""
        return self._before if self._origin is None else self._now() - self._origin
