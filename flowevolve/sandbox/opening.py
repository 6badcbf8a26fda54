"""Opens the evaluators that the settings ask for."""

from __future__ import annotations

from flowevolve._util.errors import InputError
from flowevolve._util.ray_environment import set_ray_environment
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox.evaluators import Evaluators, Tell, tell_nobody
from flowevolve.sandbox.local import LocalEvaluators
from flowevolve.sandbox.nodes.cluster import Cluster
from flowevolve.sandbox.nodes.leases import LeasedEvaluators


def open_evaluators(settings: SandboxSettings, tell: Tell = tell_nobody) -> Evaluators:
    """The evaluators for programs with these settings. ``tell`` receives lines about waiting for nodes of a cluster.

    Raises:
        InputError: if a package that this needs is not installed, or there is no such cluster here.
    """
    if settings.on == "here":
        return LocalEvaluators(settings)
    named = "the Ray cluster" if settings.address == "auto" else f"Ray cluster {settings.address}"
    where = named if settings.on == "ray" else "Slurm"
    return LeasedEvaluators(_cluster(settings, tell), settings.measure_on, where, tell)


async def check_evaluators(settings: SandboxSettings, note: Tell) -> None:
    """Check that programs with these settings can run. No jobs are submitted to Slurm for this, because they may wait
    for hours; ``note`` receives a line that says so, and lines about waiting elsewhere.

    Raises:
        InputError, BackendUnreachableError: if they can't.
    """
    evaluators = open_evaluators(settings, note)
    if settings.on != "slurm":
        async with evaluators:
            return
    from flowevolve.sandbox.nodes.slurm import check_slurm  # noqa: PLC0415 - an extra

    await check_slurm(settings)
    note("no job was submitted, so whether programs can run on the nodes is known only when the first job begins")


def _cluster(settings: SandboxSettings, tell: Tell) -> Cluster:
    if settings.on == "ray":
        set_ray_environment()
        try:
            from flowevolve.sandbox.nodes.ray import RayCluster  # noqa: PLC0415 - an extra
        except ImportError:
            raise InputError("sandbox.on: 'ray' needs Ray: pip install 'flowevolve[ray]'") from None
        return RayCluster(settings)
    try:
        from flowevolve.sandbox.nodes.slurm import SlurmCluster  # noqa: PLC0415 - an extra
    except ImportError:
        raise InputError("sandbox.on: 'slurm' needs submitit: pip install 'flowevolve[slurm]'") from None
    return SlurmCluster(settings, tell)
