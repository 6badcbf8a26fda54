"""Settings that name a cluster where none can be used are refused in one line, before anything is begun."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from os import mkfifo
from pathlib import Path

import pytest
from submitit import AutoExecutor

from flowevolve._util.errors import InputError
from flowevolve.algorithms.meta_harness.evaluator import SandboxEvaluator
from flowevolve.config.run import parse_config
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox.opening import check_evaluators, open_evaluators
from tests.support.slurm import asked, install_commands

ON_RAY = SandboxSettings(on="ray")


def test_without_ray_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "flowevolve.sandbox.nodes.ray", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"sandbox.on: 'ray' needs Ray: pip install 'flowevolve\[ray\]'"):
        open_evaluators(ON_RAY)


def test_without_submitit_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("flowevolve.sandbox.nodes.slurm", "flowevolve.sandbox.nodes.slurm_jobs"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(InputError, match=r"sandbox.on: 'slurm' needs submitit: pip install 'flowevolve\[slurm\]'"):
        open_evaluators(SandboxSettings(on="slurm"))


def test_a_cluster_needs_real_time() -> None:
    table: dict[str, object] = {"clock": "virtual", "sandbox": {"on": "ray"}, "budget": {"evaluations": 1}}
    with pytest.raises(InputError, match=r"clock 'virtual' needs sandbox.on 'here'"):
        parse_config(table, "test")


def test_harnesses_run_here() -> None:
    with pytest.raises(InputError, match=r"sandbox.on: 'ray' is only for programs"):
        SandboxEvaluator(ON_RAY)


@pytest.mark.anyio
async def test_to_check_slurm_no_job_is_submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands, notes = install_commands(tmp_path, monkeypatch), list[str]()
    await check_evaluators(asked(tmp_path), notes.append)
    assert notes == [
        "no job was submitted, so whether programs can run on the nodes is known only when the first job begins"
    ]
    assert not (commands / "submitted").exists()
    assert not (tmp_path / "logs").exists()


@pytest.mark.anyio
async def test_checking_slurm_leaves_no_folder_that_was_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_commands(tmp_path, monkeypatch)
    await check_evaluators(asked(tmp_path / "mine"), print)
    assert not (tmp_path / "mine").exists()


@pytest.mark.anyio
async def test_checking_slurm_leaves_the_folder_to_a_run_that_begins_there_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def beginning(folder: Path, cluster: str) -> AutoExecutor:
        (folder.parent / "run-of-another").mkdir()
        return AutoExecutor(folder, cluster=cluster)

    install_commands(tmp_path, monkeypatch)
    monkeypatch.setattr("submitit.AutoExecutor", beginning)
    await check_evaluators(asked(tmp_path), print)
    assert [each.name for each in (tmp_path / "logs").iterdir()] == ["run-of-another"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("slurm", "message"),
    [
        ({"slurm_partitoin": "cpu"}, r"sandbox.slurm: .*'slurm_partitoin'"),
        ({"mem_bg": 4}, r"sandbox.slurm.mem_bg: unknown key"),
    ],
)
async def test_what_slurm_would_not_take_is_found_without_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slurm: Mapping[str, object], message: str
) -> None:
    install_commands(tmp_path, monkeypatch)
    with pytest.raises(InputError, match=message):
        await check_evaluators(asked(tmp_path, **slurm), print)


@pytest.mark.anyio
@pytest.mark.parametrize("begins", [False, True], ids=["check", "run"])
async def test_folders_that_programs_can_not_read_are_found_without_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begins: bool
) -> None:
    commands = install_commands(tmp_path, monkeypatch)
    piped = tmp_path / "piped"
    piped.mkdir()
    mkfifo(piped / "pipe")
    for folder, message in ((tmp_path / "none", "there is no such folder"), (piped, "pipe is a socket, a pipe or a")):
        settings = asked(tmp_path).model_copy(update={"readable": (folder,)})
        with pytest.raises(InputError, match=f"sandbox.readable: {folder}.*{message}"):
            await (open_evaluators(settings).__aenter__() if begins else check_evaluators(settings, print))
    assert not (commands / "submitted").exists()


@pytest.mark.anyio
async def test_the_sandbox_of_this_machine_is_checked_by_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InputError, match="bubblewrap"):
        await check_evaluators(SandboxSettings(preload=()), print)
