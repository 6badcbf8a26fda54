"""Runs in a directory: what was evaluated is not evaluated again, and the run goes on as if nothing had happened."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gepa.api import optimize as gepas_optimize
from gepa.core.adapter import EvaluationBatch
from gepa.utils import NoImprovementStopper
from structlog.testing import capture_logs

import flowevolve.compat.gepa as compat
from flowevolve._util.errors import InputError
from flowevolve.compat.signed_pickles import KEY_VARIABLE
from tests.support.gepa_dummies import SEED, TRAIN, VAL, GEPAHashAdapter, Recorder, Silent, reflect
from tests.support.gepa_resuming import Fragile, OfMeans, OutOfOrderError, optimize


@pytest.mark.parametrize("calls", [1, 2, 3, 4, 7, 12, 20, 29])
def test_a_run_goes_on_where_it_was_interrupted(tmp_path: Path, calls: int) -> None:
    whole = Fragile(objectives=True)
    expected = optimize(whole, None, frontier_type="hybrid")
    broken = Fragile(breaks_at=calls, objectives=True)
    with pytest.raises(OutOfOrderError):
        optimize(broken, tmp_path, frontier_type="hybrid")
    second = Fragile(objectives=True)
    result = optimize(second, tmp_path, frontier_type="hybrid")
    assert broken.calls + second.calls == whole.calls
    assert replace(result, run_dir=None) == expected


def test_callbacks_are_told_at_each_start(tmp_path: Path) -> None:
    """Also where nothing is left to do, as in gepa."""
    recorders = [Recorder(), Recorder(), Recorder()]
    with pytest.raises(OutOfOrderError):
        optimize(Fragile(breaks_at=5), tmp_path, callbacks=[recorders[0]])
    for recorder in recorders[1:]:
        optimize(Fragile(), tmp_path, callbacks=[recorder])
    starts = [[event for name, event in each.told if name == "on_optimization_start"] for each in recorders]
    config = {"perfect_score": 1.0, "seed": 0, "track_best_outputs": False}
    sizes = {"trainset_size": len(TRAIN), "valset_size": len(VAL)}
    assert starts == [[{"seed_candidate": dict(SEED), **sizes, "config": config}]] * 3
    assert [each.told[0][0] for each in recorders] == ["on_optimization_start"] * 3


def test_what_another_owners_key_has_signed_is_evaluated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Fragile(breaks_at=3)
    with pytest.raises(OutOfOrderError):
        optimize(broken, tmp_path / "run")
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "other.key"))
    second = Fragile()
    with capture_logs() as logs:
        result = optimize(second, tmp_path / "run")
    (said,) = [line for line in logs if line["event"] == "payload.not_loaded"]
    assert str(tmp_path / "other.key") in said["why"]
    assert result.total_metric_calls >= 130


def test_an_adapters_state_is_given_back(tmp_path: Path) -> None:
    with pytest.raises(OutOfOrderError):
        optimize(Fragile(breaks_at=30), tmp_path)
    second = Fragile(breaks_at=5)
    with pytest.raises(OutOfOrderError):
        optimize(second, tmp_path, max_metric_calls=300)
    (given_back,) = second.given_back  # once, however often it was written down
    assert 10 < given_back <= 30
    third = Fragile()
    optimize(third, tmp_path, max_metric_calls=300)
    (once_more,) = third.given_back
    assert given_back < once_more <= given_back + 5


@pytest.mark.parametrize("forgiving", [False, True])
def test_an_adapter_that_can_not_take_its_state_back_ends_the_run_at_once(tmp_path: Path, forgiving: bool) -> None:
    """As it would go on from nothing."""

    class Lost(Fragile):
        def set_adapter_state(self, state: dict[str, Any]) -> None:
            self.given_back.append(state["seen"])
            raise LookupError("the index of this state is gone")

    Lost.__name__ = Fragile.__name__
    with pytest.raises(OutOfOrderError):
        optimize(Fragile(breaks_at=12), tmp_path)
    lost, logger = Lost(), Silent()
    with pytest.raises(LookupError, match="the index of this state is gone"):
        optimize(lost, tmp_path, raise_on_exception=not forgiving, logger=logger)
    assert (len(lost.given_back), lost.calls) == (1, [])
    assert "failed; what was done is in" in logger.lines[-1]
    assert optimize(Fragile(), tmp_path).num_candidates > 1


def test_stoppers_and_strategies_are_where_they_were(tmp_path: Path) -> None:
    def arguments() -> dict[str, Any]:
        return {"stop_callbacks": NoImprovementStopper(6), "max_metric_calls": 400, "use_merge": False}

    whole = Fragile()
    expected = optimize(whole, None, **arguments())
    broken = Fragile(breaks_at=len(whole.calls) - 3)
    with pytest.raises(OutOfOrderError):
        optimize(broken, tmp_path, **arguments())
    assert replace(optimize(Fragile(), tmp_path, **arguments()), run_dir=None) == expected


def test_many_at_a_time_pay_nothing_twice(tmp_path: Path) -> None:
    """What was under way when the adapter failed is done again, what had come back is not."""
    more: dict[str, Any] = {"max_in_flight": 6, "adapter_concurrency": 3, "use_merge": False}
    broken = Fragile(breaks_at=25)
    with pytest.raises(OutOfOrderError):
        optimize(broken, tmp_path, **more)
    second = Fragile()
    result = optimize(second, tmp_path, **more)
    assert result.total_metric_calls > 130 - 12  # six for an iteration, and six that another holds for its validation
    assert len(result.candidates) > 1
    assert len([call for call in second.calls if call in broken.calls]) <= 3


def test_a_run_from_before_there_were_presets_goes_on(tmp_path: Path) -> None:
    with pytest.raises(OutOfOrderError):
        optimize(Fragile(breaks_at=7), tmp_path)
    config = tmp_path / "config.toml"
    lines = config.read_text().splitlines(keepends=True)
    config.write_text("".join(line for line in lines if not line.startswith(('preset = "plain"', "aim ="))))
    assert optimize(Fragile(), tmp_path).num_candidates > 1


def test_a_run_that_has_ended_ends_again(tmp_path: Path) -> None:
    first = optimize(Fragile(), tmp_path)
    again, logger = Fragile(), Silent()
    assert optimize(again, tmp_path, logger=logger) == first
    assert again.calls == []
    assert any(f"going on with the run in {tmp_path}" in line for line in logger.lines)
    assert logger.lines[-1].endswith("To go on with it, raise that limit with max_metric_calls=…")


def test_what_stopped_a_run_before_its_limit_is_said(tmp_path: Path) -> None:
    by_callback, by_file = Silent(), Silent()
    optimize(Fragile(), tmp_path, logger=by_callback, stop_callbacks=lambda state: state.total_num_evals > 20)
    assert "metric calls so far; a stop callback said so" in by_callback.lines[-1]
    (tmp_path / "gepa.stop").touch()
    optimize(Fragile(), tmp_path, logger=by_file)
    assert f"the file {tmp_path / 'gepa.stop'}, which is there, said so" in by_file.lines[-1]


def test_each_start_is_told_as_gepa_tells_it(tmp_path: Path) -> None:
    """Callbacks may begin something there that they need at the end."""

    class Starts:
        def __init__(self) -> None:
            self.told: list[Any] = []

        def on_optimization_start(self, event: Any) -> None:
            self.told.append(dict(event))

    theirs, ours = Starts(), Starts()
    given: dict[str, Any] = {"reflection_lm": reflect, "seed": 3, "max_metric_calls": 20, "logger": Silent()}
    given |= {"seed_candidate": dict(SEED), "trainset": list(TRAIN), "valset": list(VAL)}
    given["adapter"] = GEPAHashAdapter()
    gepas_optimize(**{**given, "callbacks": [theirs]})
    for _ in range(2):
        compat.optimize(**{**given, "callbacks": [ours], "run_dir": str(tmp_path)})
    assert ours.told == theirs.told * 2


def test_the_bar_of_a_run_that_has_ended_is_full(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls = optimize(Fragile(), tmp_path).total_metric_calls
    optimize(Fragile(), tmp_path, display_progress_bar=True)
    assert f"{calls}/130" in capsys.readouterr().err


def test_an_interrupt_says_how_to_go_on(tmp_path: Path) -> None:
    class Interrupting(Fragile):
        def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
            if len(self.calls) == 3:
                signal.raise_signal(signal.SIGINT)
            return super().evaluate(batch, candidate, capture_traces)

    logger = Silent()
    with pytest.raises(KeyboardInterrupt):
        optimize(Interrupting(), tmp_path, logger=logger)
    assert logger.lines[-1].startswith(f"flowevolve: interrupted; what was done is in {tmp_path}: to go on, call")


@dataclass
class OfNumpy(Fragile):
    """Gives numpy's numbers, as ``np.mean`` and sums over arrays do."""

    number: Callable[[float], Any] = np.float64
    count: Callable[[int], Any] = np.int64

    def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        plain = super().evaluate(batch, candidate, capture_traces)
        objectives = [{name: self.number(value) for name, value in each.items()} for each in plain.objective_scores]
        return EvaluationBatch(
            outputs=plain.outputs,
            scores=[self.number(score) for score in plain.scores],
            trajectories=plain.trajectories,
            objective_scores=objectives,
            num_metric_calls=self.count(len(batch)),
        )


