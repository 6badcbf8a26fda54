"""EffiBench-X's rows as problems."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve.core.artifact import Artifact
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
        ({"row": 4}, "there is no row 4; give one from 1 to 3"),
        ({"row": 0}, "there is no row 0"),
        ({"id": "77"}, "no problem has id '77'; did you mean '7'"),
        ({"row": 1, "id": "7"}, "give only one of them"),
        ({"row": 3}, "'9' is of type 'functional', which needs test_runners.python3"),
        ({"language": "rust"}, "language"),
        ({"tests": 0}, "task.tests is 0, but has to be at least 1"),
        ({"program": Path("nowhere.py")}, "nowhere.py can't be read"),
        ({"reference": Path("nowhere.py")}, "nowhere.py can't be read"),
        ({"runs": 1}, "has to be at least 3"),
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


DOUBLE_CPP = "#include <iostream>\nint main() { long n; std::cin >> n; std::cout << 2 * n << std::endl; }\n"
RUNNERS = {
    "python3": "==Code Submission==\n\nprint(Solution().double(int(input())))\n",
    "cpp": "==Code Submission==\nint main() { int n; cin >> n; cout << Solution().doubled(n) << endl; }\n",
}
needs_gpp = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")


def one_row(tmp_path: Path, **changes: object) -> Path:
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps({**ROW, **changes}), encoding="utf-8")
    return path


@needs_gpp
def test_programs_in_cpp_are_built_and_measured(rows: Path, tmp_path: Path, court: Court) -> None:
    program = tmp_path / "program.cpp"
    program.write_text(DOUBLE_CPP)
    problem = make(rows, language="cpp", program=program, runs=3)
    assert list(problem.seed()) == ["program.cpp"]
    assert "The program is one C++ file, built by g++" in problem.statement
    verdict = court.judge_artifact(problem, problem.seed())
    assert verdict.failure is None
    assert verdict.value > 0
    assert verdict.metrics["peak_mb"] > 0
    assert 0 < verdict.metrics["mi"] <= 5


@needs_gpp
def test_memory_of_programs_in_cpp_is_their_own(rows: Path, court: Court) -> None:
    wide = "#include <iostream>\n#include <vector>\nint main() { std::vector<char> v(60 << 20, 1); long n; std::cin >> n; std::cout << 2 * n + v[9] - 1; }"
    problem = make(rows, language="cpp", runs=3)
    small, large = (
        court.judge_artifact(problem, Artifact({"program.cpp": source}, kind="program")).metrics["peak_mb"]
        for source in (DOUBLE_CPP, wide)
    )
    assert large > small + 20


@needs_gpp
@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("int main() { return x; }", "it can't be built: solution.cpp:1:21: error:"),
        ("int main() { return 3; }", "the program exited with 3"),
        ("#include <cstdlib>\nint main() { abort(); }", "the program was ended by signal 6"),
        ("int main() { for (;;) {} }", "timeout"),
        ("#include <iostream>\nint main() { std::cout << 2; }", "test 2 of 2: line 1 must be '8', not '2'"),
        ("", "it can't be built"),
    ],
)
def test_programs_in_cpp_that_fail_are_told_why(rows: Path, court: Court, source: str, says: str) -> None:
    problem = make(rows, language="cpp", timeout=2.0, runs=3)
    verdict = court.judge_artifact(problem, Artifact({"program.cpp": source}, kind="program"))
    assert verdict.value == 0.0
    assert verdict.failure is not None
    assert says in verdict.failure


@needs_gpp
def test_the_frame_in_cpp_can_be_built_and_fails(rows: Path, court: Court) -> None:
    problem = make(rows, language="cpp")
    verdict = court.judge_artifact(problem, problem.seed())
    assert verdict.failure == "test 1 of 2: line 1 must be '2', not missing"


def test_without_a_compiler_it_says_what_to_install(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(InputError, match=r"task\.language: programs in C\+\+ are built by g\+\+.*install it"):
        make(rows, language="cpp")


def test_functions_are_called_by_the_rows_runner(tmp_path: Path, court: Court) -> None:
    starter = "class Solution:\n    def double(self, n: int) -> int:\n        "
    rows = one_row(tmp_path, type="functional", test_runners=RUNNERS, starter_code={"python3": starter})
    problem = make(rows, runs=3)
    assert problem.source == starter
    assert starter.strip() in problem.statement
    assert court.judge(problem, f"{starter}return 2 * n\n").failure is None
    assert court.judge(problem, f"{starter}return sum(accumulate([n, 0]))\n").failure is None  # what its header imports
    assert court.judge(problem, f"{starter}return n\n").failure == "test 1 of 2: line 1 must be '2', not '1'"


@needs_gpp
def test_functions_in_cpp_are_called_too(tmp_path: Path, court: Court) -> None:
    rows = one_row(tmp_path, type="functional", test_runners=RUNNERS)
    source = "class Solution { public: int doubled(int n) { return 2 * n; } };"
    problem = make(rows, language="cpp", runs=3)
    assert court.judge_artifact(problem, Artifact({"program.cpp": source}, kind="program")).failure is None


def test_solutions_of_the_row_are_the_reference(tmp_path: Path) -> None:
    solutions = {"python3": {"code": "print(2)"}, "cpp": "int main() {}"}
    assert make(one_row(tmp_path, solutions=solutions)).reference == "print(2)"
    assert make(one_row(tmp_path, solutions=json.dumps(solutions))).reference == "print(2)"
    program = tmp_path / "other.py"
    program.write_text(DOUBLE)
    assert make(one_row(tmp_path, solutions=solutions), reference=program).reference == DOUBLE


def test_tests_may_have_the_data_sets_other_name_and_be_text(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    row = {key: value for key, value in ROW.items() if key != "tests"}
    path.write_text(json.dumps({**row, "generated_tests": json.dumps(ROW["tests"])}), encoding="utf-8")
    assert len(make(path).tests) == 2
