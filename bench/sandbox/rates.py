"""Programs one after another, and on all cores at once."""

from __future__ import annotations

import os
from statistics import median, quantiles

import anyio

from flowevolve.sandbox import Sandbox, SandboxSettings

TRIVIAL = "def f(x): return x"
BUSY = "import time\ndef f(x):\n    while time.process_time() < x: pass"
BUSY_SECONDS = 0.1


async def one_after_another(programs: int) -> dict[str, float]:
    walls, owns = [], []
    async with Sandbox(SandboxSettings(concurrency=1)) as sandbox:
        for _ in range(programs):
            began = anyio.current_time()
            outcome = await sandbox.run(TRIVIAL, call="f", arguments=[1])
            walls.append(anyio.current_time() - began)
            owns.append(outcome.seconds)
    beside = [wall - own for wall, own in zip(walls, owns, strict=True)]
    return {
        "wall_ms": 1e3 * median(walls),
        "beside_its_own_ms": 1e3 * median(beside),
        "beside_its_own_p95_ms": 1e3 * quantiles(beside, n=20)[-1],
    }


async def all_cores(programs: int) -> dict[str, float]:
    cores = len(os.sched_getaffinity(0))
    async with Sandbox() as sandbox:
        began = anyio.current_time()
        async with anyio.create_task_group() as tasks:
            for _ in range(programs):
                tasks.start_soon(_busy, sandbox)
        took = anyio.current_time() - began
    rate = programs / took
    return {"programs_per_second": rate, "of_the_cores_limit": rate * BUSY_SECONDS / cores}


async def _busy(sandbox: Sandbox) -> None:
    outcome = await sandbox.run(BUSY, call="f", arguments=[BUSY_SECONDS], timeout=60)
    assert outcome.status == "ok", outcome
