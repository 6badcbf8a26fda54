"""Runs untrusted programs in isolation, and returns their results and measurements."""

from flowevolve.sandbox.measure import Measurement, measure
from flowevolve.sandbox.outcome import Outcome
from flowevolve.sandbox.pool import Sandbox
from flowevolve.sandbox.settings import SandboxSettings

__all__ = ["Measurement", "Outcome", "Sandbox", "SandboxSettings", "measure"]
