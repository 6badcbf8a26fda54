"""The report of a run of each algorithm, and of one that was killed, in a real browser: every view says what the journal says.

The pictures of the views are left in the folder ``screenshots``, which continuous integration keeps.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from bench.simtest.tasks import Mishaps, make_case_algorithm, make_case_task
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.event_kinds import ItemTaken, PoolCommitted
from flowevolve.core.events import Event
from flowevolve.journal.export import candidate_rows
from flowevolve.journal.reading import RecordedRun
from flowevolve.journal.run_directory import RESULT, RunDirectory
from flowevolve.page.reading.source import RunSource
from flowevolve.page.report.report import write_report
from flowevolve.page.tables.candidates import CellRow
from flowevolve.page.tables.memory import Tables
from flowevolve.runner.plan import ProvidedObjects, make_plan
from flowevolve.runner.run import Watchers, run_plan
from tests.support.browser import NEEDED, show
from tests.support.killed import die, dies

pytestmark = NEEDED

SCREENSHOTS = Path(__file__).parents[3] / "screenshots"
PROMPTS, PROGRAMS, HARNESSES = ({"world": each, "profile": "qwen3-8b-h100"} for each in ("rules", "code", "harness"))
RUNS: dict[str, dict[str, object]] = {
    "gepa": {"sim": PROMPTS, "staleness": {"policy": "reflective"}, "held_out": True, "budget": {"proposals": 8}},
    "ace": {"sim": PROMPTS, "algorithm": {"validate_every": 5}, "budget": {"proposals": 3}},
    "combee": {"sim": PROMPTS, "algorithm": {"batch": 3, "minibatch": 2}, "budget": {"proposals": 3}},
    "levi": {"sim": PROGRAMS, "algorithm": {"cells": 8}, "budget": {"evaluations": 24}},
    "code_evolve": {"sim": PROGRAMS, "algorithm": {"islands": 2, "start_programs": 1}, "budget": {"evaluations": 24}},
    "context_evolve": {"sim": PROGRAMS, "budget": {"evaluations": 16}},
    "cse": {"sim": PROGRAMS, "algorithm": {"plans": 2}, "budget": {"evaluations": 16}},
    "meta_harness": {"sim": HARNESSES, "algorithm": {"run_seconds": 2}, "budget": {"proposals": 4}},
}
KILLED = "killed"
COMMITS = 3
"""The changes of the pool after which the run is killed: by then another candidate than the seed has a score, too."""


class KilledInTheMiddle(RunDirectory):
    """A run directory whose process is killed as soon as so many changes of the pool are in the journal."""

    _left = COMMITS

    def event(self, event: Event) -> None:
        super().event(event)
        self._left -= isinstance(event.body, PoolCommitted)
        if self._left == 0:
            self.journal.flush()
            die()


def carry_out(name: str, path: Path, directory: type[RunDirectory] = RunDirectory) -> None:
    """Run an algorithm on a task that evaluates without a sandbox."""
    table: dict[str, object] = {"clock": "virtual", "llm": {"backend": "sim"}, **RUNS[name]}
    settings = table.get("algorithm")
    table["algorithm"] = {"name": name, **(settings if isinstance(settings, dict) else {})}
    mishaps = Mishaps({}, 0)
    plan = make_plan(
        parse_config(table, "test"),
        ProvidedObjects(make_case_task(name, mishaps, prompts=RUNS[name]["sim"] == PROMPTS)),
        algorithm=partial(make_case_algorithm, mishaps=mishaps),
    )
    keep = partial(directory, path, plan.config.model_dump(mode="json"))
    clock.run(lambda: run_plan(plan, keep, Watchers(), None), clock="virtual")


class Said:
    """What a journal says, read without the page, but for the cells of archives: those are worked out."""

    def __init__(self, path: Path) -> None:
        with RecordedRun(path) as recorded:
            self.events = list(recorded.events())
            self.calls = list(recorded.calls(texts=False))
            self.candidates = {str(row["id"]): row for row in candidate_rows(recorded)}
        result = json.loads((path / RESULT).read_text()) if (path / RESULT).is_file() else None
        self.seed: float | None = result and result["seed_score"]
        scored = [row for row in self.candidates.values() if row["mean"] is not None]
        self.scored = len(scored)
        self.best: str = result["best"]["id"] if result else max(scored, key=lambda row: row["mean"])["id"]
        self.mean = f"{self.candidates[self.best]['mean']:.4f}"
        with RunSource(path, path.name) as source:
            cells = [row.candidate for row in Tables(source.changes()).of(CellRow)]
        accepted = [name for name, row in self.candidates.items() if row["status"] in ("confirmed", "speculative")]
        self.kept = [name for name in cells or accepted if self._components(name) == self._components(self.best)]
        self.judged = {
            each.body.item for each in self.events if isinstance(each.body, ItemTaken) and each.body.judged is not None
        }

    def _components(self, candidate: str) -> set[str]:
        return set(self.candidates[candidate]["components"])


@pytest.fixture(params=[*RUNS, KILLED])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The directory of a run, which has its name."""
    path = tmp_path / str(request.param)
    if path.name == KILLED:
        assert dies(partial(carry_out, "gepa", path, KilledInTheMiddle))
    else:
        carry_out(path.name, path)
    return path


