"""Adapters of all kinds and how they are called: with which batches, side by side or not, and how often."""

from __future__ import annotations

import inspect
import itertools
import re
import threading
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import pytest
from gepa.api import optimize as gepas_optimize
from gepa.core.adapter import EvaluationBatch
from gepa.core.data_loader import ListDataLoader

import flowevolve.compat.gepa as compat
from flowevolve._util.clock import is_running
from flowevolve._util.errors import InputError
from tests.support.gepa_dummies import SEED, TRAIN, VAL, First, HashAdapter, Recorder, Silent, optimize


def test_the_arguments_are_gepas_and_ours_come_behind() -> None:
    theirs = inspect.signature(gepas_optimize).parameters
    ours = inspect.signature(compat.optimize).parameters
    assert list(ours)[: len(theirs)] == list(theirs)
    assert [ours[name].default for name in theirs] == [theirs[name].default for name in theirs]
    behind = list(ours.values())[len(theirs) :]
    assert {each.kind for each in behind} == {inspect.Parameter.KEYWORD_ONLY}


class SameAdvice(HashAdapter):
    """Gives every candidate the same line, which is all that scores go by."""

    def __init__(self) -> None:
        super().__init__()
        self.validated: list[str] = []

    def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        given = super().evaluate(batch, candidate, capture_traces)
        if batch[0] == VAL[0]:
            self.validated.append(candidate["first"])
        return replace(given, scores=[0.1 + 0.5 * ("advice" in candidate["first"])] * len(batch))

    def propose_new_texts(self, candidate: dict[str, str], *_: Any) -> dict[str, str]:
        return {"first": f"{candidate['first']}\nadvice"} if "advice" not in candidate["first"] else {"second": "other"}


def test_an_edit_that_the_best_candidate_has_already_is_not_validated_again() -> None:
    adapter = SameAdvice()
    optimize(adapter, reflection_lm=None, max_in_flight=6, max_metric_calls=100)
    assert adapter.validated.count("a\nadvice") == 1


class Drawn:
    """A validation policy that draws other examples for each candidate, the seed among them."""

    def __init__(self) -> None:
        self._random = Random(0)

    def get_eval_batch(self, loader: Any, state: Any, target_program_idx: int | None = None) -> list[Any]:
        return self._random.sample(list(loader.all_ids()), 8)

    def get_seed_eval_batch(self, loader: Any) -> list[Any]:
        return list(loader.all_ids())[:8]

    def get_valset_score(self, program_idx: int, state: Any) -> float:
        scores = state.prog_candidate_val_subscores[program_idx]
        return float(fmean(scores.values()))

    def get_best_program(self, state: Any) -> int:
        return max(range(len(state.program_candidates)), key=lambda number: self.get_valset_score(number, state))


def test_a_policy_may_validate_each_candidate_on_other_examples() -> None:
    more = {"val_evaluation_policy": Drawn(), "valset": [f"v{number}" for number in range(20)]}
    result = optimize(HashAdapter(), **more, max_metric_calls=300)
    assert result.num_candidates > 2
    assert optimize(HashAdapter(), **more, max_metric_calls=12).num_candidates == 1


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_threads_are_in_the_adapter_than_it_may_have(concurrency: int) -> None:
    adapter = HashAdapter()
    optimize(adapter, adapter_concurrency=concurrency, max_in_flight=8)
    assert adapter.most <= concurrency


