"""What can't be used is refused by its name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gepa.core.callbacks import CompositeCallback
from gepa.strategies.proposal_selection import AllImprovements, BestImprovement

import flowevolve.compat.gepa as compat
from flowevolve._util.errors import InputError
from flowevolve.compat.gepa.launch import reflecting
from tests.support.gepa_dummies import SEED, TRAIN, VAL, GEPAHashAdapter, HashAdapter, Recorder, Silent, reflect


def optimize(**arguments: Any) -> Any:
    given: dict[str, Any] = {
        "seed_candidate": dict(SEED),
        "trainset": TRAIN,
        "valset": VAL,
        "adapter": HashAdapter(),
        "reflection_lm": reflect,
        "max_metric_calls": 20,
        "logger": Silent(),
    }
    return compat.optimize(**{**given, **arguments})


class Proposing(HashAdapter):
    def propose_new_texts(self, *_: Any) -> dict[str, str]:
        return {}


class Unlike:
    """An object that is none of what is asked for."""


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("selection_strategy", {"selection_strategy": BestImprovement()}),
    ("seed_candidate", {"seed_candidate": {}}),
    ("seed_candidate", {"seed_candidate": "Answer."}),
    ("seed_candidate", {"seed_candidate": None}),
    ("seed_candidate", {"seed_candidate": {"instruction": 3}}),
    ("perfect_score", {"perfect_score": None}),
    ("trainset", {"trainset": 3}),
    ("trainset", {"trainset": []}),
    ("valset", {"valset": []}),
    ("adapter", {"adapter": None}),
    ("adapter", {"adapter": Unlike()}),
    ("task_lm", {"task_lm": "some/model"}),
    ("evaluator", {"evaluator": lambda *_: None}),
    ("candidate_selection_strategy", {"candidate_selection_strategy": "paretto"}),
    ("candidate_selection_strategy", {"candidate_selection_strategy": Unlike()}),
    ("batch_sampler", {"batch_sampler": Unlike()}),
    ("module_selector", {"module_selector": "one"}),
    ("acceptance_criterion", {"acceptance_criterion": Unlike()}),
    ("val_evaluation_policy", {"val_evaluation_policy": "half"}),
    ("reflection_minibatch_size", {"reflection_minibatch_size": 0}),
    ("max_metric_calls", {"max_metric_calls": None}),
    ("max_metric_calls", {"max_metric_calls": 0}),
    ("max_metric_calls", {"max_metric_calls": "20"}),
    ("adapter_concurrency", {"adapter_concurrency": "8"}),
    ("trainset", {"trainset": "rows.jsonl"}),
    ("adapter", {"adapter": HashAdapter}),
    ("frontier_type", {"frontier_type": "instances"}),
    ("callbacks", {"callbacks": print}),
    ("callbacks", {"callbacks": "on_error"}),
    ("reflection_lm", {"reflection_lm": 7}),
    ("max_reflection_cost", {"max_reflection_cost": 1.0}),
    ("stop_callbacks", {"stop_callbacks": [3]}),
    ("reflection_lm", {"reflection_lm": None}),
    ("reflection_lm", {"reflection_lm": "anthropic/some-model"}),
    ("reflection_lm_kwargs", {"reflection_lm_kwargs": {"temperature": 1.0}}),
    ("reflection_lm_kwargs", {"reflection_lm": "gpt", "reflection_lm_kwargs": {"temprature": 1.0}}),
    ("reflection_prompt_template", {"reflection_prompt_template": "nothing to fill in"}),
    ("reflection_prompt_template", {"adapter": Proposing(), "reflection_prompt_template": "<curr_param><side_info>"}),
    ("adapter.propose_new_texts", {"adapter": Proposing(), "custom_candidate_proposer": lambda *_: {}}),
    ("adapter_concurrency", {"adapter_concurrency": 0}),
    ("chunk_size", {"chunk_size": 0}),
    ("merge_val_overlap_floor", {"use_merge": True, "merge_val_overlap_floor": 0}),
    ("staleness", {"staleness": "strict"}),
    ("perfect_score", {"perfect_score": "1"}),
    ("max_merge_invocations", {"use_merge": True, "max_merge_invocations": "5"}),
    ("reflection_minibatch_size", {"reflection_minibatch_size": 2.5}),
    ("max_metric_calls", {"max_metric_calls": 60.5}),
    ("max_metric_calls", {"max_metric_calls": float("inf")}),
    ("adapter_concurrency", {"adapter_concurrency": 2.5}),
    ("adapter_concurrency", {"adapter_concurrency": None}),
    ("chunk_size", {"chunk_size": 2.5}),
    ("max_in_flight", {"max_in_flight": 1.5}),
    ("seed", {"seed": None}),
    ("seed", {"seed": -1}),
    ("seed", {"seed": "x"}),
    ("reflection_strategy", {"reflection_strategy": 3}),
    ("custom_candidate_proposer", {"custom_candidate_proposer": 3}),
    ("sampling_strategy", {"sampling_strategy": 3}),
    ("logger", {"logger": Unlike()}),
    ("evaluator", {"adapter": None, "task_lm": lambda messages: "", "evaluator": 3}),
    ("task_lm", {"adapter": None, "task_lm": 3}),
    ("reflection_prompt_template", {"reflection_prompt_template": 3}),
    ("reflection_prompt_template", {"reflection_prompt_template": {"first": 3}}),
    ("reflection_lm_kwargs", {"reflection_lm": "gpt", "reflection_lm_kwargs": 3}),
    ("run_dir", {"run_dir": 3}),
    ("run_dir", {"run_dir": ""}),
    ("use_merge", {"use_merge": "no"}),
    ("raise_on_exception", {"raise_on_exception": "no"}),
    ("skip_perfect_score", {"skip_perfect_score": "no"}),
]


@pytest.mark.parametrize(("name", "given"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_refused_by_name(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refused:
        optimize(**given)
    assert str(refused.value).startswith(name)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("merge", [False, True])
def test_merges_may_be_without_a_limit(merge: bool) -> None:
    """dspy's signature has None."""
    given: dict[str, Any] = {"seed_candidate": dict(SEED), "trainset": list(TRAIN), "valset": list(VAL)}
    given |= {"adapter": GEPAHashAdapter(), "reflection_lm": reflect, "max_metric_calls": 60, "logger": Silent()}
    assert compat.optimize(**given, use_merge=merge, max_merge_invocations=None).num_candidates > 1


