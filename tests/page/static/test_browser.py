"""The page in a real browser, without a network: every view is drawn, nothing fails, and it shows what the journal says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from anyio import create_task_group
from anyio.abc import TaskStatus
from playwright.async_api import Page, expect

from flowevolve.config.run import parse_config
from flowevolve.core.acts import Comment, Pause, Unpause
from flowevolve.core.event_kinds import CandidateProposed, RunStarted, RunSteered
from flowevolve.core.events import EventLog
from flowevolve.core.item_ids import ItemId
from flowevolve.engine.engine import Engine
from flowevolve.journal.reading import RecordedRun
from flowevolve.journal.run_directory import RunDirectory
from flowevolve.page.live.server import serve_page
from flowevolve.page.reading.source import RunSource
from flowevolve.page.report.report import write_report
from flowevolve.page.tables.contract import TABLES
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.run import RunRow
from flowevolve.runner.result import Result
from flowevolve.runner.run import open_run
from tests.support.browser import NEEDED, show
from tests.support.watched import run_while

pytestmark = NEEDED

HOSTILE = "<script>window.ran = true</script><img src=x onerror='window.ran = true'>"
SIZES = "Object.fromEntries(Object.values(flowevolve.runs.get(flowevolve.run).tables).map((each) => [each.name, each.length]))"
REPLY = "flowevolve.callTexts(1).then((texts) => texts.reply)"


async def visit_all(tab: Page) -> list[str]:
    """Go to each view by its key; returns their titles."""
    titles = await tab.locator("nav a").all_inner_texts()
    for number, title in enumerate(titles):
        await tab.keyboard.press(str(number + 1))
        await expect(tab.locator("nav a[aria-current=page]")).to_have_text(title)
        await expect(tab.locator("main")).not_to_be_empty()
    return titles


async def shown_sizes(tab: Page) -> dict[str, int]:
    """How many rows each table of the page has; where sentences came from is worked out when it is asked for."""
    shown: dict[str, int] = await tab.evaluate(SIZES)
    return {name: size for name, size in shown.items() if name != "blame"}


def sizes(tables: Tables) -> dict[str, int]:
    return {name: len(list(tables.of(table))) for name, table in TABLES.items() if name != "blame"}


async def test_a_report_shows_every_view_and_what_the_journal_says(
    report: Path, result: Result, tables: Tables, tab: Page
) -> None:
    await show(tab, report.as_uri())
    assert len(await visit_all(tab)) == 9
    assert result.best is not None
    await expect(tab.locator("header")).to_contain_text(f"{result.seed_score:.4f} → {result.best.score:.4f}")
    assert await tab.evaluate(REPLY)
    assert await shown_sizes(tab) == sizes(tables)


async def test_the_foot_says_what_is_not_there_and_where_it_is(
    directory: Path, result: Result, tmp_path: Path, tab: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowevolve.page.report.texts.ROOM", 1000)
    await show(tab, write_report([directory], tmp_path / "small.html").as_uri())
    where = re.compile(
        r"requests are not in this file\. flowevolve watch shows them; in a run of days, those of the latest requests\.$"
    )
    await expect(tab.locator("footer")).to_have_text(where)


async def test_what_models_wrote_is_text_in_every_view(tmp_path: Path, tab: Page) -> None:
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
    await show(tab, write_report([path], tmp_path / "report.html").as_uri())
    await visit_all(tab)
    await expect(tab.locator("header")).to_contain_text(HOSTILE)
    await expect(tab.locator("#page script, #page img")).to_have_count(0)
    assert not await tab.evaluate("window.ran")


FAST: dict[str, object] = {
    "task": {"name": "house_style"},
    "llm": {"backend": "sim"},
    "sim": {"profile": "fast-demo"},
    "algorithm": {"max_in_flight": 1},
    "budget": {"minutes": 30},
    "drain_seconds": 0,
}


async def press(tab: Page, label: str) -> None:
    """Press the button that says this, as soon as it is there; a button that is off can be pressed, too, and says why it is off."""
    await tab.get_by_role("button", name=label, exact=True).click(force=True)


async def test_what_is_done_in_the_page_is_done_to_its_run_and_stands_in_the_journal(tmp_path: Path, tab: Page) -> None:
    async def steer(address: str) -> None:
        await show(tab, address)
        await press(tab, "Pause")
        await press(tab, "Go on")  # so the journal has the pause
        await press(tab, "Pause")
        await expect(tab.locator(".state")).to_have_text("paused")
        await tab.keyboard.press("5")
        await press(tab, "Comment …")
        await tab.locator("dialog textarea").fill(HOSTILE)
        await tab.locator("dialog .last input").fill("ada")
        await press(tab, "Comment")
        await expect(tab).to_have_url(
            re.compile("candidate=c")
        )  # it stays there, though what was begun may bring a better one
        await expect(tab.locator(".comment").first).to_contain_text(HOSTILE)
        await press(tab, "Stop …")
        await press(tab, "Cancel")
        await expect(tab.locator("dialog")).to_have_count(0)
        assert not await tab.evaluate("Boolean(window.ran)")

    await run_while(FAST, tmp_path / "run", steer)
    with RecordedRun(tmp_path / "run") as recorded:
        acts = list(recorded.events_of(RunSteered))
    said = acts[-1].act
    assert [each.act for each in acts[:-1]] == [Pause(), Unpause(), Pause()]
    assert isinstance(said, Comment)
    assert (said.text, f"candidate={said.candidate}") == (HOSTILE, tab.url.rpartition("?")[2])
    assert [each.refused for each in acts] == [None] * 4
    assert acts[-1].by == "ada"


async def test_a_page_that_only_shows_its_run_says_so_when_one_presses(
    directory: Path, result: Result, tab: Page
) -> None:
    async with serve_page([str(directory)]) as address:
        await show(tab, f"{address}#/candidate")
        await press(tab, "Veto")
        await expect(tab.locator("main [role=alert]")).to_contain_text("The run is over")
        await press(tab, "Branch …")
        assert result.best is not None
        await expect(tab.locator(".command")).to_have_value(
            f"flowevolve branch {directory} --candidate {result.best.id} --out {directory}-{result.best.id}"
        )


async def test_a_run_is_watched_from_its_first_event_to_its_last(tmp_path: Path, tab: Page) -> None:
    path = tmp_path / "run"
    config = parse_config(
        {"algorithm": {"name": "gepa"}, "sim": {"profile": "instant"}, "held_out": True, "budget": {"proposals": 6}},
        "test",
    )

    async def evolve(*, task_status: TaskStatus[Engine]) -> None:
        async with open_run(config, out=path) as engine:
            engine.pause()
            task_status.started(engine)

    header = tab.locator("header")
    async with create_task_group() as tasks:
        engine: Engine = await tasks.start(evolve)
        async with serve_page([str(path)]) as address:
            await show(tab, f"{address}#/log")
            await expect(tab.locator("main")).to_contain_text("run.start")
            await expect(header).to_contain_text("paused")
            await tab.evaluate(f"window.seen = []; flowevolve.subscribe(() => seen.push({SIZES}.log))")
            assert await tab.evaluate("flowevolve.table('candidates').length") <= 1
            engine.unpause()
            await visit_all(tab)
            await expect(header).to_contain_text("finished")
            with RunSource(path, "run") as source:
                tables = Tables(source.changes())
            seen = await tab.evaluate("seen")
            assert seen == sorted(seen)
            assert await shown_sizes(tab) == sizes(tables)
            (row,) = tables.of(RunRow)
            assert await tab.evaluate("flowevolve.about().best_score") == row.best_score
            assert await tab.evaluate(REPLY)
        await expect(tab.locator(".notice")).to_be_visible()


async def test_a_live_page_says_what_became_of_a_run_that_seemed_to_be_killed(
    directory: Path, result: Result, tmp_path: Path, tab: Page
) -> None:
    path = tmp_path / "run"
    shutil.copytree(directory, path)
    (path / "result.json").unlink()
    async with serve_page([str(path)]) as address:
        await show(tab, address)
        await expect(tab.locator("header")).to_contain_text("interrupted")
        shutil.copy(directory / "result.json", path)
        await expect(tab.locator("header")).to_contain_text("finished")
