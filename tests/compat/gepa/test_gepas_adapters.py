"""gepa's own adapters on the simulated server: what gepa itself makes of them, and what the stream does."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from gepa.adapters.default_adapter.default_adapter import EvaluationResult
from gepa.adapters.optimize_anything_adapter.optimize_anything_adapter import OptimizeAnythingAdapter
from gepa.api import optimize as gepas_optimize

import flowevolve.compat.gepa as compat
from bench._lib.house_style import rules_of
from flowevolve.prompts.reading.instructions import read_instruction
from flowevolve.prompts.reflection import ReflectionExample, reflection_prompt
from flowevolve.prompts.shipped import SHIPPED
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import PROFILES
from flowevolve.sim.server import serve
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld
from flowevolve.tasks.house_style import house_style_task
from tests.support.gepa_dummies import Silent

TASK = house_style_task()
COMPONENT = next(iter(TASK.seed()))


class Client:
    """A client of the server, as users have it: functions that block."""

    def __init__(self, url: str) -> None:
        self.requests: list[bytes] = []
        self.proposals: list[str] = []
        self._url = f"{url}/chat/completions"

    def chat(self, messages: Sequence[Mapping[str, str]]) -> str:
        body = json.dumps({"model": "simulated", "messages": list(messages)}).encode()
        self.requests.append(body)
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return str(json.loads(reply.read())["choices"][0]["message"]["content"])

    def propose(
        self, candidate: dict[str, str], records: Mapping[str, Sequence[Mapping[str, Any]]], names: list[str]
    ) -> dict[str, str]:
        """A `ProposalFn` that asks the server, in the words that its world knows."""
        examples = [
            ReflectionExample({"request": each["Inputs"]}, each["Generated Outputs"], each["Feedback"])
            for each in records[COMPONENT]
        ]
        prompt = reflection_prompt(SHIPPED, COMPONENT, candidate[COMPONENT], examples)
        self.proposals.append(read_instruction(self.chat([{"role": "user", "content": prompt}])))
        return {COMPONENT: self.proposals[-1]}


@pytest.fixture
def url() -> Iterator[str]:
    backend = SimBackend(RulesWorld(PRESETS["normal"]), PROFILES["instant"])
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serve(backend)) as address:
        yield address


def rows(split: str, most: int) -> list[dict[str, Any]]:
    return [
        {"input": example.data["prompt"], "additional_context": {}, "answer": "", "row": example.data}
        for example in getattr(TASK.data, split)[:most]
    ]


def judge(data: Any, response: str) -> EvaluationResult:
    score = TASK.score(response, rules_of(data["row"]))
    return EvaluationResult(score.value, score.feedback)


def of_task_lm(client: Client) -> dict[str, Any]:
    """gepa's default adapter."""
    return {"task_lm": client.chat, "evaluator": judge}


def in_sessions(client: Client) -> dict[str, Any]:
    """gepa's adapter with ``batch_evaluate``, which gepa calls wherever it is there."""

    def evaluate(candidate: dict[str, str], example: Any = None, **_: Any) -> Any:
        system, asked = candidate[COMPONENT], str(example["input"])
        said = client.chat([{"role": "system", "content": system}, {"role": "user", "content": asked}])
        score, feedback, _objectives = judge(example, said)
        return score, said, {"Inputs": asked, "Generated Outputs": said, "Feedback": feedback}

    return {"adapter": OptimizeAnythingAdapter(evaluator=evaluate, parallel=False)}


def optimize(run: Callable[..., Any], adapter: Callable[[Client], dict[str, Any]], client: Client, **more: Any) -> Any:
    return run(
        seed_candidate=dict(TASK.seed()),
        trainset=rows("train", 12),
        valset=rows("val", 8),
        custom_candidate_proposer=client.propose,
        max_metric_calls=90,
        logger=Silent(),
        **adapter(client),
        **more,
    )


@pytest.mark.parametrize("adapter", [of_task_lm, in_sessions])
def test_one_iteration_at_a_time_it_is_gepa(adapter: Callable[[Client], dict[str, Any]], url: str) -> None:
    theirs, ours = Client(url), Client(url)
    expected = optimize(gepas_optimize, adapter, theirs)
    assert optimize(compat.optimize, adapter, ours, max_in_flight=1) == expected
    assert ours.requests == theirs.requests
    assert expected.val_aggregate_scores[expected.best_idx] > expected.val_aggregate_scores[0]


def test_in_the_stream_every_request_is_counted(url: str) -> None:
    client = Client(url)
    result = optimize(compat.optimize, of_task_lm, client, adapter_concurrency=4, chunk_size=2)
    assert len(client.requests) == result.total_metric_calls + len(client.proposals)
    lines = {line for text in (TASK.seed()[COMPONENT], *client.proposals) for line in text.splitlines()}
    assert {line for candidate in result.candidates for line in candidate[COMPONENT].splitlines()} <= lines
