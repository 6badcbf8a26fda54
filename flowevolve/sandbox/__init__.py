"""Runs untrusted programs in isolation, and returns their results and measurements."""

from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox.measure import Measurement, measure
from flowevolve.sandbox.outcome import Outcome
from flowevolve.sandbox.pair import SandboxPair
from flowevolve.sandbox.pool import Sandbox

__all__ = ["Measurement", "Outcome", "Sandbox", "SandboxPair", "SandboxSettings", "measure"]
