"""How jobs begin and end, and what of them stays."""

from __future__ import annotations

import math
import os
import signal
import socket
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio
import pytest

from flowevolve._util.clock import in_thread
from flowevolve.core.sandbox_settings import SlurmSettings
from flowevolve.sandbox import Sandbox
from flowevolve.sandbox.nodes import slurm_jobs
from tests.support.on_clusters import SETTINGS, pids, until
from tests.support.slurm import environment_of, install_commands, jobs, kill_its_only_job, on, one_job, opened

pytestmark = pytest.mark.anyio


def press_ctrl_c(folder: Path) -> None:
    """Interrupt the processes of jobs that a terminal would interrupt together with this one."""
    of_jobs = pids("submitit", str(folder))
    assert of_jobs
    for process in of_jobs:
        if os.getpgid(process) == os.getpgrp():
            os.kill(process, signal.SIGINT)


async def test_ctrl_c_leaves_jobs_at_work_and_nothing_of_theirs_on_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with opened(on(tmp_path, slots=1)) as evaluators:
        press_ctrl_c(tmp_path)
        outcome = await Sandbox(SETTINGS, evaluators).run("def f(): return [1]", call="f")
        assert outcome.result == [1]
    assert evaluators.counts.lost_nodes == 0
    assert jobs(tmp_path) == []
    assert "Traceback" not in capfd.readouterr().err


async def test_programs_in_a_job_know_interrupts_as_usual(tmp_path: Path) -> None:
    source = "import signal\ndef f(): return not signal.pthread_sigmask(signal.SIG_BLOCK, [])"
    async with opened(on(tmp_path, slots=1)) as evaluators:
        assert (await Sandbox(SETTINGS, evaluators).run(source, call="f")).result is True


@pytest.mark.parametrize("is_stopped", [False, True])
async def test_a_local_job_that_does_not_end_by_itself_is_ended_without_a_word(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], is_stopped: bool
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings, (host, port) = SlurmSettings(executor="local"), server.getsockname()
        job = await in_thread(slurm_jobs.submit, settings, tmp_path, host, port, "a secret")
        connection, _ = await in_thread(server.accept)
        with connection:
            (process,) = jobs(tmp_path)
            if is_stopped:
                os.kill(process, signal.SIGSTOP)
            await in_thread(partial(slurm_jobs.end, job, by_itself=False))
            assert job.done()
            with suppress(ProcessLookupError):  # it may be gone already
                os.kill(process, signal.SIGCONT)
            await until(lambda: jobs(tmp_path) == [])
    assert capfd.readouterr().err == ""


def folders(folder: Path) -> list[Path]:
    return list((folder / "logs").iterdir())


async def test_the_files_of_jobs_are_removed_when_all_has_gone_well(tmp_path: Path) -> None:
    async with opened(on(tmp_path, slots=1)):
        assert folders(tmp_path)
    assert folders(tmp_path) == []


async def test_the_files_of_jobs_are_removed_when_somebody_cancels(tmp_path: Path) -> None:
    with anyio.CancelScope() as scope:
        async with opened(on(tmp_path, slots=1)):
            scope.cancel()
            await anyio.sleep_forever()
    assert folders(tmp_path) == []


async def test_the_files_of_jobs_stay_where_something_went_wrong(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="wrong"):
        async with opened(on(tmp_path, slots=1)):
            raise ValueError("wrong")
    assert folders(tmp_path)


async def test_what_slurm_says_of_a_job_that_wrote_nothing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = install_commands(tmp_path, monkeypatch)
    (commands / "room").touch()
    monkeypatch.setattr("flowevolve.sandbox.nodes.slurm.EARLY_SECONDS", math.inf)
    told: list[str] = []
    async with opened(one_job(tmp_path), told.append) as evaluators:
        (job,) = jobs(tmp_path)
        (commands / "states").write_text(f"{environment_of(job)['SLURM_JOB_ID']}|OUT_OF_MEMORY|node\n")
        await kill_its_only_job(evaluators, tmp_path)
        await until(lambda: evaluators.capacity == 1)
    assert any("killed, such as for want of memory" in line and "(Slurm: OUT_OF_MEMORY)" in line for line in told)


async def test_the_files_of_jobs_stay_where_a_job_has_ended_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowevolve.sandbox.nodes.slurm.EARLY_SECONDS", 0.0)
    async with opened(on(tmp_path, slots=1)) as evaluators:
        await kill_its_only_job(evaluators, tmp_path)
        await until(lambda: evaluators.capacity == 1)
    assert folders(tmp_path)
