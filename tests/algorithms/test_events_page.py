"""Whole runs of the algorithms write nothing but what the page about events says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from flowevolve._util.json_types import JSON
from flowevolve.core.event_kinds import CandidateProposed, PoolCommitted
from flowevolve.core.events import Event
from flowevolve.core.logged_changes import LoggedAdd, LoggedAnnotate, LoggedNote
from tests.support.depth import LONG
from tests.support.field_tables import OPTIONAL, entries, fits, rows, section
from tests.support.odd_runs import SETTINGS, evolve

ALGORITHMS = list(SETTINGS) if LONG else [name for name in SETTINGS if name not in ("combee", "levi")]
NOTES = entries(section("events.md", "Notes"))
EVENTS = [each for each in entries(section("events.md")) if each not in NOTES]
ATTRIBUTES = rows(section("events.md", "Attributes of candidates"))
OF_STAGES = {"stage": "text", "item": "text", "key": "text, optional", "value": "text, optional"}


def is_as_told(data: Mapping[str, JSON], types: Mapping[str, str]) -> bool:
    """Whether all fields are listed and of their types, and none is missing that has to be there."""
    return all(name in types and fits(value, types[name]) for name, value in data.items()) and all(
        name in data for name, spelling in types.items() if not spelling.endswith(OPTIONAL)
    )


def notes_in(event: Event) -> Iterator[LoggedNote]:
    if isinstance(event.body, PoolCommitted):
        yield from (change for change in event.body.changes if isinstance(change, LoggedNote))


def attributes_in(event: Event) -> Iterator[Mapping[str, JSON]]:
    match event.body:
        case CandidateProposed(attributes=attributes):
            yield attributes
        case PoolCommitted(changes=changes):
            yield from (each.attributes for each in changes if isinstance(each, LoggedAdd | LoggedAnnotate))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_run_writes_what_the_page_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for event in evolve(name, None, monkeypatch, tmp_path).events:
        told = [
            {**OF_STAGES, **each.types} if each.of_stage else each.types for each in EVENTS if each.name == event.kind
        ]
        assert any(is_as_told(event.data, types) for types in told), event
        for note in notes_in(event):
            assert any(is_as_told(note.data, each.types) for each in NOTES if each.name == note.note), note
        for attributes in attributes_in(event):
            assert all(name in ATTRIBUTES and fits(value, ATTRIBUTES[name]) for name, value in attributes.items())
