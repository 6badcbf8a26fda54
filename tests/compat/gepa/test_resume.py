"""Runs in a directory: what was evaluated is not evaluated again, and the run goes on as if nothing had happened."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import uuid4

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


class OutOfOrderError(Exception):
    """The machine the adapter runs on is gone."""


@dataclass
class Fragile(GEPAHashAdapter):
    """Fails for good at its nth call. Its state is how often it was called, in all runs."""

    breaks_at: int | None = None
    seen: int = 0
    given_back: list[int] = field(default_factory=list)

    def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        if self.breaks_at is not None and len(self.calls) == self.breaks_at:
            raise OutOfOrderError
        self.seen += 1
        return super().evaluate(batch, candidate, capture_traces)

    def get_adapter_state(self) -> dict[str, Any]:
        return {"seen": self.seen}

    def set_adapter_state(self, state: dict[str, Any]) -> None:
        self.seen = state["seen"]
        self.given_back.append(self.seen)


def optimize(adapter: Fragile, run_dir: Path | None, **arguments: Any) -> Any:
    return compat.optimize(
        **{
            "seed_candidate": dict(SEED),
            "trainset": list(TRAIN),
            "valset": list(VAL),
            "adapter": adapter,
            "reflection_lm": reflect,
            "max_metric_calls": 130,
            "logger": Silent(),
            "run_dir": None if run_dir is None else str(run_dir),
            "max_in_flight": 1,
            "use_merge": True,
            "track_best_outputs": False,
            **arguments,
        }
    )


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


class OfMeans:
    """A criterion whose answer is numpy's."""

    def should_accept(self, proposal: Any, state: Any) -> Any:
        return np.mean(proposal.subsample_scores_after) > np.mean(proposal.subsample_scores_before)


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


def test_a_run_of_gepas_own_is_not_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "gepa_state.bin").touch()
    with pytest.raises(InputError, match="gepa itself"):
        optimize(Fragile(), tmp_path)


