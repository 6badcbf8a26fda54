"""The bench of programs: what is run, what is made of many runs, and what the page says of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench._lib.algorithm_runs import Mode
from bench._lib.searches import BASELINES, METHODS
from bench.programs.figures import summarise
from bench.programs.kept_runs import keeping, left, read_runs
from bench.programs.results import SEEDS, SYNC_SEEDS, jobs, report
from bench.programs.runs import ABLATIONS, CHOSEN, CHOSEN_ON, PROBLEMS, QUARTERS, Job, Run, configure, perform
from bench.programs.section import section
from flowevolve.runner.assemble import make_algorithm, make_task

EVERY = (*BASELINES, *METHODS, *CHOSEN, *ABLATIONS)


def run_of(method: str, score: float, *, seed: int = 0, mode: Mode = "stream", minutes: float = 2.0) -> Run:
    job = Job("circle_packing_32", method, mode, seed, 100)
    return Run(job, 1.0, (1.0, 1.0, 1.0, score), minutes, 100, 25, 50_000, 9.5)


def summary(*runs: Run) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = json.loads(json.dumps(summarise(runs)))
    return found


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_all_configurations_can_be_run(problem: str, mode: Mode) -> None:
    for method in EVERY:
        config = configure(Job(problem, method, mode, 0, 20))
        assert make_algorithm(config, make_task(config)).name in ("best_of_n", "one_plus_lambda", "levi", "code_evolve")


def test_every_job_of_a_seed_comes_before_those_of_the_next() -> None:
    wanted = jobs(["circle_packing_32"], SYNC_SEEDS + 1, 100, ablations=True)
    first = [job for job in wanted if job.mode == "stream" and job.method not in ABLATIONS]
    assert wanted[: len(first)] == first
    assert [job.seed for job in first] == sorted(job.seed for job in first)
    assert len(wanted) == len(EVERY) * (SYNC_SEEDS + 1) + len((*BASELINES, *METHODS)) * SYNC_SEEDS
    assert not any(job.method in ABLATIONS for job in jobs(["circle_packing_32"], 1, 100, ablations=False))


def test_no_seed_that_settings_were_chosen_on_is_in_a_figure() -> None:
    assert not set(CHOSEN_ON) & set(range(SEEDS))


def test_a_run_keeps_to_its_budget_and_repeats() -> None:
    job = Job("min_max_distance_2d", "one_plus_lambda", "stream", 3, 6)
    run = perform(job)
    assert perform(job) == run
    assert run.evaluations == 6
    assert run.seed_score > 0
    assert len(run.best) == len(QUARTERS)
    assert list(run.best) == sorted(run.best)
    assert run.best[0] >= run.seed_score
    assert 0 <= run.failed < 6


def test_methods_are_compared_seed_by_seed() -> None:
    plain = [run_of(name, score, seed=seed) for name in BASELINES for seed, score in enumerate((1.0, 2.0, 3.0))]
    levi = [run_of("levi", score, seed=seed) for seed, score in enumerate((1.5, 2.0 + 1e-12, 2.5))]
    islands = [run_of("code_evolve", 4.0, seed=seed) for seed in range(3)]
    pairs = summary(*plain, *levi, *islands)["pairs"]
    assert [(each["method"], each["other"]) for each in pairs] == [
        (method, baseline) for method in METHODS for baseline in BASELINES
    ]
    assert [pairs[0][name] for name in ("better", "equal", "worse")] == [1, 1, 1]
    assert [pairs[2][name] for name in ("better", "equal", "worse")] == [3, 0, 0]
    difference = pairs[2]["difference"]
    assert isinstance(difference, dict)
    assert difference["value"] == pytest.approx(2.0)
    low, high = difference["ci95"]
    assert low < 1.0
    assert high > 3.0


def test_the_stream_is_compared_with_lockstep_for_the_seeds_that_both_have() -> None:
    streams = [run_of(name, 2.0, seed=seed) for name in (*BASELINES, *METHODS) for seed in range(2)]
    (each,) = summary(*streams, run_of("levi", 1.5, mode="sync", minutes=5.0))["streams"]
    assert each["ratio"] == {"median": 2.5, "low": 2.5, "high": 2.5, "n": 1}
    assert each["score_difference"] == {"value": 0.5, "ci95": None, "n": 1, "values": [[0.5]]}
    assert each["sync_per_minute"] == 20


def test_the_section_has_every_method_and_says_what_is_simulated() -> None:
    runs = [run_of(name, 2.0, seed=seed) for name in EVERY for seed in range(2)]
    runs += [run_of(name, 2.0, mode="sync", minutes=4.0) for name in (*BASELINES, *METHODS)]
    made = section(json.loads(json.dumps(report(runs, 2, 100))))
    assert made.startswith("# Programs\n")
    assert "small random changes" in made
    for name in EVERY:
        assert f"| circle_packing_32 | {name} | 2 |" in made
    assert "| circle_packing_32 | levi less best_of_n | +0.00000 (+0.00000 to +0.00000) | 0 / 2 / 0 |" in made
    assert "| circle_packing_32 | levi | 25 | 50 | 2.00 |" in made


def test_without_ablations_the_section_has_none() -> None:
    runs = [run_of(name, 2.0) for name in (*BASELINES, *METHODS)]
    assert "worth" not in section(json.loads(json.dumps(report(runs, 1, 100)))).partition("## ")[2]


def test_runs_that_were_kept_are_not_made_again(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    assert read_runs(file) == []
    runs = [run_of("levi", 2.0 / 3, seed=seed) for seed in range(2)]
    assert list(keeping(iter(runs), file)) == runs
    with file.open("a") as kept:
        kept.write('{"job": {"problem"')
    assert read_runs(file) == runs
    assert list(keeping(iter(runs), file)) == runs
    assert read_runs(file) == [*runs, *runs]
    others = [run_of("levi", 1.0, seed=2).job, run_of("levi", 1.0, mode="sync").job]
    assert left([runs[1].job, *others], runs) == others
