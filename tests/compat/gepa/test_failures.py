"""Strategies of the user's that raise: the iteration ends, or the run, as in gepa."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from gepa.api import optimize as gepas_optimize
from gepa.strategies.eval_policy import FullEvaluationPolicy

import flowevolve.compat.gepa as compat
from flowevolve._util.errors import InputError, TaskFailedError
from tests.support.gepa_dummies import SEED, TRAIN, VAL, GEPAHashAdapter, Recorder, Silent, reflect

ROOT = Path(__file__).parents[3]


class Failing:
    """Raises at the calls that are numbered, from 1."""

    def __init__(self, *failing: int, always: bool = False) -> None:
        self._calls = 0
        self._failing = failing
        self._always = always

    def _count(self) -> None:
        self._calls += 1
        if self._always or self._calls in self._failing:
            raise RuntimeError(f"call {self._calls}")


class Selector(Failing):
    def select_candidate_idx(self, state: Any) -> int:
        self._count()
        return len(state.program_candidates) - 1


class Sampler(Failing):
    def next_minibatch_ids(self, loader: Any, state: Any) -> list[Any]:
        self._count()
        start = self._calls % len(TRAIN)
        return [*loader.all_ids(), *loader.all_ids()][start : start + 3]


class Components(Failing):
    def __call__(self, *_: Any) -> list[str]:
        self._count()
        return ["first"] if self._calls % 2 else ["second"]


class Criterion(Failing):
    def should_accept(self, proposal: Any, state: Any) -> bool:
        self._count()
        return bool(sum(proposal.subsample_scores_after) > sum(proposal.subsample_scores_before))


class Policy(Failing, FullEvaluationPolicy[Any, Any]):
    def get_eval_batch(self, loader: Any, state: Any, target_program_idx: int | None = None) -> list[Any]:
        self._count()
        return list(loader.all_ids())


Make = Callable[..., Failing]
STRATEGIES: list[tuple[str, Make]] = [
    ("candidate_selection_strategy", Selector),
    ("batch_sampler", Sampler),
    ("module_selector", Components),
    ("acceptance_criterion", Criterion),
    ("val_evaluation_policy", Policy),
]
each_strategy = pytest.mark.parametrize(("name", "make"), STRATEGIES, ids=[name for name, _ in STRATEGIES])


def arguments(**given: Any) -> dict[str, Any]:
    return {
        "seed_candidate": dict(SEED),
        "trainset": list(TRAIN),
        "valset": list(VAL),
        "adapter": GEPAHashAdapter(),
        "reflection_lm": reflect,
        "max_metric_calls": 150,
        "logger": Silent(),
        "raise_on_exception": False,
        **given,
    }


def errors(recorder: Recorder) -> list[tuple[int, str, bool]]:
    told = [event for name, event in recorder.told if name == "on_error"]
    return [(event["iteration"], str(event["exception"]), event["will_continue"]) for event in told]


@each_strategy
def test_a_failure_ends_its_iteration(name: str, make: Make) -> None:
    theirs, ours, logger = Recorder(), Recorder(), Silent()
    most = gepas_optimize(**arguments(**{name: make(1, 3)})).total_metric_calls  # gepa passes its limit, we don't
    limit = {"max_metric_calls": most}
    expected = gepas_optimize(**arguments(**{name: make(1, 3), "callbacks": [theirs], **limit}))
    given = arguments(**{name: make(1, 3), "callbacks": [ours], "logger": logger, **limit})
    assert compat.optimize(**given, max_in_flight=1) == expected
    assert expected.num_candidates > 1
    assert errors(ours) == errors(theirs)
    assert len(errors(ours)) == 2
    assert sum("failed with RuntimeError: call 1" in line for line in logger.lines) == 1


@each_strategy
def test_or_the_run(name: str, make: Make) -> None:
    recorder = Recorder()
    with pytest.raises(RuntimeError, match="call 1"):
        compat.optimize(**arguments(**{name: make(1), "callbacks": [recorder], "raise_on_exception": True}))
    assert [continues for _, _, continues in errors(recorder)] == [False]


@each_strategy
def test_one_that_always_fails_ends_the_run(name: str, make: Make) -> None:
    """It would spend nothing, or spend everything on nothing."""
    recorder = Recorder()
    given = arguments(**{name: make(always=True), "callbacks": [recorder], "max_metric_calls": 10_000})
    with pytest.raises(
        TaskFailedError, match=f"{name}.* failed with RuntimeError: call 10, for the 10th time in a row"
    ):
        compat.optimize(**given, max_in_flight=1)
    assert [continues for _, _, continues in errors(recorder)] == [True] * 9 + [False]


@dataclass
class Breaking(GEPAHashAdapter):
    """Somebody ends the run while it evaluates."""

    breaks_at: int | None = None
    how: type[BaseException] = KeyboardInterrupt

    def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        if len(self.calls) == self.breaks_at:
            raise self.how
        return super().evaluate(batch, candidate, capture_traces)


@pytest.mark.parametrize("calls", [3, 6, 12, 20])
def test_a_run_with_failures_goes_on(calls: int, tmp_path: Path) -> None:
    """Strategies are asked again, and fail again, for the iterations that there were; nobody is told again."""

    def go(recorder: Recorder, run_dir: Path | None, breaks_at: int | None = None) -> Any:
        strategies = {"candidate_selection_strategy": Selector(2, 5), "batch_sampler": Sampler(3)}
        directory = None if run_dir is None else str(run_dir)
        given = arguments(**strategies, adapter=Breaking(breaks_at=breaks_at), callbacks=[recorder], run_dir=directory)
        return compat.optimize(**given, max_in_flight=1, track_best_outputs=False)

    whole, first, second = Recorder(), Recorder(), Recorder()
    expected = go(whole, None)
    with pytest.raises(KeyboardInterrupt):
        go(first, tmp_path, calls)
    assert replace(go(second, tmp_path), run_dir=None) == expected
    assert errors(first) + errors(second) == errors(whole)
    assert len(errors(whole)) == 3


@pytest.mark.parametrize("how", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("forgiving", [False, True])
def test_an_adapter_that_ends_the_process_leaves_no_thread_that_keeps_it(
    how: type[BaseException], forgiving: bool
) -> None:
    before = set(threading.enumerate())
    with pytest.raises(how):
        compat.optimize(**arguments(adapter=Breaking(breaks_at=3, how=how), raise_on_exception=not forgiving))
    left = [thread for thread in set(threading.enumerate()) - before if not thread.daemon]
    for thread in left:
        thread.join(30)
    assert not any(thread.is_alive() for thread in left)


SCRIPT = """
from flowevolve.compat.gepa import optimize
from tests.support.gepa_dummies import SEED, TRAIN, VAL, GEPAHashAdapter, reflect

