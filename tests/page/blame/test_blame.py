"""Blame of a run: the candidate, the request and the examples that a sentence came from, as the journal has them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from flowevolve.core.item_ids import flow_of
from flowevolve.journal.reading import RecordedRun
from flowevolve.page.blame.blame import blame
from flowevolve.page.reading.source import RunSource
from flowevolve.page.tables.candidates import BatchRow, BlameRow, CandidateRow, ComponentRow
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.run import RunRow
from flowevolve.page.tables.work import CallRow


@pytest.fixture(scope="module")
def rows(directory: Path, tables: Tables) -> list[BlameRow]:
    """The blame of all candidates."""
    with RunSource(directory, "ended") as source:
        return blame(tables, [row.id for row in tables.of(CandidateRow)], source.reply)


def text_of(tables: Tables, row: BlameRow) -> str:
    component = tables.get(ComponentRow, row.candidate, row.component)
    assert component is not None
    assert component.text is not None
    return component.text[row.start : row.end]


def test_every_sentence_of_every_candidate_is_in_it_once(tables: Tables, rows: list[BlameRow]) -> None:
    for component in tables.of(ComponentRow):
        mine = [row for row in rows if (row.candidate, row.component) == (component.candidate, component.component)]
        assert [row.place for row in mine] == list(range(len(mine)))
        assert "".join("".join(text_of(tables, row).split()) for row in mine) == "".join((component.text or "").split())


def test_a_sentence_was_written_by_a_request_for_its_origin_with_the_examples_of_that_flow(
    directory: Path, tables: Tables, rows: list[BlameRow]
) -> None:
    batches = {flow_of(row.item): row.examples for row in tables.of(BatchRow)}
    reflected = 0
    with RecordedRun(directory) as recorded:
        for row in rows:
            origin = tables.get(CandidateRow, row.origin)
            assert origin is not None
            if row.how == "seed":
                assert (row.origin, row.calls, row.examples) == ("c0", (), ())
            if row.how != "edit" or origin.operator != "reflect":
                continue
            reflected += 1
            assert row.examples == batches[origin.flow]
            for number in row.calls:
                call, found = tables.get(CallRow, number), recorded.call(number)
                assert call is not None
                assert found is not None
                assert (call.role, call.flow) == ("reflection", origin.flow)
                assert text_of(tables, row).removeprefix("- ") in (found.reply or "")
    assert reflected > 10


def test_a_repair_has_the_sentence_of_the_stale_edit(tables: Tables, rows: list[BlameRow]) -> None:
    repairs = {row.id: row for row in tables.of(CandidateRow) if row.operator == "repair"}
    brought = [row for row in rows if row.candidate in repairs and len(row.path) == 2 and row.origin != "c0"]
    stale = {repairs[row.candidate].sources[-1] for row in brought}
    assert repairs
    assert stale & {row.origin for row in brought}


def test_places_are_counted_as_a_browser_counts_them(tables: Tables) -> None:
    run = next(tables.of(RunRow))
    seed = next(tables.of(CandidateRow))
    text = "One 🙂. Two \ud800 e\u0301. 🙂 Three."
    odd = Tables([run, seed, ComponentRow(seed.id, "prompt", text, len(text))])
    units = text.encode("utf-16-le", "surrogatepass")
    said = [units[2 * row.start : 2 * row.end] for row in blame(odd, [seed.id], lambda _: None)]
    assert [each.decode("utf-16-le", "surrogatepass") for each in said] == [
        "One 🙂.",
        "Two \ud800 e\u0301.",
        "🙂 Three.",
    ]


def test_programs_are_blamed_line_by_line_and_a_text_that_was_left_out_is_not(tables: Tables) -> None:
    run = replace(next(tables.of(RunRow)), kind="program")
    seed = next(tables.of(CandidateRow))
    child = replace(seed, id="c1", place=1, item="1", sources=(seed.id,))
    texts = [(seed.id, "x = 1.5\ny = 2"), (child.id, "x = 1.5\ny = 3"), (child.id, None)]
    components = [ComponentRow(name, f"part {text is None}", text, 0) for name, text in texts]
    found = blame(Tables([run, seed, child, *components]), [child.id, "unknown"], lambda _: None)
    assert [row.origin for row in found] == [seed.id, child.id]
