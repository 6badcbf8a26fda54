"""The heat map, the staleness ledger and the log in a real browser: their numbers are those of the tables."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from flowevolve.archives.pareto import ParetoArchive
from flowevolve.core.artifact import Artifact
from flowevolve.core.pool import Add, Candidate, Update
from flowevolve.page.reading.source import RunSource
from flowevolve.page.report.report import write_report
from flowevolve.page.tables.candidates import CandidateRow, JudgementRow, ScoreRow
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.run import LogRow
from flowevolve.runner.result import Result
from tests.support.browser import PATH, Tab, browser

pytestmark = [pytest.mark.asyncio, pytest.mark.skipif(PATH is None, reason="there is no Chromium")]

FRONT = """
(() => {
  const [candidates, examples, values] = %s;
  const columns = { candidate: candidates, source: candidates.map(() => "validation"), example: examples, value: values,
    repeats: candidates.map(() => 1) };
  const matrix = new modules["matrix.js"].Matrix("validation");
  const table = { length: 0, version: 0, column: (name) => columns[name] };
  for (table.length = 7; table.length < values.length; table.length += 7) {
    table.version = table.length;
    matrix.take(table);
  }
  table.version = table.length = values.length;
  matrix.take(table);
  const rows = [...matrix.candidates.keys()];
  const front = matrix.front(rows, matrix.columns(rows).best, matrix.means());
  return [...front].sort((one, other) => one - other).map((row) => matrix.candidates[row]);
})()
"""


@pytest.fixture
def report(directory: Path, result: Result, tmp_path: Path) -> Path:
    return write_report([directory], tmp_path / "report.html")


@pytest.fixture
def tables(directory: Path, result: Result) -> Tables:
    with RunSource(directory, directory.name) as source:
        return Tables(source.changes())


async def choose(tab: Tab, label: str, value: str) -> None:
    """Choose an option in the view that is shown."""
    await tab.run(
        f"(() => {{ const field = [...document.querySelectorAll('main label')].find((each) => "
        f"each.textContent.trim().startsWith({label!r})).querySelector('select'); field.value = {value!r}; "
        "field.dispatchEvent(new Event('change', { bubbles: true })); })()"
    )


async def test_the_heat_map_says_of_each_cell_what_was_measured(report: Path, tables: Tables) -> None:
    values = {(row.candidate, row.example): row.value for row in tables.of(ScoreRow) if row.source == "validation"}
    scored = sorted((row for row in tables.of(CandidateRow) if row.score is not None), key=lambda row: row.place)
    best = max(scored, key=lambda row: row.score or 0)
    async with browser() as tab:
        await tab.open(f"{report.as_uri()}#/heat")
        await tab.until("document.querySelector('.map canvas')")
        assert f"({len(scored)})" in await tab.run("document.querySelector('main select').innerText")
        await choose(tab, "examples", "name")
        await tab.run("document.querySelector('.map').focus()")
        await tab.press("ArrowDown")
        said = await tab.run("document.querySelector('.said').innerText")
        first = min((example for candidate, example in values if candidate == best.id), key=int)
        assert said.startswith(best.id)
        assert f"example {first}" in said
        assert f"{values[best.id, first]:.4f} (one run)" in said
        await tab.press("Enter")
        await tab.until(f"location.hash.endsWith('candidate={best.id}')")
        drawn = await tab.run(FRONT % json.dumps(_drawn_scores()))
    assert drawn == _front(_drawn_scores())
    assert tab.problems == []


def _drawn_scores() -> tuple[list[str], list[str], list[float]]:
    """Candidates, examples and values, in the order in which they were measured; some are not measured."""
    numbers = random.Random(3)
    rows = [
        (f"c{candidate}", f"e{example}", numbers.choice((0.0, 0.25, 0.5, 0.75, 1.0)))
        for candidate in range(40)
        for example in range(90)
        if candidate % 7 or example % 3
    ]
    candidates, examples, values = zip(*rows, strict=True)
    return list(candidates), list(examples), list(values)


def _front(scores: tuple[list[str], list[str], list[float]]) -> list[str]:
    by_candidate: dict[str, dict[str, float]] = {}
    for candidate, example, value in zip(*scores, strict=True):
        by_candidate.setdefault(candidate, {})[example] = value
    archive = ParetoArchive()
    for version, (name, mine) in enumerate(by_candidate.items(), 1):
        candidate_ = Candidate(name, Artifact({"p": name})).scored(mine)
        archive.apply(Update(version, (Add(candidate_),), "0", 0.0))
    return sorted((each.id for each in archive.confirmed), key=lambda name: int(name[1:]))


async def test_the_ledger_and_the_log_count_what_the_tables_hold(report: Path, tables: Tables) -> None:
    judged = list(tables.of(JudgementRow))
    events = list(tables.of(LogRow))
    async with browser() as tab:
        await tab.open(f"{report.as_uri()}#/staleness")
        await tab.until("document.querySelector('.rows .body .row')")
        sums = await tab.run(
            "[...document.querySelectorAll('.sums tbody tr')].map((row) => Number(row.cells[1].textContent))"
        )
        assert sum(sums) == len(judged)
        repaired = next(row for row in judged if row.verdict == "orthogonal")
        await tab.run(f"location.hash = '#/staleness?item={repaired.item}'")
        await tab.until("document.querySelector('.details .diff')")
        details = await tab.run("document.querySelector('.details').innerText")
        assert repaired.reason is not None
        assert repaired.reason in details
        for text in repaired.patch.values():
            assert await tab.run(f"[...document.querySelectorAll('.diff')].at(-1).innerText.includes({text!r})")
        await tab.press("9")
        await tab.until("document.querySelector('.view-log .rows .body .row')")
        assert f"{len(events):,} events" in await tab.run("document.querySelector('.summary').innerText")
        kind, count = Counter(row.kind for row in events).most_common(1)[0]
        await choose(tab, "kind", kind)
        await tab.until(f"document.querySelector('.summary').innerText === '{count} of {len(events):,} events'")
        await choose(tab, "kind", "")
        await choose(tab, "level", "info")
        notable = sum(row.level != "debug" for row in events)
        assert 0 < notable < len(events)
        await tab.until(f"document.querySelector('.summary').innerText === '{notable} of {len(events):,} events'")
    assert tab.problems == []
