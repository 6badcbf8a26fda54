"""What a run that fails leaves: the result so far is found by its error."""

from __future__ import annotations

import asyncio
import pickle
from itertools import count
from pathlib import Path

import pytest

import flowevolve as fe
from flowevolve.runner.arguments import Arguments
from flowevolve.tasks.metric import MetricTask
from flowevolve.tasks.rows import GivenRow
from tests.support.length_rows import ROWS


class Failing:
    """A metric that fails at one call. Until then it thinks more of each output than of the one before."""

    def __init__(self, at: int) -> None:
        self.at, self.calls = at, count(1)

    def __call__(self, row: GivenRow, output: str) -> float:
        call = next(self.calls)
        return min(1.0, call / self.at) if call != self.at else 1 / 0


def arguments(calls: int) -> Arguments[GivenRow]:
    return {
        "prompt": "Answer briefly.",
        "train": ROWS,
        "metric": Failing(calls),
        "llm": "simulated",
        "budget": fe.Budget(proposals=30),
        "clock": "virtual",
    }


def failure(given: Arguments[GivenRow]) -> fe.TaskFailedError:
    with pytest.raises(fe.TaskFailedError) as caught:
        fe.optimize(**given)
    return caught.value


def notes(error: fe.FlowevolveError) -> str:
    return "\n".join(getattr(error, "__notes__", ()))


def test_a_run_that_fails_late_loses_nothing_that_it_has_found() -> None:
    error = failure(arguments(120))
    result = fe.result_of(error)
    assert result is not None
    assert result.stop_reason == "failed"
    assert result.proposals > 0
    best = result.best
    assert best is not None
    assert not best.as_seed
    assert "is what flowevolve.result_of returns for this error. With out= a run like this can be resumed" in notes(
        error
    )
    read_back = fe.result_of(pickle.loads(pickle.dumps(error)))  # as from a process of a pool
    assert read_back is not None
    assert read_back.best is not None
    assert read_back.best.components == best.components
    assert f"The best prompt so far:\n{best.components['prompt']}" in notes(error)


def test_where_it_is_awaited_too() -> None:
    async def notebook() -> None:
        await fe.optimize_async(**arguments(120))

    with pytest.raises(fe.TaskFailedError) as caught:
        asyncio.run(notebook())
    assert fe.result_of(caught.value) is not None
    assert "With out= a run like this can be resumed" in notes(caught.value)


def test_nothing_is_noted_of_a_run_that_has_left_a_directory(tmp_path: Path) -> None:
    given = arguments(120)
    given["out"] = tmp_path / "run"
    error = failure(given)
    result = fe.result_of(error)
    assert result is not None
    assert result.best is not None
    assert result.best.id == fe.Result.load(tmp_path / "run").best.id  # type: ignore[union-attr]
    assert notes(error) == ""


def test_nothing_is_noted_of_a_run_that_has_found_nothing() -> None:
    error = failure(arguments(1))
    result = fe.result_of(error)
    assert result is not None
    assert result.best is None
    assert notes(error) == ""


def test_an_error_before_a_run_has_no_result() -> None:
    with pytest.raises(fe.InputError) as caught:
        fe.optimize(algorithm="gepo", **arguments(120))
    assert fe.result_of(caught.value) is None


def test_a_configuration_that_fails_has_a_result_beside_the_code_too() -> None:
    config = fe.Config(clock="virtual", budget=fe.Budget(proposals=30))

    async def go() -> None:
        async with fe.open_run(config, task=MetricTask("p", ROWS, Failing(120))):
            pass

    with pytest.raises(fe.TaskFailedError) as caught:
        fe.clock.run(go, clock="virtual")
    result = fe.result_of(caught.value)
    assert result is not None
    assert result.best is not None
