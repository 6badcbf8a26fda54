"""What can't be used is refused by its name."""

from __future__ import annotations

from typing import Any

import pytest
from gepa.strategies.proposal_selection import AllImprovements, BestImprovement

import flowevolve.compat.gepa as compat
from flowevolve._util.errors import InputError
from flowevolve.compat.gepa.launch import reflecting
from tests.support.gepa_dummies import SEED, TRAIN, VAL, HashAdapter, Silent, reflect


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
]


@pytest.mark.parametrize(("name", "given"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_refused_by_name(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refused:
        optimize(**given)
    assert str(refused.value).startswith(name)
    assert "\n" not in str(refused.value)


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
    with pytest.raises(InputError, match=r"^task_lm: 'openai/gpt' is called by gepa through LiteLLM: pip install lite"):
        optimize(adapter=None, task_lm="openai/gpt")
