"""Evaluators in jobs of Slurm, for tests: jobs of submitit's local executor, and scripts in place of Slurm's commands."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from flowevolve._util.errors import InputError
from flowevolve.core.sandbox_settings import SandboxSettings, SlurmSettings
from flowevolve.sandbox.evaluators import Tell, tell_nobody
from flowevolve.sandbox.nodes.leases import LeasedEvaluators
from flowevolve.sandbox.opening import open_evaluators
from tests.support.on_clusters import SETTINGS, pids, until


def on(folder: Path, settings: SandboxSettings = SETTINGS, **slurm: object) -> SandboxSettings:
    given = {"executor": "local", "folder": folder / "logs", **slurm}
    return settings.model_copy(update={"on": "slurm", "slurm": SlurmSettings.model_validate(given)})


def opened(settings: SandboxSettings, tell: Tell = tell_nobody) -> LeasedEvaluators:
    evaluators = open_evaluators(settings, tell)
    assert isinstance(evaluators, LeasedEvaluators)
    return evaluators


def jobs(folder: Path) -> list[int]:
    """The processes of the jobs whose logs are in this folder."""
    return pids("submitit.core._submit", str(folder))


async def kill_its_only_job(evaluators: LeasedEvaluators, folder: Path) -> None:
    """Kill the job once it is a node, and wait until that is noticed."""
    await until(lambda: evaluators.capacity == 1)
    os.kill(jobs(folder)[0], signal.SIGKILL)
    await until(lambda: evaluators.capacity == 0)


async def refused(settings: SandboxSettings, message: str) -> None:
    with capture_logs(), pytest.raises(InputError, match=message):
        async with open_evaluators(settings):
            pass


COMMANDS = {
    "sbatch": """
cp "$1" FOLDER/submitted
wait=$([ -e FOLDER/once ] && echo room || echo submitted)
touch FOLDER/once
(setsid sh -c 'while [ ! -e FOLDER/'$wait' ]; do sleep 0.1; done; SLURM_JOB_ID=$$ exec bash "$0"' "$1" >/dev/null 2>&1 &
echo "Submitted batch job $!")
""",
    "scancel": """
echo "$1" >> FOLDER/cancelled
kill -KILL "-$1"
""",
    "sacct": """
echo 'JobID|State|NodeList'
[ ! -e FOLDER/states ] || cat FOLDER/states
""",
    "srun": "",
}
"""In place of Slurm's. Jobs have the numbers of their processes; all but the first wait until there is ``room``. What
``sacct`` says of ended ones is in ``states``.
"""


def install_commands(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the scripts on the path; returns their folder."""
    commands = folder / "commands"
    commands.mkdir()
    for name, lines in COMMANDS.items():
        (commands / name).write_text(f"#!/bin/sh\n{lines.replace('FOLDER', str(commands))}")
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    return commands


def asked(folder: Path, **slurm: object) -> SandboxSettings:
    settings = on(folder, SETTINGS, executor="slurm", nodes=2, slots=1, **slurm)
    return settings.model_copy(update={"address": "127.0.0.1"})


def one_job(folder: Path) -> SandboxSettings:
    return asked(folder).model_copy(update={"slurm": asked(folder).slurm.model_copy(update={"nodes": 1})})


def lines_of(process: int, file: str) -> list[str]:
    return Path(f"/proc/{process}/{file}").read_text().split("\0")[:-1]


def environment_of(job: int) -> dict[str, str]:
    return dict(line.split("=", 1) for line in lines_of(job, "environ"))
