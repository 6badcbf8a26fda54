"""Requests to Slurm through submitit: to run jobs that become nodes, and to end them. All of this blocks and runs in
threads.

submitit pickles only the call of `_work` with texts. Programs and their results never pass through it.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import submitit
from submitit.core.utils import FailedJobError, FailedSubmissionError

from flowevolve._util.errors import InputError, reason_of
from flowevolve._util.registry import did_you_mean
from flowevolve.core.sandbox_settings import SlurmSettings
from flowevolve.sandbox.nodes.cluster import NodeLostError
from flowevolve.sandbox.nodes.connection import join

MINUTES = 60
"""The time limit of a job, if the settings have none."""
GRACE_SECONDS = 2.0
"""How long a job may take to end on its own after its connection has ended, or after it was asked to end."""
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
"""Keys that are passed to submitit: all those without a prefix, and Slurm's commonest. submitit knows more of these."""
_TAKEN_AWAY = ("PREEMPTED", "REQUEUED", "PENDING", "NODE_FAIL", "TIMEOUT")
"""States of jobs that were in order when Slurm ended them."""


def check_settings(settings: SlurmSettings) -> None:
    """Raises:
    InputError: if a key is unknown, or there is no Slurm here.
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
    """Create a folder for the files of jobs that nobody else can read.

    Raises:
        InputError: if it can't be created.
    """
    try:
        settings.folder.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="run-", dir=settings.folder.resolve()))
    except OSError as error:
        raise InputError(f"sandbox.slurm.folder: {settings.folder} can't be written to: {reason_of(error)}") from error


def check(settings: SlurmSettings) -> None:
    """Check all that can be checked without submitting a job. Leaves nothing behind.

    Raises:
        InputError: if a setting is unknown, there is no Slurm here, or the folder can't be written to.
    """
    check_settings(settings)
    made = [each for each in (settings.folder, *settings.folder.parents) if not os.path.lexists(each)]
    folder = make_folder(settings)
    try:
        _executor(settings, folder)
    finally:
        remove_folder(folder)
        with suppress(OSError):  # a run may have begun there meanwhile
            for each in made:
                each.rmdir()


def remove_folder(folder: Path, *, with_logs: bool = True) -> None:
    """Remove the files of jobs that have ended; without ``with_logs`` only if none has written a log.

    Files that a job still has open may stay.
    """
    if with_logs or not any(folder.glob("*_log.err")):
        shutil.rmtree(folder, ignore_errors=True)


def submit(settings: SlurmSettings, folder: Path, host: str, port: int, secret: str) -> submitit.Job[None]:
    """Submit a job that joins the run at this address.

    Raises:
        InputError: if submitit does not know a setting.
        NodeLostError: if Slurm does not accept the job.
    """
    executor = _executor(settings, folder)
    try:
        with _interrupts_held_back():
            return executor.submit(_work, host, port, secret)
    except (FailedJobError, FailedSubmissionError, OSError) as error:
        raise NodeLostError(f"sandbox.slurm: Slurm does not take the job: {_lines(str(error))[-1]}") from error


def _executor(settings: SlurmSettings, folder: Path) -> submitit.AutoExecutor:
    """Raises: InputError if submitit does not know a setting."""
    asked = {"timeout_min": MINUTES, "name": "flowevolve", "cpus_per_task": settings.slots, "slurm_use_srun": False}
    try:
        executor = submitit.AutoExecutor(folder, cluster=settings.executor)
        executor.update_parameters(nodes=1, tasks_per_node=1, **{**asked, **settings.settings})
    except (AssertionError, NameError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"sandbox.slurm: submitit does not take these settings: {_lines(str(error))[0]}") from error
    return executor


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Shield processes that this thread starts meanwhile from the interrupt that Ctrl-C sends to all processes of a
    terminal.

    The interrupt is meant for the run, which goes on with its jobs until it has finished open work. `_leave_terminal`
    lifts this.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end(job: submitit.Job[None], *, by_itself: bool) -> None:
    """Cancel a job; with ``by_itself``, first give it a moment to end on its own."""
    if _has_ended(job, GRACE_SECONDS if by_itself else 0):
        return
    if not isinstance(job, submitit.LocalJob):
        job.cancel(check=False)
        return
    for number in (signal.SIGTERM, signal.SIGKILL):  # submitit would send an interrupt, which causes a traceback
        os.kill(int(job.job_id), number)
        if _has_ended(job, GRACE_SECONDS):
            return


def _has_ended(job: submitit.Job[None], within: float) -> bool:
    """Whether a job has ended, or ends within this many seconds."""
    deadline = time.monotonic() + within
    while not (ended := job.done()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return ended


def was_taken_away(job: submitit.Job[None]) -> bool:
    """Whether Slurm has taken the node away from a job that was in order."""
    return _state(job) in _TAKEN_AWAY


def _state(job: submitit.Job[None]) -> str:
    """A job's state according to Slurm; empty if it is unknown."""
    return job.get_info(mode="force").get("State", "").upper()


def why_ended(job: submitit.Job[None]) -> str:
    """The last line of what a job wrote to its standard error or, if it wrote nothing, what else is known about its
    end.
    """
    if said := _lines(job.stderr() or "")[-1]:
        return said
    of_slurm = f" (Slurm: {state})" if (state := _state(job)) else ""
    if job.paths.result_pickle.exists():
        return f"it has lost its connection to the run, without an error of its own{of_slurm}"
    return f"it was killed, such as for want of memory, and wrote nothing to {job.paths.stderr}{of_slurm}"


def _lines(text: str) -> list[str]:
    """The non-empty lines; a single empty one if there are none."""
    return [line.strip() for line in text.splitlines() if line.strip()] or [""]


def _work(host: str, port: int, secret: str) -> None:
    """The work of a job: do what the run asks, as long as the run is there."""
    environment = submitit.JobEnvironment()
    if environment.cluster == "local":
        _leave_terminal()
    anyio.run(join, host, port, secret, environment.job_id)


def _leave_terminal() -> None:
    """Make this process end only when its run ends it, and let what it starts receive interrupts as usual."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # submitit's handler would go on
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
