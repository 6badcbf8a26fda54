"""Runs programs that nobody trusts, and says what came of them."""

from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox.measure import Measurement, measure
from flowevolve.sandbox.outcome import Outcome
from flowevolve.sandbox.pool import Sandbox

__all__ = ["Measurement", "Outcome", "Sandbox", "SandboxSettings", "measure"]
