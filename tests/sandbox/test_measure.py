"""Measuring programs: several runs, each alone on a core."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Timer

import anyio
import pytest

from flowevolve._util import clock
from flowevolve._util.cores import usable_cores
from flowevolve._util.errors import InputError
from flowevolve.sandbox import Outcome, Sandbox, SandboxSettings, measure
from flowevolve.sandbox.cores import CoreLock, Cores
from tests.sandbox.test_core_locks import until_queued

pytestmark = pytest.mark.anyio

ONE = SandboxSettings(concurrency=1, preload=())


async def test_a_measurement_drops_the_extremes() -> None:
    source = (
        "def f(mb):\n    x = bytearray(b'1') * (mb * 2 ** 20)\n    for _ in range(10 ** 6): pass\n    return len(x)"
    )
    async with Sandbox(ONE) as sandbox:
        small = await measure(sandbox, source, call="f", arguments=[1])
        large = await measure(sandbox, source, call="f", arguments=[100])
        broken = await measure(sandbox, "1 / 0")
    assert small.integral is not None
    assert large.integral is not None
    assert large.integral > 2 * small.integral
    assert small.integral == pytest.approx(sum(sorted(small.integrals)[1:4]) / 3)
    assert len(small.outcomes) == 5
    assert (broken.integral, len(broken.outcomes), broken.outcomes[0].status) == (None, 1, "error")


async def test_measured_programs_have_one_core() -> None:
    async with Sandbox(ONE) as sandbox:
        outcomes = await sandbox.run_pinned("import os\nresult = len(os.sched_getaffinity(0))", runs=2)
        with pytest.raises(InputError, match="runs is 2, but has to be at least 3"):
            await measure(sandbox, "", runs=2)
    assert [outcome.result for outcome in outcomes] == [1, 1]


@pytest.mark.skipif(len(usable_cores()) < 2, reason="needs two cores")
def test_on_a_virtual_clock_one_process_does_not_wait_for_the_core_of_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Time stands still while a measurement waits for a core, so nobody may keep one until time goes on."""
    cores = sorted(usable_cores())[:2]
    monkeypatch.setattr("flowevolve.sandbox.local.CORES", Cores(cores, tmp_path))
    held, gave_back = CoreLock(tmp_path, cores[1]), Event()
    assert held.try_acquire()

    def give_back() -> None:
        gave_back.set()
        held.close()

    results: list[object] = []

    async def main() -> None:
        async with Sandbox(SandboxSettings(concurrency=2, preload=())) as sandbox, anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(measured, sandbox)

    async def measured(sandbox: Sandbox) -> None:
        results.extend(outcome.result for outcome in await sandbox.run_pinned("result = 1", runs=2))

    last_resort = Timer(60, give_back)  # so that this fails and does not hang
    last_resort.start()
    clock.run(main, clock="virtual")
    last_resort.cancel()
    assert results == [1, 1, 1, 1]
    assert not gave_back.is_set()
    held.close()


def test_a_run_gets_the_core_that_a_run_in_another_thread_gives_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    core = min(usable_cores())
    monkeypatch.setattr("flowevolve.sandbox.local.CORES", Cores([core], tmp_path))
    held = CoreLock(tmp_path, core)
    assert held.try_acquire()

    async def pinned() -> list[Outcome]:
        async with Sandbox(ONE) as sandbox:
            return await sandbox.run_pinned("result = 1")

    async def pinned_and_free() -> list[Outcome]:
        outcomes: list[Outcome] = []
        async with Sandbox(ONE) as sandbox, anyio.create_task_group() as tasks:
            tasks.start_soon(clock.in_thread, held.close)
            outcomes += await sandbox.run_pinned("result = 1")
        return outcomes

    with ThreadPoolExecutor(1) as threads:
        other = threads.submit(clock.run, pinned)
        until_queued(tmp_path, core)
        try:
            assert [outcome.result for outcome in clock.run(pinned_and_free, clock="virtual")] == [1]
        finally:
            assert [outcome.result for outcome in other.result()] == [1]
