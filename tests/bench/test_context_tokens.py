"""The bench of tokens: what is run, how long its programs are, and what the page says of it."""

from __future__ import annotations

import json

import pytest

from bench.context_tokens.figures import report
from bench.context_tokens.long_programs import LongProgram
from bench.context_tokens.runs import METHODS, ONE, OURS, RAW, VARIANTS, Job, Run, configure, jobs, perform
from bench.context_tokens.section import answer, section
from flowevolve.programs.blocks import evolvable_lines
from flowevolve.programs.features import syntax_error
from flowevolve.programs.problem import PROGRAM
from flowevolve.runner.assemble import make_algorithm, make_task
from flowevolve.sim.service_model import count_tokens


def run_of(method: str, tokens: int, seed: int, spent: float, *, live: bool = False) -> Run:
    job = Job(tokens, live, method, seed, 100)
    stages = {"generate": spent} if method == RAW else {"generate": spent / 2, "sample": spent / 2}
    return Run(job, 100, spent - 100, 100, stages, 1.0 if method == RAW else 3.5, 12.0, 0.01)


@pytest.mark.parametrize("method", [*METHODS, *VARIANTS])
def test_all_configurations_can_be_run(method: str) -> None:
    config = configure(Job(500, False, method, 0, 20), 2)
    assert make_algorithm(config, make_task(config)).name == "context_evolve"


def test_every_seed_has_all_methods() -> None:
    wanted = jobs((0, 4000), (1000,), 3, 20)
    assert len(wanted) == 3 * (2 * len(METHODS) + len(VARIANTS) + 2)
    assert {job.method for job in wanted if job.live} == {RAW, OURS}


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("tokens", [0, 1000, 8000])
def test_long_programs_differ_in_what_may_not_change(tokens: int, live: bool) -> None:
    long, short = LongProgram(tokens, live=live).seed()[PROGRAM], LongProgram(0).seed()[PROGRAM]
    assert count_tokens(long) >= tokens
    assert syntax_error(long) is None
    (lines,) = evolvable_lines(long)
    (own,) = evolvable_lines(short)
    assert long.split("\n")[lines.start : lines.stop] == short.split("\n")[own.start : own.stop]


def test_a_run_of_long_programs_gets_better() -> None:
    run = perform(Job(1000, False, RAW, 1, 12))
    assert run.gain >= 0
    assert 1.0 <= run.calls < 1.5  # a reply that can't be read is asked for again
    assert run.tokens == pytest.approx(sum(run.stages.values()))


def test_what_is_saved_is_said_of_each_length() -> None:
    runs = [
        run_of(method, tokens, seed, spent * (1 + seed / 100))
        for tokens, ours in ((0, 1500.0), (4000, 700.0))
        for method, spent in ((RAW, 1000.0), (OURS, ours), (ONE, 2000.0))
        for seed in range(5)
    ]
    runs += [run_of(method, 2000, seed, 1000.0, live=True) for method in (RAW, OURS) for seed in range(5)]
    content = json.loads(json.dumps(report(runs, 5, 100)))
    saved = [row["saved"]["value"] for row in content["rows"] if row["method"] == OURS]
    assert saved == pytest.approx([-0.5, 0.3, 0.0])
    short, longest, live = (row["program_tokens"] for row in content["rows"] if row["method"] == OURS)
    said = answer(content)
    assert f" more on programs of {short} tokens, 30 % (30 % to 30 %) fewer on those of {longest}, " in said
    assert said.endswith(f"0 % (0 % to 0 %) fewer where {live} are functions")
    text = section(content)
    assert "would be shortened" not in text
    for row in content["rows"]:
        row["prompt"] = 40_000 if row["program_tokens"] == longest else row["prompt"]
    assert f" more on those of {short}, " in answer(content), "the only length left"
    assert answer(content).endswith("longer raw histories are shortened by default")
    assert f"raw histories of programs of {longest} tokens and more would be shortened to 32,000;" in section(content)
    assert f"*context* takes fewer tokens on programs of {longest} tokens and more; at {longest} it saves 30 %." in text
    assert "*context, one step at a time* takes fewer tokens at none of these lengths." in text
