"""Measuring a server as ``flowevolve calibrate`` does, and what runs predicted from that are compared by."""

from __future__ import annotations

from dataclasses import asdict

from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.sim.calibration.calibrate import Calibration, calibrate

QUANTITIES = ("proposals_per_min", "output_tokens_per_s", "mean_in_flight")
"""The figures of a run by which a prediction with the measured profile is compared."""


async def calibrated(url: str, model: str) -> Calibration:
    """Measure a server with up to 64 requests at a time, and print what is done."""
    transport = AioHTTPTransport(url, None, max_connections=256)
    try:
        return await calibrate(transport, model, most=64, tell=print)
    finally:
        await transport.aclose()


def check_of(found: Calibration) -> dict[str, float] | None:
    """How far the profile is off on requests that nothing was fitted to, for a result; None if that was refused."""
    return None if found.check is None else {**asdict(found.check), "error": found.check.error}
