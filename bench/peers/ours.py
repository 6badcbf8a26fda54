"""Our own engine as one of the methods: it runs until it is ended, and reports what the others report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bench.peers.progress import Listener
from flowevolve.config.run import parse_config
from flowevolve.core.event_kinds import CandidateProposed, EvaluationStopped, FlowClosed, FlowOpened, PoolCommitted
from flowevolve.core.events import Event
from flowevolve.core.task import Task
from flowevolve.runner.run import Watchers, run

FOREVER: Mapping[str, object] = {"hours": 1000}


async def evolve(
    task: Task,
    sections: Mapping[str, object],
    tell: Listener,
    *,
    url: str,
    model: str,
    concurrency: int,
    seed: int = 0,
    max_tokens: int | None = None,
    budget: Mapping[str, object] = FOREVER,
    transport: Literal["aiohttp", "openai"] = "aiohttp",
) -> None:
    """Run these sections of a configuration on a server, by default until the process is ended."""
    llm: dict[str, object] = {
        "backend": "openai",
        "transport": transport,
        "base_url": url,
        "model": model,
        "concurrency": concurrency,
    }
    if max_tokens is not None:
        llm["max_tokens"] = max_tokens
    config = parse_config({"preset": "plain", **sections, "seed": seed, "llm": llm, "budget": budget}, "bench")
    tell("began")
    await run(config, task=task, watchers=Watchers(events=(Watch(tell),)))


class Watch:
    """Reports progress from the engine's events. Candidates' texts are known from the events of their proposals."""

    def __init__(self, tell: Listener) -> None:
        self._tell = tell
        self._texts: dict[str, str] = {}
        self._best: str | None = None
        self._flows = self._most = 0

    def __call__(self, event: Event) -> None:
        match event.body:
            case FlowOpened():
                self._flows += 1
                if self._flows > self._most:
                    self._most = self._flows
                    self._tell("opened")
            case FlowClosed():
                self._flows -= 1
            case CandidateProposed(candidate=candidate, operator=operator, components=components):
                self._texts[candidate] = "\n".join(components.values())
                if operator in ("reflect", "aggregate"):
                    self._tell("proposed")
            case _ if event.kind == "candidate.validated":
                self._tell("validated")
            case EvaluationStopped():
                self._tell("stopped")
            case PoolCommitted(best=best, best_score=score):
                if _confirms(event):
                    self._tell("accepted", score)
                if best is not None and best != self._best:
                    self._best = best
                    self._tell("best", score, self._texts[best])


def _confirms(event: Event) -> bool:
    changes = event.data["changes"]
    assert isinstance(changes, list)
    return any(isinstance(change, dict) and change.get("status") == "confirmed" for change in changes)
