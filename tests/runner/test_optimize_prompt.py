"""`optimize` with a prompt, rows and a metric, from a script and from a loop, and what it says of wrong arguments."""

from __future__ import annotations

import asyncio
import itertools
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowevolve as fe
from flowevolve.runner.overview import read_overview
from flowevolve.tasks.judging import Metric
from flowevolve.tasks.metric import MetricTask
from tests.support.interruption import Echo
from tests.support.length_rows import ROWS, length


def test_a_prompt_is_evolved_by_rows_and_a_metric() -> None:
    result = fe.optimize(
        prompt="Answer briefly.",
        train=ROWS,
        metric=length,
        llm="simulated",
        budget=fe.Budget(proposals=4),
        clock="virtual",
    )
    assert result.task == "prompt"
    assert result.best is not None
    assert list(result.best.components) == ["prompt"]
    assert result.report.spent.proposals >= 4


def test_a_seed_may_be_an_integer_of_numpy() -> None:
    def run(seed: int | np.int64) -> fe.Result:
        return fe.optimize(
            prompt="Answer briefly.",
            train=ROWS,
            metric=length,
            llm="simulated",
            budget=fe.Budget(proposals=2),
            clock="virtual",
            seed=seed,  # type: ignore[arg-type]
        )

    assert repr(run(np.int64(3))) == repr(run(3))


def test_seed_and_best_are_scored_on_the_rows_for_tests() -> None:
    result = fe.optimize(
        prompt="Answer briefly.",
        train=ROWS[:8],
        test=ROWS[8:],
        metric=length,
        llm="simulated",
        budget=fe.Budget(proposals=2),
        clock="virtual",
    )
    assert result.held_out is not None
    assert result.held_out.examples == 4
    assert "4 test examples" in result._repr_html_()


def test_where_the_seed_is_perfect_it_is_said_that_nothing_was_left_to_improve(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = fe.optimize(
        prompt="Answer briefly.",
        train=ROWS,
        metric=lambda row, output: 1.0,
        llm="simulated",
        budget=fe.Budget(proposals=3),
        clock="virtual",
    )
    why = r"unproductive flows: there was nothing left to improve in \d\d minibatches"
    assert re.search(rf"stopped by {why}>$", repr(result))
    assert result.llm.requests < 200
    assert re.search(r"unproductive flows after [\d.]+ s: there was nothing left to improve", result._repr_html_())
    told = capsys.readouterr().err
    assert told.count("nothing to improve in the last 10 minibatches") == 1
    assert re.search(rf"stopping: {why}; ", told)


def test_a_run_that_has_solved_its_rows_does_not_go_on_paying_for_them() -> None:
    calls = itertools.count()
    result = fe.optimize(
        prompt="Answer briefly.",
        train=ROWS,
        metric=lambda row, output: 0.5 if next(calls) < 3 * len(ROWS) else 1.0,
        llm="simulated",
        budget=fe.Budget(hours=10),
        clock="virtual",
    )
    assert result.best is not None
    assert (result.best.score, result.stop_reason) == (1.0, "unproductive")
    assert result.llm.requests < 800


def test_in_a_loop_it_is_awaited() -> None:
    async def notebook() -> fe.Result:
        with pytest.raises(fe.InputError, match=re.escape("await flowevolve.optimize_async(...)")):
            fe.optimize(budget=fe.Budget(proposals=1))
        return await fe.optimize_async(
            prompt="p",
            train=ROWS[1:],
            val=ROWS[:1],
            metric=length,
            llm="simulated",
            budget=fe.Budget(rollouts=2),
            mode="sync",
        )

    assert asyncio.run(notebook()).report.spent.rollouts <= 2


def test_on_the_virtual_clock_it_is_awaited_as_well() -> None:
    """The first program of the README, in a notebook."""

    def run() -> fe.Result:
        return fe.optimize(llm="simulated", budget=fe.Budget(minutes=10), clock="virtual", progress=False)

    async def notebook() -> fe.Result:
        return await fe.optimize_async(llm="simulated", budget=fe.Budget(minutes=10), clock="virtual", progress=False)

    awaited = asyncio.run(notebook())
    assert awaited.wall_seconds >= 600
    assert repr(awaited) == repr(run())


TEST_CUT_OFF = """
import os, signal
import anyio
import flowevolve as fe

rows = [{"question": f"q{n}", "answer": "1"} for n in range(8)]

async def metric(row, output):
    if row["question"] == "for the test":
        os.kill(os.getpid(), signal.SIGINT)
        await anyio.sleep_forever()
    return len(output) % 7 / 7

result = fe.optimize(prompt="p", train=rows, test=[{"question": "for the test", "answer": "1"}], metric=metric,
                     llm="simulated", budget=fe.Budget(proposals=1), progress=False)
print(result.best is not None, result.held_out)
"""


def test_an_interrupt_while_test_rows_are_scored_returns_the_result() -> None:
    done = subprocess.run([sys.executable, "-c", TEST_CUT_OFF], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True None\n", done.stderr
    assert "no held_out scores, because the test was cut off" in done.stderr


def going_on(out: Path, **changes: Any) -> fe.Result:
    given: dict[str, Any] = {"prompt": "Answer briefly.", "train": ROWS[:8], "val": ROWS[8:], "metric": length}
    given |= {"budget": fe.Budget(proposals=2), "resume": True, **changes}
    return fe.optimize(**given, llm="simulated", clock="virtual", out=out)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("begun") / "run"
    going_on(out)
    return out


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        (
            {"prompt": "Answer at length."},
            "prompt has changed since the run began, and a run goes on with what it began with",
        ),
        ({"train": ROWS[:7]}, "train has changed"),
        ({"val": ROWS[9:]}, "the run's scores are of task 'prompt' with 4 validation examples"),
        (
            {"val": ROWS[:7:-1]},
            "(if these are the same rows in another order: it is the order that decides which are for",
        ),
        ({"input": "Q: {question}"}, "input has changed"),
        ({"prompt": "Answer!", "train": ROWS[:7]}, "prompt and train have changed"),
    ],
)
def test_a_run_is_not_gone_on_with_by_another_prompt_or_rows(
    begun: Path, changes: Mapping[str, object], named: str
) -> None:
    with pytest.raises(fe.InputError, match=re.escape(named)):
        going_on(begun, **changes)


