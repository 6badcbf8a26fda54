"""One configuration on every row of EffiBench-X."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import flowevolve as fe
from bench.effibench.rows import Outcome, means, numbers, perform

CONFIG = """
clock = "virtual"
[algorithm]
name = "one_plus_lambda"
[task]
name = "house_style"
[llm]
backend = "sim"
[sim]
world = "code"
[budget]
evaluations = 1
"""
DOUBLE = "print(2 * int(input()))"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    row = {"title": "t", "description": "d", "type": "io", "tests": [{"input": "1", "output": "2"}]}
    rows = [{**row, "id": 1, "solutions": {"python3": DOUBLE}}, {**row, "id": 2, "type": "drawn"}]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_rows_are_run_once_and_told(tmp_path: Path, data: Path) -> None:
    config, program = tmp_path / "run.toml", tmp_path / "program.py"
    config.write_text(CONFIG, encoding="utf-8")
    program.write_text(DOUBLE, encoding="utf-8")
    settings = [f'task.program="{program}"', "task.runs=3"]
    first, second = (perform(config, data, row, tmp_path / "out", settings) for row in (1, 2))
    assert first.error is None
    assert all(0 < first.ratios[name] <= 5 for name in ("et", "mp", "mi"))
    assert "of type 'drawn'" in str(second)
    result = tmp_path / "out" / "row_1" / "result.json"
    before = result.stat().st_mtime_ns
    assert perform(config, data, 1, tmp_path / "out", settings) == first
    assert result.stat().st_mtime_ns == before
    assert means([first, second]).endswith("over 1 rows, of which 1 were solved; 1 could not be run")


def test_a_row_that_is_not_solved_counts_0() -> None:
    half = Outcome("1", {"et": 0.5, "mp": 1.0, "mi": 0.25})
    assert str(half) == "1: et 50.00%, mp 100.00%, mi 25.00%"
    lost = Outcome("2", {"et": 0.0, "mp": 0.0, "mi": 0.0})
    assert means([half, lost]).startswith("ET 25.00%, MP 50.00%, MI 12.50% over 2 rows, of which 1 were solved")
    assert means([]) == "no row could be run"


def test_rows_are_chosen(data: Path) -> None:
    assert list(numbers(None, data)) == [1, 2]
    assert list(numbers("2", data)) == [2]
    assert list(numbers("1-2", data)) == [1, 2]
    for wrong in ("0", "3", "2-1", "x", "1-x"):
        with pytest.raises(fe.InputError, match="--rows"):
            numbers(wrong, data)


def test_a_configuration_that_is_none_is_named(tmp_path: Path, data: Path) -> None:
    with pytest.raises(fe.InputError, match=r"nowhere\.toml: can't be read"):
        perform(tmp_path / "nowhere.toml", data, 1, tmp_path, [])
