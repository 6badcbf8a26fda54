"""Time, memory, tolerance and packages: what a problem is set to is told, kept to, and refused where it can't be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve.problems.autocorrelation import SecondAutocorrelation
from flowevolve.problems.base import ShippedProblem
from flowevolve.problems.catalog import SHIPPED_PROBLEMS
from flowevolve.problems.limits import PAPER, LimitSettings, installed, limits_for
from flowevolve.problems.packing import CirclePacking
from tests.problems.conftest import Court
from tests.problems.test_catalog import NAMES, REGISTRY
from tests.support.problem_checks import refusal, score

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "problems.md"
IMPORTS = "import {}\n\ndef pack(n):\n    return [[0.5, 0.5, 0.5]]\n"


def limited(limits: object) -> ShippedProblem:
    problem = REGISTRY.make("circle_packing_26", {"limits": limits}, "task")
    assert isinstance(problem, ShippedProblem)
    return problem


def test_the_papers_values_are_a_preset() -> None:
    problem = limited("paper")
    assert (problem.timeout, problem.memory_mb, problem.limits.tolerance) == (60.0, 1024, 1e-6)
    assert "A call may take 60 seconds and 1024 MB of memory." in problem.statement
    assert "1e-06 is allowed for rounding" in problem.statement
    assert limits_for("min_max_distance_3d", "paper").timeout == 360.0
    assert limits_for("hexagon_packing_11", "paper").memory_mb == 5120


def test_each_problem_has_the_papers_values_and_the_page_names_them() -> None:
    assert set(PAPER) == set(NAMES)
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    for name, limits in PAPER.items():
        memory = "–" if limits.memory_mb is None else f"{limits.memory_mb // 1024} GB"
        assert any(f"`{name}`" in line and f"| {limits.timeout:g} s | {memory} |" in line for line in lines), name


def test_a_table_changes_single_values_of_a_preset() -> None:
    problem = limited({"preset": "paper", "timeout": 7})
    assert (problem.timeout, problem.memory_mb) == (7.0, 1024)
    problem = limited({"memory_mb": 300})
    assert (problem.timeout, problem.memory_mb, problem.limits.tolerance) == (5.0, 300, 1e-9)
    assert limits_for("flow_shop", "quick").timeout == 10.0


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ("slow", "limits"),
        ({"timeout": 0}, "timeout"),
        ({"tolerance": 0.1}, "tolerance"),
        ({"time": 3}, "time"),
        ({"packages": ["no_such_package"]}, "no_such_package can't be imported here"),
        ({"packages": ["scikit-learn"]}, "'sklearn'"),
    ],
)
def test_limits_that_can_not_be_are_refused(limits: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        limited(limits)


def test_a_problem_without_values_of_papers_says_so() -> None:
    with pytest.raises(InputError, match="no paper states limits for problem 'circle_packing_1'"):
        CirclePacking(1, limits="paper")


def test_circles_may_overlap_by_the_tolerance() -> None:
    pair = [[0.25, 0.5, 0.25], [0.75 - 5e-7, 0.5, 0.25]]
    assert "overlap by 5e-07" in refusal(CirclePacking(2), pair)
    assert score(CirclePacking(2, limits=LimitSettings(tolerance=1e-6)), pair).value == 0.5


def test_an_array_as_long_as_the_best_known_is_taken() -> None:
    assert score(SecondAutocorrelation(), [1.0] * 4096).value == pytest.approx(2 / 3)


@pytest.mark.parametrize("name", ["autocorrelation_2", "flow_shop", "llm_sql", "spot_scheduling"])
def test_every_kind_of_problem_takes_limits(name: str) -> None:
    problem = REGISTRY.make(name, {"limits": {"timeout": 3.5}}, "task")
    assert "A call may take 3.5 seconds." in problem.statement


def test_packages_are_told_and_others_are_refused(court: Court) -> None:
    problem = CirclePacking(1, limits=LimitSettings(packages=("numpy",)))
    assert "It may import the standard library and numpy, nothing else" in problem.statement
    assert court.judge(problem, IMPORTS.format("numpy, math, xml.dom")).value == 0.5
    assert court.judge(problem, IMPORTS.format("numpy.linalg as la")).value == 0.5
    verdict = court.judge(problem, IMPORTS.format("pydantic"))
    assert verdict.value == 0.0
    assert verdict.failure is not None
    assert "'pydantic' can't be imported here; a program may use only: the standard library, numpy" in verdict.failure
    assert court.judge(CirclePacking(1, limits=LimitSettings(packages=("pydantic",))), IMPORTS.format("pydantic")).value


def test_a_program_may_do_without_a_package_that_is_refused(court: Court) -> None:
    source = "try:\n    import pydantic\nexcept ImportError:\n    pydantic = None\n\n"
    source += "def pack(n):\n    return [[0.5, 0.5, 0.25 if pydantic else 0.5]]\n"
    assert court.judge(CirclePacking(1), source).value == 0.5


def test_choices_are_asked_again_under_the_same_rules(court: Court) -> None:
    problem = REGISTRY.make("spot_scheduling", {"traces": 1}, "task")
    verdict = court.judge(problem, "import pydantic\n\ndef decide(state):\n    return 'on_demand'\n")
    assert verdict.failure is not None
    assert "'pydantic' can't be imported here" in verdict.failure


def test_packages_of_a_preset_count_if_they_are_installed() -> None:
    assert installed(["json", "no_such_package"]) == ("json",)
    assert "no_such_package" not in limited("paper").statement


def test_targets_are_in_the_statement() -> None:
    assert "The best published score is 2.93957 (CodeEvolve, tables 1 and 3)." in _statement("circle_packing_32")
    for name in SHIPPED_PROBLEMS:
        if name in NAMES:
            assert "Higher is better." in _statement(name)


def _statement(name: str, settings: Mapping[str, object] | None = None) -> str:
    return REGISTRY.make(name, settings or {}, "task").statement
