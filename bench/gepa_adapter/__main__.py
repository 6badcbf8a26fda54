"""gepa's own loops beside ours over one gepa adapter, on the simulated server, on the real clock.

    python -m bench.gepa_adapter [--seconds 60] [--threads 32] [--json FILE]

All modes have the same adapter, data, prompts and client threads, which the adapter spreads its requests over: gepa one
proposal at a time, gepa with 4x4 proposals an iteration (through ``batch_evaluate``), and ours. The server is an API
whose latency is lognormal and does not depend on load, inside this process.
"""

from __future__ import annotations

import argparse
import json
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from anyio.from_thread import start_blocking_portal
from gepa.api import optimize as gepas_optimize
from gepa.core.adapter import EvaluationBatch
from gepa.core.result import GEPAResult
from gepa.strategies.proposal_sampling import PxNSampling
from gepa.utils import TimeoutStopCondition

from bench._lib.environment import environment
from flowevolve.compat.gepa import optimize
from flowevolve.prompts import ReflectionExample, parse_instruction, reflection_prompt
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import APIProfile, OutputLength
from flowevolve.sim.rules import RulesWorld
from flowevolve.sim.rules_params import PRESETS
from flowevolve.sim.server import serve
from flowevolve.tasks.base import Call, Example, Rollout
from flowevolve.tasks.house_style import house_style_task, rules_of
from flowevolve.tasks.instructions import COMPONENT

SERVER = APIProfile(
    output=OutputLength(median=0.0, sigma=0.0, most=1024),
    first_token_seconds=0.15,
    first_token_sigma=0.8,  # the slowest of a hundred takes a second
    per_token_seconds=0.0,
    requests_per_minute=1e9,
    tokens_per_minute=1e12,
)
VALIDATION = 20
Batch = EvaluationBatch[Rollout, str]


@dataclass
class HouseStyleAdapter:
    """The task ``house_style`` as a gepa adapter. Requests of all its calls share ``threads`` client threads."""

    url: str
    threads: int
    proposals: int = 0
    requests: int = 0

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
    ) -> Mapping[str, Sequence[Mapping[str, object]]]:
        return {COMPONENT: [{"rollout": rollout} for rollout in eval_batch.trajectories or []]}

    def propose_new_texts(
        self,
        candidate: dict[str, str],
        reflective_dataset: Mapping[str, Sequence[Mapping[str, object]]],
        names: list[str],
    ) -> dict[str, str]:
        rollouts = [record["rollout"] for record in reflective_dataset[COMPONENT]]
        examples = [
            ReflectionExample(rollout.calls[0].inputs, rollout.output, rollout.score.feedback)
            for rollout in rollouts
            if isinstance(rollout, Rollout)
        ]
        self.proposals += 1
        prompt = reflection_prompt(COMPONENT, candidate[COMPONENT], examples)
        return {COMPONENT: parse_instruction(self._chat([("user", prompt)]))}

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


class Quiet:
    def log(self, message: str) -> None:
        """Say nothing."""


Run = Callable[..., GEPAResult[str, int]]
MODES: dict[str, tuple[Run, dict[str, object]]] = {
    "gepa 0.1.4, synchronous": (gepas_optimize, {}),
    "gepa 0.1.4, PxN 4x4": (gepas_optimize, {"sampling_strategy": PxNSampling(4, 4)}),
    "ours, adapter_concurrency=1": (optimize, {}),
    "ours, adapter_concurrency=4": (optimize, {"adapter_concurrency": 4}),
    "ours, adapter_concurrency=16": (optimize, {"adapter_concurrency": 16, "max_in_flight": 16}),
}


def measure(name: str, url: str, seconds: float, threads: int) -> dict[str, float]:
    run, more = MODES[name]
    adapter = HouseStyleAdapter(url, threads)
    began = monotonic()
    result = run(
        seed_candidate=dict(adapter.task.seed()),
        trainset=list(adapter.task.data.train),
        valset=list(adapter.task.data.val)[:VALIDATION],
        adapter=adapter,
        stop_callbacks=TimeoutStopCondition(seconds),
        skip_perfect_score=True,
        logger=Quiet(),
        **more,
    )
    took = monotonic() - began
    adapter.close()
    return {
        "proposals_per_minute": round(60 * adapter.proposals / took, 1),
        "requests_per_second": round(adapter.requests / took, 2),
        "best_score": round(result.val_aggregate_scores[result.best_idx], 3),
        "seconds": round(took, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="after which no mode begins anything new")
    parser.add_argument("--threads", type=int, default=32, help="of the adapter's client")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    figures: dict[str, dict[str, float]] = {}
    with start_blocking_portal() as portal:
        backend = SimBackend(RulesWorld(PRESETS["normal"]), SERVER)
        with portal.wrap_async_context_manager(serve(backend, host="127.0.0.1", port=0)) as url:
            for name in MODES:
                figures[name] = measure(name, url, arguments.seconds, arguments.threads)
                print(f"{name:30} {figures[name]}", flush=True)
    if arguments.json is not None:
        settings = {"seconds": arguments.seconds, "threads": arguments.threads, "validation": VALIDATION}
        content = {"modes": figures, "settings": settings, "simulated": True, **environment()}
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
