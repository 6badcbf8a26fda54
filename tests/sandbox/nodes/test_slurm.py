"""Jobs of Slurm, as far as submitit's local executor and scripts in place of Slurm's commands stand for it: all jobs are
processes of this machine.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio
import pytest
from structlog.testing import capture_logs

from flowevolve._util.errors import BackendUnreachableError
from flowevolve._util.tasks import beside
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox import Sandbox
from flowevolve.sandbox.evaluators import Evaluators
from flowevolve.sandbox.nodes.cluster import NodeLostError
from flowevolve.sandbox.nodes.slurm import SlurmCluster
from flowevolve.sandbox.opening import open_evaluators
from tests.support.evaluators_conformance import (
    EvaluatorsConformance,
    begun,
    processes_of,
    trusted_functions,
    unique_name,
)
from tests.support.on_clusters import (
    RESULTS,
    SETTINGS,
    flowevolve,
    go_on,
    kill_half_way,
    pids,
    slow_programs,
    until,
    write_run,
)
from tests.support.slurm import (
    asked,
    environment_of,
    install_commands,
    jobs,
    kill_its_only_job,
    lines_of,
    on,
    one_job,
    opened,
    refused,
)

pytestmark = pytest.mark.anyio


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


async def test_jobs_that_end_early_three_times_in_a_row_end_the_run_with_their_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowevolve.sandbox.nodes.slurm.EARLY_SECONDS", math.inf)
    with capture_logs() as logs:
        async with opened(on(tmp_path, slots=1)) as evaluators:
            for _ in range(3):
                await kill_its_only_job(evaluators, tmp_path)
            with anyio.fail_after(120), pytest.raises(BackendUnreachableError) as raised:
                await Sandbox(SETTINGS, evaluators).run("def f(): return [1]", call="f")
            assert jobs(tmp_path) == []
    assert "sandbox.on: all jobs of Slurm have ended early" in str(raised.value)
    assert f"in {next((tmp_path / 'logs').iterdir())}" in str(raised.value)
    ended = [log for log in logs if log["event"] == "evaluators.slurm_job_ended_early"]
    assert [log["in_a_row"] for log in ended] == [1, 2, 3]
    assert [log["submitted_again"] for log in ended] == [True, True, False]
    assert ended[-1]["why"] in str(raised.value)
    assert "it was killed, such as for want of memory, and wrote nothing to" in str(raised.value)


async def test_jobs_that_have_worked_for_a_while_are_submitted_again_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowevolve.sandbox.nodes.slurm.EARLY_SECONDS", 0.0)
    async with opened(on(tmp_path, slots=1)) as evaluators:
        for _ in range(4):
            await kill_its_only_job(evaluators, tmp_path)
        await until(lambda: evaluators.capacity == 1)


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


async def test_jobs_that_can_not_run_programs_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    await refused(on(tmp_path), r"job \d+: .*bubblewrap \(bwrap\) is not installed")


async def test_a_job_that_is_gone_before_it_can_begin_is_told_by_name(tmp_path: Path) -> None:
    async with SlurmCluster(on(tmp_path, slots=1)) as cluster:
        (name,) = await cluster.names()
        os.kill(jobs(tmp_path)[0], signal.SIGKILL)
        with pytest.raises(NodeLostError, match=rf"^job {name}: its connection has ended$"):
            await cluster.open(name)


async def test_where_all_jobs_end_at_once_the_last_words_of_one_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "anyio.py").write_text("raise ImportError('not on this node')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    await refused(on(tmp_path), r"all jobs of Slurm have ended early.* says: ImportError: not on this node")


async def test_without_slurm_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    await refused(on(tmp_path, executor="slurm"), r"sandbox.on: there is no Slurm on this machine \(no sbatch\)")


async def test_settings_that_submitit_does_not_know_are_refused(tmp_path: Path) -> None:
    await refused(on(tmp_path, slurm_partitoin="cpu"), r"sandbox.slurm: .*'slurm_partitoin'")
    await refused(on(tmp_path, timeout_min="an hour"), r"sandbox.slurm: .*timeout_min")


@pytest.mark.parametrize(
    ("given", "meant"),
    [("slot", "slots"), ("executer", "executor"), ("mem_bg", "mem_gb"), ("time_min", "timeout_min")],
)
async def test_a_key_that_nobody_knows_is_refused_before_anything_is_made(
    tmp_path: Path, given: str, meant: str
) -> None:
    settings = on(tmp_path, SETTINGS, executor="slurm", **{given: "local"})
    await refused(settings, rf"sandbox.slurm.{given}: unknown key; did you mean '{meant}'\?")
    assert not (tmp_path / "logs").exists()


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


@pytest.mark.parametrize("address", ["127.0.0.1:99999", "127.0.0.1:here"])
async def test_a_port_that_is_none_is_refused(tmp_path: Path, commands: Path, address: str) -> None:
    settings = on(tmp_path, executor="slurm").model_copy(update={"address": address})
    await refused(settings, rf"sandbox.address: '{address}' is no address of this machine")


async def test_an_address_is_refused_where_jobs_are_processes_of_this_machine(tmp_path: Path) -> None:
    settings = on(tmp_path).model_copy(update={"address": "10.0.0.1"})
    await refused(settings, r"sandbox.address: '10.0.0.1' is not for sandbox.slurm.executor 'local'.*=auto")
    assert not (tmp_path / "logs").exists()


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return install_commands(tmp_path, monkeypatch)


async def test_what_sbatch_is_asked_for_is_what_the_settings_say(tmp_path: Path, commands: Path) -> None:
    async with opened(asked(tmp_path, slurm_partition="cpu", timeout_min=5)):
        lines = (commands / "submitted").read_text().splitlines()
    for option in ("partition=cpu", "time=5", "cpus-per-task=1", "nodes=1", "job-name=flowevolve"):
        assert f"#SBATCH --{option}" in lines


async def test_a_job_that_waits_in_the_queue_joins_when_it_begins(tmp_path: Path, commands: Path) -> None:
    async with opened(asked(tmp_path)) as evaluators:
        assert evaluators.capacity == 1
        (commands / "room").touch()
        await until(lambda: evaluators.capacity == 2)
    await until(lambda: jobs(tmp_path) == [])


async def test_a_run_says_what_it_waits_for_and_when_that_has_come(tmp_path: Path, commands: Path) -> None:
    write_run(tmp_path, 'on = "slurm"\naddress = "127.0.0.1"\n[sandbox.slurm]\nslots = 2\n')
    (commands / "once").touch()  # the first job waits, too
    run, output = flowevolve(tmp_path, "run", "config.toml", "--set", "budget.evaluations=1"), tmp_path / "output"
    try:
        await until(lambda: "Slurm: jobs at work: none of 1 for" in output.read_text() or run.poll() is not None)
        (commands / "room").touch()
        await until(lambda: run.poll() is not None)
    finally:
        run.kill()
        run.wait()
    said = output.read_text()
    assert run.returncode == 0, said
    assert "the run waits for the first as long as it takes, and Ctrl-C cancels them" in said
    assert "Slurm: jobs at work: 1 of 1\n" in said


async def test_jobs_that_still_wait_are_cancelled_at_the_end(tmp_path: Path, commands: Path) -> None:
    async with opened(asked(tmp_path)):
        pass
    assert (commands / "cancelled").read_text()
    await until(lambda: pids(str(tmp_path)) == [])


async def test_why_slurm_does_not_take_a_job_is_told(tmp_path: Path, commands: Path) -> None:
    (commands / "sbatch").write_text("#!/bin/sh\necho 'sbatch: error: invalid partition specified: cpu' >&2\nexit 1\n")
    await refused(asked(tmp_path), r"sandbox.slurm: Slurm does not take the job: .*invalid partition specified: cpu")
    assert list((tmp_path / "logs").iterdir()) == []


async def test_preempted_jobs_are_submitted_again_for_ever(
    tmp_path: Path, commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowevolve.sandbox.nodes.slurm.EARLY_SECONDS", math.inf)
    (commands / "room").touch()
    async with opened(one_job(tmp_path)) as evaluators:
        for _ in range(4):
            await until(lambda: evaluators.capacity == 1)
            with (commands / "states").open("a") as states:
                states.writelines(f"{environment_of(job)['SLURM_JOB_ID']}|PREEMPTED|node\n" for job in jobs(tmp_path))
            await kill_its_only_job(evaluators, tmp_path)
        await until(lambda: evaluators.capacity == 1)


async def test_a_requeued_job_takes_its_own_place_though_its_first_connection_never_ended(
    tmp_path: Path, commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when Slurm begins a job elsewhere because its node has fallen silent."""
    monkeypatch.setattr("flowevolve.sandbox.nodes.leases.SILENT_SECONDS", math.inf)
    async with opened(one_job(tmp_path)) as evaluators:
        (first,) = jobs(tmp_path)
        os.kill(first, signal.SIGSTOP)
        with ExitStack() as started:
            started.callback(os.kill, first, signal.SIGKILL)
            started.enter_context(begun_again(first))
            await until(lambda: evaluators.counts.lost_nodes == 1)
            await until(lambda: evaluators.capacity == 1)
            outcome = await Sandbox(SETTINGS, evaluators).run("def f(): return [1]", call="f")
            assert outcome.result == [1]


@contextmanager
def begun_again(job: int) -> Iterator[None]:
    """The same command once more, under the same number of a job."""
    with subprocess.Popen(lines_of(job, "cmdline"), env=environment_of(job), stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()
