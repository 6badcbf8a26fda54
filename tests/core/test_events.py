"""Events are numbered without gaps, timed from the beginning of the run, and reach every sink."""

from __future__ import annotations

from flowevolve.core.event_body import OwnEvent
from flowevolve.core.events import Event, EventLog


def test_events_are_numbered_and_reach_every_sink_until_it_leaves() -> None:
    now = [10.0]
    log = EventLog(lambda: now[0])
    log.start()
    first: list[Event] = []
    second: list[Event] = []
    log.subscribe(first.append)
    leave = log.subscribe(second.append)
    log.emit(OwnEvent("a", {}))
    leave()
    now[0] = 12.5
    log.emit(OwnEvent("b", {"x": 1}))
    assert [(event.seq, event.time, event.kind) for event in first] == [(0, 0.0, "a"), (1, 2.5, "b")]
    assert len(second) == 1


def test_a_log_goes_on_where_an_earlier_one_ended() -> None:
    now = [100.0]
    log = EventLog(lambda: now[0], first=7, elapsed=30.0)
    log.start()
    seen: list[Event] = []
    log.subscribe(seen.append)
    now[0] = 101.0
    log.emit(OwnEvent("a", {}))
    assert [(event.seq, event.time) for event in seen] == [(7, 31.0)]


def test_time_stands_still_until_the_log_is_started() -> None:
    now = [100.0]
    log = EventLog(lambda: now[0], elapsed=30.0)
    seen: list[Event] = []
    log.subscribe(seen.append)
    now[0] = 107.0
    log.emit(OwnEvent("a", {}))
    assert log.start() == 77.0
    now[0] = 108.0
    assert log.start() == 77.0
    log.emit(OwnEvent("b", {}))
    assert [event.time for event in seen] == [30.0, 31.0]


def test_an_attachment_is_not_part_of_the_json() -> None:
    seen: list[Event] = []
    log = EventLog(lambda: 0.0)
    log.subscribe(seen.append)
    log.emit(OwnEvent("a", {"item": "3.0"}), attachment=object())
    assert seen[0].attachment is not None
    assert seen[0].to_json() == '{"seq":0,"t":0.0,"kind":"a","item":"3.0"}'
