"""Models on GPUs."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from flowevolve.problems.placement import ModelPlacement
from flowevolve.programs import WrongResultError
from tests.problems.conftest import Court
from tests.problems.support import refusal, score

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


def test_the_seed_is_not_below_the_best_and_not_the_best_everywhere(court: Court) -> None:
    problem = ModelPlacement(instances=20)
    ratios = []
    for case in problem.cases:
        arguments = case.arguments
        assert isinstance(arguments, dict)
        if arguments["gpus"] > 5:
            continue
        best = 0.0
        for places in itertools.product(range(5), repeat=9):
            if len(set(places)) == 5:
                try:
                    best = max(best, score(problem, [0, *places], case).value)
                except WrongResultError:
                    continue
        ratios.append(court.judge(problem, case=case).value / best)
    assert ratios
    assert max(ratios) <= 1 + 1e-12


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
