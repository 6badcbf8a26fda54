"""The ablations of CSE and ContextEvolve: what is run, and what the page says of it."""

from __future__ import annotations

import json

import pytest

from bench._lib.algorithm_runs import Run, configure, perform
from bench._lib.text import direction
from bench.agent_ablations.figures import beside, group, summarise
from bench.agent_ablations.section import answer, section
from bench.agent_ablations.variants import AGENTS, PARTS, cse, cse_name, jobs, subsets, variants
from flowevolve.runner.assemble import make_algorithm, make_task

PROBLEM = "min_max_distance_2d"


def run_of(variant: str, best: float, *, seed: int = 0, problem: str = PROBLEM) -> Run:
    return Run(problem, variant, "sync", seed, 1.0, best, 1000, 10, 2, 5.0, {})


def test_parts_are_combined_in_all_ways() -> None:
    assert len(subsets()) == 8
    assert subsets()[0] == ()
    assert subsets()[-1] == PARTS
    assert len(variants()) == 8 + 1 + len(AGENTS)
    assert cse(()) != cse(PARTS)
    assert cse_name(()) == "cse: nothing"


def test_all_variants_can_be_run_one_step_at_a_time() -> None:
    wanted = jobs(1, [PROBLEM], 2)
    assert [job.algorithm for job in wanted] == list(variants())
    for job in wanted:
        config = configure(job)
        assert (config.algorithm.mode, config.algorithm.width) == ("sync", 1)
        make_algorithm(config, make_task(config))


@pytest.mark.parametrize("place", [0, -1])
def test_a_small_run_of_a_variant_keeps_to_its_evaluations(place: int) -> None:
    run = perform(jobs(1, [PROBLEM], 2, 0.2)[place])
    assert 0 < run.evaluations <= 12
    assert run.seed_score is None or run.best >= run.seed_score


def test_differences_are_paired_by_seed_and_relative_over_problems() -> None:
    runs = [
        run_of(name, scale * best, seed=seed, problem=problem)
        for seed in range(3)
        for problem, scale in (("autocorrelation_1", 1.0), (PROBLEM, 10.0))
        for name, best in (("cse: memory", 1.1), ("cse: nothing", 1.0))
    ]
    found = beside(group(runs), "cse: memory", "cse: nothing")
    assert json.loads(json.dumps(found["relative"])) == {
        "value": pytest.approx(0.1),
        "ci95": [pytest.approx(0.1), pytest.approx(0.1)],
        "n": 6,
        "values": [[pytest.approx(0.1)] * 3] * 2,
    }


def test_a_direction_is_found_where_the_interval_leaves_out_nothing() -> None:
    assert direction({"value": 1.0, "ci95": [0.5, 1.5]}) == "helps"
    assert direction({"value": -1.0, "ci95": [-1.5, -0.5]}) == "harms"
    assert direction({"value": 0.1, "ci95": [-0.5, 0.5]}) == "not found"


def test_the_section_has_all_tables() -> None:
    runs = [
        run_of(name, 2.0, seed=seed, problem=problem)
        for seed in range(2)
        for problem in ("autocorrelation_1", PROBLEM)
        for name in variants()
    ]
    settings = {
        "profile": "p",
        "world": "code",
        "seeds": 2,
        "evaluations": 30,
        "agent_evaluations": 60,
    }
    content = {**summarise(runs), "settings": settings}
    made = section(json.loads(json.dumps(content)))
    assert made.startswith("# Agents: CSE and ContextEvolve\n")
    assert "they neither confirm nor refute the papers" in made.replace("\n", " ")
    assert made.count("| not found |") == 3 + 4 + 3
    words = " ".join(made.split())
    assert "In CSE's runs that is 30, including the seed" in words
    assert "so there is no global memory" in words
    assert "ET, MP and MI are not measured" in words
    assert "| without local memory |" in made
    assert "63.08 (local and global)" in made


def test_a_part_that_harms_on_one_problem_alone_is_named() -> None:
    def run_by(name: str, seed: int, problem: str) -> Run:
        lower = 0.5 if name == "context_evolve" and problem == PROBLEM else 0.0
        return run_of(name, 2.0 - lower, seed=seed, problem=problem)

    problems = ("autocorrelation_1", PROBLEM)
    runs = [run_by(name, seed, problem) for seed in range(2) for problem in problems for name in variants()]
    content = json.loads(json.dumps(summarise(runs)))
    said = f"context_evolve is worse than context_evolve without navigator on `{PROBLEM}` alone, by -0.500"
    assert said in answer(content)
    assert "autocorrelation_1" not in answer(content)
