"""The process that runs one method and prints its progress until it is killed.

    python -m bench._lib.methods.process METHOD JOB

``JOB`` is a `Job` as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from pydantic import TypeAdapter

from bench._lib.methods.presets import ON_REAL_TIME, PRESETS, sections
from bench._lib.methods.workloads import WORKLOADS, Pipeline, small
from bench.peers.chats import Chats
from bench.peers.examples import roll_out
from bench.peers.progress import print_progress
from flowevolve._util import clock
from flowevolve.core.artifact import Artifact
from flowevolve.core.model import Message
from flowevolve.core.task import Task


@dataclass(frozen=True, slots=True)
class Job:
    """What a method is given. ``speed`` is the factor by which the server is sped up. With ``small``, prompts have less
    text. ``again`` is the file with the requests of another method, which `CEILING` sends again.
    """

    url: str
    model: str
    workload: str
    concurrency: int
    seed: int
    speed: float
    max_tokens: int | None
    small: bool
    again: str | None = None


OURS = (*PRESETS, *ON_REAL_TIME)
METHODS = (
    "gepa_sync",
    *(f"gepa_pxn_{width}" for width in ("2x2", "4x4", "8x8", "1x8", "8x1", "2x8", "8x2")),
    "dspy_gepa_4x4",
    "agentdescent",
    "agentdescent_merging",
    "turbogepa",
    *OURS,
)
"""All methods. Combee is our own implementation, because gepa 0.1.4 has none."""
CEILING = "ceiling"
"""Not a method but endless load: every slot of the client always has a call open. The calls are those of rollouts or,
where the requests of another method are known, these requests in turn, so that prompts and answers have the same mix.
"""


def perform(method: str, job: Job) -> None:
    """Let a method work until the process is killed."""
    workload = WORKLOADS[job.workload]
    task = Pipeline(small(workload) if job.small else workload)
    if method in OURS:
        clock.run(_ours, method, job, task)
        return
    chats = Chats(job.url, job.model, concurrency=job.concurrency, seed=job.seed, max_tokens=job.max_tokens)
    # Each peer is imported where it is used, so that a process pays for the import of one only.
    if method.startswith("agentdescent"):
        from bench.peers import agentdescent  # noqa: PLC0415

        merging = method == "agentdescent_merging"
        agentdescent.evolve(task, chats, print_progress, proposals=None, merging=merging, seed=job.seed)
    elif method == "turbogepa":
        from bench.peers import turbogepa  # noqa: PLC0415

        turbogepa.evolve(task, chats, print_progress, seed=job.seed)
    elif method.startswith("dspy_gepa"):
        from bench.peers import dspy_gepa  # noqa: PLC0415

        parents, mutations = width(method)
        dspy_gepa.evolve(
            task, chats, print_progress, proposals=None, parents=parents, mutations=mutations, seed=job.seed
        )
    elif method == CEILING:
        _load(task, chats, None if job.again is None else Path(job.again))
    else:
        from bench.peers import gepa  # noqa: PLC0415

        parents, mutations = width(method)
        gepa.evolve(task, chats, print_progress, proposals=None, parents=parents, mutations=mutations, seed=job.seed)


def width(method: str) -> tuple[int, int]:
    """How many parents a round of gepa has, and how many mutations it makes of each."""
    if method == "gepa_sync":
        return 1, 1
    parents, mutations = method.rpartition("_")[2].split("x")
    return int(parents), int(mutations)


async def _ours(method: str, job: Job, task: Task) -> None:
    from bench.peers import ours  # noqa: PLC0415 - likewise

    await ours.evolve(
        task,
        sections(method),
        print_progress,
        url=job.url,
        model=job.model,
        concurrency=job.concurrency,
        seed=job.seed,
        max_tokens=job.max_tokens,
    )


def _load(task: Task, chats: Chats, again: Path | None) -> None:
    numbers, examples = count(), task.data.val
    requests = [] if again is None else _REQUESTS.validate_json(again.read_bytes())

    def work() -> None:
        while True:
            turn, place = divmod(next(numbers), len(requests) or len(examples))
            if requests:
                chats(_newer(requests[place].messages, turn), requests[place].max_tokens)
            else:
                roll_out(task, dict(newer_seed(task, turn)), examples[place], chats)

    print_progress("began")
    print_progress("validated")  # no seed has to be validated first
    with ThreadPoolExecutor(chats.concurrency) as pool:
        for each in [pool.submit(work) for _ in range(chats.concurrency)]:
            each.result()


@dataclass(frozen=True, slots=True)
class _Request:
    """The parts of a chat's body that are needed to send it again."""

    messages: tuple[Message, ...]
    max_tokens: int | None = None


_REQUESTS = TypeAdapter(list[_Request])


def _newer(messages: Sequence[Message], turn: int) -> list[Message]:
    """The messages of a request, with another beginning in each later turn, so that the server has none cached."""
    first, *rest = messages
    return [replace(first, content=f"Version {turn}\n{first.content}") if turn else first, *rest]


def newer_seed(task: Task, turn: int) -> Artifact:
    """A new candidate for each turn of the load, as in evolution, so that the server has none of its prompts cached."""
    return Artifact({name: f"{text}\n- Version {turn}" for name, text in task.seed().items()})


if __name__ == "__main__":
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):  # a peer's own output is not progress
        perform(sys.argv[1], Job(**json.loads(sys.argv[2])))
