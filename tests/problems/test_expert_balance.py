"""Experts in slots of GPUs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flowevolve.problems.expert_balance import ExpertBalance
from tests.problems.conftest import Court
from tests.support.problem_checks import called, refusal, score

ROW = {"weight": [[1, 1, 1]], "next_weight": [[4, 2, 2]], "num_replicas": 4, "num_gpus": 2}


@pytest.fixture
def three(tmp_path: Path) -> ExpertBalance:
    path = tmp_path / "three.jsonl"
    path.write_text(json.dumps(ROW) + "\n", encoding="utf-8")
    return ExpertBalance(data=path)


def test_the_next_loads_count(three: ExpertBalance) -> None:
    assert three.cases[0].arguments == {"loads": [[1.0, 1.0, 1.0]], "slots": 4, "gpus": 2}
    assert score(three, [[0, 1, 0, 2]]).value == 1.0
    assert score(three, [[0, 0, 1, 2]]).value == 1.0
    assert score(three, [[0, 1, 1, 2]]).value == pytest.approx(4 / 5)
    assert score(three, [[0, 1, 2, 2]]).value == pytest.approx(4 / 6)


@pytest.mark.parametrize(
    ("layers", "says"),
    [
        ([], "the result must have 1 entries, not 0"),
        ([[0, 1, 2]], "layer 0 must have 4 entries, not 3"),
        ([[0, 1, 2, 3]], "layer 0, slot 3 must be from 0 to 2, not 3"),
        ([[0, 1, 1, 0]], "layer 0 has no copy of expert 2; 1 experts are missing"),
        ([[0, 1, 2, 1.0]], "layer 0, slot 3 must be a whole number"),
    ],
)
def test_wrong_layouts_are_refused(three: ExpertBalance, layers: object, says: str) -> None:
    assert refusal(three, layers).startswith(says)


def test_the_published_example_is_worth_what_it_is_by_hand(data_dir: Path, court: Court) -> None:
    """EPLB's layout of the example in its README, on the loads it was made for."""
    path = data_dir / "adrs" / "eplb_readme_example.jsonl"
    row = json.loads(path.read_text(encoding="utf-8"))
    problem = ExpertBalance(data=path)
    highest = 0.0
    for layout, loads in zip(row["expected_phy2log"], row["weight"], strict=True):
        each = [loads[expert] / layout.count(expert) for expert in layout]
        highest += max(each[slot] + each[slot + 1] for slot in range(0, 16, 2))
    published = score(problem, row["expected_phy2log"]).value
    assert published == pytest.approx(sum(map(sum, row["weight"])) / 8 / highest)
    assert court.judge(problem).value < published


def test_heavy_copies_first_is_better() -> None:
    problem = ExpertBalance(instances=1)
    seed = problem.seed()["program.py"]
    better = seed.replace("HEAVY_FIRST = 0.0", "HEAVY_FIRST = 1.0").replace("POWER = 0.5", "POWER = 1.0")
    assert better != seed
    names: dict[str, object] = {}
    exec(better, names)
    balance = names["balance"]
    assert callable(balance)
    arguments = problem.cases[0].arguments
    assert isinstance(arguments, dict)
    assert score(problem, balance(**arguments)).value > score(problem, called(problem)).value
