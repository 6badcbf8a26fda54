"""The time of day may jump in the middle of a run: no run goes by it. `python -m bench.durability` lets it jump for real."""

from __future__ import annotations

import ast
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import flowevolve as fe
from tests.support.resuming import kill, resume, run

PACKAGE = Path(fe.__file__).parent
TIME_OF_DAY = {
    *("time.time", "time.time_ns", "time.localtime", "time.gmtime", "time.ctime", "time.asctime", "time.strftime"),
    *("datetime.now", "datetime.utcnow", "datetime.today", "date.today", "datetime.datetime.now"),
}
READS = {
    "cli/runs.py": {"datetime.now"},
    "cli/calibrate.py": {"datetime.now"},
    "runner/overview.py": {"time.time"},
}
"""Where it names the directory of a new run, and the day on which a server was measured, and where somebody who looks
at a run from outside is told for how long it has written nothing.
"""


def read_by(source: str) -> Iterator[str]:
    if not re.search(r"\b(time|date|datetime)\b", source):
        return
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute() if (name := ast.unparse(node)) in TIME_OF_DAY:
                yield name
            case ast.ImportFrom(module="time", names=names):
                yield from (f"time.{each.name}" for each in names if f"time.{each.name}" in TIME_OF_DAY)


def test_the_time_of_day_is_read_by_no_run() -> None:
    found = {str(file.relative_to(PACKAGE)): {*read_by(file.read_text("utf-8"))} for file in PACKAGE.rglob("*.py")}
    assert {file: names for file, names in found.items() if names} == READS


def test_a_run_whose_time_of_day_jumps_ends_as_one_whose_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = {"seconds": 70}
    before = run(tmp_path / "steady", budget=budget)
    assert before.report.stop_reason == "seconds"
    rng = random.Random(1)
    monkeypatch.setattr(time, "time", lambda: rng.uniform(0, 4e9))
    monkeypatch.setattr(time, "time_ns", lambda: rng.randrange(4 * 10**18))
    run(tmp_path / "jumping", budget=budget)
    kill(tmp_path / "jumping", 0.5)
    after, _ = resume(tmp_path / "jumping")
    steady, jumping = ((tmp_path / name / "events.jsonl").read_text() for name in ("steady", "jumping"))
    assert jumping == steady
    assert after.to_json() == before.to_json()