async def test_every_view_says_what_the_journal_says(path: Path, tab: Page) -> None:
    said = Said(path)
    await show(tab, write_report([path], path / "report.html").as_uri())
    await expect(tab.locator("header")).to_contain_text(said.mean)
    await expect(tab.locator("header")).to_contain_text("interrupted" if path.name == KILLED else "finished")
    SCREENSHOTS.mkdir(exist_ok=True)
    for number, (title, check) in enumerate(CHECKS.items(), 1):
        await tab.keyboard.press(str(number))
        await expect(tab.locator("nav .here")).to_have_text(title)
        await check(tab.locator("main"), said)
        await tab.screenshot(path=SCREENSHOTS / f"{path.name}-{number}-{title.lower()}.png")


async def timeline(view: Locator, said: Said) -> None:
    await expect(view.locator(".summary")).to_contain_text(f"{len(said.calls):,} requests in ")


async def score(view: Locator, said: Said) -> None:
    if said.seed is not None:
        await expect(view.locator(".summary")).to_contain_text(f"{said.seed:.4f}")
    last = view.locator("tbody tr").last
    await expect(last).to_contain_text(said.best)
    await expect(last).to_contain_text(said.mean)


async def queues(view: Locator, said: Said) -> None:
    rows = view.locator("section", has_text="Cost by stage and role").locator("tbody tr")
    await rows.first.wait_for()
    shown = {(stage, role): int(count) for stage, role, count, *_ in map(str.split, await rows.all_inner_texts())}
    assert shown == Counter((call.stage, call.role) for call in said.calls)


async def lineage(view: Locator, said: Said) -> None:
    await expect(view.get_by_role("application")).to_have_attribute(
        "aria-label", re.compile(rf"^the lineage: {len(said.candidates)} candidates;")
    )


async def candidate(view: Locator, said: Said) -> None:
    await expect(view.locator("h2").first).to_contain_text(said.best)
    await expect(view.locator(".figures")).to_contain_text(said.mean)


async def heat(view: Locator, said: Said) -> None:
    await expect(view.locator("select").first).to_contain_text(f"({said.scored})")
    summary = await view.locator(".summary").inner_text()
    assert ("The best candidate" in summary) == (f"The best candidate, {said.best}," in summary)


async def programs(view: Locator, said: Said) -> None:
    if said.candidates[said.best]["kind"] in ("prompt", "playbook"):
        await expect(view.locator(".empty")).to_contain_text("keeps no archive and no islands")
        return
    await expect(view.locator(".tile")).to_have_count(len(said.kept))


async def staleness(view: Locator, said: Said) -> None:
    if not said.judged:
        await expect(view.locator(".empty")).to_be_visible()
        return
    counts = view.locator(".sums tbody td:nth-child(2)")
    await counts.first.wait_for()
    assert sum(map(int, await counts.all_inner_texts())) == len(said.judged)


async def log(view: Locator, said: Said) -> None:
    await expect(view.locator(".summary")).to_contain_text(f"{len(said.events):,} events")


CHECKS = {
    "Timeline": timeline,
    "Score": score,
    "Queues": queues,
    "Lineage": lineage,
    "Candidate": candidate,
    "Examples": heat,
    "Programs": programs,
    "Staleness": staleness,
    "Log": log,
}
