"""The process that runs one method on one set of rows.

    python -m bench.confirm.methods METHOD JOB

``JOB`` is a `Job` as JSON. Each printed line is a `Step` as JSON. The job's folder has what a method needs to go on
after an interruption.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import anyio
from gepa.api import optimize
from gepa.core.callbacks import GEPACallback, ValsetEvaluatedEvent
from gepa.core.result import GEPAResult

from bench._lib.methods.presets import DEFAULTS
from bench.confirm.rows import Sizes, task_to_evolve
from bench.peers.chats import ChatError, Chats
from bench.peers.gepa import Adapter, Reflector
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.artifact import Artifact
from flowevolve.core.events import Event
from flowevolve.core.model import Message
from flowevolve.core.task import Task
from flowevolve.engine.engine import Engine
from flowevolve.runner.resume import resume
from flowevolve.runner.run import Watchers, run

MINIBATCH = 3
Texts = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Job:
    """What a method is given. ``calls`` are metric calls: examples run and scored."""

    url: str
    model: str
    rows: str
    data: str | None
    sizes: tuple[int, int, int]
    calls: int
    concurrency: int
    seed: int
    folder: str

    def task(self) -> Task:
        return task_to_evolve(self.rows, None if self.data is None else Path(self.data), Sizes(*self.sizes))


@dataclass(frozen=True, slots=True)
class Step:
    """The best candidate so far by validation, ``seconds`` after the method began. Only the last step has ``calls``."""

    seconds: float
    score: float
    best: Texts
    calls: int | None = None


class _Teller:
    """Prints steps."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def tell(self, score: float, best: Texts, calls: int | None = None) -> None:
        step = Step(time.monotonic() - self._began, score, dict(best), calls)
        print(json.dumps(asdict(step)), flush=True)


class _Lenient(Chats):
    """Gives an empty reply if the endpoint refuses a request, such as one too long; gepa then goes on, as ours does."""

    def __call__(self, messages: Sequence[Message], max_tokens: int | None = None) -> str:
        try:
            return super().__call__(messages, max_tokens)
        except ChatError as error:
            if error.status in (400, 500):
                return ""
            raise


class _Watch:
    """A callback of gepa's for every validation, which reports each new best candidate."""

    def __init__(self, teller: _Teller) -> None:
        self._teller = teller

    def on_valset_evaluated(self, event: ValsetEvaluatedEvent) -> None:
        if event["is_best_program"]:
            self._teller.tell(event["average_score"], event["candidate"])


class _Silent:
    def log(self, message: str) -> None:
        """Discard the message."""


def run_gepa(job: Job) -> None:
    """Run gepa's own loop, with all rollouts of a stage side by side."""
    task, teller = job.task(), _Teller()
    with (
        _Lenient(job.url, job.model, concurrency=job.concurrency, seed=job.seed) as chats,
        ThreadPoolExecutor(job.concurrency) as pool,
    ):
        result: GEPAResult[str, int] = optimize(
            seed_candidate=dict(task.seed()),
            trainset=list(task.data.train),
            valset=list(task.data.val),
            adapter=Adapter(task, chats, pool),
            reflection_strategy=Reflector(chats, pool),
            reflection_minibatch_size=MINIBATCH,
            max_metric_calls=job.calls,
            callbacks=[cast("GEPACallback", _Watch(teller))],
            logger=_Silent(),
            run_dir=job.folder,
            track_best_outputs=False,
            seed=job.seed,
        )
    best = result.candidates[result.best_idx]
    teller.tell(result.val_aggregate_scores[result.best_idx], best, result.total_metric_calls)


async def run_defaults(job: Job) -> None:
    """Run our engine with its defaults, apart from the settings that both methods are given."""
    llm = {"backend": "openai", "transport": "aiohttp", "base_url": job.url, "model": job.model}
    config = parse_config(
        {
            **DEFAULTS,
            "seed": job.seed,
            "llm": {**llm, "concurrency": job.concurrency},
            "budget": {"rollouts": job.calls},
            "held_out": False,
        },
        "confirm",
    )
    teller, running = _Teller(), list[Engine]()

    def watch(event: Event) -> None:
        score, name = event.data.get("best_score"), event.data.get("best")
        if event.kind == "pool.commit" and isinstance(score, int | float) and isinstance(name, str) and running:
            teller.tell(float(score), _texts(running[0].pool[name].artifact))

    async def keep(engine: Engine) -> None:
        running.append(engine)

    folder, watchers = Path(job.folder), Watchers(events=(watch,))
    if await anyio.Path(folder).exists():
        result = await resume(folder, config=config, task=job.task(), watchers=watchers, side_task=keep, again=True)
    else:
        result = await run(config, task=job.task(), out=folder, watchers=watchers, side_task=keep)
    assert result.best is not None, "the seed was validated"
    teller.tell(result.best.score, _texts(result.best.artifact), result.report.spent.rollouts)


def _texts(artifact: Artifact) -> Texts:
    return dict(artifact)


def perform(method: str, job: Job) -> None:
    """Let a method work until its metric calls are spent."""
    if method == "gepa":
        run_gepa(job)
    else:
        clock.run(run_defaults, job)


def read_job(text: str) -> Job:
    content: dict[str, Any] = json.loads(text)
    return Job(**{**content, "sizes": tuple(content["sizes"])})


if __name__ == "__main__":
    perform(sys.argv[1], read_job(sys.argv[2]))
