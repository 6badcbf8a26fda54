"""The page in a real browser, without a network: every view is drawn, nothing fails, and it shows what the journal says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from flowevolve.core.event_kinds import CandidateProposed, RunStarted
from flowevolve.core.events import EventLog
from flowevolve.core.item_ids import ItemId
from flowevolve.journal.run_directory import RunDirectory
from flowevolve.page.live.server import serve_page
from flowevolve.page.reading.source import RunSource
from flowevolve.page.report.report import write_report
from flowevolve.page.tables.contract import TABLES
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.run import RunRow
from flowevolve.runner.result import Result
from tests.support.browser import PATH, Tab, browser

pytestmark = [pytest.mark.asyncio, pytest.mark.skipif(PATH is None, reason="there is no Chromium")]

HOSTILE = "<script>window.ran = true</script><img src=x onerror='window.ran = true'>"
SIZES = "Object.fromEntries(Object.values(flowevolve.runs.get(flowevolve.run).tables).map((each) => [each.name, each.length]))"


async def visit_all(tab: Tab) -> list[str]:
    """Go to each view by its key; returns their titles."""
    titles: list[str] = await tab.run("[...document.querySelectorAll('nav a')].map((each) => each.textContent)")
    for number, title in enumerate(titles):
        await tab.press(str(number + 1))
        await tab.until(f"document.querySelector('nav a[aria-current=page]')?.textContent === {title!r}")
        await tab.until("document.querySelector('main').childNodes.length")
    return titles


async def test_a_report_shows_every_view_and_what_the_journal_says(
    directory: Path, result: Result, tmp_path: Path
) -> None:
    report = write_report([directory], tmp_path / "report.html")
    with RunSource(directory, directory.name) as source:
        tables = Tables(source.changes())
    async with browser() as tab:
        await tab.open(report.as_uri())
        assert len(await visit_all(tab)) == 9
        sizes = await tab.run(SIZES)
        head = await tab.run("document.querySelector('header').innerText")
        assert await tab.run("flowevolve.callTexts(1).then((texts) => texts.reply)")
    assert tab.problems == []
    assert result.best is not None
    assert f"{result.seed_score:.4f} → {result.best.score:.4f}" in head
    assert {name: size for name, size in sizes.items() if name != "blame"} == {
        name: len(list(tables.of(table))) for name, table in TABLES.items() if name != "blame"
    }


async def test_what_models_wrote_is_text_in_every_view(tmp_path: Path) -> None:
    path = tmp_path / "<b>run"
    run = RunDirectory(path, {"budget": {"seconds": 1}, "task": {"name": HOSTILE}, "llm": {"backend": "sim"}})
    log = EventLog(lambda: 0.0)
    log.subscribe(run.event)
    log.emit(RunStarted("gepa", (HOSTILE,), HOSTILE))
    log.emit(
        CandidateProposed(
            ItemId("0"), HOSTILE, "seed", (), 0, "a", "prompt", {HOSTILE: HOSTILE}, {"edit.idea": HOSTILE}
        )
    )
    run.close()
    report = write_report([path], tmp_path / "report.html")
    async with browser() as tab:
        await tab.open(report.as_uri())
        await visit_all(tab)
        assert HOSTILE in await tab.run("document.querySelector('header').innerText")
        assert await tab.run("document.querySelectorAll('#page script, #page img').length") == 0
        assert not await tab.run("window.ran")
    assert tab.problems == []


async def test_a_live_page_follows_its_run_to_the_end(directory: Path, result: Result, tmp_path: Path) -> None:
    path = tmp_path / "run"
    shutil.copytree(directory, path)
    (path / "result.json").unlink()
    async with browser() as tab:
        async with serve_page([str(path)]) as address:
            await tab.open(address)
            await visit_all(tab)
            await tab.until("document.querySelector('header').innerText.includes('interrupted')")
            shutil.copy(directory / "result.json", path)
            await tab.until("document.querySelector('header').innerText.includes('finished')")
            with RunSource(directory, "run") as source:
                (row,) = Tables(source.changes()).of(RunRow)
            assert await tab.run("flowevolve.about().best_score") == row.best_score
            assert await tab.run("flowevolve.callTexts(1).then((texts) => texts.reply)")
        await tab.until("document.querySelector('.notice')")
    assert tab.problems == []
