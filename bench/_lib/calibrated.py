"""Measures a server as ``flowevolve calibrate`` does, and names the figures that predictions are compared by."""

from __future__ import annotations

from dataclasses import asdict

from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.sim.calibration.calibrate import Calibration, calibrate

QUANTITIES = ("proposals_per_min", "output_tokens_per_s", "mean_in_flight")
"""The figures by which a run predicted with the measured profile is compared with the real one."""


async def calibrated(url: str, model: str) -> Calibration:
    """Measure a server with up to 64 requests at a time, and print progress."""
    transport = AioHTTPTransport(url, None, max_connections=256)
    try:
        return await calibrate(transport, model, most=64, tell=print)
    finally:
        await transport.aclose()


def check_of(found: Calibration) -> dict[str, float] | None:
    """For a result file: how far the profile is off on requests it wasn't fitted to; None if there was no check."""
    return None if found.check is None else {**asdict(found.check), "error": found.check.error}
