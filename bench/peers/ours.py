"""Our own engine as a method among the others: it runs until it is ended, and reports what the others report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bench.peers.progress import ServerListener
from flowevolve.config.run import parse_config
from flowevolve.core.events import Event
from flowevolve.core.task import Task
from flowevolve.runner.run import Watchers, run

FOREVER: Mapping[str, object] = {"hours": 1000}


async def evolve(
    task: Task,
    sections: Mapping[str, object],
    tell: ServerListener,
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
    tell("began", None)
    await run(config, task=task, watchers=Watchers(events=(Watch(tell),)))


class Watch:
    """Reports progress by the engine's events. An evaluation that racing stopped ended with a verdict, too."""

    def __init__(self, tell: ServerListener) -> None:
        self._tell = tell

    def __call__(self, event: Event) -> None:
        match event.kind:
            case "candidate.proposed" if event.data["operator"] in ("reflect", "aggregate"):
                self._tell("proposed", None)
            case "candidate.validated" | "evaluation.stopped":
                self._tell("validated", None)
            case "pool.commit" if _confirms(event):
                score = event.data["best_score"]
                self._tell("accepted", float(score) if isinstance(score, int | float) else None)


def _confirms(event: Event) -> bool:
    changes = event.data["changes"]
    assert isinstance(changes, list)
    return any(isinstance(change, dict) and change.get("status") == "confirmed" for change in changes)
