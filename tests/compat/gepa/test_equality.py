"""One iteration at a time, the stream does what gepa does: same calls of the adapter, same result, same callbacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from gepa.api import optimize as gepas_optimize
from gepa.strategies.acceptance import ImprovementOrEqualAcceptance
from gepa.strategies.candidate_selector import TopKParetoCandidateSelector
from gepa.strategies.eval_policy import FullEvaluationPolicy
from gepa.strategies.proposal_sampling import PxNSampling
from gepa.utils import MaxCandidateProposalsStopper, MaxMetricCallsStopper, NoImprovementStopper, ScoreThresholdStopper
from hypothesis import given, strategies as st

import flowevolve.compat.gepa as compat
from tests.support.depth import examples
from tests.support.gepa_dummies import SEED, TRAIN, VAL, GEPAHashAdapter, Recorder, Silent, reflect

Arguments = Callable[[], dict[str, Any]]


class FirstThree(FullEvaluationPolicy[int, str]):
    """Validates on less than there is."""

    def get_eval_batch(self, loader: Any, state: Any, target_program_idx: int | None = None) -> list[int]:
        return [0, 1, 2]


class MeasuresTwice(GEPAHashAdapter):
    """Says that its metric is called twice for every example."""

    def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        evaluated = super().evaluate(batch, candidate, capture_traces)
        return replace(evaluated, num_metric_calls=2 * len(batch))


class Halves:
    """A batch sampler: the first half of the examples, and the second, by turns."""

    def next_minibatch_ids(self, loader: Any, state: Any) -> list[Any]:
        ids = list(loader.all_ids())
        return ids[: len(ids) // 2] if state.i % 2 else ids[len(ids) // 2 :]


def both(make: Arguments, **more: Any) -> tuple[Any, GEPAHashAdapter, Any, GEPAHashAdapter]:
    """gepa's result and adapter, and ours.

    gepa passes its limit, and we don't. So both get the one that gepa came to, which changes nothing else.
    """
    results: list[Any] = []
    limit: dict[str, Any] = {}
    ways: list[tuple[Any, dict[str, Any]]] = [(gepas_optimize, {})] * 2
    for optimize, extra in (*ways, (compat.optimize, {"max_in_flight": 1, **more})):
        arguments: dict[str, Any] = {"max_metric_calls": 250, **make()}
        if arguments["max_metric_calls"] is not None:
            arguments |= limit
        adapter: Any = arguments.pop("adapter", None) or GEPAHashAdapter()
        result = optimize(
            **{
                "seed_candidate": dict(SEED),
                "trainset": list(TRAIN),
                "valset": list(VAL),
                "reflection_lm": reflect,
                "logger": Silent(),
                **arguments,
            },
            adapter=adapter,
            **extra,
        )
        limit = {"max_metric_calls": result.total_metric_calls}
        results += [result, adapter]
    return results[2], results[3], results[4], results[5]


def at_times_empty(prompt: str) -> str:
    written = reflect(prompt)
    return "" if written[4] in "0123" else written


CASES: dict[str, Arguments] = {
    "defaults": dict,
    "replies that are empty": lambda: {"reflection_lm": at_times_empty},
    "another seed": lambda: {"seed": 7},
    "current best": lambda: {"candidate_selection_strategy": "current_best"},
    "epsilon greedy": lambda: {"candidate_selection_strategy": "epsilon_greedy"},
    "top k": lambda: {"candidate_selection_strategy": "top_k_pareto", "max_metric_calls": 500},
    "a selector": lambda: {"candidate_selection_strategy": TopKParetoCandidateSelector(k=2, rng=None)},
    "all components": lambda: {"module_selector": "all"},
    "a component selector": lambda: {"module_selector": lambda *_: ["second"]},
    "equal passes": lambda: {"acceptance_criterion": "improvement_or_equal"},
    "a criterion": lambda: {"acceptance_criterion": ImprovementOrEqualAcceptance()},
    "a batch sampler": lambda: {"batch_sampler": Halves()},
    "a minibatch size": lambda: {"reflection_minibatch_size": 2},
    "merges": lambda: {"use_merge": True, "max_metric_calls": 600},
    "merges of few": lambda: {"use_merge": True, "max_merge_invocations": 2, "max_metric_calls": 600, "seed": 5},
    "merges of a better and a worse one": lambda: {"use_merge": True, "max_metric_calls": 600, "seed": 6},
    "merges of a worse and a better one": lambda: {"use_merge": True, "max_metric_calls": 600, "seed": 17},
    "one data set": lambda: {"valset": None},
    "a validation policy": lambda: {"val_evaluation_policy": FirstThree()},
    "objectives": lambda: {"frontier_type": "objective", "adapter": GEPAHashAdapter(objectives=True)},
    "cartesian": lambda: {"frontier_type": "cartesian", "adapter": GEPAHashAdapter(objectives=True)},
    "two metric calls an example": lambda: {"adapter": MeasuresTwice()},
    "few are perfect": lambda: {"perfect_score": 0.3},
    "perfect is no reason": lambda: {"perfect_score": 0.3, "skip_perfect_score": False},
    "no improvement": lambda: {"stop_callbacks": NoImprovementStopper(4)},
    "stoppers alone": lambda: {
        "max_metric_calls": None,
        "stop_callbacks": [MaxCandidateProposalsStopper(9), ScoreThresholdStopper(0.95)],
    },
    "its own limit": lambda: {"max_metric_calls": None, "stop_callbacks": MaxMetricCallsStopper(90)},
    "no outputs": lambda: {"track_best_outputs": False},
    "templates": lambda: {"reflection_prompt_template": {"first": "<curr_param> and <side_info>"}},
    "a proposer": lambda: {
        "custom_candidate_proposer": lambda candidate, _, names: {name: candidate[name] + "!" for name in names},
        "reflection_lm": None,
    },
}


@pytest.mark.parametrize("name", CASES)
def test_the_result_and_the_calls_are_gepas(name: str) -> None:
    theirs, their_adapter, ours, our_adapter = both(CASES[name])
    assert our_adapter.calls == their_adapter.calls
    assert ours == theirs
    assert len(ours.candidates) > 1


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_both_modes_are(mode: str) -> None:
    theirs, _, ours, _ = both(dict, mode=mode)
    assert ours == theirs


@given(
    seed=st.integers(0, 2**32),
    train=st.integers(1, 9),
    val=st.integers(1, 6),
    components=st.integers(1, 4),
    calls=st.integers(1, 150),
    merge=st.booleans(),
)
@examples(15)
def test_whatever_the_sizes(seed: int, train: int, val: int, components: int, calls: int, merge: bool) -> None:
    theirs, their_adapter, ours, our_adapter = both(
        lambda: {
            "seed_candidate": {f"text {number}": "" for number in range(components)},
            "trainset": [f"t{number}" for number in range(train)],
            "valset": [f"v{number}" for number in range(val)],
            "max_metric_calls": calls,
            "use_merge": merge,
            "seed": seed,
        }
    )
    assert our_adapter.calls == their_adapter.calls
    assert ours == theirs


@pytest.mark.parametrize("merge", [False, True])
def test_callbacks_are_told_the_same_in_the_same_order(merge: bool) -> None:
    recorders: list[Recorder] = []

    def arguments() -> dict[str, Any]:
        recorders.append(Recorder())
        return {"callbacks": [recorders[-1]], "use_merge": merge, "max_metric_calls": 600 if merge else 200}

    both(arguments)
    _, theirs, ours = (recorder.told for recorder in recorders)
    for of_budget in (True, False):  # which of two things after an evaluation is told first differs
        told = [[each for each in told if (each[0] == "on_budget_updated") == of_budget] for told in (ours, theirs)]
        assert [name for name, _ in told[0]] == [name for name, _ in told[1]]
        assert told[0] == told[1]


def test_several_proposals_an_iteration_come_of_the_same_tasks() -> None:
    """gepa evaluates all parents of an iteration, then all children; here each goes on by itself."""
    theirs, their_adapter, ours, our_adapter = both(
        lambda: {
            "sampling_strategy": PxNSampling(2, 2),
            "stop_callbacks": MaxCandidateProposalsStopper(1),
            "max_metric_calls": None,
        }
    )
    first = [call for call in their_adapter.calls if call[1] == tuple(sorted(SEED.items()))]
    assert set(first) <= set(our_adapter.calls)
    assert {tuple(sorted(each.items())) for each in ours.candidates} == {
        tuple(sorted(each.items())) for each in theirs.candidates
    }
