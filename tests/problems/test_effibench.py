"""EffiBench-X's rows as problems."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve.problems.efficiency import EfficiencyProblem
from tests.problems.conftest import Court
from tests.problems.test_catalog import REGISTRY

ROW = {
    "id": "7",
    "title": "Doubles",
    "description": "Double the number.",
    "type": "io",
    "time_limit_nanos": 1,
    "tests": [{"input": "1", "output": "2"}, {"input": "4", "output": "8"}],
}
DOUBLE = "print(2 * int(input()))\n"
YOKOHAMA = """\
import sys

def main():
    lines = sys.stdin.read().split()
    grid = lines[2:]
    ways = {(r, c): 1 for r, row in enumerate(grid) for c, letter in enumerate(row) if letter == "Y"}
    for letter in "OKOHAMA":
        after = {}
        for (r, c), count in ways.items():
            for y, x in ((r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)):
                if 0 <= y < len(grid) and 0 <= x < len(grid[0]) and grid[y][x] == letter:
                    after[y, x] = after.get((y, x), 0) + count
        ways = after
    print(sum(ways.values()))

main()
"""


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    others = [{**ROW, "id": 8, "title": "Others"}, {**ROW, "id": "9", "type": "functional"}]
    path.write_text("\n".join(json.dumps(row) for row in (ROW, *others)), encoding="utf-8")
    return path


def make(data: Path, **settings: object) -> EfficiencyProblem:
    problem = REGISTRY.make("effibench", {"data": data, **settings}, "task")
    assert isinstance(problem, EfficiencyProblem)
    return problem


def test_a_row_is_chosen_by_number_or_id(rows: Path) -> None:
    assert make(rows).name == make(rows, row=1).name == make(rows, id="7").name == "effibench_7"
    assert make(rows, row=2).name == make(rows, id="8").name == make(rows, id=8).name == "effibench_8"
    assert make(rows).statement.startswith("Doubles\n\nDouble the number.\n\nThe program is one Python file")
    assert len(make(rows).tests) == 2
    assert len(make(rows, tests=1).tests) == 1


def test_ratios_are_to_the_reference_else_to_the_program(rows: Path, tmp_path: Path, court: Court) -> None:
    program, reference = tmp_path / "program.py", tmp_path / "reference.py"
    program.write_text(DOUBLE)
    reference.write_text(DOUBLE + "# best")
    assert make(rows, program=program).reference == make(rows, program=program).source == DOUBLE
    assert make(rows, program=program, reference=reference).reference == DOUBLE + "# best"
    assert make(rows).reference is None
    assert court.judge(make(rows, program=program, runs=3)).metrics["mi"] > 0


def test_what_there_is_to_start_from_without_a_program_fails(rows: Path, court: Court) -> None:
    assert court.judge(make(rows)).failure == "test 1 of 2: line 1 must be '2', not missing"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"row": 4}, "there is no row 4; there are 3"),
        ({"row": 0}, "there is no row 0"),
        ({"id": "77"}, "no problem has id '77'; did you mean '7'"),
        ({"row": 1, "id": "7"}, "give id or row, not both"),
        ({"row": 3}, "'9' is of type 'functional'; those of type 'io' can be run"),
        ({"tests": 0}, "tests: must be above 0"),
        ({"program": Path("nowhere.py")}, "nowhere.py: can't be read"),
        ({"reference": Path("nowhere.py")}, "nowhere.py: can't be read"),
        ({"runs": 1}, "give 3 or more"),
    ],
)
def test_mistakes_are_told(rows: Path, wrong: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        make(rows, **wrong)


def test_a_row_without_tests_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({**ROW, "tests": []}), encoding="utf-8")
    with pytest.raises(InputError, match=r"row 1\.tests"):
        make(path)


def test_a_real_row_is_solved(data_dir: Path, court: Court) -> None:
    problem = make(data_dir / "effibench_x" / "effibench_x_sample1.jsonl", id="1444", runs=3)
    assert len(problem.tests) == 100
    assert court.judge(problem, YOKOHAMA).failure is None
    assert court.judge(problem, YOKOHAMA.replace("OKOHAMA", "OKOHAMAM")).failure is not None
