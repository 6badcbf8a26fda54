"""A run as a trace in the format of Chrome's trace viewer, which Perfetto opens.

The format: "Trace Event Format", Google, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
Times are in microseconds. Each event is written as soon as it is known, so that memory holds only what is still open.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from flowevolve._util.console import shown
from flowevolve._util.json_types import JSON
from flowevolve.core.item_ids import ItemId, parent_and_number
from flowevolve.journal.files import ELSEWHERE, PART, refuse_link, write_whole, writing
from flowevolve.page.projection.projection import Slots
from flowevolve.page.projection.rates import Rates
from flowevolve.page.reading.source import RunSource, run_name
from flowevolve.page.tables.candidates import CandidateRow, CurveRow, JudgementRow
from flowevolve.page.tables.columns import in_object
from flowevolve.page.tables.row import Row
from flowevolve.page.tables.run import LogRow, MoveRow, ServerRow, StageRow
from flowevolve.page.tables.work import CallRow, SpanRow

TRACE = "trace.json"
DECISIONS = "pool and decisions"
"""The process, in the trace, of instant events and of counters."""
COMMITS = "commits"
DIGITS = 4
"""Decimals of counters."""
STEPS = 2000
"""Into how many steps a run is divided for its counters of requests in flight and tokens."""

Event = dict[str, JSON]


def write_trace(path: Path, out: Path | None = None) -> Path:
    """Write what the run in a directory has done up to now as ``trace.json`` into the folder ``out``, by default
    ``export`` in the run directory, and return the file's path.

    Raises:
        DamagedError: if the journal is damaged.
        InputError: if there is no run, or the file can't be written.
    """
    if out is None:
        out = path / "export"
        refuse_link(out)
    file = out / TRACE
    with RunSource(path, run_name(path)) as source, writing(file, ELSEWHERE):
        out.mkdir(parents=True, exist_ok=True)
        file.with_name(file.name + PART).unlink(missing_ok=True)  # it may be a link to a file elsewhere
        write_whole(file, _lines(source))
    return file


def _lines(source: RunSource) -> Iterator[str]:
    """The file, with one event per line."""
    trace = _Trace(source.recorded.seconds())
    about = {"run": source.name, "algorithm": source.config.algorithm.name}
    yield f'{{"displayTimeUnit": "ms", "otherData": {json.dumps(about)}, "traceEvents": [\n'
    separator = ""
    for row in source.changes():
        for event in trace.events(row):
            yield separator + json.dumps(event)
            separator = ",\n"
    for event in trace.end():
        yield separator + json.dumps(event)
        separator = ",\n"
    yield "\n]}\n"


@dataclass(frozen=True, slots=True)
class _Lane:
    """A row of the trace: a thread of a process, as the format calls it."""

    pid: int
    tid: int


class _Lanes:
    """The lanes, which get their numbers and names when they are used for the first time."""

    def __init__(self) -> None:
        self._processes: dict[str, int] = {}
        self._lanes: set[_Lane] = set()
        self.unnamed: list[Event] = []
        """Events that name lanes, and are not written yet."""

    def lane(self, process: str, number: int, name: str) -> _Lane:
        """The lane with this number, from 0, in a process; ``name`` is for a new one."""
        pid = self._processes.get(process)
        if pid is None:
            pid = self._processes[process] = len(self._processes) + 1
            self._name("process_name", pid, 0, {"name": shown(process)})
            self._name("process_sort_index", pid, 0, {"sort_index": pid})
        lane = _Lane(pid, number + 1)
        if lane not in self._lanes:
            self._lanes.add(lane)
            self._name("thread_name", pid, lane.tid, {"name": name})
            self._name("thread_sort_index", pid, lane.tid, {"sort_index": number})
        return lane

    def _name(self, what: str, pid: int, tid: int, args: Event) -> None:
        self.unnamed.append({"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": args})


@dataclass(slots=True)
class _Work:
    """The work on an item that has not ended, or that ended before the work on all items that it sent."""

    lane: _Lane
    taken: float
    """In seconds."""
    begin: int
    """In microseconds. If several works without duration follow one another in a lane, each begins a microsecond after
    the one before it, so that readers can tell which of them an arrow belongs to.
    """
    done: bool
    unsent: list[Event]
    """Arrows that begin at this work, and are written after it."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """Where and when an item was sent."""

    work: _Work
    time: int
    """In microseconds, before the end of the work."""


class _Trace:
    """Makes the events of the trace from rows in the order in which the journal has them."""

    def __init__(self, seconds: float) -> None:
        self._lanes = _Lanes()
        self._lanes.lane(DECISIONS, 0, COMMITS)
        self._rates = Rates(seconds, STEPS)
        self._seconds = seconds
        self._now = 0.0
        self._slots: dict[str, Slots] = defaultdict(Slots)
        self._spans: dict[str, SpanRow] = {}
        self._work: dict[str, _Work] = {}
        self._sent: dict[str, _Sent] = {}
        self._ends: dict[_Lane, int] = {}
        self._arrows = 0
        self._status: dict[str, str] = {}

    def events(self, row: Row) -> Iterator[Event]:
        """The events that a row adds."""
        yield from self._named(self._of(row))

    def end(self) -> Iterator[Event]:
        """The events that are known only when there are no more rows: the work that was cut off, and the counters."""
        yield from self._named(self._cut_off())
        for role, values in self._rates.in_flight.items():
            yield from self._counters(f"requests in flight: {role}", values)
        yield from self._counters("completion tokens/s", self._rates.tokens)

    def _named(self, events: Iterator[Event]) -> Iterator[Event]:
        """Events, with the names of new lanes in front."""
        for event in events:
            yield from self._lanes.unnamed
            self._lanes.unnamed.clear()
            yield event

    def _of(self, row: Row) -> Iterator[Event]:
        match row:
            case LogRow():
                self._now = row.seconds
            case StageRow():
                self._lanes.lane(row.stage, 0, "worker 0")
            case CallRow():
                yield self._call(row)
            case SpanRow():
                yield from self._span(row)
            case CandidateRow():
                yield from self._candidate(row)
            case CurveRow(series="validation", version=version) if version >= 0:
                yield from self._counter("best validation score", row.seconds, row.score)
            case JudgementRow():
                yield self._instant(1, f"{row.verdict or row.policy}: {row.candidate or row.item}", row)
            case MoveRow():
                yield from self._move(row)
            case ServerRow():
                yield from self._counter("server: requests running", row.seconds, row.running)
                yield from self._counter("server: requests waiting", row.seconds, row.waiting)

    def _call(self, row: CallRow) -> Event:
        self._rates.take(row)
        slot = self._slots[row.role].take(row.begun, row.ended)
        lane = self._lanes.lane(f"requests of {row.role}", slot, f"slot {slot}")
        named = f"{row.stage} {row.candidate or row.item}"
        about = ("id", "model", "stage", "item", "part", "candidate", "template", "queued", "attempts", "error")
        counted = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost", "outcome")
        begin, end = _microseconds(row.begun), _microseconds(row.ended)
        return _slice(lane, row.role, named, begin, end, _args(row, *about, *counted))

    def _span(self, row: SpanRow) -> Iterator[Event]:
        self._note_sending(row)
        self._begin(row)
        if row.done is None:
            self._spans[row.item] = row
            return
        self._spans.pop(row.item, None)
        if row.item in self._work:
            yield from self._worked(row, row.done)
        self._work.pop(row.item, None)
        self._sent.pop(row.item, None)

    def _note_sending(self, row: SpanRow) -> None:
        """Note that an item was sent, in the work on the one that it was made from."""
        if row.source is not None and row.item not in self._sent:
            parent, _ = parent_and_number(ItemId(row.item))
            if parent in self._work:
                work = self._work[parent]
                self._sent[row.item] = _Sent(work, max(work.begin, _microseconds(row.sent) - 1))

    def _begin(self, row: SpanRow) -> None:
        """Note when work on an item begins. Work that was cut off and begins anew after a resume is forgotten."""
        known = self._work.get(row.item)
        if known is not None and known.taken == row.taken:
            return
        self._work.pop(row.item, None)
        if row.taken is not None and row.worker is not None:
            lane = self._lanes.lane(row.stage, row.worker, f"worker {row.worker}")
            sent = self._sent.get(row.item)
            after = 0 if sent is None else sent.time
            begin = max(_microseconds(row.taken), after, self._ends.get(lane, 0))
            self._work[row.item] = _Work(lane, row.taken, begin, done=False, unsent=[])

    def _worked(self, row: SpanRow, ended: float) -> Iterator[Event]:
        work = self._work[row.item]
        about = ("item", "candidate", "state", "reason", "gap", "judged")
        counted = ("sent", "busy", "rollouts", "tokens", "cost")
        name = row.candidate or f"item {row.item}"
        end = self._ends[work.lane] = max(_microseconds(ended), work.begin + 1)
        yield _slice(work.lane, "work", name, work.begin, end, _args(row, *about, *counted))
        yield from work.unsent
        work.done = True
        sent = self._sent.get(row.item)
        if sent is not None and sent.work.done:
            yield from self._arrow(sent, work)
        elif sent is not None:
            sent.work.unsent += self._arrow(sent, work)

    def _arrow(self, sent: _Sent, work: _Work) -> tuple[Event, Event]:
        """The two ends of an arrow from the work in which an item was sent to the work on it."""
        self._arrows += 1
        same: Event = {"name": "sent", "cat": "item", "id": self._arrows}
        here, there = sent.work.lane, work.lane
        begin: Event = {"ph": "s", **same, "pid": here.pid, "tid": here.tid, "ts": sent.time}
        return begin, {"ph": "f", "bp": "e", **same, "pid": there.pid, "tid": there.tid, "ts": work.begin}

    def _cut_off(self) -> Iterator[Event]:
        for row in list(self._spans.values()):
            if row.item in self._work:
                yield from self._worked(row, self._seconds)

    def _candidate(self, row: CandidateRow) -> Iterator[Event]:
        if row.status in (self._status.get(row.id, "proposed"), "proposed"):
            return
        self._status[row.id] = row.status
        yield self._instant(0, f"{row.status}: {row.id}", row, "operator", "parents", "score", "examples", "reason")

    def _move(self, row: MoveRow) -> Iterator[Event]:
        subject = "" if row.subject is None else f" {row.subject}"
        change = "" if row.after is None else f": {row.after:g}"
        yield self._instant(2, f"{row.kind}{subject}{change}", row, "before", "after", "reason")
        if row.after is not None:
            yield from self._counter(f"{row.kind}{subject}", row.seconds, row.after)

    def _instant(self, number: int, name: str, row: Row, *columns: str) -> Event:
        """Something that happens at a moment: a commit, a verdict, a decision."""
        lane = self._lanes.lane(DECISIONS, number, (COMMITS, "staleness", "limits and workers")[number])
        if isinstance(row, JudgementRow):
            columns = ("item", "stage", "gap", "policy", "candidate", "parent", "head", "verdict", "reason", "error")
        return {
            "ph": "i",
            "s": "t",
            "cat": "decision",
            "name": shown(name),
            "pid": lane.pid,
            "tid": lane.tid,
            "ts": _microseconds(self._now),
            "args": _args(row, *columns),
        }

    def _counters(self, name: str, values: Sequence[float]) -> Iterator[Event]:
        """The events of a counter, one for each change."""
        last = None
        for time, value in zip(self._rates.times(), values, strict=True):
            if round(value, DIGITS) != last:
                last = round(value, DIGITS)
                yield from self._counter(name, time, value)

    def _counter(self, name: str, seconds: float, value: float) -> Iterator[Event]:
        if not isfinite(value):  # which JSON does not have
            return
        lane = self._lanes.lane(DECISIONS, 0, COMMITS)
        yield {
            "ph": "C",
            "name": shown(name),
            "pid": lane.pid,
            "tid": 0,
            "ts": _microseconds(seconds),
            "args": {"value": round(value, DIGITS)},
        }


def _slice(lane: _Lane, kind: str, name: str, begin: int, end: int, args: Event) -> Event:
    return {
        "ph": "X",
        "cat": shown(kind),
        "name": shown(name),
        "pid": lane.pid,
        "tid": lane.tid,
        "ts": begin,
        "dur": end - begin,
        "args": args,
    }


def _args(row: Row, *columns: str) -> Event:
    """Those of these columns of a row that have a value."""
    values = in_object(row)
    return {name: values[name] for name in columns if values[name] not in (None, "", [], {})}


def _microseconds(seconds: float) -> int:
    return round(seconds * 1e6)
