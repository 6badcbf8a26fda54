"""How the whole engine's cost grows with a run's length: GEPA on rollouts that call no model, where scores tie."""

from __future__ import annotations

import tempfile
from hashlib import blake2b
from pathlib import Path
from typing import ClassVar

from bench.overhead.calls import SYSTEM, Stopwatch, examples
from bench.overhead.instant_server import MODEL
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.artifact import Artifact
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout, Score
from flowevolve.runner.run import run

VALIDATION = 10


class Ties:
    """A task whose rollouts call no model: half of them score 1, the others 0, so that very many candidates tie."""

    name = "ties"
    description: ClassVar[str] = "questions that are answered right or wrong by chance"

    def __init__(self) -> None:
        self.data = Dataset(examples("t", 64), examples("v", VALIDATION))

    def seed(self) -> Artifact:
        return Artifact({"instruction": SYSTEM})

    async def rollout(self, artifact: Artifact, example: Example, model: ChatModel) -> Rollout:
        drawn = blake2b(f"{artifact['instruction']}/{example.id}".encode(), digest_size=1).digest()[0]
        score = Score(float(drawn % 2), "it could be better", passed=False)
        return Rollout(
            example.id,
            "an answer",
            score,
            (Call("instruction", {"question": str(example.data["question"])}, "an answer"),),
        )


def evolve(url: str, candidates: int) -> float:
    """Seconds of this process's CPU time for a run with this many proposals, including its run directory.

    Each candidate takes one call, about ten rollouts and some fifteen events; about three in four enter the pool.
    """
    with tempfile.TemporaryDirectory() as folder:
        return evolve_into(Path(folder) / "run", url, candidates)


def evolve_into(out: Path, url: str, candidates: int) -> float:
    """The same, with a run directory that is kept."""
    return clock.run(_evolve, url, candidates, out, uvloop=False)


async def _evolve(url: str, candidates: int, out: Path) -> float:
    endpoint = {"backend": "openai", "transport": "aiohttp", "base_url": url, "model": MODEL, "concurrency": 512}
    config = {
        "preset": "plain",
        "algorithm": {
            "max_in_flight": 64,
            "minibatch": 1,
            "acceptance": "improvement_or_equal",
            "skip_perfect": False,
        },
        "staleness": {"policy": "full"},
        "llm": endpoint,
        "stages": {name: {"workers": 32} for name in ("generate", "propose", "screen", "evaluate")},
        "budget": {"proposals": candidates},
    }
    watch = Stopwatch()
    await run(parse_config(config, "bench"), task=Ties(), out=out)
    return watch.cpu_seconds()
