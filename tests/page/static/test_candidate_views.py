"""The views of the lineage, of a candidate and of programs in a real browser."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import Page, expect

from flowevolve.page.tables.candidates import CandidateRow, ComponentRow, ScoreRow
from flowevolve.page.tables.memory import Tables
from flowevolve.runner.result import Result
from tests.support.browser import NEEDED, show

pytestmark = NEEDED


async def test_the_views_of_candidates_say_what_the_tables_say(
    report: Path, result: Result, tables: Tables, tab: Page
) -> None:
    assert result.best is not None
    best = tables.get(CandidateRow, result.best.id)
    assert best is not None
    (text,) = [each.text for each in tables.of(ComponentRow) if each.candidate == best.id]
    await show(tab, f"{report.as_uri()}#/lineage")
    await tab.locator(".blame").wait_for()
    assert "\n".join(await tab.locator(".blame .words").all_text_contents()) == text
    origin = await tab.locator(".origin").last.text_content()
    await tab.locator(".sentence").last.click()
    await expect(tab.locator(".card")).to_contain_text(f"Came in with {origin}")
    await tab.locator(".card .call summary").first.click()
    await expect(tab.locator(".card .call mark").first).to_be_attached()
    await tab.get_by_role("application").focus()
    await tab.keyboard.press("ArrowLeft")
    await expect(tab.locator(".chosen h2")).to_contain_text(f"{best.parents[0]} ")

    await show(tab, f"{report.as_uri()}#/candidate?candidate={best.id}")
    await expect(tab.locator(".figures")).to_contain_text(f"{best.score:.4f}")
    await tab.locator("section[aria-label=scores] > button").click()
    validated = [row for row in tables.of(ScoreRow) if (row.candidate, row.source) == (best.id, "validation")]
    await expect(tab.locator(".scores tbody tr")).to_have_count(len(validated))
    await expect(tab.get_by_label("The requests that wrote it").locator(".call")).not_to_have_count(0)

    await show(tab, f"{report.as_uri()}#/programs")
    await expect(tab.locator(".empty")).to_contain_text("keeps no archive and no islands")
    for cell, value in (("3", 0.5), ("4", 0.25), ("3", 0.75)):  # the last row takes the place of the first
        await tab.evaluate(f"flowevolve.put(flowevolve.run, 'cells', [['map', '{cell}', [0.5], 'c0', {value}, 1]])")
    await expect(tab.locator(".tile")).to_have_text(["cell 3 0.7500", "cell 4 0.2500"], use_inner_text=True)
    await tab.evaluate("flowevolve.put(flowevolve.run, 'cells', [['island 1', 'c0', [], 'c0', 0.5, 1]])")
    await expect(tab.get_by_label("island 1").locator("h2")).to_contain_text("1 candidate, best 0.5000")
