"""Which evaluators the settings ask for."""

from __future__ import annotations

from flowevolve._util.errors import InputError
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox.evaluators import Evaluators
from flowevolve.sandbox.local import LocalEvaluators
from flowevolve.sandbox.nodes.leases import LeasedEvaluators


def open_evaluators(settings: SandboxSettings) -> Evaluators:
    """Where programs with these settings run.

    Raises:
        InputError: if what that needs is not installed.
    """
    if settings.on == "here":
        return LocalEvaluators(settings)
    try:
        from flowevolve.sandbox.nodes.ray import RayCluster  # noqa: PLC0415 - an extra
    except ImportError:
        raise InputError("sandbox.on: 'ray' needs Ray: pip install 'flowevolve[ray]'") from None
    return LeasedEvaluators(RayCluster(settings), settings.measure_on)
