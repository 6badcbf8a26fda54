from __future__ import annotations

from flowevolve._util.json_types import JSON
from flowevolve.core.events import Event
from flowevolve.page.projection.candidates import Candidates
from flowevolve.page.projection.cells import Cells
from flowevolve.page.tables.candidates import CellRow
from flowevolve.page.tables.memory import Tables
from tests.page.projection.test_sources import proposed
from tests.support.some_events import some_changes, some_event


def committed(seq: int, **change: JSON) -> Event:
    return some_event(seq, "pool.commit", changes=some_changes(**change))


def on_islands(*events: Event) -> list[CellRow]:
    candidates = Candidates()
    cells = Cells(candidates)
    changed = (row for event in events for rows in (candidates.event(event), cells.event(event)) for row in rows)
    return list(Tables(changed).of(CellRow))


PROPOSED = proposed(0, "c0", "1")
ADDED = committed(1, add="c0", status="speculative", scores={"1": 0.9}, attributes={"island": 1})


def test_a_candidate_on_an_island_has_the_score_of_its_verdict() -> None:
    (before,) = on_islands(PROPOSED, ADDED)
    (after,) = on_islands(PROPOSED, ADDED, committed(2, move="c0", status="confirmed", scores={"1": 0.9, "2": 0.1}))
    assert (before.archive, before.candidate, before.score) == ("island 1", "c0", 0.9)
    assert (after.archive, after.candidate, after.score) == ("island 1", "c0", 0.5)
    assert after.seconds == before.seconds


def test_a_candidate_on_an_island_that_is_measured_anew_has_the_new_score() -> None:
    (row,) = on_islands(PROPOSED, ADDED, committed(2, annotate="c0", scores={"1": 0.25}))
    assert row.score == 0.25
