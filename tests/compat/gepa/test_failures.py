"""Strategies of the user's that raise: the iteration ends, or the run, as in gepa."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from gepa.api import optimize as gepas_optimize
from gepa.strategies.eval_policy import FullEvaluationPolicy

import flowevolve.compat.gepa as compat
from flowevolve._util.errors import InputError, TaskFailedError
from tests.support.gepa_dummies import TRAIN, GEPAHashAdapter, Recorder, Silent
from tests.support.gepa_failing import arguments, errors

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