calls = []

class Ending(GEPAHashAdapter):
    def evaluate(self, batch, candidate, capture_traces=False):
        end("evaluate")
        return super().evaluate(batch, candidate, capture_traces)

def reflects(prompt):
    end("reflect")
    return reflect(prompt)

def end(where):
    calls.append(where)
    if calls.count({where!r}) == 3:
        raise {how}

optimize(
    seed_candidate=dict(SEED), trainset=TRAIN, valset=VAL, adapter=Ending(), reflection_lm=reflects,
    max_metric_calls=500, adapter_concurrency={concurrency},
)
print("went on")
"""


@pytest.mark.parametrize(
    ("where", "how", "concurrency", "code"),
    [
        ("evaluate", "KeyboardInterrupt", 1, -signal.SIGINT),
        ("evaluate", "SystemExit(3)", 4, 3),
        ("reflect", "SystemExit(3)", 4, 3),
    ],
)
def test_a_script_ends_when_a_function_of_its_own_ends_it(where: str, how: str, concurrency: int, code: int) -> None:
    script = SCRIPT.format(where=where, how=how, concurrency=concurrency)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT, timeout=300
    )
    assert (done.returncode, "went on" in done.stdout) == (code, False), done.stderr


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


def test_a_proposer_may_leave_all_texts_as_they_are() -> None:
    result = compat.optimize(**arguments(reflection_lm=None, custom_candidate_proposer=lambda *_: {}))
    assert result.num_candidates == 1


def test_a_limit_that_holds_no_iteration_is_told() -> None:
    logger = Silent()
    given = arguments(logger=logger, reflection_minibatch_size=100)
    with pytest.warns(UserWarning, match="reflection_minibatch_size is 100"):
        assert compat.optimize(**given).num_candidates == 1
    assert logger.lines[-1].endswith(
        "5 metric calls so far; what is left of the limit is not enough for another iteration"
    )


def test_a_mistake_is_told_without_frames_of_ours() -> None:
    """But for those of the call itself. A function of the user's is shown from there on."""

    def reflects(prompt: Any) -> Any:
        raise LookupError(prompt)

    with pytest.raises(TaskFailedError) as caught:
        compat.optimize(**arguments(reflection_lm=reflects, max_metric_calls=1000))
    assert len(traceback.extract_tb(caught.tb)) <= 4
    cause = caught.value.__cause__
    assert cause is not None
    assert [frame.name for frame in traceback.extract_tb(cause.__traceback__)] == ["reflects"]
    told = "".join(traceback.format_exception(caught.value))
    assert told.count("Traceback") == 2


def test_a_directory_that_can_not_be_written_is_told_so_too() -> None:
    with pytest.raises(InputError) as caught:
        compat.optimize(**arguments(run_dir="/proc/none"))
    assert len(traceback.extract_tb(caught.tb)) <= 4
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
