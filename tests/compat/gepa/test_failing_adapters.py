"""Adapters and reflection models of the user's that fail, or give nothing to go on with."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

import flowevolve.compat.gepa as compat
from flowevolve._util.errors import InputError, TaskFailedError
from tests.support.gepa_dummies import GEPAHashAdapter, Recorder, Silent, reflect
from tests.support.gepa_failing import arguments, errors


@dataclass
class Scoring(GEPAHashAdapter):
    """Has one score that is none."""

    wrong: Any = None

    def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        evaluated = super().evaluate(batch, candidate, capture_traces)
        evaluated.scores[-1] = self.wrong
        return evaluated


@pytest.mark.parametrize("wrong", [None, "0.5", float("nan"), float("inf")])
def test_a_score_that_is_no_number_or_that_nothing_can_beat_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"adapter\.evaluate returned .* as score 4; return"):
        compat.optimize(**arguments(adapter=Scoring(wrong=wrong)))


@dataclass
class Objecting(GEPAHashAdapter):
    """Scores its last example by objectives that are none."""

    wrong: Any = None

    def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        evaluated = super().evaluate(batch, candidate, capture_traces)
        return replace(evaluated, objective_scores=[{"speed": "0.5"}] * (len(batch) - 1) + [self.wrong])


@pytest.mark.parametrize("wrong", [None, 0.5, {"speed": "fast"}, {"speed": None}])
def test_objective_scores_that_are_no_numbers_are_named(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"adapter\.evaluate returned .* as the objective scores of example 4; return"):
        compat.optimize(**arguments(adapter=Objecting(wrong=wrong)))


def test_a_reflection_model_that_returns_no_text_is_named() -> None:
    def reflects(prompt: Any) -> Any:
        return None

    with pytest.raises(
        TaskFailedError, match=r"reflection_lm .* returned something of type NoneType, but has to return a text"
    ):
        compat.optimize(**arguments(reflection_lm=reflects, max_metric_calls=1000))


@pytest.mark.parametrize("in_flight", [1, 4, 16])
def test_a_reflection_function_that_fails_from_then_on_ends_the_run_with_its_error(in_flight: int) -> None:
    """Nobody waits for a server. Each other flow may be in a call of its own when the tenth fails."""
    asked: list[str] = []

    def reflects(prompt: Any) -> str:
        asked.append(prompt)
        if len(asked) > 2:
            raise ValueError("the quota is used up")
        return reflect(prompt)

    with pytest.raises(TaskFailedError) as caught:
        compat.optimize(**arguments(reflection_lm=reflects, max_metric_calls=1000), max_in_flight=in_flight)
    assert str(caught.value) == (
        "reflection_lm failed with ValueError: the quota is used up, for the 10th time in a row"
    )
    assert isinstance(caught.value.__cause__, ValueError)
    assert 12 <= len(asked) < 12 + in_flight


def test_a_reflection_function_may_fail_now_and_then() -> None:
    asked: list[str] = []

    def reflects(prompt: Any) -> str:
        asked.append(prompt)
        if len(asked) % 10:
            raise ValueError("busy")
        return reflect(prompt)

    compat.optimize(**arguments(reflection_lm=reflects, max_metric_calls=300), max_in_flight=1)
    assert len(asked) > 20


@dataclass
class Shortened(GEPAHashAdapter):
    """From its fourth call on it returns a score too few."""

    def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        evaluated = super().evaluate(batch, candidate, capture_traces)
        return evaluated if len(self.calls) < 4 else replace(evaluated, scores=evaluated.scores[1:])


def test_a_batch_that_does_not_fit_ends_the_run_where_failures_do_not() -> None:
    """It was paid for and can't be counted, so the limit would not hold."""
    adapter, recorder = Shortened(), Recorder()
    with pytest.raises(InputError, match=r"adapter\.evaluate returned \d+ scores for \d+ examples"):
        compat.optimize(**arguments(adapter=adapter, callbacks=[recorder]), max_in_flight=1)
    assert len(adapter.calls) == 4
    assert [continues for _, _, continues in errors(recorder)] == [False]


