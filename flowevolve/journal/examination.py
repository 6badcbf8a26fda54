"""Examines a journal: is everything there that was written, and as it was written? If not, how far can it be trusted?

The rows show the order in which things happened: events are numbered, and so are calls; each event says how many calls
came before it, and each call which event. So whatever is missing or altered is found at its place, and everything
before that place is a true beginning of the run. Rows that an earlier version wrote have no checksums: of these it can
only be told whether they can be read.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from flowevolve.core.event_body import read_body
from flowevolve.core.event_kinds import FlowClosed, FlowOpened, ItemSent
from flowevolve.core.item_ids import flow_of
from flowevolve.journal.checksums import checksum, payload_checksum, seed_of
from flowevolve.journal.opening import in_words
from flowevolve.journal.tables import NO_ROWS_UNCHECKED
from flowevolve.journal.texts import text_key, unpack

PAGE = 500
_FIRST_WITH_CHECKSUMS = 6
_FIRST_WITH_PAYLOADS = 3
_FIRST_CALL, _NO_EVENT = 1, -1
_UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, zlib.error)
"""The errors that may be raised when a row is taken apart that does not have the form in which rows are written."""
_ALL_UNCHECKED = (sys.maxsize, sys.maxsize)
EVENTS = "SELECT * FROM recorded_events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
CALLS = "SELECT * FROM recorded_calls WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
_ENDS = "SELECT coalesce((SELECT max(seq) FROM events), -1), coalesce((SELECT max(id) FROM calls), 0)"
_TEXT = "SELECT hash, data FROM texts WHERE id = ?"
_PAYLOADS = "SELECT item, data FROM payloads"
_PAYLOAD = "SELECT data FROM payloads WHERE item = ?"


@dataclass(frozen=True, slots=True)
class Findings:
    """What can be trusted in a journal: its beginning up to ``last_event`` and ``last_call``.

    Of the texts that calls in that beginning refer to, ``texts`` are the numbers of those that are damaged or missing.
    ``payloads`` maps the name of each payload that an item of an open flow had to the number of its event, and
    ``lost_payloads`` are the names of those that are damaged or missing. An init or a finish can't go on without its
    payloads: if one that was going on has lost any, ``usable_before`` is the number of the event of the first lost one.
    ``damage`` says what is wrong, in words; None if nothing is. ``unchecked`` are the numbers of the last event and the
    last call that have no checksums, and ``ends`` those of the last event and the last call that are there at all, as
    far as can be seen.
    """

    run: str | None
    unchecked: tuple[int, int]
    ends: tuple[int, int]
    last_event: int
    last_call: int
    texts: AbstractSet[int]
    payloads: Mapping[str, int]
    lost_payloads: AbstractSet[str]
    usable_before: int | None
    damage: str | None


def examine(
    database: sqlite3.Connection,
    schema: int,
    run: str | None = None,
    before: int = sys.maxsize,
    *,
    fields: bool,
) -> Findings:
    """Examine a journal in which the views of its schema were created (`flowevolve.journal.views`). Its run may still
    be going on.

    ``run`` is the id of the run, for use if the journal can't tell it any more. Events from the number ``before`` on
    are ignored. With ``fields`` an event must also have the fields of its kind, which takes longer to check: an event
    without them is as it was written, but nothing can follow the run beyond it.
    """
    return _Examination(database, schema, run, fields=fields).findings(before)


def rows_between(database: sqlite3.Connection, statement: str, after: int, last: int) -> Iterator[tuple[Any, ...]]:
    """The rows of ``EVENTS`` or ``CALLS`` with numbers above ``after`` and up to ``last``. They are read a page at a
    time, because a long read would keep SQLite from folding the log into the journal.

    Raises:
        sqlite3.Error: if a row can't be read, once all rows before it have been yielded.
    """
    at_once = PAGE
    while after < last:
        before = after
        try:
            for row in database.execute(statement, (after, last, at_once)):
                if row[0] <= after:
                    raise sqlite3.DatabaseError("rows are not in order")
                after = row[0]
                yield row
                if after == last:  # the rows behind it need not be readable
                    return
        except sqlite3.Error:
            if at_once == 1:
                raise
            at_once = 1  # as SQLite hands over no row if the one behind it can't be read
            continue
        if after == before:
            return


class _Examination:
    def __init__(self, database: sqlite3.Connection, schema: int, run: str | None, *, fields: bool) -> None:
        self._database = database
        self._schema = schema
        self._fields = fields
        self._damage: list[str] = []
        self._run, self._unchecked = self._read_meta(run)
        self._seed = 0 if self._run is None else seed_of(self._run)
        self._sound_texts: dict[int, bool] = {}
        self._bad_texts = dict[int, int]()
        """The damaged and missing texts, each with the first call that refers to it."""
        self._after_event = array("q")
        """For each sound call the number of the last event before it."""
        self._open: dict[int, dict[str, tuple[int, int]]] = {}
        """For each open flow the payloads of its items, each with the number of its event and its checksum."""
        self._phases = set[int]()
        """The flows of init and finish."""

    def findings(self, before: int) -> Findings:
        ends, payloads = self._snapshot()
        if self._schema >= _FIRST_WITH_CHECKSUMS and self._run is None:
            ends = _NO_EVENT, 0
        end, end_call = (sys.maxsize, sys.maxsize) if ends is None else ends
        last_call, why = self._walk_calls(end_call)
        last_event = self._walk_events(min(end, before - 1), last_call, why)
        last_call = min(last_call, bisect_right(self._after_event, last_event))
        texts = frozenset(number for number, call in self._bad_texts.items() if call <= last_call)
        if texts:
            self._damage.append(f"of the texts of messages {len(texts)} are missing or not as they were written")
        wanted = {name: kept for flow in self._open.values() for name, kept in flow.items()}
        lost = frozenset(
            name for name, (_, expected) in wanted.items() if self._payload_sum(name, payloads) != expected
        )
        if lost:
            self._damage.append(f"the payload of {min(lost)} is missing or not as it was written")
        self._check_structure()
        phases = [seq for name, (seq, _) in wanted.items() if name in lost and flow_of(name) in self._phases]
        events_of_payloads = {name: seq for name, (seq, _) in wanted.items()}
        damage = self._damage[0] if self._damage else None
        return Findings(
            self._run,
            self._unchecked,
            ends or (last_event, last_call),
            last_event,
            last_call,
            texts,
            events_of_payloads,
            lost,
            min(phases, default=None),
            damage,
        )

    def _read_meta(self, known_run: str | None) -> tuple[str | None, tuple[int, int]]:
        """The id of the run, and the numbers of the last event and the last call that have no checksums."""
        if self._schema < _FIRST_WITH_CHECKSUMS:
            return None, _ALL_UNCHECKED
        try:
            meta = dict(self._database.execute("SELECT key, value FROM meta"))
            event, call = json.loads(meta["unchecked"])
            return str(meta["run"]), (int(event), int(call))
        except (*_UNREADABLE, sqlite3.Error):
            self._damage.append("its table meta is incomplete")
            return known_run, NO_ROWS_UNCHECKED

    def _snapshot(self) -> tuple[tuple[int, int] | None, Mapping[str, int] | None]:
        """The numbers of the last event and call, and the checksums of the payloads that existed at that moment; each
        is None if it can't be read.
        """
        self._database.execute("BEGIN")
        try:
            return self._ends(), self._payload_sums()
        finally:
            self._database.rollback()

    def _ends(self) -> tuple[int, int] | None:
        try:
            event, call = self._database.execute(_ENDS).fetchone()
        except sqlite3.Error as error:
            self._damage.append(f"its end can't be read ({in_words(error)})")
            return None
        return event, call

    def _payload_sums(self) -> Mapping[str, int] | None:
        if self._schema < _FIRST_WITH_PAYLOADS:
            return {}
        try:
            return {item: payload_checksum(data) for item, data in self._database.execute(_PAYLOADS)}
        except (sqlite3.Error, TypeError):
            return None

    def _walk_calls(self, last: int) -> tuple[int, str]:
        """The number of the last call before the first one that is damaged or missing, and what is wrong with that;
        empty if nothing is.
        """
        sound, unchecked = 0, self._unchecked[1]
        try:
            for row in rows_between(self._database, CALLS, 0, last):
                number, after_event = row[0], row[1]
                if number > max(unchecked, 0) and number != sound + 1:
                    return sound, f"call {sound + 1} is missing"
                wrong = self._wrong_with(row, number <= unchecked, _call_columns)
                if wrong:
                    return sound, f"call {number} {wrong}"
                self._look_at_texts(number, row[8])
                # Calls that an earlier version wrote may lack numbers; these count as sound calls without a place.
                self._after_event.extend([after_event] * (number - sound))
                sound = number
        except sqlite3.Error as error:
            return sound, f"what comes after call {sound} can't be read ({in_words(error)})"
        return sound, ""

    def _walk_events(self, last: int, last_call: int, wrong_call: str) -> int:
        """The number of the last event before the first damage to an event, or to a call that came before one."""
        sound = _NO_EVENT
        missing_from = self._after_event[-1] if self._after_event else _NO_EVENT
        try:
            for row in rows_between(self._database, EVENTS, _NO_EVENT, last):
                seq, _, kind, data, calls, payload, _ = row
                if seq != sound + 1:
                    self._damage.append(f"event {sound + 1} is missing")
                    return sound
                wrong = self._wrong_with(row, seq <= self._unchecked[0], _event_columns)
                if not wrong and self._fields:
                    wrong = _wrong_with_fields(kind, data)
                if wrong:
                    self._damage.append(f"event {seq} {wrong}")
                    return sound
                if calls > last_call if calls is not None else wrong_call and seq > missing_from:
                    self._damage.append(wrong_call or f"call {last_call + 1} is missing")
                    return sound
                self._follow(seq, kind, data, payload)
                sound = seq
        except sqlite3.Error as error:
            place = f"what comes after event {sound}" if sound >= 0 else "the first event"
            self._damage.append(f"{place} can't be read ({in_words(error)})")
        if wrong_call:
            self._damage.append(wrong_call)
        return sound

    def _follow(self, seq: int, kind: str, data: str | bytes, payload: int | None) -> None:
        """Note which payloads must be there after this event."""
        if payload is not None:
            body = json.loads(unpack(data))
            name = str(body["item"]) if kind == ItemSent.kind else f"{body['item']}/{seq}"
            self._open.setdefault(flow_of(name), {})[name] = (seq, payload)
        elif kind == FlowClosed.kind:
            self._open.pop(json.loads(unpack(data)).get("flow"), None)
        elif kind == FlowOpened.kind:
            body = json.loads(unpack(data))
            if body.get("phase"):
                self._phases.add(body.get("flow"))

    def _wrong_with(self, row: tuple[Any, ...], unchecked: bool, take_apart: Callable[[tuple[Any, ...]], None]) -> str:
        """What is wrong with a row, in words that follow its name; empty if nothing is."""
        if not unchecked:
            return "" if checksum(self._seed, row[:-1]) == row[-1] else "is not as it was written"
        try:
            take_apart(row)
        except _UNREADABLE as error:
            return f"can't be read ({type(error).__name__}: {error})"
        return ""

    def _look_at_texts(self, call: int, messages: str | bytes | None) -> None:
        for _, text in [] if messages is None else json.loads(unpack(messages)):
            if isinstance(text, int) and not self._is_sound(text):
                self._bad_texts.setdefault(text, call)

    def _is_sound(self, number: int) -> bool:
        found = self._sound_texts.get(number)
        if found is None:
            try:
                row = self._database.execute(_TEXT, (number,)).fetchone()
                found = row is not None and text_key(unpack(row[1])) == row[0]
            except (*_UNREADABLE, sqlite3.Error):
                found = False
            self._sound_texts[number] = found
        return found

    def _payload_sum(self, name: str, sums: Mapping[str, int] | None) -> int | None:
        if sums is not None:
            return sums.get(name)
        try:
            row = self._database.execute(_PAYLOAD, (name,)).fetchone()
            return None if row is None else payload_checksum(row[0])
        except (TypeError, sqlite3.Error):
            return None

    def _check_structure(self) -> None:
        """Note damage that SQLite itself can find: indices that do not fit their tables, and pages that belong to
        nothing.
        """
        try:
            (found,) = self._database.execute("PRAGMA integrity_check(1)").fetchone()
        except sqlite3.Error as error:
            found = in_words(error)
        if found != "ok":
            self._damage.append(" ".join(str(found).split()))


def _wrong_with_fields(kind: str | bytes, data: str | bytes) -> str:
    try:
        read_body(unpack(kind), json.loads(unpack(data)))
    except ValueError as error:
        return f"can't be followed ({error})"
    return ""


def _event_columns(row: tuple[Any, ...]) -> None:
    seq, time, kind, data, *_ = row
    dict(json.loads(unpack(data)))
    unpack(kind)
    float(time), int(seq)


def _call_columns(row: tuple[Any, ...]) -> None:
    for place in (2, 3, 4, 5, 7, 8, 12, 13, 14, 23, 24):
        if row[place] is not None:
            unpack(row[place])
    for _, _ in json.loads(unpack(row[8])) if row[8] is not None else ():
        pass
