"""The landscape of families: what is run, what the figures come to, and what the page says of them."""

from __future__ import annotations

import json

import pytest

from bench._lib.algorithm_runs import Run, configure, perform
from bench._lib.text import Content
from bench.families.figures import HOME, MIDDLE, summarise
from bench.families.section import LONG, answer, long_section, section, separates
from bench.families.variants import PROBLEM, WHOLE, WITHOUT, jobs, variants
from flowevolve.runner.assemble import make_algorithm, make_task


def run_of(variant: str, best: float, seed: int = 0) -> Run:
    return Run(PROBLEM, variant, "sync", seed, 54.5, best, 1000, 100, 2, 5.0, {})


def test_each_algorithm_is_run_whole_and_without_each_part() -> None:
    parts = sum(map(len, WITHOUT.values()))
    assert len(variants()) == 2 + len(WHOLE) + parts == 21
    tables = [json.dumps(each, sort_keys=True) for each in variants().values()]
    assert len(set(tables)) == len(tables)


def test_all_variants_can_be_run_with_equal_evaluations() -> None:
    wanted = jobs([7], 30)
    assert [job.algorithm for job in wanted] == list(variants())
    for job in wanted:
        config = configure(job)
        assert (config.algorithm.mode, config.budget.evaluations, config.seed) == ("sync", 30, 7)
        make_algorithm(config, make_task(config))


@pytest.mark.parametrize("name", ["one_plus_lambda", *WHOLE])
def test_a_small_run_repeats_and_keeps_to_its_evaluations(name: str) -> None:
    job = next(job for job in jobs([7], 16) if job.algorithm == name)
    one, two = perform(job), perform(job)
    assert (one.best, one.tokens, one.evaluations) == (two.best, two.tokens, two.evaluations)
    assert 8 <= one.evaluations <= 20


def content(worse: float) -> Content:
    runs = [
        run_of(name, 70.0 + seed / 100 - (worse if "without" in name else 0), seed)
        for seed in range(3)
        for name in variants()
    ]
    settings = {
        "profile": "p",
        "world": "families",
        "seeds": 3,
        "evaluations": 100,
        "home": HOME,
        "middle": MIDDLE,
    }
    return {**summarise(runs), "settings": settings}


def test_differences_are_paired_by_seed() -> None:
    parts = content(5.0)["parts"]
    assert [each["difference"]["value"] for each in parts] == pytest.approx([5.0] * len(parts))
    assert all((each["better"], each["equal"], each["worse"]) == (3, 0, 0) for each in parts)


def test_runs_past_the_ceilings_are_counted() -> None:
    rows = summarise([run_of(name, HOME if "without" in name else HOME + 0.01) for name in variants()])["rows"]
    assert isinstance(rows, list)
    assert {(each["past_home"], each["past_middle"]) for each in rows if "without" in each["variant"]} == {(0, 0)}
    assert {(each["past_home"], each["past_middle"]) for each in rows if "without" not in each["variant"]} == {(1, 0)}
    assert HOME < MIDDLE


@pytest.mark.parametrize(
    ("ci95", "said"),
    [([0.5, 1.5], "separates: better"), ([-1.5, -0.5], "separates: worse"), ([-1, 1], "does not separate")],
)
def test_a_part_separates_where_the_interval_leaves_out_0(ci95: list[float], said: str) -> None:
    assert separates({"difference": {"value": 0, "ci95": ci95}}) == said


def test_the_section_says_that_it_is_simulated_and_has_all_rows() -> None:
    made = section(content(0.0))
    assert made.startswith("# A landscape of families\n")
    assert "*Simulated*" in made
    assert made.count("| does not separate |") == len(WHOLE) + sum(map(len, WITHOUT.values()))
    assert all(f"| {name} |" in made for name in variants())
    assert "| levi without shifts | +0.00 (+0.00 to +0.00) | 0 / 3 / 0 |" in made


def test_the_answer_says_how_many_tokens_were_spent_for_it() -> None:
    found = content(0.0)
    assert ", with 1.0 times its tokens; (1+λ) can't leave its family" in answer(found)
    rows = [{**row, "tokens": 2500 if row["variant"] == "levi" else 1000} for row in found["rows"]]
    assert ", with 1.0 to 2.5 times its tokens;" in answer({**found, "rows": rows})


def test_the_answer_names_a_part_that_harms() -> None:
    found = content(0.0)
    assert "better without" not in answer(found)
    first, *others = found["parts"]
    harmful = {**first, "difference": {"value": -2.5, "ci95": [-4.0, -1.0]}}
    said = answer({**found, "parts": [harmful, *others]})
    assert said.endswith(f"its family; {first['algorithm']} is better without {first['without']}")


def test_some_algorithms_can_be_run_alone() -> None:
    names = [job.algorithm for job in jobs([7], 30, ["levi"])]
    assert names == [*variants(["levi"])]
    assert {name.split()[0] for name in names} == {"best_of_n", "one_plus_lambda", "levi"}
    found = summarise([run_of(name, 70.0) for name in names])
    settings = content(0.0)["settings"]
    made = long_section({**found, "settings": settings})
    assert "cse" not in made
    assert LONG in made
