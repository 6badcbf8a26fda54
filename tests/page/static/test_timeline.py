"""The timeline, the score and the queues in a real browser: what they say is what the tables say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from flowevolve.core.event_kinds import RunStarted
from flowevolve.core.events import EventLog
from flowevolve.journal.run_directory import RunDirectory
from flowevolve.page.report.report import write_report
from flowevolve.page.tables.candidates import CurveRow
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.row import Row
from flowevolve.page.tables.run import MoveRow
from flowevolve.page.tables.work import CallRow, SpanRow
from flowevolve.runner.result import Result
from tests.support.browser import NEEDED, show

pytestmark = NEEDED


def call(number: int, stage: str, begun: float, ended: float, queued: float | None = None) -> CallRow:
    """A request that was answered with ten tokens."""
    asked = begun if queued is None else queued
    return CallRow(
        number, "task", "m", stage, str(number), None, number, 0, None, None, number, asked, begun, ended, 5, 10, 0, None,
        1, "ok", None,
    )  # fmt: skip


def span(item: int, stage: str, taken: float, done: float) -> SpanRow:
    """Work that began at once."""
    return SpanRow(
        str(item), item, stage, None, "consumed", "", taken, taken, done, 0, None, done - taken, 0, 0, 0.0, 0, None, None
    )  # fmt: skip


def most_at_once(calls: list[CallRow]) -> int:
    changes = sorted([(each.begun, 1) for each in calls] + [(each.ended, -1) for each in calls])
    level = most = 0
    for _, step in changes:
        level += step
        most = max(most, level)
    return most


async def put(tab: Page, rows: list[Row]) -> None:
    """Change tables of the page as a live one does."""
    puts = [f"flowevolve.put(flowevolve.run, {row.table!r}, [{json.dumps(row.values())}])" for row in rows]
    await tab.evaluate(f"{{ {'; '.join(puts)} }}")


async def cells(tab: Page, table: str) -> list[list[str]]:
    """What stands in the rows of a table's body."""
    rows = tab.locator(f"{table} tbody tr")
    await rows.first.wait_for()
    return [row.split("\t") for row in await rows.all_inner_texts()]


async def test_the_views_of_a_run_say_what_its_tables_say(report: Path, tables: Tables, tab: Page) -> None:
    calls = list(tables.of(CallRow))
    await show(tab, f"{report.as_uri()}#/timeline")
    said = tab.locator(".view-timeline .summary")
    await expect(said).to_contain_text(f"{len(calls):,} requests in ")
    await expect(said).to_contain_text(f"at most {most_at_once(calls)};")
    await tab.locator(".chart").focus()
    await tab.keyboard.press("ArrowRight")
    first = min((each for each in calls if each.stage == "generate"), key=lambda each: each.begun)
    await expect(tab.locator(".chosen")).to_contain_text("generate: task request")
    await tab.keyboard.press("Enter")
    await tab.wait_for_url(f"**#/candidate?candidate={first.candidate}")

    await show(tab, f"{report.as_uri()}#/score")
    steps = [each for each in tables.of(CurveRow) if each.series == "validation" and each.version >= 0]
    rows = await cells(tab, ".view-score")
    assert [row[4:6] for row in rows] == [[each.candidate, f"{each.score:.4f}"] for each in steps]

    await show(tab, f"{report.as_uri()}#/queues")
    sums = await cells(tab, ".view-queues section >> nth=1 >>")
    stages = {(each.stage, each.role) for each in calls}
    assert {(stage, role): int(count.replace(",", "")) for stage, role, count, *_ in sums} == {
        pair: sum((each.stage, each.role) == pair for each in calls) for pair in stages
    }


async def test_runs_of_one_page_are_compared(directory: Path, result: Result, tmp_path: Path, tab: Page) -> None:
    both = write_report([directory, directory], tmp_path / "both.html")
    await show(tab, f"{both.as_uri()}#/score")
    assert result.best is not None
    await expect(tab.locator(".view-score section").first).to_contain_text(f"{result.best.score:.4f}")
    compared = await tab.locator(".view-score section").first.inner_text()
    assert compared.count(f"{result.best.score:.4f}") >= await tab.evaluate("flowevolve.runs.size")


async def check_levels(tab: Page) -> None:
    """Levels over time add up."""
    steps = "new modules['timeline/steps.js'].Steps"
    found: dict[str, Any] = await tab.evaluate(
        f"""(() => {{
            const steps = {steps}([0, 1, 6, 3], [2, 4, 8, 3]);
            const weighted = {steps}([0, 1], [2, 3], [10, 5]);
            return {{
                most: steps.most, at: [-1, 0, 1.5, 3, 5, 9].map((time) => steps.at(time)), mean: steps.mean(0, 8),
                below: steps.below(1, 0, 10), weighted: weighted.mean(0, 4),
                means: [...steps.columns(0, 8, 4).means], highest: [...steps.columns(0, 8, 4).highest],
            }};
        }})()"""
    )
    assert found == {
        "most": 2,
        "at": [0, 1, 2, 1, 0, 0],
        "mean": 7 / 8,
        "below": [[4, 6], [8, 10]],
        "weighted": 7.5,
        "means": [1.5, 1, 0, 1],
        "highest": [2, 1, 1, 1],
    }


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """The report of a run that has only begun."""
    run = RunDirectory(tmp_path / "run", {"budget": {"seconds": 100}, "task": {"name": "t"}, "llm": {"backend": "sim"}})
    log = EventLog(lambda: 0.0)
    log.subscribe(run.event)
    log.emit(RunStarted("gepa", ("propose", "assess"), "t"))
    run.close()
    return write_report([tmp_path / "run"], tmp_path / "report.html")


async def test_the_timeline_says_what_stood_still_and_why(empty: Path, tab: Page) -> None:
    await show(tab, f"{empty.as_uri()}#/timeline")
    await expect(tab.locator(".empty")).to_contain_text("no request")
    await check_levels(tab)
    await put(
        tab,
        [
            *(span(item, "propose", 10.0 * item, 10.0 * item + 4) for item in range(10)),
            *(call(item + 1, "propose", 10.0 * item, 10.0 * item + 4) for item in range(10)),
            call(11, "propose", 46.0, 50.0, queued=41.0),
            span(20, "assess", 14.0, 20.0),
            MoveRow(90, 24.0, "limits", "m", None, None, "slower, please", None, None, None, None),
            MoveRow(91, 34.5, "pause", None, 0, 1, "paused", None, None, None, None),
            MoveRow(92, 39.0, "pause", None, 1, 0, "goes on", None, None, None, None),
        ],
    )
    await expect(tab.locator(".panels section")).to_have_count(2)
    rows = tab.locator(".panels section:first-child tbody tr")
    for second, why in (
        (14, "Work without requests: assess."),
        (24, "Rate limit: slower, please."),
        (34, "The run was paused."),
        (44, "A request waited to be sent (again)."),
        (54, "No work was open."),
    ):
        row = rows.filter(has=tab.get_by_role("cell", name=f"{second} s", exact=True))
        await expect(row.locator("td").last).to_have_text(why)
