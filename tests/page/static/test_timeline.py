"""The timeline, the score and the queues in a real browser: what they say is what the tables say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flowevolve.core.event_kinds import RunStarted
from flowevolve.core.events import EventLog
from flowevolve.journal.run_directory import RunDirectory
from flowevolve.page.reading.source import RunSource
from flowevolve.page.report.report import write_report
from flowevolve.page.tables.candidates import CurveRow
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.row import Row
from flowevolve.page.tables.run import MoveRow
from flowevolve.page.tables.work import CallRow, SpanRow
from flowevolve.runner.result import Result
from tests.support.browser import PATH, Tab, browser

pytestmark = [pytest.mark.asyncio, pytest.mark.skipif(PATH is None, reason="there is no Chromium")]


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


async def put(tab: Tab, rows: list[Row]) -> None:
    """Change tables of the page as a live one does."""
    for row in rows:
        await tab.run(f"flowevolve.put(flowevolve.run, {row.table!r}, [{json.dumps(row.values())}])")


async def text(tab: Tab, selector: str) -> str:
    await tab.until(f"document.querySelector({selector!r})")
    found: str = await tab.run(f"document.querySelector({selector!r}).innerText.replaceAll('\\u00a0', ' ')")
    return found


async def test_the_views_of_a_run_say_what_its_tables_say(directory: Path, result: Result, tmp_path: Path) -> None:
    report = write_report([directory], tmp_path / "report.html")
    with RunSource(directory, directory.name) as source:
        tables = Tables(source.changes())
    calls = list(tables.of(CallRow))
    async with browser() as tab:
        await tab.open(f"{report.as_uri()}#/timeline")
        said = await text(tab, ".view-timeline .summary")
        assert said.startswith(f"{len(calls):,} requests in ")
        assert f"at most {most_at_once(calls)};" in said
        await tab.run("document.querySelector('.chart').focus()")
        await tab.press("ArrowRight")
        await tab.until("document.querySelector('.chosen strong')")
        first = min((each for each in calls if each.stage == "generate"), key=lambda each: each.begun)
        assert "generate: task request" in await text(tab, ".chosen")
        await tab.press("Enter")
        await tab.until(f"location.hash === '#/candidate?candidate={first.candidate}'")

        await tab.run("location.hash = '#/score'")
        await tab.until("document.querySelector('.view-score tbody')")
        steps = [each for each in tables.of(CurveRow) if each.series == "validation" and each.version >= 0]
        rows: list[str] = await tab.run("[...document.querySelectorAll('tbody tr')].map((row) => row.innerText)")
        assert [row.split("\t")[4:6] for row in rows] == [[each.candidate, f"{each.score:.4f}"] for each in steps]

        await tab.run("location.hash = '#/queues'")
        await tab.until("document.querySelector('.view-queues tbody')")
        sums: list[list[str]] = await tab.run(
            "[...document.querySelectorAll('section')[1].querySelectorAll('tbody tr')].map((row) => row.innerText.split('\\t'))"
        )
        stages = {(each.stage, each.role) for each in calls}
        assert {(stage, role): int(count.replace(",", "")) for stage, role, count, *_ in sums} == {
            pair: sum((each.stage, each.role) == pair for each in calls) for pair in stages
        }

        both = write_report([directory, directory], tmp_path / "both.html")
        await tab.open(f"{both.as_uri()}#/score")
        compared = await text(tab, ".view-score section")
        assert result.best is not None
        assert compared.count(f"{result.best.score:.4f}") >= await tab.run("flowevolve.runs.size")
    assert tab.problems == []


async def check_levels(tab: Tab) -> None:
    """Levels over time add up."""
    steps = "new modules['timeline/steps.js'].Steps"
    found: dict[str, Any] = await tab.run(
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


async def test_the_timeline_says_what_stood_still_and_why(empty: Path) -> None:
    async with browser() as tab:
        await tab.open(f"{empty.as_uri()}#/timeline")
        assert "no request" in await text(tab, ".empty")
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
        await tab.until("document.querySelectorAll('.panels section').length === 2")
        rows: list[list[str]] = await tab.run(
            "[...document.querySelectorAll('.panels section:first-child tbody tr')].map((row) => row.innerText.split('\\t'))"
        )
        why = {row[1].strip(): row[3] for row in rows}
    assert why["14 s"] == "Work without requests: assess."
    assert why["24 s"] == "Rate limit: slower, please."
    assert why["34 s"] == "The run was paused."
    assert why["44 s"] == "A request waited to be sent (again)."
    assert why["54 s"] == "No work was open."
    assert tab.problems == []
