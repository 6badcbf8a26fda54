"""Compares what plans foretold with what the runs took."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

from bench._lib.environment import environment
from bench._lib.text import Content
from bench.plan.cases import Case
from bench.plan.recording import Taken, config_of, record, task_of
from flowevolve.runner.forecast.doubts import Estimate
from flowevolve.runner.forecast.forecast import plan

MEASURED_ON, RECORDED_ON = 1001, 2002
"""The seeds of the short runs and of the runs themselves; the plan's own seeds begin at 1."""
SHORT = {"proposals": 8}
"""The budget of a short run."""
AMOUNTS = ("hours", "input_tokens", "output_tokens", "dollars", "proposals")
SETTLED = {
    "minutes": ("hours",),
    "seconds": ("hours",),
    "tokens": ("input_tokens", "output_tokens", "dollars"),
    "dollars": ("dollars",),
    "proposals": ("proposals",),
}
"""The amounts that each limit of the budget determines. Foretelling these is no achievement, so they don't count."""
GOAL_COVERED, GOAL_FACTOR = 0.8, 2.0


def compare(cases: Sequence[Case], work: Path) -> dict[str, object]:
    """Plan and record all cases. Runs that an earlier call left in ``work`` are not recorded again."""
    rows = []
    for case in cases:
        folder = work / case.name.replace(" ", "_").replace(":", "").replace(",", "")
        folder.mkdir(parents=True, exist_ok=True)
        rows.append(_foretold(case, folder) | {"taken": asdict(_taken(case, folder))})
        print(f"planned and recorded: {case.name}", flush=True)
    return {**environment(), "cases": rows, **summary(rows)}


def summary(rows: Sequence[Content]) -> dict[str, object]:
    """How many amounts that the budgets leave open lie in their intervals, and how wide these are."""
    free = [each for row in rows for each in amounts(row) if not each[3]]
    covered = sum(estimate.low <= taken <= estimate.high for _, estimate, taken, _ in free)
    return {
        "amounts": len(free),
        "covered": covered,
        "median_factor": median(estimate.factor for _, estimate, _, _ in free),
        "goal": {"covered": GOAL_COVERED, "factor": GOAL_FACTOR},
    }


def amounts(row: Content) -> Iterator[tuple[str, Estimate, float, bool]]:
    """Each amount of a case: its name, what was foretold, what the run took, and whether the budget determined it."""
    taken = {**row["taken"], "hours": row["taken"]["seconds"] / 3600}
    settled = {name for limit in row["budget"] for name in SETTLED.get(limit, ())}
    for name in AMOUNTS:
        yield name, Estimate(**row["foretold"][name]), taken[name], name in settled


def _foretold(case: Case, folder: Path) -> dict[str, object]:
    short = folder / "short"
    if case.measured and not (short / "result.json").exists():
        record(case, seed=MEASURED_ON, budget=SHORT, out=short)
    found = plan(config_of(case), task=task_of(case), profiles=[case.profile], lengths=short if case.measured else None)
    return {
        "name": case.name,
        "profile": case.profile,
        "world": case.world,
        "budget": dict(case.budget),
        "http": case.http,
        "measured": case.measured,
        "foretold": found.rows[0].to_json(),
    }


def _taken(case: Case, folder: Path) -> Taken:
    path = folder / "taken.json"
    if not path.exists():
        path.write_text(json.dumps(asdict(record(case, seed=RECORDED_ON))))
    return Taken(**json.loads(path.read_text()))