class Another(Fragile):
    """An adapter of another class."""


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"seed": 5}, "seed is 5, but was 0"),
        ({"seed_candidate": {"other": "x"}}, "seed_candidate is another one"),
        ({"trainset": TRAIN[:5]}, "the number of examples in trainset is 5, but was 7"),
        ({"valset": [*VAL, "more"]}, "the number of examples in valset is 6, but was 5"),
        ({"adapter": Another()}, "adapter is of class Another, but was of Fragile"),
    ],
)
def test_other_data_or_another_seed_candidate_are_refused(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    """By the names of the arguments, and with what can be done where there is no configuration."""
    optimize(Fragile(), tmp_path)
    given = {"adapter": Fragile(), **changed}
    with pytest.raises(InputError) as refused:
        optimize(given.pop("adapter"), tmp_path, **given)
    assert str(refused.value) == (
        f"run_dir: the run in {tmp_path} can't go on with changed arguments: {said}. Give them as they "
        "were, or give another directory"
    )


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


@dataclass(frozen=True)
class Question:
    """A row that is an object; what it holds may be in a set, in no order."""

    text: str
    tags: frozenset[str] = frozenset()
    extra: object = None


class OfObjects(Fragile):
    def evaluate(self, batch: list[Any], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        return super().evaluate([each if isinstance(each, str) else str(each) for each in batch], candidate, True)


class OfTypes(Fragile):
    """Knows rows by their types alone."""

    def evaluate(self, batch: list[Any], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        return super().evaluate([type(each).__name__ for each in batch], candidate, capture_traces)


def rows(first: str) -> list[Question]:
    return [Question(first, frozenset({"a", "b"}), object()), Question("same")]


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("valset", ["others", *VAL[1:]]),
        ("trainset", ["others", *TRAIN[1:]]),
        ("valset", rows("other")),
        ("trainset", [{"text": "other"}, {"text": "same"}]),
    ],
)
def test_other_rows_of_the_same_number_are_refused(tmp_path: Path, name: str, others: list[Any]) -> None:
    """Scores on them would stand beside scores on the rows of before."""
    before = {
        "others": list(VAL if name == "valset" else TRAIN),
        "same": rows("one") if name == "valset" else [{"text": "one"}, {"text": "same"}],
    }["others" if isinstance(others[0], str) else "same"]
    optimize(OfObjects(), tmp_path, **{name: before}, use_merge=False)
    again = OfObjects()
    with pytest.raises(InputError, match=rf"{tmp_path}: {name} has changed since the run began.*another directory"):
        optimize(again, tmp_path, **{name: others}, max_metric_calls=200, use_merge=False)
    assert again.calls == []


def test_rows_made_anew_of_the_same_contents_are_the_same(tmp_path: Path) -> None:
    given: dict[str, Any] = {"trainset": rows("one"), "valset": rows("one"), "use_merge": False}
    first = optimize(OfObjects(), tmp_path, **given)
    again = OfObjects()
    assert optimize(again, tmp_path, **{**given, "trainset": rows("one"), "valset": rows("one")}) == first
    assert again.calls == []


class Tensor:
    """As one of torch's, it has a number only if it is of one element."""

    def item(self) -> float:
        raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")


@dataclass(slots=True)
class Lazy:
    """A row that is filled in as it is used."""

    tags: Any
    tensor: Tensor
    later: str = field(init=False)


def test_rows_may_hold_what_is_no_data(tmp_path: Path) -> None:
    def made(score: Any) -> list[Any]:
        itself: dict[str, Any] = {"score": score}
        itself["self"] = itself
        return [Lazy({Question("a"), object()}, Tensor()), {"when": date(2026, 1, 2), "score": score}, itself]

    first = optimize(OfTypes(), tmp_path, valset=made(np.float32(0.5)), use_merge=False)
    assert optimize(OfTypes(), tmp_path, valset=made(np.float32(0.5)), use_merge=False) == first
    with pytest.raises(InputError, match="valset has changed"):
        optimize(OfTypes(), tmp_path, valset=made(np.float32(0.25)), use_merge=False)


@dataclass
class Numbered:
    """A row that gives itself a name."""

    text: str
    name: str = field(default_factory=lambda: uuid4().hex)


class Slotted:
    """A row without a ``__dict__``."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Opaque:
    """Nobody can tell what is in it."""

    def __init__(self, inside: object) -> None:
        self.inside = inside


def within_itself() -> list[Any]:
    row: list[Any] = ["text"]
    row.append(row)
    return row


@pytest.mark.parametrize(
    "made",
    [
        lambda: {"text": "a", "uuid": str(uuid4())},
        lambda: {"text": "a", "uuid": uuid4()},
        lambda: {1: "a", "b": [Opaque(object())], Opaque(1): 2},
        lambda: {"text": "a", "some": {Opaque(1), "b", "c"}},
        lambda: Numbered("a"),
        lambda: Slotted("a"),
        lambda: {"of": np.arange(6).reshape(2, 3)[:, ::2], "objects": np.array([Opaque(1), "a"], dtype=object)},
        within_itself,
    ],
)
def test_the_same_rows_are_gone_on_with(tmp_path: Path, made: Callable[[], Any]) -> None:
    """Though each process gives them other random names, and keeps other objects in them."""
    first = optimize(OfTypes(), tmp_path, valset=[made()], use_merge=False)
    assert optimize(OfTypes(), tmp_path, valset=[made()], use_merge=False) == first


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"x": np.array([1, 2])}, {"x": np.array([1, 3])}),
        ({"x": np.array([1, 2])}, {"x": np.array([[1], [2]])}),
        ({"x": np.array(["a", None])}, {"x": np.array(["b", None])}),
        ({"x": np.array(["2020-01-01"], "datetime64[D]")}, {"x": np.array(["2020-01-02"], "datetime64[D]")}),
        ({1: "a", "b": "c"}, {1: "x", "b": "c"}),
        ({1: "a"}, {"1": "a"}),
        ({"x": [Opaque(1), {(1, 2): {"deep": [b"a"]}}]}, {"x": [Opaque(1), {(1, 2): {"deep": [b"b"]}}]}),
        ({"x": MappingProxyType({"a": 1})}, {"x": MappingProxyType({"a": 2})}),
        ({"x": deque([1])}, {"x": deque([2])}),
        ({"x": Opaque(1)}, {"x": object()}),
        (Slotted("a"), Slotted("b")),
        (Numbered("a"), Numbered("b")),
    ],
)
def test_rows_that_differ_in_what_can_be_read_are_refused(tmp_path: Path, before: Any, after: Any) -> None:
    optimize(OfTypes(), tmp_path, valset=[before], use_merge=False)
    with pytest.raises(InputError, match="valset has changed"):
        optimize(OfTypes(), tmp_path, valset=[after], use_merge=False)


class Endless:
    """A loader that is asked for its rows one by one, as each may take long."""

    def __init__(self) -> None:
        self.fetched: list[int] = []

    def all_ids(self) -> list[int]:
        return list(range(len(TRAIN)))

    def fetch(self, ids: list[int]) -> list[str]:
        self.fetched.extend(ids)
        return [TRAIN[each] for each in ids]

    def __len__(self) -> int:
        return len(TRAIN)


def test_a_loader_is_asked_for_no_row_before_it_is_used(tmp_path: Path) -> None:
    optimize(Fragile(), tmp_path, trainset=Endless())
    again = Endless()
    optimize(Fragile(), tmp_path, trainset=again)
    assert again.fetched == []


def selector(*_: Any) -> list[str]:
    return ["first"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("reflection_prompt_template", "Improve <curr_param> with <side_info>"),
        ("frontier_type", "hybrid"),
        ("use_merge", False),
        ("reflection_minibatch_size", 2),
        ("candidate_selection_strategy", "current_best"),
        ("acceptance_criterion", "improvement_or_equal"),
        ("acceptance_criterion", OfMeans()),
        ("module_selector", selector),
        ("skip_perfect_score", False),
    ],
)
def test_an_argument_that_changes_what_comes_is_told_where_it_has_changed(
    tmp_path: Path, name: str, value: Any
) -> None:
    adapter: dict[str, Any] = {"objectives": True}
    optimize(Fragile(**adapter), tmp_path)
    unchanged, changed = Silent(), Silent()
    optimize(Fragile(**adapter), tmp_path, logger=unchanged)
    optimize(Fragile(**adapter), tmp_path, logger=changed, **{name: value})
    assert not any("has changed" in line for line in unchanged.lines)
    said = f"{name} has changed since the run began; from now on the new one is used, and earlier scores are kept"
    (told,) = [line for line in changed.lines if "has changed" in line]
    assert told.startswith(f"flowevolve: {tmp_path}: {said}")


def test_code_that_makes_scores_or_texts_is_told_where_it_has_changed(tmp_path: Path) -> None:
    class Mended(Fragile):
        def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
            return super().evaluate(list(batch), dict(candidate), capture_traces)

    def reflects(prompt: Any) -> str:
        return reflect(prompt).strip()

    Mended.__name__ = Fragile.__name__
    optimize(Fragile(), tmp_path)
    logger = Silent()
    optimize(Mended(), tmp_path, logger=logger, reflection_lm=reflects)
    told = [line for line in logger.lines if "has changed" in line]
    assert [line.partition(f"{tmp_path}: ")[2].partition(" has")[0] for line in told] == [
        "the code of reflection_lm",
        "the code of adapter.evaluate",
    ]
