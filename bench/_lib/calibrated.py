"""Measuring a server as ``flowevolve calibrate`` does."""

from __future__ import annotations

from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.sim.calibration.calibrate import Calibration, calibrate


async def calibrated(url: str, model: str) -> Calibration:
    """Measure a server with up to 64 requests at a time, and print what is done."""
    transport = AioHTTPTransport(url, None, max_connections=256)
    try:
        return await calibrate(transport, model, most=64, tell=print)
    finally:
        await transport.aclose()