class Stateful(HashAdapter):
    """Notes in which order it is called: what is evaluated, and when its state is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[str] = []

    def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        self.order.append(f"evaluate {batch[0][0]}")
        return super().evaluate(batch, candidate, capture_traces)

    def get_adapter_state(self) -> dict[str, Any]:
        self.order.append("state")
        return {"called": len(self.order)}


def test_a_candidate_that_enters_does_not_wait_for_other_evaluations_to_note_the_adapters_state() -> None:
    """It is asked for in the turn of the evaluation, and not when other batches have their turn or wait for it."""
    adapter = Stateful()
    optimize(adapter, max_in_flight=6)
    before = [earlier for earlier, now in itertools.pairwise(adapter.order) if now == "state"]
    assert len(before) > 2
    assert set(before) == {"evaluate v"}


@pytest.mark.parametrize("error", [TypeError("not now"), OSError("not there")])
def test_an_adapters_state_that_cannot_be_had_ends_the_run(error: Exception) -> None:
    class Failing(Stateful):
        def get_adapter_state(self) -> dict[str, Any]:
            raise error

    with pytest.raises(InputError, match=f"adapter.get_adapter_state failed with {type(error).__name__}: not"):
        optimize(Failing(), raise_on_exception=False)


def test_calls_are_made_side_by_side_where_the_adapter_may_be_shared() -> None:
    met = threading.Barrier(2)

    class Meeting(HashAdapter):
        def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
            if len(batch) < len(VAL) and candidate == SEED:
                met.wait(timeout=60)  # passed only by two at once
            return super().evaluate(batch, candidate, capture_traces)

    proposals = iter(range(1000))
    optimize(
        Meeting(),
        adapter_concurrency=2,
        max_in_flight=2,
        candidate_selection_strategy=First(),
        custom_candidate_proposer=lambda candidate, _, names: dict.fromkeys(names, f"{next(proposals)}"),
        stop_callbacks=lambda state: state.i >= 1,
    )


def test_chunks_bound_what_a_call_gets() -> None:
    adapter = HashAdapter()
    whole, parts = optimize(HashAdapter(), max_in_flight=1), optimize(adapter, max_in_flight=1, chunk_size=2)
    assert max(len(batch) for batch, _, _ in adapter.calls) == 2
    assert parts == whole


def test_a_part_that_ends_after_another_has_failed_is_paid_for(tmp_path: Path) -> None:
    """It was in its thread, which nothing ends; its result is thrown away, but the metric was called."""

    class Failing(HashAdapter):
        begun = itertools.count()
        failed = threading.Event()

        def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
            match next(self.begun) if batch[0] in TRAIN else None:
                case 0:
                    self.failed.wait()
                case 1:
                    raise LookupError("once")
            return super().evaluate(batch, candidate, capture_traces)

        def on_error(self, event: Any) -> None:
            self.failed.set()

    adapter = Failing()
    result = optimize(
        adapter,
        adapter_concurrency=2,
        max_in_flight=1,
        chunk_size=1,
        raise_on_exception=False,
        callbacks=[adapter],
        run_dir=str(tmp_path),  # with a journal, whose disk is waited for
    )
    assert result.total_metric_calls == sum(len(batch) for batch, _, _ in adapter.calls)


def test_batch_and_candidate_are_the_adapters_to_keep() -> None:
    """What it does to them changes nothing for anybody else."""

    class Careless(HashAdapter):
        def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
            evaluated = super().evaluate(batch, candidate, capture_traces)
            batch.clear()
            candidate.clear()
            return evaluated

    assert optimize(Careless(), max_in_flight=1) == optimize(HashAdapter(), max_in_flight=1)


def test_what_is_given_stays_as_it_is() -> None:
    seed, train, val = dict(SEED), list(TRAIN), list(VAL)
    optimize(HashAdapter(), seed_candidate=seed, trainset=train, valset=val)
    assert (seed, train, val) == (SEED, TRAIN, VAL)


def test_what_the_adapter_raises_comes_out_as_it_is() -> None:
    class Missing(HashAdapter):
        def evaluate(self, *_: Any, **__: Any) -> Any:
            raise LookupError("no such model")

    with pytest.raises(LookupError, match="no such model"):
        optimize(Missing())


@pytest.mark.parametrize("call", [1, 4], ids=["the seed's first minibatch", "another"])
def test_it_need_not_end_the_run(call: int) -> None:
    class Flaky(HashAdapter):
        def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
            if len(self.calls) == call:
                self.calls.append(((), (), False))
                raise LookupError("once")
            return super().evaluate(batch, candidate, capture_traces)

    recorder = Recorder()
    result = optimize(Flaky(), raise_on_exception=False, callbacks=[recorder])
    assert result.num_candidates > 1
    assert [event["will_continue"] for name, event in recorder.told if name == "on_error"] == [True]


def test_an_evaluation_that_does_not_fit_its_batch_is_told() -> None:
    class Short(HashAdapter):
        def evaluate(self, *args: Any, **more: Any) -> Any:
            evaluated = super().evaluate(*args, **more)
            return EvaluationBatch(outputs=evaluated.outputs, scores=evaluated.scores[1:])

    with pytest.raises(InputError, match=r"adapter\.evaluate returned 4 scores for 5 examples"):
        optimize(Short())


@pytest.mark.parametrize("returned", [None, ([], [])])
def test_an_evaluation_that_is_none_is_told(returned: object) -> None:
    class Forgetful(HashAdapter):
        def evaluate(self, *args: Any, **more: Any) -> Any:
            return returned

    with pytest.raises(
        InputError, match=rf"adapter\.evaluate returned something of type {type(returned).__name__}; return a gepa Eval"
    ):
        optimize(Forgetful())


def test_loaders_may_have_ids_of_any_kind() -> None:
    class Named(ListDataLoader[str]):
        def all_ids(self) -> Any:
            return [f"row {number}" for number in range(len(self.items))]

        def fetch(self, ids: Any) -> list[str]:
            return [self.items[int(name.split()[1])] for name in ids]

    result = optimize(HashAdapter(), valset=Named(VAL), trainset=ListDataLoader(TRAIN))
    assert set(result.val_subscores[0]) == {f"row {number}" for number in range(len(VAL))}


def test_examples_are_fetched_in_threads_for_callbacks_too() -> None:
    """At every turn: of each batch that is chosen, of what is proposed on it, and of each merge."""
    fetched: set[bool] = set()

    class Noting(ListDataLoader[str]):
        def fetch(self, ids: Any) -> list[str]:
            fetched.add(is_running())
            return super().fetch(ids)

    recorder = Recorder()
    given: dict[str, Any] = {"use_merge": True, "max_merge_invocations": 5, "max_metric_calls": 400, "max_in_flight": 1}
    optimize(HashAdapter(), valset=Noting(VAL), trainset=Noting(TRAIN), callbacks=[recorder], **given)
    told = [event for name, event in recorder.told if name == "on_evaluation_start"]
    assert all(len(event["inputs"]) == event["batch_size"] > 0 for event in told)
    assert {len(event["parent_ids"]) for event in told} >= {0, 1, 2}
    assert fetched == {False}


def test_one_line_says_how_to_go_faster() -> None:
    logger = Silent()
    optimize(HashAdapter(), logger=logger)
    assert sum("adapter_concurrency=" in line for line in logger.lines) == 1


def test_a_progress_bar_counts_metric_calls(capsys: pytest.CaptureFixture[str]) -> None:
    result = optimize(HashAdapter(), display_progress_bar=True)
    assert f"{result.total_metric_calls}/120" in capsys.readouterr().err


@pytest.mark.parametrize("calls", [24, 61, 120])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"max_in_flight": 1},
        {"adapter_concurrency": 4},
        {"adapter_concurrency": 4, "max_in_flight": 8},
        {"adapter_concurrency": 4, "use_merge": True},
        {"adapter_concurrency": 4, "chunk_size": 2},
        {"mode": "sync", "max_in_flight": 4},
    ],
    ids=str,
)
def test_there_is_never_a_call_more_than_there_may_be(calls: int, given: dict[str, Any]) -> None:
    adapter = HashAdapter()
    result = optimize(adapter, max_metric_calls=calls, **given)
    assert sum(len(batch) for batch, *_ in adapter.calls) == result.total_metric_calls <= calls
    assert all(len(scores) == len(VAL) for scores in result.val_subscores)


def test_a_limit_that_the_seed_alone_would_pass_is_refused() -> None:
    adapter = HashAdapter()
    with pytest.raises(InputError, match=f"max_metric_calls is 3, but evaluating the seed alone takes {len(VAL)}"):
        optimize(adapter, max_metric_calls=3)
    assert not adapter.calls


class Adding(HashAdapter):
    """Scores a text by how many lines it has that are asked for."""

    def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        super().evaluate(batch, candidate, capture_traces)
        lines = candidate["first"].splitlines()
        scores = [sum(f"line {place}" in lines for place in range(20)) / 20 for _ in batch]
        return EvaluationBatch(outputs=list(batch), scores=scores, trajectories=list(batch) if capture_traces else None)

    def make_reflective_dataset(self, candidate: dict[str, str], batch: Any, components: list[str]) -> Any:
        return {name: [{"lines": candidate["first"]}] for name in components}


@pytest.mark.parametrize("merge", [False, True])
def test_edits_are_validated_together_or_on_top_of_each_other(merge: bool) -> None:
    """In groups, line by line, or where there is no model to merge with each on what the others came to."""
    numbers = iter(range(10_000))

    def propose(candidate: dict[str, str], dataset: Any, components: list[str]) -> dict[str, str]:
        return {"first": f"{candidate['first']}\nline {next(numbers) % 20}"}

    def lm(prompt: str) -> str:
        blocks = re.findall(r"```\n(.*?)\n```", prompt, re.DOTALL)
        return f"```\n{blocks[0]}\nline {next(numbers) % 20}\n```"

    given: dict[str, Any] = (
        {"custom_candidate_proposer": propose, "reflection_lm": None} if merge else {"reflection_lm": lm}
    )
    result = optimize(
        Adding(),
        seed_candidate={"first": "do it"},
        adapter_concurrency=4,
        max_in_flight=6,
        max_metric_calls=150,
        **given,
    )
    gained = [len(text["first"].splitlines()) for text in result.candidates]
    assert max(gained) > len(result.parents) / 2
    assert max(after - before for before, after in itertools.pairwise(gained)) > (0 if merge else 1)
    assert result.best_candidate["first"].splitlines()[0] == "do it"