@dataclass
class Gone(GEPAHashAdapter):
    """Its model answers no more after the third call."""

    def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        if len(self.calls) >= 3:
            raise ConnectionError("server went away")
        return super().evaluate(batch, candidate, capture_traces)


def test_an_adapter_that_fails_from_then_on_is_named_and_the_reason_to_stop_is_said() -> None:
    logger = Silent()
    compat.optimize(**arguments(adapter=Gone(), logger=logger), max_in_flight=1)
    assert "flowevolve: adapter.evaluate failed with ConnectionError: server went away" in logger.lines
    assert "the last iterations brought no proposal" in logger.lines[-1]


class Broken(GEPAHashAdapter):
    def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        raise LookupError("a bug of the user's")


def test_the_exception_of_an_adapter_is_printed_with_the_users_code_and_not_with_ours() -> None:
    with pytest.raises(LookupError) as caught:
        compat.optimize(**arguments(adapter=Broken()))
    assert [entry.name for entry in caught.traceback][-2:] == ["optimize", "evaluate"]


@dataclass
class Traceless(GEPAHashAdapter):
    def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        return super().evaluate(batch, candidate, capture_traces=False)


@dataclass
class Elsewhere(GEPAHashAdapter):
    """Has records, if any, for what is no component."""

    dataset: dict[str, Any] = field(default_factory=dict)

    def make_reflective_dataset(self, *_: Any) -> dict[str, Any]:
        return self.dataset


NOTHING_TO_REFLECT_ON: list[tuple[GEPAHashAdapter, str]] = [
    (Traceless(), r"adapter\.evaluate returned no trajectories, though it was called with capture_traces=True"),
    (
        Elsewhere(dataset={"frist": [{"Feedback": "poor"}]}),
        r"adapter\.make_reflective_dataset returned no records for first, only for 'frist'",
    ),
    (Elsewhere(), r"adapter\.make_reflective_dataset returned no records for first$"),
    (Elsewhere(dataset={"frist": []}), r"returned no records for first$"),
]


nothing_to_reflect_on = pytest.mark.parametrize(("adapter", "said"), NOTHING_TO_REFLECT_ON)


@nothing_to_reflect_on
def test_the_log_says_why_nothing_is_proposed(adapter: GEPAHashAdapter, said: str) -> None:
    logger = Silent()
    compat.optimize(**arguments(adapter=adapter, logger=logger, max_metric_calls=30))
    assert any(re.search(said, line) for line in logger.lines)


@nothing_to_reflect_on
@pytest.mark.parametrize("more", [{}, {"max_in_flight": 1}])
def test_an_adapter_that_never_gives_anything_to_reflect_on_ends_the_run(
    adapter: GEPAHashAdapter, said: str, more: dict[str, Any]
) -> None:
    """Parents would be evaluated until the budget is spent."""
    with pytest.raises(
        TaskFailedError, match=r"nothing to reflect on in each of the first 10 attempts; the last time: adapter"
    ):
        compat.optimize(**arguments(adapter=adapter, max_metric_calls=3000, module_selector="round_robin"), **more)


def test_an_adapter_may_have_nothing_to_show_of_its_first_batches() -> None:
    """As where it shows only what went wrong, and the seed is good."""

    class OnlyPoor(GEPAHashAdapter):
        asked = 0

        def make_reflective_dataset(self, candidate: dict[str, str], eval_batch: Any, components: list[str]) -> Any:
            self.asked += 1
            made = super().make_reflective_dataset(candidate, eval_batch, components)
            return made if self.asked > 11 else {name: [] for name in components}

    result = compat.optimize(**arguments(adapter=OnlyPoor(), max_metric_calls=300), max_in_flight=1)
    assert result.num_candidates > 1
