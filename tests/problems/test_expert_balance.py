"""Experts in slots of GPUs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flowevolve.problems.expert_balance import ExpertBalance
from tests.problems.conftest import Court
from tests.problems.support import called, refusal, score

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


def test_the_published_example_is_well_balanced(data_dir: Path, court: Court) -> None:
    """EPLB's own layout of the example in its README, against the loads it was made for, by hand for the first layer."""
    path = data_dir / "adrs" / "eplb_readme_example.jsonl"
    row = json.loads(path.read_text(encoding="utf-8"))
    problem = ExpertBalance(data=path)
    first, load = row["expected_phy2log"][0], row["weight"][0]
    gpus = [sum(load[expert] / first.count(expert) for expert in first[i : i + 2]) for i in range(0, 16, 2)]
    by_hand = sum(gpus) / 8 / max(gpus)
    published = score(problem, row["expected_phy2log"])
    assert published.value == pytest.approx(0.74, abs=0.1)
    assert f"{min(by_hand, 1):.4f}" in published.feedback or by_hand > published.value
    assert court.judge(problem).value < published.value


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
