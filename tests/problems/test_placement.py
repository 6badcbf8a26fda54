"""Models on GPUs."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest

from flowevolve.problems.placement import ModelPlacement
from flowevolve.programs import Case, WrongResultError
from tests.problems.conftest import Court
from tests.support.problem_checks import refusal, score

ROW = """{"gpu_num": 2, "gpu_mem_gb": 80, "models": [
{"model_size": 20, "req_rate": 6, "slo": 2}, {"model_size": 30, "req_rate": 1, "slo": 1},
{"model_size": 40, "req_rate": 8, "slo": 4}]}"""


@pytest.fixture
def two(tmp_path: Path) -> ModelPlacement:
    path = tmp_path / "two.jsonl"
    path.write_text(ROW.replace("\n", " ") + "\n", encoding="utf-8")
    return ModelPlacement(data=path)


def test_the_highest_pressure_counts(two: ModelPlacement) -> None:
    assert score(two, [0, 1, 1]).metrics["pressure"] == pytest.approx(max(3 / 60, 3 / 10))
    assert score(two, [0, 0, 1]).value == pytest.approx(1 / max(4 / 30, 2 / 40))


def test_the_seed_is_behind_the_best_of_all_placements(tmp_path: Path, court: Court) -> None:
    rng = random.Random(2)
    path = tmp_path / "rows.jsonl"
    rows = [
        {
            "gpu_num": 3,
            "models": [{"model_size": rng.randint(10, 29), "req_rate": rng.randint(1, 9), "slo": 5} for _ in range(7)],
        }
        for _ in range(4)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    problem = ModelPlacement(data=path)
    ratios = []
    for case in problem.cases:
        best = max(_value(problem, places, case) for places in itertools.product(range(3), repeat=7))
        ratios.append(court.judge(problem, case=case).value / best)
    assert max(ratios) <= 1 + 1e-12
    assert min(ratios) < 0.99


def _value(problem: ModelPlacement, places: tuple[int, ...], case: Case) -> float:
    try:
        return score(problem, list(places), case).value
    except WrongResultError:
        return problem.worst


@pytest.mark.parametrize(
    ("places", "says"),
    [
        ([0, 1], "the list of GPUs must have 3 entries, not 2"),
        ([0, 1, 2], "the GPU of model 2 must be from 0 to 1, not 2"),
        ([0, 1, None], "the GPU of model 2 must be a whole number, not null"),
        ([0, 0, 0], "GPU 0 has 80 GB, and its models 0, 1, 2 leave -10 GB free"),
    ],
)
def test_wrong_placements_are_refused(two: ModelPlacement, places: object, says: str) -> None:
    assert refusal(two, places).startswith(says)


def test_greedy_placement_has_the_published_value(data_dir: Path, court: Court) -> None:
    """ADRS's greedy baseline, which the seed is: 1 over the mean pressure is 20.89 (ContextEvolve, table 1)."""
    problem = ModelPlacement(data=data_dir / "adrs" / "prism_seed42_50.jsonl")
    assert len(problem.cases) == 50
    pressures = [court.judge(problem, case=case).metrics["pressure"] for case in problem.cases]
    assert 50 / sum(pressures) == pytest.approx(20.89, abs=0.005)
