"""How many programs a second are run here, on Ray's nodes and in submitit's jobs."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
from ray.cluster_utils import Cluster

from bench._lib.stats import spread
from bench.evaluations.problem import SEED
from flowevolve._util import clock
from flowevolve.core.sandbox_settings import SandboxSettings, SlurmSettings
from flowevolve.sandbox import Sandbox
from flowevolve.sandbox.nodes.ray import RESOURCE
from flowevolve.sandbox.opening import open_evaluators

SLOTS = 2
WAITING = 16
"""Programs asked for at a time for each slot, about as many as in a run on a cluster."""
WARM_UP = 3.0
GOAL = {"of_the_pool": 0.95, "share_of_50_ms": 0.10}
"""At least this share of the pool's rate; and at most this share of a 50 ms program's time for the cluster itself."""
ON_THIS_MACHINE = {"object_store_memory": 80 * 2**20, "node_ip_address": "127.0.0.1"}


def compare(milliseconds: float, seconds: float, rounds: int) -> dict[str, object]:
    """Compare programs of one length: the rates of each kind, measured in turns, and their share of the pool's."""
    rates: dict[str, list[float]] = {"here": [], "ray": [], "slurm": []}
    with raylets() as address, tempfile.TemporaryDirectory() as folder:
        settings = {
            "here": _settings(),
            "ray": _settings(on="ray", address=address),
            "slurm": _settings(
                on="slurm",
                slurm=SlurmSettings(executor="local", nodes=SLOTS, slots=1, folder=Path(folder)),
            ),
        }
        for _ in range(rounds):
            for kind, found in rates.items():
                found.append(clock.run(_rate, settings[kind], milliseconds, seconds))
    left = {
        kind: spread([there / here for there, here in zip(rates[kind], rates["here"], strict=True)]).as_json()
        for kind in ("ray", "slurm")
    }
    row: dict[str, object] = {
        "milliseconds": milliseconds,
        "per_second": {kind: spread(found).as_json() for kind, found in rates.items()},
        "of_the_pool": left,
        "raw": rates,
    }
    print(json_line(row), flush=True)
    return row


def json_line(row: Mapping[str, object]) -> str:
    return f"{row['milliseconds']} ms: {row['per_second']}, of the pool: {row['of_the_pool']}"


def _settings(**given: object) -> SandboxSettings:
    return SandboxSettings.model_validate({"concurrency": SLOTS, "timeout": 60, "preload": (), **given})


@contextmanager
def raylets() -> Iterator[str]:
    """Start a cluster whose head offers nothing, with a node for each slot. Yields its address."""
    cluster = Cluster(
        initialize_head=True, head_node_args={**ON_THIS_MACHINE, "num_cpus": 0, "include_dashboard": False}
    )
    try:
        for _ in range(SLOTS):
            cluster.add_node(num_cpus=1, resources={RESOURCE: 1}, **ON_THIS_MACHINE)
        yield str(cluster.address)
    finally:
        cluster.shutdown()


async def _rate(settings: SandboxSettings, milliseconds: float, seconds: float) -> float:
    """Programs per second, each of which burns this many milliseconds of a core's time."""
    ended: list[float] = []

    async def ask_again_and_again(sandbox: Sandbox) -> None:
        while True:
            outcome = await sandbox.run(SEED, call="solve", arguments={"milliseconds": milliseconds})
            assert outcome.status == "ok", outcome.stderr
            ended.append(clock.now())

    async with _all_slots(settings) as sandbox, anyio.create_task_group() as tasks:
        for _ in range(SLOTS * WAITING):
            tasks.start_soon(ask_again_and_again, sandbox)
        await anyio.sleep(WARM_UP)
        begun = clock.now()
        await anyio.sleep(seconds)
        tasks.cancel_scope.cancel()
    return sum(begun <= end < begun + seconds for end in ended) / seconds


@asynccontextmanager
async def _all_slots(settings: SandboxSettings) -> AsyncIterator[Sandbox]:
    """A sandbox, once all of its slots are available."""
    async with open_evaluators(settings) as evaluators:
        while evaluators.capacity < SLOTS:  # noqa: ASYNC110 - evaluators don't tell when nodes come
            await anyio.sleep(0.1)
        yield Sandbox(settings, evaluators)