@pytest.mark.parametrize("number", [np.float64, np.float32, np.int64])
def test_numbers_of_numpy_are_written_down_and_gone_on_with(tmp_path: Path, number: type[np.number[Any]]) -> None:
    more: dict[str, Any] = {"frontier_type": "hybrid", "acceptance_criterion": OfMeans(), "perfect_score": 1.0}
    whole = OfNumpy(objectives=True, number=number)
    expected = optimize(whole, None, **more)
    broken = OfNumpy(breaks_at=12, objectives=True, number=number)
    with pytest.raises(OutOfOrderError):
        optimize(broken, tmp_path, **more)
    second = OfNumpy(objectives=True, number=number)
    assert replace(optimize(second, tmp_path, **more), run_dir=None) == expected
    assert broken.calls + second.calls == whole.calls


@dataclass
class Judging(Fragile):
    """Says whether each answer is right, as comparisons of numpy's values do."""

    verdict: Callable[[bool], Any] = bool

    def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        evaluated = super().evaluate(batch, candidate, capture_traces)
        return replace(evaluated, scores=[self.verdict(score > 0.5) for score in evaluated.scores])


@pytest.mark.parametrize("verdict", [np.bool_, np.array])
def test_truth_values_of_numpy_are_scores(tmp_path: Path, verdict: Callable[[bool], Any]) -> None:
    expected = optimize(Judging(), None)
    assert expected.num_candidates > 1
    assert replace(optimize(Judging(verdict=verdict), tmp_path), run_dir=None) == expected
    assert replace(optimize(Judging(verdict=verdict), tmp_path), run_dir=None) == expected


def test_a_run_that_fails_says_how_to_go_on(tmp_path: Path) -> None:
    logger = Silent()
    with pytest.raises(OutOfOrderError):
        optimize(Fragile(breaks_at=3), tmp_path, logger=logger)
    assert logger.lines[-1].startswith(f"flowevolve: failed; what was done is in {tmp_path}: to go on, call optimize")
    refused = Silent()
    with pytest.raises(InputError):
        optimize(Fragile(), tmp_path, logger=refused, seed=5)
    assert not any("failed" in line for line in refused.lines)


def test_a_setting_of_the_model_is_called_as_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(
        InputError, match=r"llm\.api_key_env: .* \(settings of llm are given in reflection_lm_kwargs\)$"
    ):
        optimize(Fragile(), None, reflection_lm="gpt-5-mini")
