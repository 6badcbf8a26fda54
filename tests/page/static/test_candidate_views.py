"""The views of the lineage, of a candidate and of programs in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowevolve.page.reading.source import RunSource
from flowevolve.page.report.report import write_report
from flowevolve.page.tables.candidates import CandidateRow, ComponentRow, ScoreRow
from flowevolve.page.tables.memory import Tables
from flowevolve.runner.result import Result
from tests.support.browser import PATH, Tab, browser

pytestmark = [pytest.mark.asyncio, pytest.mark.skipif(PATH is None, reason="there is no Chromium")]

WORDS = "[...document.querySelectorAll('.blame .words')].map((each) => each.textContent).join('\\n')"
"""The text that is shown with the origins of its sentences."""


async def go(tab: Tab, view: str, seen: str) -> None:
    await tab.run(f"void (location.hash = '#/{view}')")
    await tab.until(seen)


async def test_the_views_of_candidates_say_what_the_tables_say(directory: Path, result: Result, tmp_path: Path) -> None:
    report = write_report([directory], tmp_path / "report.html")
    with RunSource(directory, "ended") as source:
        tables = Tables(source.changes())
    assert result.best is not None
    best = tables.get(CandidateRow, result.best.id)
    assert best is not None
    (text,) = [each.text for each in tables.of(ComponentRow) if each.candidate == best.id]
    async with browser() as tab:
        await tab.open(report.as_uri())
        await go(tab, "lineage", "document.querySelector('.blame')")
        assert await tab.run(WORDS) == text
        origin = await tab.run("[...document.querySelectorAll('.origin')].at(-1).textContent")
        await tab.run("[...document.querySelectorAll('.sentence')].at(-1).click()")
        await tab.until("document.querySelector('.card')")
        assert f"Came in with {origin}" in await tab.run("document.querySelector('.card').innerText")
        await tab.run("document.querySelector('.card .call summary').click()")
        await tab.until("document.querySelector('.card .call mark')")
        await tab.run("document.querySelector('canvas').focus()")
        await tab.press("ArrowLeft")
        await tab.until(f"document.querySelector('.chosen h2').textContent.startsWith('{best.parents[0]} ')")

        await go(tab, f"candidate?candidate={best.id}", "document.querySelector('.view-candidate table')")
        assert f"{best.score:.4f}" in await tab.run("document.querySelector('.figures').innerText")
        await tab.run("document.querySelector('section[aria-label=scores] > button').click()")
        validated = [row for row in tables.of(ScoreRow) if (row.candidate, row.source) == (best.id, "validation")]
        await tab.until(f"document.querySelectorAll('.scores tbody tr').length === {len(validated)}")
        assert await tab.run(
            "document.querySelectorAll('section[aria-label=\"The requests that wrote it\"] .call').length"
        )

        await go(tab, "programs", "document.querySelector('.view-programs .empty')")
        assert "keeps no archive and no islands" in await tab.run("document.querySelector('.empty').textContent")
        await tab.run("flowevolve.put(flowevolve.run, 'cells', [['map', '3', [0.5], 'c0', 0.25, 1]])")
        await tab.until("document.querySelector('.tile')")
        assert await tab.run("document.querySelector('.tile').innerText.replace(/\\s+/g, ' ')") == "cell 3 0.2500"
    assert tab.problems == []
