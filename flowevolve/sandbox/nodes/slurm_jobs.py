"""What is asked of Slurm, by submitit: to run jobs that become nodes, and to end them. All of it blocks, in threads.

What submitit pickles is the call of `_work` with texts. What programs are and return never passes through it.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

import anyio
import submitit
from submitit.core.utils import FailedJobError, FailedSubmissionError

from flowevolve._util.errors import InputError
from flowevolve._util.registry import did_you_mean
from flowevolve.core.sandbox_settings import SlurmSettings
from flowevolve.sandbox.nodes.cluster import NodeLostError
from flowevolve.sandbox.nodes.connection import join

MINUTES = 60
"""The time limit of a job, if the settings have none."""
GRACE_SECONDS = 2.0
"""The time that a job whose connection has ended has to end by itself."""
_OF_SUBMITIT = (
    "timeout_min",
    "mem_gb",
    "name",
    "cpus_per_task",
    "gpus_per_node",
    "stderr_to_stdout",
    "slurm_partition",
    "slurm_account",
    "slurm_qos",
    "slurm_setup",
)
"""Keys that go to submitit: all that have no prefix, and the commonest of Slurm's. It knows more of those itself."""
_TAKEN_AWAY = ("PREEMPTED", "REQUEUED", "PENDING", "NODE_FAIL", "TIMEOUT")
"""States of jobs that were well when Slurm ended them."""


def check_settings(settings: SlurmSettings) -> None:
    """Raises:
    InputError: if nobody knows a key, or there is no Slurm here.
    """
    known = [*SlurmSettings.model_fields, *_OF_SUBMITIT]
    for key in settings.settings:
        if key not in _OF_SUBMITIT and not key.startswith(("slurm_", "local_")):
            raise InputError(f"sandbox.slurm.{key}: unknown key; {did_you_mean(key, known)}")
    if settings.executor == "slurm" and shutil.which("sbatch") is None:
        raise InputError(
            "sandbox.on: there is no Slurm on this machine (no sbatch); start the run where you submit jobs, or try "
            'it on this machine alone with sandbox.slurm.executor = "local"'
        )


def make_folder(settings: SlurmSettings) -> Path:
    """A new folder for the files of jobs, which nobody else can read.

    Raises:
        InputError: if it can't be made.
    """
    try:
        settings.folder.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="run-", dir=settings.folder.resolve()))
    except OSError as error:
        raise InputError(f"sandbox.slurm.folder: {settings.folder} can't be written to: {error}") from error


def submit(settings: SlurmSettings, folder: Path, host: str, port: int, secret: str) -> submitit.Job[None]:
    """Submit a job that joins the run at this address.

    Raises:
        InputError: if submitit does not know a setting.
        NodeLostError: if Slurm does not take the job.
    """
    asked = {"timeout_min": MINUTES, "name": "flowevolve", "cpus_per_task": settings.slots, "slurm_use_srun": False}
    try:
        executor = submitit.AutoExecutor(folder, cluster=settings.executor)
        executor.update_parameters(nodes=1, tasks_per_node=1, **{**asked, **settings.settings})
    except (AssertionError, NameError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"sandbox.slurm: submitit does not take this: {_lines(str(error))[0]}") from error
    try:
        return executor.submit(_work, host, port, secret)
    except (FailedJobError, FailedSubmissionError, OSError) as error:
        raise NodeLostError(f"sandbox.slurm: Slurm does not take the job: {_lines(str(error))[-1]}") from error


def end(job: submitit.Job[None], *, by_itself: bool) -> None:
    """Cancel a job, or give it a moment to end ``by_itself``."""
    deadline = time.monotonic() + (GRACE_SECONDS if by_itself else 0)
    while not (ended := job.done()) and time.monotonic() < deadline:
        time.sleep(0.05)
    if not ended:
        job.cancel(check=False)
    if isinstance(job, submitit.LocalJob):  # a process of ours
        job.wait()


def was_taken_away(job: submitit.Job[None]) -> bool:
    """Whether Slurm has taken its node from a job that was well."""
    return job.get_info(mode="force").get("State", "").upper() in _TAKEN_AWAY


def last_said(job: submitit.Job[None]) -> str:
    """The last line of what a job wrote to its standard error."""
    return _lines(job.stderr() or "")[-1]


def _lines(said: str) -> list[str]:
    return [line.strip() for line in said.splitlines() if line.strip()] or ["nothing"]


def _work(host: str, port: int, secret: str) -> None:
    """What a job does: run what the run asks for, as long as that is there."""
    anyio.run(join, host, port, secret, submitit.JobEnvironment().job_id)
