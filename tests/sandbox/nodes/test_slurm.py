"""Jobs of Slurm, as far as submitit's local executor stands for it: jobs are processes of this machine."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from flowevolve._util.errors import InputError
from flowevolve._util.tasks import beside
from flowevolve.core.sandbox_settings import SandboxSettings, SlurmSettings
from flowevolve.sandbox.evaluators import Evaluators
from flowevolve.sandbox.nodes.leases import LeasedEvaluators
from flowevolve.sandbox.opening import open_evaluators
from tests.support.evaluators_conformance import (
    EvaluatorsConformance,
    begun,
    processes_of,
    trusted_functions,
    unique_name,
)
from tests.support.on_clusters import RESULTS, SETTINGS, go_on, kill_half_way, pids, slow_programs, until, write_run

pytestmark = pytest.mark.anyio


def on(folder: Path, settings: SandboxSettings = SETTINGS, **slurm: object) -> SandboxSettings:
    given = {"executor": "local", "folder": folder / "logs", **slurm}
    return settings.model_copy(update={"on": "slurm", "slurm": SlurmSettings.model_validate(given)})


def opened(settings: SandboxSettings) -> LeasedEvaluators:
    evaluators = open_evaluators(settings)
    assert isinstance(evaluators, LeasedEvaluators)
    return evaluators


def jobs(folder: Path) -> list[int]:
    """The processes of the jobs whose logs are in this folder."""
    return pids("submitit.core._submit", str(folder))


class TestSlurm(EvaluatorsConformance):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def evaluators(self, settings: SandboxSettings) -> Evaluators:
        return open_evaluators(on(self.folder, settings, slots=2))


async def test_what_a_killed_job_had_runs_elsewhere_and_another_is_submitted_in_its_place(tmp_path: Path) -> None:
    async with opened(on(tmp_path, nodes=2, slots=1)) as evaluators:
        await until(lambda: evaluators.capacity == 2)
        async with slow_programs(evaluators, 4):
            killed = jobs(tmp_path)[0]
            os.kill(killed, signal.SIGKILL)
        await until(lambda: evaluators.capacity == 2)
        assert killed not in jobs(tmp_path)
        assert evaluators.counts.lost_nodes == 1
        assert evaluators.counts.leased_again >= 1
    assert jobs(tmp_path) == []


async def test_a_trusted_function_ends_with_the_job_that_called_it(tmp_path: Path) -> None:
    name, call = unique_name(), trusted_functions(tmp_path)
    async with opened(on(tmp_path, slots=1)) as evaluators, beside() as tasks:
        tasks.start_soon(evaluators.run, call("hang", name))
        await begun(name, 1)
        before = processes_of(name)
        os.kill(jobs(tmp_path)[0], signal.SIGKILL)
        await until(lambda: not set(before) & set(processes_of(name)))


async def test_a_run_that_was_killed_leaves_no_jobs_and_goes_on_elsewhere(tmp_path: Path) -> None:
    write_run(tmp_path, 'on = "slurm"\n[sandbox.slurm]\nexecutor = "local"\nslots = 2\nname = "evolution"\n')
    before = await kill_half_way(tmp_path)
    await until(lambda: jobs(tmp_path) == [])
    after = await go_on(tmp_path, "--set", "sandbox.slurm.nodes=2")
    assert after[: len(before)] == before
    assert len(after) == len(set(after)) == RESULTS
    assert jobs(tmp_path) == []


async def refused(settings: SandboxSettings, message: str) -> None:
    with capture_logs(), pytest.raises(InputError, match=message):
        async with open_evaluators(settings):
            pass


async def test_jobs_that_can_not_run_programs_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    await refused(on(tmp_path), r"job \d+: .*bubblewrap \(bwrap\) is not installed")


async def test_where_all_jobs_end_at_once_the_last_words_of_one_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "anyio.py").write_text("raise ImportError('not on this node')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    await refused(on(tmp_path), r"all jobs of Slurm have ended .* says: ImportError: not on this node")


async def test_without_slurm_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    await refused(on(tmp_path, executor="slurm"), r"sandbox.on: there is no Slurm on this machine \(no sbatch\)")


async def test_settings_that_submitit_does_not_know_are_refused(tmp_path: Path) -> None:
    await refused(on(tmp_path, slurm_partitoin="cpu"), r"sandbox.slurm: .*'slurm_partitoin'")
    await refused(on(tmp_path, timeout_min="an hour"), r"sandbox.slurm: .*timeout_min")


async def test_a_folder_that_can_not_be_written_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file")
    await refused(on(tmp_path), r"sandbox.slurm.folder: .*logs can't be written to")


async def test_an_address_at_which_no_node_could_reach_the_run_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / "sbatch"
    command.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("socket.gethostbyname", lambda name: "127.0.1.1")
    await refused(on(tmp_path, executor="slurm"), r"sandbox.address: the name of this machine, .* leads to 127.0.1.1")
