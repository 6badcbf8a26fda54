"""What a task may return, tested by runs on the simulated backend and the virtual clock."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from functools import partial
from typing import cast

import pytest

import flowevolve as fe
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.model import Message
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout, Score


class Returning:
    """A task that returns what it is told to return."""

    name = "returning"
    data = Dataset([Example("a", {}), Example("b", {})], [Example(str(n), {}) for n in range(20)])

    def __init__(self, made: Callable[[Example, str], object]) -> None:
        self.made = made

    def seed(self) -> fe.Artifact:
        return fe.Artifact({"prompt": "x"})

    async def rollout(self, artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
        return cast("Rollout", self.made(example, await llm([Message("user", "hello")])))


def returned(example: Example, output: object, score: object = None, **parts: object) -> object:
    """A rollout with parts that its types forbid."""
    mended = Score(0.5, "Not met: Do not use any commas.", passed=False) if score is None else score
    return cast("Callable[..., Rollout]", Rollout)(example.id, output, mended, **parts)


def scored(value: object, feedback: object = "so") -> Score:
    return cast("Callable[..., Score]", Score)(value, feedback, passed=False)


NOT_ROLLOUTS: dict[str, tuple[Callable[[Example, str], object], str]] = {
    "none": (lambda example, text: None, "what rollout() returned must be of type Rollout, but is of type NoneType"),
    "number": (lambda example, text: returned(example, text, 0.5), "the rollout's score must be of type Score"),
    "no value": (lambda example, text: returned(example, text, scored(None)), "TypeError"),
    "no number": (lambda example, text: returned(example, text, scored(math.nan)), "its score is nan"),
    "no feedback": (
        lambda example, text: returned(example, text, scored(0.5, None)),
        "the score's feedback must be of type str",
    ),
    "no metric": (
        lambda example, text: returned(example, text, Score(0.5, "", passed=False, metrics={"recall": math.nan})),
        "the score's metrics['recall'] is nan; leave it out where there is none",
    ),
    "no output": (lambda example, text: returned(example, None), "the rollout's output must be of type str"),
    "no text": (
        lambda example, text: returned(example, text, calls=(Call("prompt", cast("dict[str, str]", {"q": 5}), text),)),
        "the rollout's calls[0].inputs['q'] must be of type str, but is of type int",
    ),
    "another's": (lambda example, text: returned(Example("zzz", {}), text), "the rollout is of example 'zzz'"),
}


@pytest.mark.parametrize("mistake", NOT_ROLLOUTS)
def test_a_task_that_returns_no_rollouts_ends_the_run_and_says_what_it_returned(mistake: str) -> None:
    made, says = NOT_ROLLOUTS[mistake]
    with pytest.raises(fe.TaskFailedError, match=re.escape(says)):
        fe.optimize(Returning(made), budget=fe.Budget(minutes=1), clock="virtual")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_score_that_is_no_number_costs_score_only(value: float) -> None:
    def made(example: Example, text: str) -> object:
        return returned(example, text, scored(value if example.id == "3" else 0.5, "Not met: Do not use any commas."))

    result = fe.optimize(Returning(made), budget=fe.Budget(rollouts=30), clock="virtual")
    assert result.seed_score == pytest.approx(0.5 * 19 / 20)
    assert result.report.error is None


class Measuring(Returning):
    """Of such a task it may be what is measured that has no number to show."""

    measured = True
    worst = 0.0


def test_a_metric_that_is_no_number_is_not_in_the_result_of_a_task_that_measures() -> None:
    def made(example: Example, text: str) -> object:
        metrics = {"seconds": 0.5, "gap": math.inf if example.id == "3" else 1.0}
        return returned(example, text, Score(0.5, "Not met: Do not use any commas.", passed=False, metrics=metrics))

    result = fe.optimize(Measuring(made), budget=fe.Budget(rollouts=30), clock="virtual")
    assert result.best is not None
    assert result.best.metrics == {"seconds": 0.5}
    json.dumps(result.to_json(), allow_nan=False)


class HeldOut(Returning):
    data = Dataset(Returning.data.train, Returning.data.val, [Example(name, {}) for name in "wxyz"])


@pytest.mark.parametrize("score", [None, 0.5, math.nan])
def test_a_task_that_fails_on_a_test_example_costs_score_only(score: float | None) -> None:
    def made(example: Example, text: str) -> object:
        return returned(example, text, scored(score) if example.id == "w" else None)

    config = parse_config({"budget": {"rollouts": 30}, "held_out": True, "clock": "virtual"}, "test")
    result = clock.run(partial(fe.run, task=HeldOut(made)), config, clock="virtual")
    assert result.held_out is not None
    assert result.held_out.seed_score == pytest.approx(0.5 * (3 if score != 0.5 else 4) / 4)


class Seedless(Returning):
    def seed(self) -> fe.Artifact:
        return cast("fe.Artifact", {"prompt": "x"})


def test_a_seed_that_is_no_artifact_is_refused() -> None:
    with pytest.raises(
        fe.InputError, match=r"task 'returning': seed\(\) returned a dict, but has to return an Artifact"
    ):
        fe.optimize(Seedless(returned), budget=fe.Budget(minutes=1), clock="virtual")


class Twice(Returning):
    data = Dataset([Example("a", {})], [Example("b", {}), Example("c", {}), Example("b", {})])


def test_two_examples_of_one_id_are_refused() -> None:
    with pytest.raises(fe.InputError, match=r"task 'returning': two val examples have the id 'b'"):
        fe.optimize(Twice(returned), budget=fe.Budget(minutes=1), clock="virtual")
