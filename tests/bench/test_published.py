"""Published programs are run as ours, and their figures compared in the published scale."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from bench.published.__main__ import PROGRAMS, read
from bench.published.checking import Checked, check, compared, summary
from bench.published.families import FAMILIES, Family, Published
from flowevolve.problems.catalog import SHIPPED_PROBLEMS
from flowevolve.problems.limits import PAPER
from flowevolve.sandbox import Sandbox, SandboxSettings

pytestmark = pytest.mark.anyio

CIRCLES = next(family for family in FAMILIES if family.problem == "levi/circle_packing")
TRANSACTIONS = next(family for family in FAMILIES if family.ours == "transaction_scheduling")
PACKING = """
def run_packing():
    return [[0.1 + 0.2 * (k % 5), 0.1 + 0.2 * (k // 5)] for k in range(25)] + [[0.2, 0.2]], [0.1] * 25 + [SMALL], 0
"""
ORDER = "def get_best_schedule(workload):\n    order = list(range(workload.num_txns))\n    return workload.get_opt_seq_cost(order), order\n"


def published(program: str, score: float) -> Published:
    return Published("1", "levi/circle_packing", program, score, {})


async def judged(family: Family, each: Published, data: Path) -> Checked:
    async with Sandbox(SandboxSettings(concurrency=1)) as sandbox:
        return await check(family, family.make(data, "quick"), each, sandbox)


def test_every_family_is_one_of_our_problems_with_limits_of_papers() -> None:
    assert {family.ours for family in FAMILIES} <= set(SHIPPED_PROBLEMS) & set(PAPER)
    assert len({family.problem for family in FAMILIES}) == len(FAMILIES)


@pytest.mark.parametrize(
    ("small", "score", "outcome"),
    [("0.04", 2.54, "agrees"), ("0.04", 2.6, "worse"), ("0.04", 2.5, "better"), ("0.05", 2.55, "failed")],
)
async def test_a_program_is_run_and_compared(small: str, score: float, outcome: str, tmp_path: Path) -> None:
    checked = await judged(CIRCLES, published(PACKING.replace("SMALL", small), score), tmp_path)
    assert checked.outcome == outcome
    assert (checked.failure is None) == (outcome != "failed")
    assert str(score) in str(checked)


async def test_a_workload_has_what_programs_ask_of_it(tmp_path: Path) -> None:
    """Reads overlap, writes don't: w1 ends at 1, and the two reads of it at 2; the last has three operations."""
    (tmp_path / "adrs").mkdir()
    rows = {"workload": "w", "txns": {"a": "w-1", "b": "r-1", "c": "* r-1 *"}}
    (tmp_path / "adrs" / "txn_workloads.jsonl").write_text(json.dumps(rows))
    checked = await judged(TRANSACTIONS, published(ORDER, 3.0), tmp_path)
    assert (checked.ours, checked.outcome) == (3.0, "agrees")
    claims = f"{ORDER}\n_order = get_best_schedule\ndef get_best_schedule(workload):\n    cost, order = _order(workload)\n    assert cost == 3\n    return cost, order\n"
    assert (await judged(TRANSACTIONS, published(claims, 3.0), tmp_path)).outcome == "agrees"


def test_where_less_is_better_more_is_worse() -> None:
    assert compared(TRANSACTIONS, 100, 101) == "agrees"
    assert compared(TRANSACTIONS, 100, 110) == "worse"
    assert compared(TRANSACTIONS, 100, 90) == "better"


def test_a_summary_counts() -> None:
    checks = [
        Checked("1", "p", 2.0, 2.0, "agrees", 1.0),
        Checked("2", "p", 3.0, None, "failed", 1.0, "timeout"),
        Checked("3", "p", 1.0, 1.5, "better", 1.0),
    ]
    assert summary(CIRCLES, checks).endswith("| 3 | 1 | 1 | 0 | 1 | 0.001 | 3 | 2 |")
    assert summary(CIRCLES, []).endswith("| 0.001 | – | – |")


def test_programs_with_a_score_are_read(tmp_path: Path) -> None:
    rows = [
        {"id": "1", "problem": CIRCLES.problem, "program": "a", "score": 1.5, "metrics": None},
        {"id": "2", "problem": CIRCLES.problem, "program": "b", "score": None, "metrics": {}},
        {"id": "3", "problem": "other", "program": "c", "score": 1.0, "metrics": {}},
    ]
    path = tmp_path / PROGRAMS.name
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(map(json.dumps, rows)))
    assert [each.id for each in read(path, CIRCLES)] == ["1"]
