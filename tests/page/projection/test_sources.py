from __future__ import annotations

from collections.abc import Iterable

import pytest

from flowevolve._util.json_types import JSON
from flowevolve.core.events import Event
from flowevolve.page.projection.candidates import Candidates
from flowevolve.page.tables.candidates import BatchRow, CandidateRow
from flowevolve.page.tables.memory import Tables
from tests.support.some_events import some_event


def read(events: Iterable[Event]) -> Tables:
    candidates = Candidates()
    return Tables(row for event in events for row in candidates.event(event))


def proposed(seq: int, candidate: str, item: str, **said: JSON) -> Event:
    artifact = str(said.pop("artifact", candidate))
    components: JSON = {"prompt": artifact}
    return some_event(
        seq,
        "candidate.proposed",
        **{
            "candidate": candidate,
            "item": item,
            "artifact": artifact,
            "components": components,
            "kind_of_artifact": "prompt",
            "operator": "reflect",
            "parents": [],
            "attributes": {},
            **said,
        },
    )


def sources(*events: Event) -> dict[str, tuple[str, ...]]:
    return {row.id: row.sources for row in read(events).of(CandidateRow)}


SEED = proposed(0, "c0", "0", operator="seed")


def test_an_edit_comes_from_its_parent_and_from_those_that_its_writer_was_shown() -> None:
    selected = some_event(3, "code_evolve.selected", item="2", parent="c0", inspirations=["c1"], ancestors=["gone"])
    found = sources(SEED, proposed(1, "c1", "1", parents=["c0"]), selected, proposed(4, "c2", "2.0", parents=["c0"]))
    assert found == {"c0": (), "c1": ("c0",), "c2": ("c0", "c1")}


def test_a_group_comes_from_its_head_and_then_from_its_edits() -> None:
    edits = [proposed(number, f"c{number}", f"{number}", parents=["c0"]) for number in (1, 2)]
    group = proposed(3, "c3", "1.0", operator="group", parents=["c0"], attributes={"edits": ["c1", "c2"]})
    assert sources(SEED, *edits, group)["c3"] == ("c0", "c1", "c2")


def test_a_repair_comes_from_the_head_and_from_the_stale_edit() -> None:
    head = proposed(1, "c1", "1", parents=["c0"])
    stale = proposed(2, "c2", "2.0", parents=["c0"])
    judged = some_event(3, "repair.judged", item="2.0.r", candidate="c2", parent="c0", head="c1", patch={})
    repair = proposed(4, "c2-2", "2.0.r", operator="repair", parents=["c1", "c0"])
    assert sources(SEED, head, stale, judged, repair)["c2-2"] == ("c1", "c0", "c2")


def test_what_names_no_parent_comes_from_its_twin_or_from_the_first_one() -> None:
    copy = proposed(2, "c2", "2", operator="migrate", artifact="c1", attributes={"origin": "c1"})
    found = sources(SEED, proposed(1, "c1", "1", operator="diverse"), copy, proposed(3, "c3", "3", artifact="c1"))
    assert found == {"c0": (), "c1": ("c0",), "c2": ("c1",), "c3": ("c1",)}


def test_a_version_of_a_playbook_comes_from_the_version_before() -> None:
    versions = [proposed(number, f"c{number}", f"{number}", kind_of_artifact="playbook") for number in range(3)]
    assert sources(*versions) == {"c0": (), "c1": ("c0",), "c2": ("c1",)}


@pytest.mark.parametrize(
    ("kind", "said", "examples"),
    [
        ("gepa.selected", {"parents": ["c0"], "batch": ["a", "b"]}, ("a", "b")),
        ("ace.selected", {"example": "a", "window": None}, ("a",)),
        ("ace.learned", {"example": "a", "curate": [{"example": "b"}, {"example": "a"}, {"example": "b"}]}, ("b", "a")),
    ],
)
def test_the_examples_of_a_selection_are_kept(kind: str, said: dict[str, JSON], examples: tuple[str, ...]) -> None:
    assert list(read([some_event(0, kind, item="7", **said)]).of(BatchRow)) == [BatchRow("7", examples)]
