"""The heat map, the staleness ledger and the log in a real browser: their numbers are those of the tables."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

from playwright.async_api import Page, expect

from flowevolve.archives.pareto import ParetoArchive
from flowevolve.core.artifact import Artifact
from flowevolve.core.pool import Add, Candidate, Update
from flowevolve.page.tables.candidates import CandidateRow, JudgementRow, ScoreRow
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.run import LogRow
from tests.support.browser import NEEDED, show

pytestmark = NEEDED

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


async def test_the_heat_map_says_of_each_cell_what_was_measured(report: Path, tables: Tables, tab: Page) -> None:
    values = {(row.candidate, row.example): row.value for row in tables.of(ScoreRow) if row.source == "validation"}
    scored = sorted((row for row in tables.of(CandidateRow) if row.score is not None), key=lambda row: row.place)
    best = max(scored, key=lambda row: row.score or 0)
    await show(tab, f"{report.as_uri()}#/heat")
    await expect(tab.locator("main select").first).to_contain_text(f"({len(scored)})")
    await tab.get_by_label("examples").select_option("name")
    await tab.locator(".map").focus()
    await tab.keyboard.press("ArrowDown")
    first = min((example for candidate, example in values if candidate == best.id), key=int)
    said = tab.locator(".said")
    await expect(said).to_contain_text(best.id)
    await expect(said).to_contain_text(f"example {first}")
    await expect(said).to_contain_text(f"{values[best.id, first]:.4f} (one run)")
    await tab.keyboard.press("Enter")
    await tab.wait_for_url(f"**candidate={best.id}")
    assert await tab.evaluate(FRONT % json.dumps(_drawn_scores())) == _front(_drawn_scores())


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


async def test_the_ledger_and_the_log_count_what_the_tables_hold(report: Path, tables: Tables, tab: Page) -> None:
    judged = list(tables.of(JudgementRow))
    events = list(tables.of(LogRow))
    await show(tab, f"{report.as_uri()}#/staleness")
    await tab.locator(".rows .body .row").first.wait_for()
    sums = await tab.locator(".sums tbody td:nth-child(2)").all_inner_texts()
    assert sum(map(int, sums)) == len(judged)
    repaired = next(row for row in judged if row.verdict == "orthogonal")
    await show(tab, f"{report.as_uri()}#/staleness?item={repaired.item}")
    assert repaired.reason is not None
    await expect(tab.locator(".details")).to_contain_text(repaired.reason)
    for text in repaired.patch.values():
        await expect(tab.locator(".details .diff").last).to_contain_text(str(text))
    await tab.keyboard.press("9")
    summary = tab.locator(".view-log .summary")
    await expect(summary).to_contain_text(f"{len(events):,} events")
    kind, count = Counter(row.kind for row in events).most_common(1)[0]
    await tab.get_by_label("kind").select_option(kind)
    await expect(summary).to_have_text(f"{count} of {len(events):,} events")
    await tab.get_by_label("kind").select_option("")
    await tab.get_by_label("level").select_option("info")
    notable = sum(row.level != "debug" for row in events)
    assert 0 < notable < len(events)
    await expect(summary).to_have_text(f"{notable} of {len(events):,} events")