def test_that_a_run_is_gone_on_with_is_said(begun: Path, capsys: pytest.CaptureFixture[str]) -> None:
    going_on(begun)
    assert capsys.readouterr().err.startswith(f"going on with the run in {begun}\n")
    going_on(begun, progress=False)
    assert capsys.readouterr().err == ""


def test_how_a_run_of_a_script_that_has_ended_can_go_on_is_said_in_python(
    begun: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    going_on(begun)
    capsys.readouterr()
    going_on(begun)
    assert "raise that limit with budget=flowevolve.Budget(proposals=…)\n" in capsys.readouterr().err


def test_a_metric_may_be_mended_and_that_is_said(begun: Path, capsys: pytest.CaptureFixture[str]) -> None:
    going_on(begun)
    assert "has changed" not in capsys.readouterr().err
    going_on(begun, metric=lambda row, output: 1.0)
    assert "note: " in (said := capsys.readouterr().err)
    assert "the code of metric has changed since the run began" in said


def test_a_metric_may_change_its_row_which_neither_other_rollouts_nor_the_user_see() -> None:
    def metric(row: dict[str, Any], output: str) -> float:
        return len(output + row.pop("answer")) % 7 / 7

    rows = [{"question": f"q{n}", "answer": "1"} for n in range(8)]
    fe.optimize(prompt="p", train=rows, metric=metric, llm="simulated", clock="virtual", budget=fe.Budget(proposals=2))
    assert all(row["answer"] == "1" for row in rows)


def test_whoever_looks_at_a_run_of_a_script_is_told_to_start_the_script_again(tmp_path: Path) -> None:
    broken: Metric = lambda row, output: 1 / 0  # noqa: E731
    with pytest.raises(fe.TaskFailedError):
        going_on(tmp_path / "run", metric=broken)
    assert read_overview(tmp_path / "run").hint == "start its script again with resume=True"
    with pytest.raises(
        fe.InputError, match="To go on with it, start its script again with resume=True; for a new run, give"
    ):
        going_on(tmp_path / "run", resume=False)


class Unfinished:
    name = "unfinished"
    data = None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"budget": None}, "optimize: budget is missing; give one, such as flowevolve.Budget(minutes=10)"),
        ({"aim": "time"}, "optimize takes no 'aim'; it is a setting of the algorithm: settings={'aim': …}"),
        ({"budget": 10}, "optimize: budget is 10; give one"),
        ({"promt": "p"}, "optimize takes no 'promt'; did you mean 'prompt'?"),
        ({"reflection_lm": "m"}, "optimize takes no 'reflection_lm'; give the model that reflects as a role: llm="),
        ({"trainset": ROWS}, "optimize takes no 'trainset'; give the rows as train="),
        ({"dataset": ROWS}, "optimize takes no 'dataset'; give the rows as train="),
        (
            {"objective": "Short."},
            "optimize takes no 'objective'; write it into the text to begin with, which is prompt=",
        ),
        ({"evaluator": length}, "optimize takes no 'evaluator'; give a function of a row and an output as metric="),
        ({"max_metric_calls": 9}, "optimize takes no 'max_metric_calls'; give budget=flowevolve.Budget(rollouts=…)"),
        (
            {"held_out": True},
            "optimize takes no 'held_out'; give rows as test=, and the seed and the best candidate are scored on them",
        ),
        (
            {"budget": fe.Budget(dollars=1), "clock": "real", "llm": fe.LLM("m", base_url="http://h/v1")},
            "budget.dollars needs the price of 'm': give flowevolve.LLM(…, prices={'m': {\"input\": …",
        ),
        ({"algoritm": "gepa"}, "optimize takes no 'algoritm'; did you mean 'algorithm'?"),
        ({"prompt": "p"}, "optimize: train is missing; prompt=, train= and metric= go together"),
        ({"prompt": "p", "train": ROWS}, "optimize: metric is missing"),
        ({"prompt": "p", "train": ROWS, "metric": length}, "optimize: llm is missing; give flowevolve.LLM("),
        ({"prompt": "p", "task": "house_style"}, "optimize: both a task and prompt are given; leave out one of them"),
        ({"llm": "gpt-5-mini"}, "optimize: llm is 'gpt-5-mini'; give flowevolve.LLM('gpt-5-mini'), or 'simulated'"),
        ({"llm": "openai/gpt-5-mini"}, "optimize: llm is 'openai/gpt-5-mini'; give flowevolve.LLM('gpt-5-mini'), or"),
        (
            {"llm": "anthropic/claude"},
            "optimize: llm is 'anthropic/claude'; give flowevolve.LLM('anthropic/claude', backend='litellm'), or base",
        ),
        ({"llm": "sim"}, "optimize: llm is 'sim'; did you mean 'simulated'?"),
        ({"settings": {"name": "ace"}}, "optimize: settings: 'name' is an argument of its own; give algorithm='ace'"),
        ({"stopping": {"no_improvement": 3}}, "optimize takes no 'stopping'; it is a section of a configuration: "),
        (
            {"concurrency": 3},
            "optimize takes no 'concurrency'; it is a setting of the model: llm=flowevolve.LLM(…, con",
        ),
        (
            {"num_threads": 3},
            "optimize takes no 'num_threads'; it is a setting of the model: llm=flowevolve.LLM(…, con",
        ),
        (
            {"minibatch": 3},
            "optimize takes no 'minibatch'; it is a setting of the algorithm: settings={'minibatch': …}",
        ),
        ({"log_dir": "a"}, "optimize takes no 'log_dir'; give the directory as out="),
        ({"auto": "light"}, "optimize takes no 'auto'; give budget=flowevolve.Budget("),
        ({"mode": "lockstep"}, "optimize: mode is 'lockstep'; give 'sync', which runs in lockstep, or 'stream'"),
        ({"task": Unfinished}, "optimize: task is the class Unfinished; give an instance: Unfinished()"),
        ({"task": Unfinished()}, "optimize: task is an Unfinished and has no 'seed'; give a flowevolve.Task"),
        ({"task": ["a"]}, "optimize: task is a list and has no 'name'"),
        ({"task": length}, "optimize: task is a function and has no 'name'"),
        ({"task": "hause_style"}, "task: unknown task 'hause_style'; did you mean 'house_style'?"),
        ({"algorithm": "gepo"}, "algorithm.name: "),
        (
            {"algorithm": "my.search.Mine"},
            "algorithm.name: unknown algorithm 'my.search.Mine'; the name of something to import has a colon",
        ),
        (
            {"algorithm": Echo},
            "optimize: algorithm is <class 'tests.support.interruption.Echo'>; give the name of one, such as 'gepa', or a",
        ),
        (
            {"algorithm": 3},
            "optimize: algorithm is 3; give the name of one, such as 'gepa', or a class that is derived",
        ),
        (
            {"algorithm": type("Mine", (fe.Algorithm,), {})},
            "optimize: algorithm is the class Mine, but 'tests.runner.test_optimize_prompt:Mine' does not name it, so ",
        ),
        ({"task": "classification"}, "task.data is missing (this task has settings, which a configuration gives: "),
        (
            {"algorithm": "one_plus_lambda"},
            "task 'house_style': algorithm one_plus_lambda evolves programs; set task.name = \"program\", or in Python gi",
        ),
        ({"mode": "fast"}, "optimize: algorithm.mode"),
        (
            {"max_in_flight": 0},
            "optimize: algorithm.max_in_flight is 0, but has to be above 0 or 'auto'",
        ),
        ({"preset": "best"}, "optimize: preset"),
        ({"settings": {"minibach": 3}}, "algorithm.minibach: unknown key; did you mean 'minibatch'?"),
        ({"out": 7}, "optimize: out is 7"),
        ({"seed": "x"}, "optimize: seed"),
    ],
)
def test_wrong_arguments_are_told_in_a_line_before_anything_is_done(
    arguments: Mapping[str, object], problem: str
) -> None:
    with pytest.raises(fe.InputError) as raised:
        fe.optimize(**{"budget": fe.Budget(proposals=1), "clock": "virtual", **arguments})  # type: ignore[arg-type]
    assert str(raised.value).startswith(problem)
    assert "\n" not in str(raised.value)