def test_whole_numbers_of_any_kind_are_taken(tmp_path: Path) -> None:
    plain = optimize(max_metric_calls=60, seed=3, max_in_flight=1, reflection_minibatch_size=2, run_dir=tmp_path / "a")
    given = {"max_metric_calls": 60.0, "seed": np.int64(3), "max_in_flight": np.int32(1)}
    numpys = optimize(**given, reflection_minibatch_size=np.int64(2), run_dir=str(tmp_path / "b"))
    assert replace(numpys, run_dir=None) == replace(plain, run_dir=None)


class Misspelt:
    def on_iteration_start(self, event: Any) -> None:
        """A name that gepa has."""

    def on_iteration_ended(self, event: Any) -> None:
        """And one that it has not."""


WARNED: list[tuple[str, dict[str, Any]]] = [
    (r"callbacks: int has none of the methods that are called, such as on_error", {"callbacks": [3]}),
    (
        r"callbacks: Misspelt\.on_iteration_ended is never called; did you mean 'on_iteration_end'\?",
        {"callbacks": [Misspelt()]},
    ),
    (
        r"reflection_prompt_template: the candidate has no component 'frist'; did you mean 'first'\?",
        {"reflection_prompt_template": {"frist": "<curr_param><side_info>"}},
    ),
    (
        r"reflection_minibatch_size is 8, but the size of the trainset is 7, so each iteration evaluates some examples more than once",
        {"reflection_minibatch_size": 8},
    ),
    (r"wandb_api_key has no effect without use_wandb=True", {"wandb_api_key": "key"}),
    (r"mlflow_tracking_uri has no effect without use_mlflow=True", {"mlflow_tracking_uri": "http://here"}),
]


@pytest.mark.parametrize(("said", "given"), WARNED)
def test_what_has_no_effect_is_warned_of(said: str, given: dict[str, Any]) -> None:
    with pytest.warns(UserWarning, match=f"^{said}"):
        assert optimize(**given).candidates


def test_callbacks_that_gepa_calls_are_not_warned_of() -> None:
    assert optimize(callbacks=[Recorder(), CompositeCallback([Recorder()])]).candidates


@pytest.mark.parametrize(
    ("name", "model"),
    [("openai/gpt", "gpt"), ("openai/openai/gpt-oss", "openai/gpt-oss"), ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B")],
)
def test_openai_before_a_name_is_the_provider_also_where_the_endpoint_is_given(name: str, model: str) -> None:
    section = reflecting(name, {"base_url": "http://localhost:8000/v1"}, 1).section
    assert section["model"] == model


def test_a_key_is_not_repeated() -> None:
    with pytest.raises(InputError, match="api_key_env") as refused:
        optimize(reflection_lm="gpt", reflection_lm_kwargs={"api_key": "sk-secret"})
    assert "sk-secret" not in str(refused.value)


def test_without_a_perfect_score_none_is_skipped() -> None:
    """With 0.0 every minibatch is perfect: it would be skipped, and nothing proposed."""
    one_by_one = {"max_metric_calls": 60, "max_in_flight": 1}
    assert optimize(perfect_score=0.0, **one_by_one).num_candidates == 1
    without = optimize(perfect_score=None, skip_perfect_score=False, **one_by_one)
    assert without == optimize(perfect_score=0.0, skip_perfect_score=False, **one_by_one)
    assert without.num_candidates > 1


def test_the_default_strategies_may_be_named() -> None:
    named = optimize(selection_strategy=AllImprovements(), max_in_flight=1)
    assert named == optimize(max_in_flight=1)
    assert named.num_candidates > 1


def test_a_task_lm_without_the_package_that_calls_it_is_told_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowevolve.compat.gepa.arguments.find_spec", lambda name: None)
    with pytest.raises(
        InputError, match=r"^task_lm: gepa calls 'openai/gpt' through LiteLLM, which is not installed; pip install lite"
    ):
        optimize(adapter=None, task_lm="openai/gpt")
