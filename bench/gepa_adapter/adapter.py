"""The task `house_style` as a gepa adapter whose requests go over HTTP."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from gepa.core.adapter import EvaluationBatch
from gepa.proposer.reflective_mutation.reflection_lm import ReflectionJob, ReflectionProposal

from bench._lib.house_style import rules_of
from flowevolve.core.task import Call, Example, Rollout
from flowevolve.prompts.reading.instructions import read_instruction
from flowevolve.prompts.reflection import ReflectionExample, reflection_prompt
from flowevolve.prompts.shipped import SHIPPED
from flowevolve.tasks.house_style import house_style_task
from flowevolve.tasks.instructions import COMPONENT

Batch = EvaluationBatch[Rollout, str]
Records = Mapping[str, Sequence[Mapping[str, object]]]


@dataclass
class HouseStyleAdapter:
    """The task ``house_style`` as a gepa adapter. Requests of all its calls share ``threads`` client threads."""

    url: str
    threads: int
    proposals: int = 0
    requests: int = 0

    propose_new_texts: None = None
    """gepa asks whether an adapter has its own proposer, and would call that for one candidate at a time."""

    def __post_init__(self) -> None:
        self.task = house_style_task()
        self._pool = ThreadPoolExecutor(self.threads)

    def close(self) -> None:
        self._pool.shutdown()

    def evaluate(self, batch: list[Example], candidate: dict[str, str], capture_traces: bool = False) -> Batch:
        return self.batch_evaluate([(candidate, batch)])[0]

    def batch_evaluate(self, items: list[tuple[dict[str, str], list[Example]]]) -> list[Batch]:
        under_way = [
            [self._pool.submit(self._rollout, candidate[COMPONENT], example) for example in batch]
            for candidate, batch in items
        ]
        done = [[future.result() for future in futures] for futures in under_way]
        return [
            EvaluationBatch(
                outputs=[rollout.output for rollout in rollouts],
                scores=[rollout.score.value for rollout in rollouts],
                trajectories=rollouts,
            )
            for rollouts in done
        ]

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: Batch, components_to_update: list[str]
    ) -> Records:
        return {COMPONENT: [{"rollout": rollout} for rollout in eval_batch.trajectories or []]}

    def propose(self, candidate: dict[str, str], reflective_dataset: Records, names: list[str]) -> dict[str, str]:
        """Write a new text by one reflection call."""
        rollouts = [record["rollout"] for record in reflective_dataset[COMPONENT]]
        examples = [
            ReflectionExample(rollout.calls[0].inputs, rollout.output, rollout.score.feedback)
            for rollout in rollouts
            if isinstance(rollout, Rollout)
        ]
        self.proposals += 1
        prompt = reflection_prompt(SHIPPED, COMPONENT, candidate[COMPONENT], examples)
        return {COMPONENT: read_instruction(self._chat([("user", prompt)]))}

    def propose_many(self, jobs: Sequence[ReflectionJob]) -> list[dict[str, str]]:
        """Write new texts for several candidates side by side."""
        return list(self._pool.map(lambda job: self.propose(*job), jobs))

    def _rollout(self, instruction: str, example: Example) -> Rollout:
        prompt = str(example.data["prompt"])
        output = self._chat([("system", instruction), ("user", prompt)])
        score = self.task.score(output, rules_of(example.data))
        return Rollout(example.id, output, score, (Call(COMPONENT, {"request": prompt}, output),))

    def _chat(self, messages: Sequence[tuple[str, str]]) -> str:
        self.requests += 1
        body = {"model": "simulated", "messages": [{"role": role, "content": text} for role, text in messages]}
        request = urllib.request.Request(  # noqa: S310 - the server of this bench
            f"{self.url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310 - as above
            return str(json.loads(reply.read())["choices"][0]["message"]["content"])


class ParallelReflection:
    """A reflection strategy for gepa that has the adapter propose for many candidates side by side."""

    def __init__(self, adapter: HouseStyleAdapter) -> None:
        self._adapter = adapter

    def reflect(
        self, candidate: dict[str, str], reflective_dataset: Records, components_to_update: list[str]
    ) -> tuple[ReflectionProposal, ParallelReflection]:
        return self.reflect_many([(candidate, reflective_dataset, components_to_update)])[0]

    def reflect_many(self, jobs: list[ReflectionJob]) -> list[tuple[ReflectionProposal, ParallelReflection]]:
        return [(ReflectionProposal(texts), self) for texts in self._adapter.propose_many(jobs)]