def test_a_simulated_model_of_which_nothing_comes_knows_nothing_of_the_rows() -> None:
    rows = [{"text": f"Ticket {number}", "label": "bug"} for number in range(50)]
    with pytest.raises(
        fe.FruitlessError, match=r"\(a simulated model knows nothing of your rows, but a real one may\)$"
    ) as caught:
        fe.optimize(
            prompt="Classify.",
            train=rows,
            metric=lambda row, output: row["label"] in output,
            algorithm="combee",
            llm="simulated",
            clock="virtual",
            budget=fe.Budget(minutes=10),
        )
    assert fe.result_of(caught.value) is not None


def test_rows_are_those_of_the_task_that_is_made_of_them() -> None:
    assert MetricTask("p", ROWS, length).data.train[0].id == "train row 0"


SCRIPT = """
import anyio
import flowevolve as fe
rows = [{"question": f"Say {n}.", "answer": str(n)} for n in range(12)]
scored = []
async def metric(row, output):
    scored.append(row)
    if len(scored) > 1:
        await anyio.sleep_forever()  # after the seed's validation, work that does not end
    return 0.5
result = fe.optimize(
    prompt="p", train=rows[1:], val=rows[:1], metric=metric, llm="simulated",
    budget=fe.Budget(minutes=10),
)
print(result.report.stop_reason, result.best.score)
"""


def test_an_interrupt_returns_what_was_found() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            assert "best 0.5000" in next(line for line in process.stderr if line.strip())
            process.send_signal(signal.SIGINT)  # which lets open work end
            assert "stopping: an interrupt" in next(line for line in process.stderr if "stopping" in line)
            process.send_signal(signal.SIGINT)  # which does not
            assert process.stdout.read() == "interrupted 0.5\n"
            assert process.wait() == 0
        finally:
            process.kill()
