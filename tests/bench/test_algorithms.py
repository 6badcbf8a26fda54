"""The bench of all algorithms: what is run, where a run is cut off, and what is made of many runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from bench._lib.algorithm_runs import MODES, ROW, Job, Mode, NothingScoredError, Run, configure, perform
from bench._lib.paths import DATA
from bench._lib.searches import BASELINES, program_problem
from bench.algorithms.figures import group, ratios, summarise
from bench.algorithms.groups import BASELINE, Group, groups, search
from bench.algorithms.real_model import REAL_ALGORITHMS, REAL_PROBLEM, real_jobs
from bench.algorithms.results import beside, described, real, simulated
from bench.algorithms.section import WORDS, answer, section
from flowevolve._util.errors import InputError
from flowevolve.runner.assemble import make_algorithm, make_task
from flowevolve.runner.registries import ALGORITHMS

TOKENS = 6000
PROGRAM = "min_max_distance_2d"


def job_of(mode: Mode = "stream", tokens: int = TOKENS) -> Job:
    modes = search(BASELINES["one_plus_lambda"], 4)
    settings = {"clock": "virtual", **program_problem(PROGRAM, {}, 2), **modes[mode], "budget": {"tokens": tokens}}
    return Job(PROGRAM, "one_plus_lambda", mode, 3, settings)


def run_of(algorithm: str, best: float, seconds: float, *, seed: int = 0, mode: Mode = "stream") -> Run:
    return Run(PROGRAM, algorithm, mode, seed, 1.0, best, 1000, 10, 2, seconds, {})


def made_of(jobs: Sequence[Job], best: float = 2.0) -> list[Run]:
    return [
        replace(run_of(job.algorithm, best, 5.0, seed=job.seed, mode=job.mode), problem=job.problem) for job in jobs
    ]


def test_a_run_ends_when_its_tokens_are_spent_and_repeats() -> None:
    run = perform(job_of())
    assert perform(job_of()) == run
    assert TOKENS <= run.tokens < 2 * TOKENS
    assert run.seed_score is not None
    assert run.best >= run.seed_score
    assert 0 <= run.failures <= run.evaluations


def test_lockstep_takes_longer_to_the_same_tokens() -> None:
    rows = group([perform(job_of(mode, 20_000)).row() for mode in MODES])
    (ratio,) = ratios(rows, PROGRAM, "one_plus_lambda")
    assert ratio > 1


def test_every_algorithm_is_run_in_both_modes_on_the_problems_of_its_group() -> None:
    found = groups(2)
    assert {name for each in found.values() for name in each.algorithms} == set(ALGORITHMS.names())
    for each in found.values():
        wanted = each.jobs(2, quick=False)
        assert len(wanted) == 2 * len(MODES) * len(each.problems) * len(each.algorithms)
        assert [job.seed for job in wanted] == sorted(job.seed for job in wanted)
        assert set(each.quick_problems) <= set(each.problems)
        assert each.quick_tokens < each.tokens
    assert set(WORDS) == set(found)


def test_all_configurations_can_be_run() -> None:
    for job in (job for each in groups(2).values() for job in each.jobs(1, quick=False)):
        config = configure(job)
        assert (config.algorithm.name, config.algorithm.mode) == (job.algorithm, job.mode)
        assert config.clock == "virtual"
        if config.task.name != "harness":  # its data are not part of the repository
            make_algorithm(config, make_task(config))


def test_on_a_real_server_runs_are_bounded_by_time() -> None:
    wanted = real_jobs("http://127.0.0.1:9/v1", "m", 2.0, 1)
    assert {job.algorithm for job in wanted} == set(REAL_ALGORITHMS)
    for job in wanted:
        config = configure(job)
        assert (config.clock, config.budget.tokens, config.budget.time_limit()) == ("real", None, 120.0)
        make_algorithm(config, make_task(config))


def test_a_server_that_is_not_there_is_an_input_error() -> None:
    with pytest.raises(InputError, match="no models can be read there"):
        real("http://127.0.0.1:9/v1", 1.0, 1)


def test_rows_and_ratios_stand_at_the_top() -> None:
    runs = [
        run_of(name, best, seconds, seed=seed, mode=mode)
        for seed in range(3)
        for name, best in ((BASELINE, 2.0), ("cse", 2.5))
        for mode, seconds in zip(MODES, (40.0 + 10 * seed, 10.0), strict=True)
    ]
    assert [set(run.row()) for run in runs] == [set(ROW)] * len(runs)
    found = json.loads(json.dumps(summarise([run.row() for run in runs])))
    assert found["stream_vs_sync"] == {BASELINE: 5.0, "cse": 5.0}
    (beside,) = found["beside_baseline"]
    assert (beside["algorithm"], beside["better"], beside["difference"]["value"]) == ("cse", 3, 0.5)


def test_measured_scores_are_multiples_of_the_seed_program() -> None:
    run = replace(run_of("cse", 3.0, 5.0), seed_score=2.0).over_seed()
    assert (run.best, run.seed_score) == (1.5, 1.0)


def test_ratios_are_of_seconds_per_token() -> None:
    half = replace(run_of("cse", 1.0, 8.0), tokens=500)
    rows = group([run_of("cse", 1.0, 40.0, mode="sync").row(), half.row()])
    assert ratios(rows, PROGRAM, "cse") == [2.5]


def test_groups_that_are_not_run_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.algorithms.results.make_task", lambda config: None)
    monkeypatch.setattr("bench.algorithms.results.perform_all", lambda jobs, processes: made_of(jobs))
    found = groups(2)
    before = simulated({name: found[name] for name in ("prompts", "programs")}, 1, quick=True, processes=2)
    monkeypatch.setattr("bench.algorithms.results.perform_all", lambda jobs, processes: made_of(jobs, best=3.0))
    both = json.loads(
        json.dumps(beside(simulated({"programs": found["programs"]}, 1, quick=True, processes=2), before))
    )
    assert set(both["settings"]["groups"]) == {"prompts", "programs"}
    assert {row["best"] for row in both["rows"] if row["algorithm"] == "ace"} == {2.0}
    assert {row["best"] for row in both["rows"] if row["algorithm"] == "cse"} == {3.0}
    assert len(both["rows"]) == 2 * (3 + len(found["programs"].algorithms))
    with pytest.raises(InputError, match="as many seeds"):
        beside(simulated({"programs": found["programs"]}, 2, quick=True, processes=2), before)
    with pytest.raises(InputError, match="as many seeds"):
        beside(before, {"rows": []})


def test_the_section_has_every_group_and_says_what_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    found = groups(2)
    monkeypatch.setattr("bench.algorithms.results.make_task", lambda config: None)
    monkeypatch.setattr("bench.algorithms.results.perform_all", lambda jobs, processes: made_of(jobs))
    text = section(json.loads(json.dumps(simulated(found, 2, quick=False, processes=2))))
    assert text.startswith("# All algorithms at equal tokens\n")
    assert "It can't show what CSE and ContextEvolve are about" in text.replace("\n", " ")
    for each in found.values():
        for name in each.algorithms:
            assert f"| {name} | 1.00 |" in text


def raise_stream(content: dict[str, Any], of: Mapping[str, Any], gain: float) -> None:
    """Add to the best score of every stream of an algorithm on a problem."""
    for row in content["rows"]:
        if (row["problem"], row["algorithm"], row["mode"]) == (of["problem"], of["algorithm"], "stream"):
            row["best"] += gain


def test_scores_that_are_clearly_apart_at_the_same_tokens_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.algorithms.results.make_task", lambda config: None)
    monkeypatch.setattr("bench.algorithms.results.perform_all", lambda jobs, processes: made_of(jobs))
    content = json.loads(json.dumps(simulated({"programs": groups(2)["programs"]}, 2, quick=False, processes=2)))
    assert "streams have 0 clearly lower and 0 higher" in answer(content)
    assert "here: none; and clearly higher here: none." in section(content).replace("\n", " ")
    first, second = json.loads(json.dumps(summarise(content["rows"])))["figures"][:2]
    raise_stream(content, first, -0.1)
    raise_stream(content, second, 0.1)
    said = answer(content)
    assert "; of 2 scores that differ at all streams have 1 clearly lower (" in said, "the others are equal"
    assert said.endswith(f"(`{first['algorithm']}` -0.100) and 1 higher")
    assert "of the 2 in which anything differs" in " ".join(section(content).split())
    assert f"clearly higher here: `{second['algorithm']}` +0.100 on `{second['problem']}`." in section(content)
    content["settings"]["groups"]["programs"]["load"] = 1.0
    assert answer(content).endswith(" and 1 higher (1 where evaluating more helps)")
    raise_stream(content, second, -0.0991)
    assert answer(content).endswith(" and 0 higher")


def test_runs_too_short_for_a_score_are_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def short_for_cse(job: Job) -> Run:
        if job.algorithm == "cse" and job.mode == "sync":
            raise NothingScoredError(f"{job.algorithm}, {job.mode}: nothing was scored")
        return run_of(job.algorithm, 1.0, 30.0, mode=job.mode)

    monkeypatch.setattr("bench.algorithms.real_model.perform", short_for_cse)
    monkeypatch.setattr("bench.algorithms.real_model.served_model", lambda url: "small")
    content = json.loads(json.dumps(real("http://127.0.0.1:9/v1", 0.5, 1)))
    assert {row["algorithm"] for row in content["rows"]} == set(REAL_ALGORITHMS) - {"cse"}
    assert "`cse`" not in section(content)
    assert "cse, sync: nothing was scored; this run is left out" in capsys.readouterr().out


def test_the_section_of_real_runs_says_for_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [
        replace(run_of(name, 1.0, 120.0, mode=mode), problem=REAL_PROBLEM) for name in REAL_ALGORITHMS for mode in MODES
    ]
    monkeypatch.setattr("bench.algorithms.results.perform_real", lambda server, minutes, seeds: ("small", made))
    content = json.loads(json.dumps(real("vllm-cpu", 2.0, 1)))
    text = section(content)
    said = answer(content)
    assert "`cse`" in said
    assert said.endswith("times as fast; 1 run of each")
    for row in content["rows"]:
        row["evaluations"] = 1
    assert answer(content).endswith("times as fast; no reply had a program in it; 1 run of each")
    assert text.startswith("# Algorithms with a real model\n")
    assert "--server vllm-cpu --minutes 2 " in text
    assert "*Real*: small, 2 minutes for each run, 1 seed;" in text


def test_files_of_rows_are_named_from_the_folder_of_the_data_on() -> None:
    about = json.dumps(described(groups(2)["harnesses"], [], quick=False))
    assert '"shared/data/symptom2disease/' in about
    assert str(DATA) not in about


def test_a_group_is_described_with_what_evolution_begins_from() -> None:
    each = Group({PROGRAM: {}}, {"cse": search({"name": "cse"})}, 1000, 100, (PROGRAM,))
    about = described(each, [run_of("cse", 2.0, 5.0)], quick=True)
    assert about["seed_scores"] == {PROGRAM: 1.0}
    assert about["tokens"] == 100
