"""One method at work, in a process of its own: it prints its progress until it is killed.

    python -m bench._lib.methods.process METHOD JOB

``JOB`` is a `Job` as JSON.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count

from bench._lib.methods.presets import PRESETS, hurried
from bench._lib.methods.workloads import WORKLOADS, Pipeline, small
from bench.peers.chats import Chats
from bench.peers.examples import roll_out
from bench.peers.progress import print_progress
from flowevolve import clock
from flowevolve.tasks.base import Task


@dataclass(frozen=True, slots=True)
class Job:
    """``speed``: at how many times its speed the server runs. ``small``: with less text in every prompt."""

    url: str
    model: str
    workload: str
    concurrency: int
    seed: int
    speed: float
    max_tokens: int | None
    small: bool


METHODS = (
    "gepa_sync",
    "gepa_pxn_2x2",
    "gepa_pxn_4x4",
    "gepa_pxn_8x8",
    "agentdescent",
    "sync",
    "stream_plain",
    "stream",
    "stream_careful",
    "combee_10",
    "combee_40",
)
"""Combee is ours: gepa 0.1.4 has none."""
CEILING = "ceiling"
"""No method but load without end: every slot of the client has a call of a rollout open, all the time."""


def perform(method: str, job: Job) -> None:
    """Work for ever."""
    workload = WORKLOADS[job.workload]
    task = Pipeline(small(workload) if job.small else workload)
    if method in PRESETS:
        clock.run(_ours, method, job, task)
        return
    chats = Chats(job.url, job.model, concurrency=job.concurrency, seed=job.seed, max_tokens=job.max_tokens)
    # Each is imported where it is used: a process is to pay for one of them only.
    if method == "agentdescent":
        from bench.peers import agentdescent  # noqa: PLC0415

        agentdescent.evolve(task, chats, print_progress, proposals=None, seed=job.seed)
    elif method == CEILING:
        _load(task, chats)
    else:
        from bench.peers import gepa  # noqa: PLC0415

        parents, mutations = _width(method)
        gepa.evolve(task, chats, print_progress, proposals=None, parents=parents, mutations=mutations, seed=job.seed)


def _width(method: str) -> tuple[int, int]:
    if method == "gepa_sync":
        return 1, 1
    parents, mutations = method.removeprefix("gepa_pxn_").split("x")
    return int(parents), int(mutations)


async def _ours(method: str, job: Job, task: Task) -> None:
    from bench.peers import ours  # noqa: PLC0415 - likewise

    await ours.evolve(
        task,
        hurried(PRESETS[method], job.speed),
        print_progress,
        url=job.url,
        model=job.model,
        concurrency=job.concurrency,
        seed=job.seed,
        max_tokens=job.max_tokens,
    )


def _load(task: Task, chats: Chats) -> None:
    numbers, examples = count(), task.data.val

    def work() -> None:
        while True:
            turn, place = divmod(next(numbers), len(examples))
            # A candidate for every turn, as in evolution: no prompt is in the server's cache from the turn before.
            candidate = {name: f"{text}\n- Version {turn}" for name, text in task.seed().items()}
            roll_out(task, candidate, examples[place], chats)

    print_progress("began")
    print_progress("validated")  # there is nothing to wait for
    with ThreadPoolExecutor(chats.concurrency) as pool:
        for each in [pool.submit(work) for _ in range(chats.concurrency)]:
            each.result()


if __name__ == "__main__":
    perform(sys.argv[1], Job(**json.loads(sys.argv[2])))
